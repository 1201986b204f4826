/* SPDX-License-Identifier: MIT */
/*
 * stacks FILE [ROUNDS]
 *
 * Calls slow() by known ways and writes into FILE, for each of its calls, who called it: a line
 * with the call's number, the way, and the return addresses as FILE+0xOFFSET, the innermost first.
 * Built with the unwinder's tables they come from the C library's unwinder, with frame pointers
 * only (VICTIM_POINTERS) from these.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "victim.h"

enum { FRAMES = 100, DEEP = 60 };

static FILE *out;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static long serial;
static _Thread_local const char *volatile way; /* raise() is a leaf to the compiler */

long slow(long id, long us);
long first(long us);
long second(long us);
long recurse(long us, int depth);

#ifdef VICTIM_POINTERS
int main(int argc, char **argv);

/* Up to the first one in another file, which has no frame pointers. */
static inline __attribute__((always_inline)) int callers(void **to)
{
	void **frame = __builtin_frame_address(0);
	Dl_info self, info;
	int n = 0;

	dladdr((void *)main, &self);
	for (; n < FRAMES && dladdr(frame[1], &info) && info.dli_fbase == self.dli_fbase;
	     frame = frame[0])
		to[n++] = frame[1];
	return n;
}
#else
/* Without callers() and slow() themselves. */
static __attribute__((noinline)) int callers(void **to)
{
	void *all[FRAMES];
	int n = backtrace(all, FRAMES) - 2;

	memcpy(to, all + 2, (size_t)(n > 0 ? n : 0) * sizeof(*to));
	return n;
}
#endif

static void say(long id, void *const *at, int n)
{
	pthread_mutex_lock(&out_lock);
	fprintf(out, "%ld %s", id, way);
	for (int i = 0; i < n; i++) {
		Dl_info info = { 0 };

		if (!dladdr(at[i], &info) || !info.dli_fname)
			break;
		fprintf(out, " %s+0x%lx", info.dli_fname,
			(unsigned long)((char *)at[i] - (char *)info.dli_fbase));
	}
	fputc('\n', out);
	fflush(out);
	pthread_mutex_unlock(&out_lock);
}

VICTIM_HOOKED long slow(long id, long us)
{
	void *at[FRAMES];
	int n;

	VICTIM_OPAQUE(us);
	if (us) {
		n = callers(at);
		say(id, at, n);
		victim_sleep_ns((uint64_t)us * 1000);
	}
	VICTIM_OPAQUE(us);
	return id;
}

static long next(void)
{
	return __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
}

VICTIM_HOOKED long first(long us)
{
	long id = slow(next(), us);

	VICTIM_OPAQUE(id);
	return id;
}

/* With a frame of its own, and registers in use across the call. */
VICTIM_HOOKED long second(long us)
{
	volatile char room[333];
	long a = us * 3, b = us ^ 7, id;

	memset((char *)room, (int)us, sizeof(room));
	id = slow(next(), us);
	VICTIM_OPAQUE(id);
	return a == us * 3 && b == (us ^ 7) ? id + room[1] - (char)us : -1;
}

VICTIM_HOOKED long recurse(long us, int depth)
{
	volatile char room[200];
	long id;

	room[depth % 200] = 1;
	id = depth ? recurse(us, depth - 1) : first(us);
	VICTIM_OPAQUE(id);
	return id + room[depth % 200];
}

static long compare_us;

static int compare(const void *a, const void *b)
{
	int less = *(const int *)a - *(const int *)b;

	second(compare_us);
	VICTIM_OPAQUE(less);
	return less;
}

/* Through the C library, which calls back. */
static void sort(long us)
{
	int array[2] = { 2, 1 };

	way = "library";
	compare_us = us;
	qsort(array, 2, sizeof(*array), compare);
}

static void handler(int sig)
{
	(void)sig;
	first(2000);
}

static void by_signal(bool alternate)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = alternate ? SA_ONSTACK : 0 };

	way = alternate ? "alternate" : "signal";
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
}

static ucontext_t main_context, other_context;

static void coroutine(void)
{
	way = "coroutine";
	recurse(2000, 3);
}

static void by_coroutine(void)
{
	static char stack[64 << 10];

	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	other_context.uc_link = &main_context;
	makecontext(&other_context, coroutine, 0);
	swapcontext(&main_context, &other_context);
}

static void *in_thread(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++) {
		way = "thread";
		recurse(1500, 2);
		second(1500);
	}
	return NULL;
}

static void all(void)
{
	way = "direct";
	first(2000);
	second(2000);
	recurse(2000, 7);
	slow(next(), 2000);
	way = "deep";
	recurse(2000, DEEP);
	sort(2000);
	by_signal(false);
	by_signal(true);
	by_coroutine();
	for (int i = 0; i < 50; i++)
		slow(-1, 0);
}

static void in_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		way = "child";
		second(2000);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

int main(int argc, char **argv)
{
	static char alternate[64 << 10];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	long rounds = argc > 2 ? atol(argv[2]) : 1;
	pthread_t t[2];

	out = fopen(argv[1], "a");
	if (!out || sigaltstack(&ss, NULL))
		return 1;
	way = "first";
	callers((void *[FRAMES]){ NULL }); /* loads the unwinder's library */
	victim_ready();
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, in_thread, (void *)rounds);
	for (long i = 0; i < rounds; i++)
		all();
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	in_child();
	printf("calls slow %ld\nself-check ok\n", serial);
	return 0;
}
