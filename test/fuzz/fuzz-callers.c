/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: any stack of a target as the command line gets it, beside the maps of this process: no
 * more callers than are kept, each with a text, and a walk that ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "check.h"
#include "elf/reader.h"
#include "src/run/callers.h"

enum { HEAD = sizeof(struct trace_stack_head), MOST = 4096 };

static struct callers *callers;

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char text[1 << 18];
	int32_t pid = getpid();
	FILE *maps = fopen("/proc/self/maps", "r");
	size_t n;

	(void)argc, (void)argv;
	reader_local();
	callers = callers_open();
	if (!maps)
		abort();
	memcpy(text, &pid, sizeof(pid));
	n = fread(text + sizeof(pid), 1, sizeof(text) - sizeof(pid), maps);
	fclose(maps);
	callers_maps(callers, text, n + sizeof(pid));
	return 0;
}

/* Words are offsets into this program's code or into the stack, by their lowest bits, so that walks
 * get somewhere. */
static uint64_t place(uint64_t word, uint64_t sp)
{
	uint64_t code = (uint64_t)(uintptr_t)LLVMFuzzerInitialize;

	return word & 1 ? code + (word >> 1) % (1 << 20) :
	       word & 2 ? sp + (word >> 2) % MOST :
			  word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char message[HEAD + MOST];
	struct trace_stack_head head = { .pid = getpid(), .sp = 0x7ffe00001000 };
	const struct trace_stack *stack;
	uint64_t word;
	size_t n = 0;

	if (size < 16)
		return 0;
	head.end = data[0];
	head.bp = place((uint64_t)data[1] << 2 | 2, head.sp);
	memcpy(message, &head, sizeof(head));
	for (; n < MOST / 8 && (n + 1) * 8 <= size; n++) {
		memcpy(&word, data + n * 8, 8);
		word = place(word, head.sp);
		memcpy(message + HEAD + n * 8, &word, 8);
	}
	/* The rest are Python frames, as they come. */
	head.size = (uint32_t)(data[2] % 4 ? n : n / 2) * 8;
	head.frames_end = data[3];
	memcpy(message, &head, sizeof(head));
	if (head.size < n * 8)
		memcpy(message + HEAD + head.size, data + head.size, n * 8 - head.size);
	callers_stack(callers, message, HEAD + n * 8);
	stack = callers_take(callers);
	CHECK(stack && stack->n <= TRACE_FRAMES_MAX);
	for (uint32_t i = 0; i < stack->n; i++)
		CHECK(*stack->frame[i]);
	CHECK(!stack->end || *stack->end);
	CHECK(!callers_take(callers));
	return 0;
}
