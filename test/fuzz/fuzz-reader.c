/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: any bytes as what a reader answers: a hostile file may have taken that process over.
 * Whatever is taken from it can be asked for any address.
 */
#include <stdlib.h>
#include <string.h>

#include "elf/image-priv.h"
#include "elf/reader-wire.h"
#include "elf/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct image *img;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	reader_local();
	if (image_get("/proc/self/exe", "fuzz", &img, &(struct sb_err){ 0 }) < 0)
		abort();
	image_index(img);
	return 0;
}

static void ask_index(void)
{
	uint64_t start, end, at = image_entry(img);

	for (size_t i = 0; i < 64; i++) {
		uint64_t vaddr = at + i * 977;

		if (image_function_at(img, vaddr, &start, &end) && (start > vaddr || end <= vaddr))
			abort();
		image_is_entry(img, vaddr);
		image_go_function(img, vaddr);
		image_inlined_from(img, vaddr, vaddr + 1);
		image_inlined_again(img, vaddr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_list list = { 0 };
	struct reader_reply reply;
	enum reader_op op;
	char *bytes;

	if (size < sizeof(reply) + 1)
		return 0;
	op = (enum reader_op)(data[0] % (READER_INDEX + 1));
	memcpy(&reply, data + 1, sizeof(reply));
	size -= sizeof(reply) + 1;
	/* So many arrive as are announced. */
	reply.bytes = size;
	if (!reader_is_plausible(&reply))
		return 0;
	bytes = malloc(size + 1);
	memcpy(bytes, data + 1 + sizeof(reply), size);
	if (reader_take(img, op, &reply, bytes,
			op != READER_COUNT && op != READER_INDEX ? &list : NULL))
		ask_index();
	symbol_list_free(&list);
	free(bytes);
	img->flaw = NULL;
	img->map.torn = img->budget.over = false;
	return 0;
}
