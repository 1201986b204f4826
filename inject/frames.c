/* SPDX-License-Identifier: MIT */
#include "frames.h"

enum { SCAN_MOST = 32 << 10, SCAN_LEAST = 8 << 10, SCAN_BUDGET = 16 << 20, WORDS = 4096 };

size_t frames_scan_bytes(size_t threads)
{
	size_t each = threads ? SCAN_BUDGET / threads : SCAN_MOST;

	if (each > SCAN_MOST)
		return SCAN_MOST;
	return each < SCAN_LEAST ? SCAN_LEAST : each & ~4095ul;
}

/* A word at `at` that could be the pc of a signal frame: is there one around it? */
static bool is_frame(const struct memory *mem, uint64_t at)
{
	struct arch_gadgets found = { 0 };
	uint8_t head[512], code[16];
	uint64_t restorer;
	size_t n;

	if (memory_peek(mem, at - arch->frame_pc, head, arch->frame_head) != arch->frame_head)
		return false;
	restorer = arch->frame_restorer(head);
	if (!restorer)
		return false;
	n = memory_peek(mem, restorer, code, sizeof(code));
	arch->find_gadgets(code, n, restorer, &found);
	return found.sigreturn == restorer;
}

bool frames_return_to(const struct memory *mem, uint64_t sp, size_t scan, frames_wanted_fn *wanted,
		      void *ctx)
{
	uint64_t words[WORDS];

	sp &= ~7ull;
	for (size_t done = 0; done < scan; done += sizeof(words)) {
		size_t got = memory_peek(mem, sp + done, words, sizeof(words)) / 8;

		for (size_t i = 0; i < got; i++)
			if (wanted(ctx, words[i]) && is_frame(mem, sp + done + i * 8))
				return true;
		if (got < WORDS)
			break;
	}
	return false;
}
