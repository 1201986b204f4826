/* SPDX-License-Identifier: MIT */
/*
 * cuda [-t THREADS] [-n ROUNDS] [-u NS] [-r] [-e] [-k|-K] [-g GATE] [-c CUPTI] [-d DEVICE] [-f]
 * [-F] [-l SLOW] [-b LAUNCHES] LIBRARY: a program that uses a CUDA driver as frameworks do: LIBRARY
 * (victim-cuda.c) is opened with dlopen(), and all functions come from cuGetProcAddress. Each
 * thread asks for another variant of them. A round launches three kernels, copies and allocates,
 * and waits once; -r adds a copy of a rectangle, -e calls that fail, -k kernels that each thread
 * asks for by name behind the gate, -K in front of it, -c opens one more library, -d a file as the
 * driver's device, -f forks a child that does the same work, -F at the end one that exits, -l has a
 * thread that opens one more library, -b has each thread launch so often in front of its first
 * round, without a break. Without -n it works until SIGTERM, with -u it sleeps for so
 * long after each round. At the end it prints the library's own log, the ns that it measured around
 * the waits as `took sync NS`, and those that it measured from the return of a launch to the next
 * call of one, in the same thread, as `took gaps NS`.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "victim.h"

typedef int get_fn(const char *name, void **f, int version, uint64_t flags, int *status);

/* CUlaunchConfig of cuda.h. */
struct config {
	unsigned grid[3], block[3], shared;
	void *stream;
	void *attributes;
	unsigned n_attributes;
};

struct functions {
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*launch_ex)(const struct config *, void *, void **, void **);
	int (*graph)(void *, void *);
	int (*alloc)(unsigned long long *, size_t);
	int (*alloc_async)(unsigned long long *, size_t, void *);
	int (*alloc_host)(void **, size_t);
	int (*free)(unsigned long long);
	int (*to_device)(unsigned long long, const void *, size_t);
	int (*to_host)(void *, unsigned long long, size_t, void *);
	int (*peer)(unsigned long long, void *, unsigned long long, void *, size_t);
	int (*rectangle)(const void *);
	int (*set)(unsigned long long, unsigned, size_t);
	int (*event)(void *, void *);
	int (*query)(void *);
	int (*current)(void **);
	int (*sync)(void *);
	int (*sync_all)(void);
	int (*get_function)(void **, void *, const char *);
	int (*get_kernel)(void **, void *, const char *);
	int (*kernel_function)(void **, void *);
};

static const struct name {
	const char *name;
	size_t at;
} names[] = {
	{ "cuLaunchKernel", offsetof(struct functions, launch) },
	{ "cuLaunchKernelEx", offsetof(struct functions, launch_ex) },
	{ "cuGraphLaunch", offsetof(struct functions, graph) },
	{ "cuMemAlloc", offsetof(struct functions, alloc) },
	{ "cuMemAllocAsync", offsetof(struct functions, alloc_async) },
	{ "cuMemAllocHost", offsetof(struct functions, alloc_host) },
	{ "cuMemFree", offsetof(struct functions, free) },
	{ "cuMemcpyHtoD", offsetof(struct functions, to_device) },
	{ "cuMemcpyDtoHAsync", offsetof(struct functions, to_host) },
	{ "cuMemcpyPeer", offsetof(struct functions, peer) },
	{ "cuMemcpy2D", offsetof(struct functions, rectangle) },
	{ "cuMemsetD32", offsetof(struct functions, set) },
	{ "cuEventRecord", offsetof(struct functions, event) },
	{ "cuEventQuery", offsetof(struct functions, query) },
	{ "cuCtxGetCurrent", offsetof(struct functions, current) },
	{ "cuStreamSynchronize", offsetof(struct functions, sync) },
	{ "cuCtxSynchronize", offsetof(struct functions, sync_all) },
	{ "cuModuleGetFunction", offsetof(struct functions, get_function) },
	{ "cuLibraryGetKernel", offsetof(struct functions, get_kernel) },
	{ "cuKernelGetFunction", offsetof(struct functions, kernel_function) },
};

static struct {
	int threads;
	uint64_t rounds, pause_ns, burst;
	bool rectangles, errors, names, early_names, forks, exits;
	const char *gate, *cupti, *device, *slow;
	get_fn *get;
	int (*init)(unsigned);
} all = { .threads = 1, .rounds = UINT64_MAX };

#define KERNEL(n) ((void *)(uintptr_t)((n)*4096)) /* a handle, as the library counts them */

static uint64_t sync_ns, gap_ns;
static __thread uint64_t launched_ns; /* when the last launch returned */

static void gap_begins(void)
{
	launched_ns = victim_now_ns();
}

static void gap_ends(void)
{
	if (launched_ns)
		__atomic_add_fetch(&gap_ns, victim_now_ns() - launched_ns, __ATOMIC_RELAXED);
}

#define LAUNCH(call)          \
	do {                  \
		gap_ends();   \
		bad |= call;  \
		gap_begins(); \
	} while (0)

static bool get_all(struct functions *f, uint64_t flags)
{
	bool ok = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ok &= all.get(names[i].name, (void **)(void *)((char *)f + names[i].at), 13000,
			      flags, NULL) == 0;
	return ok;
}

static int wait_for_device(const struct functions *f, uint64_t round)
{
	uint64_t from = victim_now_ns();
	int bad = round % 2 ? f->sync(NULL) : f->sync_all();

	__atomic_add_fetch(&sync_ns, victim_now_ns() - from, __ATOMIC_RELAXED);
	return bad;
}

/* Calls that fail; every third round asks for an event once more. */
static int fail(const struct functions *f, uint64_t round)
{
	unsigned long long p;
	int bad = 0;

	LAUNCH(f->launch(KERNEL(5), 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL) != 1);
	bad |= f->alloc(&p, 1ull << 50) != 2;
	bad |= f->query(&p) != 600;
	if (round % 3 == 0)
		bad |= f->query(&p) != 600;
	bad |= f->query(NULL);
	return bad | (f->free(13) != -77);
}

/* Its arguments are in memory: the thread's own stack, in every fifth round a place elsewhere. */
static int launch_by_config(const struct functions *f, uint64_t round)
{
	static const struct config elsewhere = { { 5, 5, 5 }, { 6, 6, 6 }, 7, KERNEL(8), NULL, 0 };
	struct config own = {
		{ 9 + (unsigned)(round % 3), 8, 7 }, { 32, 2, 3 }, 1024, KERNEL(6), NULL, 0
	};
	int bad = 0;

	LAUNCH(f->launch_ex(round % 5 ? &own : &elsewhere, KERNEL(4), NULL, NULL));
	return bad;
}

/* Asks for a kernel by a name that is gone afterwards, in memory of its own or on the stack, if it
 * is short. In front of it are as many letters as the length needs. */
static int ask_for(int (*get)(void **, void *, const char *), const char *name, size_t length,
		   void *expected)
{
	char *copy = malloc(length + 1), stack[64];
	void **where = malloc(sizeof(*where)), *own = NULL;
	int bad;

	memset(copy, 'n', length);
	memcpy(copy + length - strlen(name), name, strlen(name) + 1);
	bad = get(where, KERNEL(12), copy) || *where != expected;
	memset(copy, '!', length);
	free(copy);
	free(where);
	if (length == strlen(name)) {
		strcpy(stack, name);
		bad |= get(&own, KERNEL(12), stack) || own != expected;
		strcpy(stack, "changed");
	}
	bad |= get((void **)16, NULL, "not found") != 500;
	return bad | (get(NULL, NULL, "") != 500);
}

/* Handle 5 is not asked for. */
static int ask_for_all(const struct functions *f)
{
	void *function;
	int bad;

	bad = ask_for(f->get_function, "add_1", 5, KERNEL(1));
	bad |= ask_for(f->get_function, "_Z6kernelILi3EEvPf_2", 20, KERNEL(2));
	bad |= ask_for(f->get_function, "k_3", 3, KERNEL(3));
	bad |= ask_for(f->get_function, "l_13", 300, KERNEL(13));
	bad |= ask_for(f->get_function, "m_14", 3000, KERNEL(14));
	bad |= ask_for(f->get_kernel, "tile \"4\" of \xc3\xa4_4", 16, KERNEL(4));
	bad |= ask_for(f->get_kernel, "matmul_10", 9, KERNEL(10));
	bad |= f->kernel_function(&function, KERNEL(10)) || function != KERNEL(11);
	return bad;
}

static int one_round(const struct functions *f, uint64_t round)
{
	unsigned long long p = 0x7f0000000000;
	void *host;
	int bad = 0;

	LAUNCH(f->launch(KERNEL(1), 80, 3, 2, 256, 1, 4, 48, KERNEL(7 + round % 5), NULL, NULL));
	LAUNCH(f->launch(KERNEL(2 + round % 2), 40, 2, 1, 128, 1, 1, 0, NULL, NULL, NULL));
	bad |= launch_by_config(f, round);
	if (all.names || all.early_names)
		LAUNCH(f->launch(KERNEL(11), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	bad |= f->graph(NULL, NULL);
	bad |= f->alloc(&p, 4096 + round);
	bad |= f->alloc_async(&p, 1 << 20, NULL);
	bad |= f->alloc_host(&host, 512);
	bad |= f->to_device(p, &p, 1000 + round % 7);
	bad |= f->to_host(&p, p, 333, NULL);
	bad |= f->peer(p, NULL, p, NULL, 5000000000);
	if (all.rectangles)
		bad |= f->rectangle(NULL);
	bad |= f->set(p, 1, 2);
	bad |= f->event(NULL, NULL);
	bad |= f->current(&host);
	bad |= f->free(p);
	if (all.errors)
		bad |= fail(f, round);
	return bad | wait_for_device(f, round);
}

static void *work(void *arg)
{
	struct functions f = { 0 };
	intptr_t bad = !get_all(&f, (uintptr_t)arg % 2 ? 2 : 1);

	if (all.early_names)
		bad |= ask_for_all(&f);
	victim_gate(all.gate);
	if (all.names)
		bad |= ask_for_all(&f);
	for (uint64_t i = 0; i < all.burst; i++)
		bad |= f.launch(KERNEL(1), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	for (uint64_t i = 0; i < all.rounds && !victim_stop && !bad; i++) {
		bad |= one_round(&f, i);
		if (all.pause_ns)
			victim_sleep_ns(all.pause_ns);
	}
	return (void *)bad;
}

static bool open_library(const char *path, void (**log)(void))
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	all.get = (get_fn *)dlsym(lib, "cuGetProcAddress_v2");
	*log = (void (*)(void))dlsym(lib, "victim_cuda_log");
	return all.get && *log &&
	       all.get("cuInit", (void **)(void *)&all.init, 13000, 0, NULL) == 0;
}

/* A library that is mapped beside, and what the driver opens when it is initialized. */
static bool open_device(void)
{
	if (all.cupti && !dlopen(all.cupti, RTLD_NOW | RTLD_GLOBAL)) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	return !all.device || open(all.device, O_RDWR | O_CLOEXEC) >= 0;
}

/* A child that only exits, in order: at once. */
static bool exit_of_child(void)
{
	uint64_t from = victim_now_ns();
	pid_t pid = fork();
	int status;

	if (!pid)
		exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		return false;
	printf("took child %llu\n", (unsigned long long)(victim_now_ns() - from));
	return true;
}

static void *open_slow(void *arg)
{
	(void)arg;
	victim_sleep_ns(200000000); /* the others have what they ask the linker for */
	if (!dlopen(all.slow, RTLD_NOW))
		fprintf(stderr, "%s\n", dlerror());
	return NULL;
}

static void read_options(int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "t:n:u:rekKg:c:d:fFl:b:")) >= 0;) {
		if (c == 't')
			all.threads = atoi(optarg);
		else if (c == 'n')
			all.rounds = strtoull(optarg, NULL, 10);
		else if (c == 'u')
			all.pause_ns = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			all.rectangles = true;
		else if (c == 'e')
			all.errors = true;
		else if (c == 'k')
			all.names = true;
		else if (c == 'K')
			all.early_names = true;
		else if (c == 'g')
			all.gate = optarg;
		else if (c == 'c')
			all.cupti = optarg;
		else if (c == 'd')
			all.device = optarg;
		else if (c == 'f')
			all.forks = true;
		else if (c == 'F')
			all.exits = true;
		else if (c == 'l')
			all.slow = optarg;
		else if (c == 'b')
			all.burst = strtoull(optarg, NULL, 10);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[64], slow;
	void (*log)(void);
	pid_t child = -1;
	bool ok;

	read_options(argc, argv);
	victim_catch_term();
	if (optind >= argc || all.threads > 64 || !open_library(argv[optind], &log))
		return 2;
	ok = all.init(0) == 0 && open_device();
	if (ok && all.forks)
		child = fork();
	for (int i = 0; i < all.threads; i++)
		pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i);
	if (all.slow)
		pthread_create(&slow, NULL, open_slow, NULL);
	victim_ready();
	for (int i = 0; i < all.threads; i++) {
		void *bad;

		pthread_join(thread[i], &bad);
		ok &= !bad;
	}
	if (child == 0)
		_exit(!ok);
	if (child > 0) {
		int status;

		ok &= waitpid(child, &status, 0) == child && !status;
	}
	if (all.exits)
		ok &= exit_of_child();
	log();
	printf("took sync %llu\ntook gaps %llu\n", (unsigned long long)sync_ns,
	       (unsigned long long)gap_ns);
	return victim_done(ok);
}
