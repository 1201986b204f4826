/* SPDX-License-Identifier: MIT */
/*
 * last-byte [CALLS GATE]: calls functions of one byte, a `ret` each, CALLS times at most after GATE
 * exists.
 *
 *	last_ret	ends its section; another section begins 3 bytes later
 *	after_start	begins where a function without a length (as those of start files) pads
 */
#include "victim.h"

void last_ret(void);
void after_start(void);

/* The fill between the two sections is no no-op; the .p2align before a ret is. */
__asm__(".pushsection .lastbyte, \"ax\", @progbits\n"
	".p2align 4\n"
	".type before_last, @function\n"
	"before_last: lea 1(%rdi), %eax\n"
	"ret\n"
	".size before_last, . - before_last\n"
	".p2align 4\n"
	".globl last_ret\n"
	".type last_ret, @function\n"
	"last_ret: ret\n"
	".size last_ret, . - last_ret\n"
	".popsection\n"
	".pushsection .afterlast, \"ax\", @progbits\n"
	".p2align 2\n"
	".type follows, @function\n"
	"follows: sub $8, %rsp\n"
	"add $8, %rsp\n"
	"ret\n"
	".size follows, . - follows\n"
	".popsection\n"
	".pushsection .starts, \"ax\", @progbits\n"
	".p2align 4\n"
	".type nameless, @function\n"
	"nameless: xor %eax, %eax\n"
	"ret\n"
	".p2align 4\n"
	".globl after_start\n"
	".type after_start, @function\n"
	"after_start: ret\n"
	".size after_start, . - after_start\n"
	".p2align 1\n"
	".byte 0xcc\n"
	".type used, @function\n"
	"used: xor %eax, %eax\n"
	"ret\n"
	".size used, . - used\n"
	".popsection\n");

int main(int argc, char **argv)
{
	uint64_t calls = 0, most = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	for (; calls < most && !victim_stop; calls++) {
		last_ret();
		after_start();
	}
	puts("called");
	while (argc > 2 && !victim_stop)
		victim_sleep_ns(5000000);
	victim_calls("last_ret", calls);
	victim_calls("after_start", calls);
	return victim_done(true);
}
