/* SPDX-License-Identifier: MIT */
/*
 * unwinds prof|cancel|async: outer() calls through(), which calls below() and leaf(). through() and
 * leaf() are to be hooked. below() looks at its callers each time.
 *
 *	prof	a profiler's signal at 1 kHz takes backtraces wherever it finds a thread
 *	cancel	threads are cancelled, and come to their end at a point behind the calls
 *	async	the same, at once, wherever they are
 *
 * Built with -fexceptions: a cancelled thread is unwound frame by frame.
 */
#include <execinfo.h>
#include <sys/time.h>
#include <ucontext.h>
#include "victim.h"

#define PLACED(where) __attribute__((noinline, noclone, used, section(where)))

enum { FRAMES = 64, WORKERS = 2 };

uint64_t through(uint64_t x);
uint64_t leaf(uint64_t x);

/* The linker's names for the ends of the sections. */
extern const char __start_unwind_outer[], __stop_unwind_outer[];
extern const char __start_unwind_inner[], __stop_unwind_inner[];
static uint64_t calls, errors, traces, foreign, cleaned;
static bool at_once; /* a thread that may be cancelled anywhere may not call backtrace() */

static void wrong(const char *what)
{
	if (__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED) < 5)
		dprintf(2, "unwinds: %s\n", what);
}

static bool within(const void *at, const char *start, const char *stop)
{
	return (const char *)at >= start && (const char *)at < stop;
}

static bool has_outer(void *const *frame, int n)
{
	for (int i = 0; i < n; i++)
		if (within(frame[i], __start_unwind_outer, __stop_unwind_outer))
			return true;
	return false;
}

/* below(), through(), outer(), its caller. */
PLACED("unwind_inner") static void below(void)
{
	void *frame[FRAMES];
	int n = backtrace(frame, FRAMES);

	if (n < 4 || !within(frame[1], __start_unwind_inner, __stop_unwind_inner) ||
	    !within(frame[2], __start_unwind_outer, __stop_unwind_outer))
		wrong("callers that are not the true ones");
}

PLACED("unwind_inner") uint64_t leaf(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 11 + 5;
	VICTIM_OPAQUE(x);
	return x;
}

PLACED("unwind_inner") uint64_t through(uint64_t x)
{
	uint64_t y;

	if (!at_once)
		below();
	y = leaf(x);
	VICTIM_OPAQUE(y);
	return y + 1;
}

static void clean(const int *counted)
{
	__atomic_add_fetch(&cleaned, (uint64_t)*counted, __ATOMIC_RELAXED);
}

PLACED("unwind_outer") static void call(void)
{
	uint64_t i = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);

	if (through(i) != i * 11 + 6)
		wrong("a wrong result");
}

PLACED("unwind_outer") static void outer(void)
{
	__attribute__((cleanup(clean))) int counted = 1;

	call();
	pthread_testcancel();
	VICTIM_OPAQUE(counted);
}

/* Interrupted in a function of ours, its callers are seen. Elsewhere, in libc or in a hook, a trace
 * may be short; it must only come back. */
static void on_prof(int sig, siginfo_t *si, void *context)
{
	const ucontext_t *uc = context;
	const void *pc = (const void *)uc->uc_mcontext.gregs[REG_RIP];
	void *frame[FRAMES];
	int n = backtrace(frame, FRAMES);

	(void)sig;
	(void)si;
	__atomic_add_fetch(&traces, 1, __ATOMIC_RELAXED);
	if (within(pc, __start_unwind_inner, __stop_unwind_inner) && !has_outer(frame, n))
		wrong("a profiler does not see the callers");
	if (n < 2)
		wrong("no trace at all");
	if (n == 3)
		__atomic_add_fetch(&foreign, 1, __ATOMIC_RELAXED);
}

static void *worker(void *arg)
{
	while (!victim_stop)
		outer();
	return arg;
}

static void profile(void)
{
	struct itimerval khz = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_sigaction = on_prof, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t t[WORKERS];

	sigaction(SIGPROF, &sa, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, NULL);
	setitimer(ITIMER_PROF, &khz, NULL);
	victim_ready();
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	printf("traces %llu\nended in a hook %llu\n", (unsigned long long)traces,
	       (unsigned long long)foreign);
}

static void *cancelled(void *arg)
{
	pthread_setcanceltype(at_once ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED,
			      NULL);
	/* Without a cleanup at once: GCC's has a misaligned stack where a thread was between calls.
	 */
	for (;;)
		if (at_once)
			call();
		else
			outer();
	return arg;
}

static void cancel(void)
{
	uint64_t ended = 0;

	victim_ready();
	while (!victim_stop) {
		void *result = NULL;
		pthread_t t;

		pthread_create(&t, NULL, cancelled, NULL);
		victim_sleep_ns(ended % 4 * 500000);
		pthread_cancel(t);
		pthread_join(t, &result);
		ended += result == PTHREAD_CANCELED;
	}
	printf("cancelled %llu\ncleaned %llu\n", (unsigned long long)ended,
	       (unsigned long long)cleaned);
	if (!at_once && cleaned != calls)
		wrong("an end that was not cleaned up after");
}

int main(int argc, char **argv)
{
	void *frame[FRAMES];
	const char *mode = argc > 1 ? argv[1] : "prof";

	at_once = strcmp(mode, "async") == 0;
	backtrace(frame, FRAMES); /* loads what it needs */
	victim_catch_term();
	if (strcmp(mode, "prof") == 0)
		profile();
	else
		cancel();
	victim_calls("outer", calls);
	return victim_done(!errors && calls);
}
