/* SPDX-License-Identifier: MIT */
/*
 * embed LIBPYTHON FOLDER WAY...: a C program that starts an interpreter late, runs it in the way
 * named, ends it, and does so again for each WAY:
 *
 *	main	in the main thread
 *	thread	started, run and ended by a second thread
 *	beside	started in the main thread, which goes on in C while a second thread runs Python
 *	later	as main, once FOLDER/start is there
 *	busy	as later, and never sleeps meanwhile
 *
 * In each way step() is called 1000 times, at once where FOLDER is "-"; else Python is busy, makes
 * FOLDER/inside, and waits for FOLDER/go, which it takes away. Says "calls step N" at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	void (*initialize)(int signals);
	int (*finalize)(void);
	int (*run)(const char *text);
	void *(*save)(void);
	void (*restore)(void *state);
	int (*ensure)(void);
	void (*release)(int state);
} py;

static const char *folder;
static atomic_bool over;

static void *symbol(void *lib, const char *name)
{
	void *at = dlsym(lib, name);

	if (!at) {
		fprintf(stderr, "no %s\n", name);
		exit(2);
	}
	return at;
}

static void load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&py.initialize = symbol(lib, "Py_InitializeEx");
	*(void **)&py.finalize = symbol(lib, "Py_FinalizeEx");
	*(void **)&py.run = symbol(lib, "PyRun_SimpleString");
	*(void **)&py.save = symbol(lib, "PyEval_SaveThread");
	*(void **)&py.restore = symbol(lib, "PyEval_RestoreThread");
	*(void **)&py.ensure = symbol(lib, "PyGILState_Ensure");
	*(void **)&py.release = symbol(lib, "PyGILState_Release");
}

static void run(const char *text)
{
	if (py.run(text)) {
		fprintf(stderr, "Python failed\n");
		exit(3);
	}
}

static void work(void)
{
	char text[1024];

	run("def step():\n"
	    "    return 1\n"
	    "def times(n):\n"
	    "    done = 0\n"
	    "    for _ in range(n): done += step()\n"
	    "    assert done == n\n");
	if (!strcmp(folder, "-")) {
		run("times(1000)");
		return;
	}
	snprintf(text, sizeof(text),
		 "import os\n"
		 "def busy():\n"
		 "    for _ in range(2000): pass\n"
		 "open('%s/inside', 'w').close()\n"
		 "while not os.path.exists('%s/go'): busy()\n"
		 "times(1000)\n"
		 "os.remove('%s/go')\n",
		 folder, folder, folder);
	run(text);
}

static void *whole(void *unused)
{
	(void)unused;
	py.initialize(0);
	work();
	py.finalize();
	return NULL;
}

static void *beside(void *unused)
{
	int state = py.ensure();

	(void)unused;
	work();
	py.release(state);
	over = true;
	return NULL;
}

static void run_beside(void)
{
	pthread_t thread;
	void *state;

	py.initialize(0);
	state = py.save();
	over = false;
	pthread_create(&thread, NULL, beside, NULL);
	while (!over)
		; /* at work in C: no system call, no Python */
	pthread_join(thread, NULL);
	py.restore(state);
	py.finalize();
}

static void run_later(bool sleeps)
{
	char start[600];

	snprintf(start, sizeof(start), "%s/start", folder);
	puts("loaded");
	fflush(stdout);
	while (access(start, F_OK)) {
		if (sleeps)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		for (volatile int i = 0; !sleeps && i < 1000000; i++)
			;
	}
	whole(NULL);
}

static void run_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, whole, NULL);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	folder = argv[2];
	puts("ready");
	fflush(stdout);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	load(argv[1]);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "main"))
			whole(NULL);
		else if (!strcmp(argv[i], "thread"))
			run_thread();
		else if (!strcmp(argv[i], "beside"))
			run_beside();
		else if (!strcmp(argv[i], "later"))
			run_later(true);
		else if (!strcmp(argv[i], "busy"))
			run_later(false);
		else
			return 2;
	}
	printf("calls step %d\nself-check ok\n", (argc - 3) * 1000);
	return 0;
}
