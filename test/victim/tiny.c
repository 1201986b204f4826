/* SPDX-License-Identifier: MIT */
/*
 * tiny [ROUNDS [GATE [still]]]: functions so short that a hook at the entry covers an exit, and
 * functions that leave by a conditional jump; also within signal handlers. `calls NAME N` as ever;
 * `own NAME NS LEAST` is the time from before its calls to behind them, for the two that take long,
 * and the same without the calls beside which the thread may have waited for a processor.
 */
#include <sys/time.h>
#include "victim.h"

#ifdef __x86_64__

uint64_t tiny_ret(uint64_t n), tiny_load(const uint64_t *p), tiny_tail(uint64_t n),
	tiny_pointer(uint64_t n, uint64_t (*f)(uint64_t)), tiny_either(uint64_t n),
	tiny_cond(uint64_t n), tiny_short(uint64_t n), tiny_both(uint64_t n), tiny_pid(void),
	tiny_table(uint64_t n, uint64_t (*const *f)(uint64_t)), tiny_far(uint64_t n),
	tiny_on(uint64_t n), tiny_over(uint64_t n), tiny_into(uint64_t n), tiny_twin(uint64_t n);
void tiny_one(void);
void *tiny_fill(void *to, int byte, size_t n), *tiny_left(void *to, int byte, size_t n, uint64_t x);

#define FUNCTION(name, code)                                                                       \
	".balign 16\n.globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name \
	", . - " name "\n"

/*
 * cond: a conditional exit in the entry's window, and a ret behind it. short: the conditional exit
 * is a jump of two bytes, behind other code. both: conditional jumps one after the other. pid: a
 * system call as libc has them. left: works, then leaves by a conditional jump. far, on, over: each
 * runs on into the next one, over behind a conditional exit in its entry's window, on without
 * no-ops between. twin: its first ret has no space for a jump of its own.
 */
__asm__(".text\n" FUNCTION("tiny_ret", "lea 1(%rdi), %eax\nret")				/**/
	FUNCTION("tiny_load", "endbr64\nmov 8(%rdi), %rax\nret")				/**/
	FUNCTION("tiny_tail", "jmp tiny_ret")							/**/
	FUNCTION("tiny_pointer", "jmp *%rsi")							/**/
	FUNCTION("tiny_table", "endbr64\njmp *8(%rsi)")						/**/
	FUNCTION("tiny_one", "ret")								/**/
	FUNCTION("tiny_either", "test %edi, %edi\nje 1f\nret\n"					/**/
				"1: mov $24, %eax\nret")					/**/
	FUNCTION("tiny_cond", "test $1, %dil\njne tiny_ret\nlea 5(%rdi), %rax\nret")		/**/
	FUNCTION("tiny_near", "lea 3(%rdi), %rax\nret\n.skip 16, 0x90\n")			/**/
	FUNCTION("tiny_short", "lea 9(%rdi), %rcx\nadd $1, %rcx\nadd $1, %rcx\ntest $1, %dil\n" /**/
			       ".byte 0x75, tiny_near - . - 1\n"				/**/
			       "lea 1(%rcx), %rax\nadd $1, %rax\nret")				/**/
	FUNCTION("tiny_both", "test $1, %dil\njne tiny_ret\ntest $2, %dil\njne tiny_ret\n"
			      "lea 6(%rdi), %rax\nret")				       /**/
	FUNCTION("tiny_pid", "mov $39, %eax\nsyscall\ncmp $-4095, %rax\njae 1f\nret\n" /**/
			     "1: mov $-1, %rax\nret")				       /**/
	FUNCTION("tiny_fill", "mov %rdx, %rcx\nmov %esi, %eax\nrep stosb\nret")	       /**/
	FUNCTION("tiny_left",
		 "mov %rcx, %r8\nmov %rdx, %rcx\nmov %esi, %eax\nrep stosb\n"
		 "mov %r8, %rdi\ntest $1, %r8b\njne tiny_ret\nmov %rdi, %rax\nret") /**/
	FUNCTION("tiny_far", ".rept 5\nlea 1(%rdi), %rdi\n.endr")		    /**/
	FUNCTION("tiny_on", ".rept 4\nlea 1(%rdi), %rdi\n.endr")		    /**/
	FUNCTION("tiny_over", "cmp $3, %rdi\njb tiny_ret")			    /**/
	FUNCTION("tiny_into", "lea 7(%rdi), %rax\nret")				    /**/
	FUNCTION("tiny_twin", "cmp $9, %dil\nje 2f\ntest $1, %dil\nlea 1(%rdi), %rax\n"
			      "jne 1f\nlea 4(%rdi), %rax\n1: ret\nnop\n"
			      "2: lea 2(%rdi), %rax\nret"));

enum {
	RET,
	LOAD,
	TAIL,
	POINTER,
	TABLE,
	ONE,
	EITHER,
	COND,
	SHORT,
	BOTH,
	PID,
	FAR,
	ON,
	OVER,
	INTO,
	TWIN,
	FILL,
	LEFT,
	NAMES
};
static const char *const names[NAMES] = { "ret",    "load", "tail",  "pointer", "table", "one",
					  "either", "cond", "short", "both",	"pid",	 "far",
					  "on",	    "over", "into",  "twin",	"fill",	 "left" };
static uint64_t calls[NAMES], own[NAMES], least[NAMES];
static volatile bool ok = true;
static char buf[1 << 16];

static void check(bool right, const char *what)
{
	if (right)
		return;
	ok = false;
	fprintf(stderr, "tiny: %s went wrong\n", what);
}

static void call(int name, uint64_t n)
{
	__atomic_fetch_add(&calls[name], n, __ATOMIC_RELAXED);
}

static void in_a_row(uint64_t i)
{
	uint64_t low = i & 7;

	check(tiny_far(i) == i + 16, "far");
	check(tiny_on(i) == i + 11, "on");
	check(tiny_over(low) == low + (low < 3 ? 1 : 7), "over");
	check(tiny_into(i) == i + 7, "into");
	check(tiny_twin(i) == i + ((i & 255) == 9 ? 2 : i & 1 ? 1 : 4), "twin");
	call(FAR, 1);
	call(ON, 2);
	call(OVER, 3);
	call(INTO, 3 + (low >= 3));
	call(RET, low < 3);
	call(TWIN, 1);
}

static void short_ones(uint64_t i)
{
	uint64_t words[2] = { 0, i }, either;
	uint64_t (*const table[2])(uint64_t) = { NULL, tiny_tail };

	check(tiny_ret(i) == (uint32_t)(i + 1), "ret");
	check(tiny_load(words) == i, "load");
	check(tiny_tail(i) == (uint32_t)(i + 1), "tail");
	check(tiny_pointer(i, tiny_tail) == (uint32_t)(i + 1), "pointer");
	check(tiny_table(i, table) == (uint32_t)(i + 1), "table");
	tiny_one();
	either = tiny_either(i);
	check(i || either == 24, "either");
	check(tiny_cond(i) == (i & 1 ? (uint32_t)(i + 1) : i + 5), "cond");
	check(tiny_short(i) == (i & 1 ? i + 3 : i + 13), "short");
	check(tiny_both(i) == (i & 3 ? (uint32_t)(i + 1) : i + 6), "both");
	check(tiny_pid() == (uint64_t)getpid(), "pid");
	for (int name = LOAD; name <= PID; name++)
		call(name, 1);
	call(TAIL, 2);
	call(RET, 4 + (i & 1) + ((i & 3) != 0));
	in_a_row(i);
}

static void took(int name, uint64_t ns)
{
	own[name] += ns;
	if (ns < 500000)
		least[name] += ns;
}

static void long_ones(uint64_t i)
{
	uint64_t from = victim_now_ns(), middle;

	tiny_fill(buf, (int)i, sizeof(buf));
	middle = victim_now_ns();
	check(tiny_left(buf, (int)i, sizeof(buf), i) == (void *)(i + (i & 1)), "left");
	took(LEFT, victim_now_ns() - middle);
	took(FILL, middle - from);
	check(buf[sizeof(buf) - 1] == (char)i, "fill");
	call(FILL, 1);
	call(LEFT, 1);
	call(RET, i & 1);
}

static void on_alarm(int sig)
{
	static uint64_t n;

	(void)sig;
	short_ones(n++ & 0xff);
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 100;
	struct itimerval timer = { { 0, 2000 }, { 0, 2000 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER };

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	sigaction(SIGALRM, &sa, NULL);
	if (argc <= 3) /* `still`: no signals */
		setitimer(ITIMER_REAL, &timer, NULL);
	for (uint64_t i = 0; i < n && !victim_stop; i++) {
		short_ones(i & 0xffff);
		if (i % 16 == 0)
			long_ones(i / 16);
	}
	timer = (struct itimerval){ 0 };
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < NAMES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "tiny_%s", names[i]);
		victim_calls(name, calls[i]);
		if (own[i])
			printf("own %s %llu %llu\n", name, (unsigned long long)own[i],
			       (unsigned long long)least[i]);
	}
	return victim_done(ok);
}

#else
int main(void)
{
	return 77;
}
#endif
