/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: any bytes as an ELF file. Every question that the image and symbol rooms answer is
 * put to it; an error is fine, and so is a wrong answer about a damaged file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/image-priv.h"
#include "elf/reader.h"
#include "elf/resolve.h"
#include "elf/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static void ask_names(struct image *img)
{
	static const char *const patterns[] = {
		"f",	 "f@V1",  "f@@V2",  "f*",	 "*",		"ns::over",
		"ns::*", "f+0x1", "0x1000", "*[a-z]*(*", "operator[]*", "nosuchname",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct sb_err err = { 0 };
		struct symbol_list list;

		if (symbol_find(img, patterns[i], 0, &list, &err) == 0)
			symbol_list_free(&list);
		else if (!err.code || !err.what[0])
			abort();
	}
	symbol_is_import(img, "f");
	symbol_is_defined(img, "f");
}

static bool read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	*value = *(uint64_t *)ctx + addr % 4096;
	return addr % 3;
}

static void ask_caller(struct image *img, uint64_t vaddr)
{
	struct unwind_regs regs = { .known = (1u << UNWIND_REGS) - 1 };

	for (int i = 0; i < UNWIND_REGS; i++)
		regs.reg[i] = 0x1000u * (unsigned int)i;
	regs.reg[UNWIND_PC] = vaddr;
	for (int i = 0; i < 8 && unwind_step(img, 0, &regs, read_stack, &vaddr); i++)
		if (!(regs.known >> UNWIND_PC & 1) || !regs.called)
			abort();
}

static void ask_address(struct image *img, uint64_t vaddr)
{
	uint64_t start, end, prev_end, next;
	char name[64];

	if (image_function_at(img, vaddr, &start, &end)) {
		if (start > vaddr || end <= vaddr)
			abort();
		image_function_room(img, start, end, &prev_end, &next);
		if (prev_end > start)
			abort();
	}
	symbol_name_at(img, vaddr, name, sizeof(name));
	ask_caller(img, vaddr);
	free(symbol_object(img, vaddr));
}

static unsigned int touched;

static void ask_addresses(struct image *img)
{
	struct image_segment seg[8];
	size_t n = image_text(img, seg, 8);

	for (size_t i = 0; i < n && i < 8; i++) {
		struct map_entry map = { .start = 0x7f0000000000,
					 .end = 0x7f0000001000,
					 .offset = seg[i].offset & ~0xfffull,
					 .path = "" };
		uint64_t bias;

		touched += seg[i].bytes[0] + seg[i].bytes[seg[i].size - 1];
		ask_address(img, seg[i].vaddr);
		ask_address(img, seg[i].vaddr + seg[i].size / 2);
		ask_address(img, seg[i].vaddr + seg[i].size - 1);
		image_bias(img, &map, &bias);
	}
	ask_address(img, image_entry(img));
	ask_address(img, UINT64_MAX);
}

/* Slots hold any address of the text, so that IFUNCs get implementations. */
static int read_slot(void *ctx, uint64_t addr, void *buf, size_t len)
{
	uint64_t value = *(uint64_t *)ctx + addr % 64;

	memcpy(buf, &value, len < sizeof(value) ? len : sizeof(value));
	return addr % 7 ? 0 : -1;
}

/* As if a process had this file mapped. */
static void ask_target(struct image *img, const char *path)
{
	static const char *const symbols[] = { "f", "*", "nosuchname", "f+0x1" };
	struct image_segment seg;
	struct maps maps;
	char text[256];
	uint64_t at;
	int len;

	if (!image_text(img, &seg, 1) || seg.vaddr > 1ull << 40)
		return;
	at = 0x7f0000000000 + (seg.vaddr & ~0xfffull);
	len = snprintf(text, sizeof(text), "%llx-%llx r-xp %llx 00:01 1 %s\n", (long long)at,
		       (long long)at + 0x10000, (long long)seg.offset & ~0xfff, path);
	if (maps_parse(text, (size_t)len, &maps, NULL))
		abort();
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		struct resolve_access access = { .read = read_slot, .ctx = &at };
		struct resolve_request req = { RESOLVE_SYMBOL, i % 2 ? "*" : path, symbols[i], 0 };
		struct sb_err err = { 0 };
		struct resolve_result res;

		if (resolve_target(getpid(), &maps, &req, &access, &res, &err) == 0)
			resolve_free(&res);
		else if (!err.what[0])
			abort();
	}
	maps_free(&maps);
}

/* The searches run here, where the sanitizers see them. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	reader_local();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct sb_err err = { 0 };
	struct image *img;
	int fd = memfd_create("fuzz-elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (image_get(path, "fuzz", &img, &err) == 0) {
		/* Debug files of this machine are no part of the input. */
		img->build_id[0] = '\0';
		ask_names(img);
		ask_addresses(img);
		image_done_reading(img);
		ask_names(img);
		ask_target(img, path);
		if (strlen(image_soname(img)) + strlen(image_interp(img)) > size)
			abort();
		image_put(img);
	} else if (!err.code) {
		abort();
	}
	close(fd);
	return 0;
}
