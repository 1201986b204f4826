/* SPDX-License-Identifier: MIT */
/* subject-sites: a program with 10 000 functions, site_0 to site_9999; calls some until SIGTERM. */
#include "../victim/victim.h"

__asm__(".text\n"
	".altmacro\n"
	".macro one n\n"
	".p2align 4\n"
	".globl site_\\n\n"
	".type site_\\n, @function\n"
	"site_\\n:\n"
	"lea \\n(%rdi), %rax\n"
	"add $1, %rax\n"
	"ret\n"
	".size site_\\n, . - site_\\n\n"
	".endm\n"
	".set i, 0\n"
	".rept 10000\n"
	"one %i\n"
	".set i, i + 1\n"
	".endr\n"
	".noaltmacro\n");

uint64_t site_0(uint64_t x), site_5000(uint64_t x), site_9999(uint64_t x);

int main(void)
{
	uint64_t calls = 0;
	bool ok = true;

	victim_catch_term();
	printf("ready %d %p\n", (int)getpid(), (void *)(uintptr_t)site_0);
	fflush(stdout);
	for (; !victim_stop; calls += 3) {
		ok = ok && site_0(1) == 2 && site_5000(1) == 5002 && site_9999(1) == 10001;
		victim_sleep_ns(100000);
	}
	victim_calls("site_*", calls);
	return victim_done(ok);
}
