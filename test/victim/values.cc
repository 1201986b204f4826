// SPDX-License-Identifier: MIT
// values [THREADS [CALLS]]: functions whose results say what their arguments were, in threads and in
// a signal handler at once. Some calls are left by an exception, some by longjmp(). Prints "calls NAME
// N", "returned NAME N", "sum NAME WHAT N" (without negative values), as the program itself knows it.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <vector>

#define HOOKED __attribute__((noinline, noclone, used))
#define OPAQUE(x) asm volatile("" : "+r"(x) : : "memory")

static std::atomic<unsigned long long> calls, returned, sum_n, sum_ret, tails, firsts, wrong;
static thread_local jmp_buf *out;

// The result of v_call(): negative for some.
static long result(int fd, unsigned n) { return n % 5 ? n * 3l + fd : -static_cast<long>(n); }

static void leave(unsigned n)
{
	if (n % 13 == 0 && out)
		longjmp(*out, 1);
	if (n % 7 == 0)
		throw std::runtime_error("7");
}

extern "C" HOOKED long v_call(int fd, const void *p, unsigned n)
{
	const void *own = p;

	OPAQUE(own);
	if (reinterpret_cast<uintptr_t>(own) != n * 16ul + 4096)
		wrong++;
	leave(n);
	return result(fd, n);
}

extern "C" HOOKED long v_leaf(long x)
{
	OPAQUE(x);
	return x * 2;
}

// Ends with a jump to v_leaf(): what it returns is not known where it ends.
extern "C" HOOKED long v_tail(long x)
{
	long y = x + 1000;

	OPAQUE(x);
	OPAQUE(y);
	y -= x; // long enough for two hooks
	OPAQUE(y);
	return v_leaf(x + y - 999);
}

// The first instruction changes the first argument.
extern "C" long v_first(long x, long y);
asm(".text\n.globl v_first\n.type v_first, @function\nv_first:\n"
    "	lea 7(%rdi), %rdi\n	mov %rdi, %rax\n	add %rsi, %rax\n	mov %rax, %rcx\n"
    "	mov %rcx, %rax\n	mov %rax, %rdx\n	ret\n.size v_first, . - v_first\n");

static void call(int fd, unsigned n)
{
	jmp_buf here;

	calls++;
	out = &here;
	if (setjmp(here) == 0) {
		try {
			long ret = v_call(fd, reinterpret_cast<void *>(n * 16ul + 4096), n);

			if (ret != result(fd, n))
				wrong++;
			returned++;
			sum_n += n;
			sum_ret += ret > 0 ? ret : 0;
		} catch (const std::exception &) {
		}
	}
	out = nullptr;
}

// Calls that always return, in the middle of others.
static void on_alarm(int)
{
	static std::atomic<unsigned> next;
	jmp_buf *was = out;
	unsigned n = next++ * 91 + 1;

	calls++;
	out = nullptr;
	if (v_call(99, reinterpret_cast<void *>(n * 16ul + 4096), n) != result(99, n))
		wrong++;
	out = was;
	returned++;
	sum_n += n;
	sum_ret += result(99, n) > 0 ? result(99, n) : 0;
}

static void work(int fd, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		long x = i;

		call(fd, i);
		tails++;
		if (v_tail(x) != (x + 1) * 2)
			wrong++;
		firsts++;
		if (v_first(x, fd) != x + 7 + fd)
			wrong++;
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	unsigned n = argc > 2 ? static_cast<unsigned>(atoi(argv[2])) : 1000;
	struct itimerspec often = { { 0, 200000 }, { 0, 200000 } };
	struct sigaction sa = {};
	std::vector<std::thread> list;
	timer_t timer;

	sa.sa_handler = on_alarm;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, nullptr);
	timer_create(CLOCK_MONOTONIC, nullptr, &timer);
	puts("ready");
	fflush(stdout);
	timer_settime(timer, 0, &often, nullptr);
	for (int i = 0; i < threads; i++)
		list.emplace_back(work, i, n);
	for (auto &t : list)
		t.join();
	timer_delete(timer);
	printf("calls v_call %llu\nreturned v_call %llu\nsum v_call n %llu\nsum v_call ret %llu\n",
	       calls.load(), returned.load(), sum_n.load(), sum_ret.load());
	printf("calls v_tail %llu\ncalls v_first %llu\n", tails.load(), firsts.load());
	puts(wrong ? "self-check FAILED" : "self-check ok");
	return wrong ? 1 : 0;
}
