/* SPDX-License-Identifier: MIT */
/*
 * frames MODE GATE: a thread calls frame_fn(), and a signal comes once a call takes long (which
 * only a hook makes it do). The victim prints "caught" and waits for the file GATE; then
 * everything goes on as it was meant to. Where the thread stands meanwhile:
 *
 *	plain	in the handler
 *	alt	in the handler, on an alternate stack
 *	nested	in a handler on an alternate stack that interrupted a handler on the thread's own
 *	deep	in the handler, 200 KB further down the stack
 *	coro	out of the handler by swapcontext(), whose frame waits on a coroutine's stack
 *	stale	the handler is long over; its frame lies in a local buffer that was never written
 *	entry	in a handler for a fault of the second instruction of entry_fn()
 */
#include <sys/mman.h>
#include <ucontext.h>
#include "victim.h"

uint64_t frame_fn(uint64_t x);
uint64_t entry_fn(const uint64_t *p);

enum { STACK = 256 << 10, LONG_NS = 20000000, COVER = 128 << 10 };

static const char *mode, *gate;
static pthread_t worker_thread;
static uint64_t calls, errors, in_call_since;
static volatile sig_atomic_t caught, nested;
static ucontext_t main_ctx, coro_ctx, handler_ctx;
static uint64_t *guarded;

VICTIM_HOOKED uint64_t frame_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 7 + 3;
	VICTIM_OPAQUE(x);
	return x;
}

/* A fault at its second instruction, which lies in the bytes that a jump replaces. */
__asm__(".pushsection .text\n"
	".globl entry_fn\n"
	".type entry_fn, @function\n"
	"	.balign 16\n"
	"entry_fn:\n"
	"	push	%rbx\n"
	"	mov	(%rdi), %rax\n"
	"	mov	%rax, %rbx\n"
	"	lea	1(%rbx), %rax\n"
	"	pop	%rbx\n"
	"	ret\n"
	"	.size entry_fn, . - entry_fn\n"
	".popsection\n");

static bool is(const char *name)
{
	return strcmp(mode, name) == 0;
}

static void say_caught(void)
{
	if (write(STDOUT_FILENO, "caught\n", 7) != 7)
		errors++;
}

static void stand(void)
{
	say_caught();
	victim_gate(gate);
}

static __attribute__((noinline)) void stand_deep(void)
{
	char deep[200 << 10];
	char *p = deep;

	VICTIM_OPAQUE(p);
	stand();
	VICTIM_OPAQUE(p);
}

static void on_nested(int sig)
{
	(void)sig;
	stand();
	nested = 1;
}

static void on_signal(int sig)
{
	(void)sig;
	if (caught)
		return;
	caught = 1;
	if (is("stale"))
		return;
	if (is("nested"))
		raise(SIGUSR2);
	else if (is("deep"))
		stand_deep();
	else if (is("coro"))
		swapcontext(&handler_ctx, &main_ctx);
	else
		stand();
}

static void on_fault(int sig)
{
	(void)sig;
	stand();
	if (mprotect(guarded, 4096, PROT_READ | PROT_WRITE))
		_exit(3);
}

static void call(void)
{
	__atomic_store_n(&in_call_since, victim_now_ns(), __ATOMIC_RELEASE);
	if (frame_fn(calls) != calls * 7 + 3)
		errors++;
	__atomic_store_n(&in_call_since, 0, __ATOMIC_RELEASE);
	calls++;
}

/* Its buffer lies where the handler's frame was. */
static __attribute__((noinline)) void stand_covered(void)
{
	char cover[COVER];
	char *p = cover;

	VICTIM_OPAQUE(p);
	stand();
	VICTIM_OPAQUE(p);
}

static void call_until_stop(void)
{
	bool covered = false;

	while (!victim_stop) {
		call();
		if (is("stale") && caught && !covered) {
			covered = true;
			stand_covered();
		}
		if (!in_call_since)
			victim_sleep_ns(1000000);
	}
}

static void coroutine(void)
{
	call_until_stop();
}

static void run_coroutine(void)
{
	static char stack[STACK];

	getcontext(&coro_ctx);
	coro_ctx.uc_stack.ss_sp = stack;
	coro_ctx.uc_stack.ss_size = sizeof(stack);
	coro_ctx.uc_link = &main_ctx;
	makecontext(&coro_ctx, coroutine, 0);
	swapcontext(&main_ctx, &coro_ctx);
	while (caught == 1 && !victim_stop) { /* the handler came back here instead of ending */
		stand();
		caught = 2;
		swapcontext(&main_ctx, &handler_ctx);
	}
}

static void run_entry(void)
{
	guarded = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*guarded = 41;
	mprotect(guarded, 4096, PROT_NONE);
	if (entry_fn(guarded) != 42)
		errors++;
	while (!victim_stop) {
		if (entry_fn(guarded) != 42)
			errors++;
		calls++;
		victim_sleep_ns(1000000);
	}
}

static void *worker(void *arg)
{
	static char alt[STACK];
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };

	sigaltstack(&ss, NULL);
	if (is("entry"))
		run_entry();
	else if (is("coro"))
		run_coroutine();
	else
		call_until_stop();
	return arg;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction nest = { .sa_handler = on_nested, .sa_flags = SA_ONSTACK };
	struct sigaction fault = { .sa_handler = on_fault };

	sa.sa_flags = is("alt") ? SA_ONSTACK : 0;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &nest, NULL);
	sigaction(SIGSEGV, &fault, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	mode = argv[1];
	gate = argv[2];
	victim_catch_term();
	catch_signals();
	if (pthread_create(&worker_thread, NULL, worker, NULL))
		return 2;
	victim_ready();
	while (!victim_stop) {
		uint64_t since = __atomic_load_n(&in_call_since, __ATOMIC_ACQUIRE);

		if (since && !caught && victim_now_ns() - since > LONG_NS)
			pthread_kill(worker_thread, SIGUSR1);
		victim_sleep_ns(5000000);
	}
	pthread_join(worker_thread, NULL);
	victim_calls("frame_fn", calls);
	return victim_done(errors == 0 && nested == is("nested"));
}
