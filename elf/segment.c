/* SPDX-License-Identifier: MIT */
/* The segments of an image: the bytes at an address, the executable ones, where they are loaded. */
#include "image-priv.h"

#include <unistd.h>

const uint8_t *image_bytes(const struct image *img, uint64_t vaddr, size_t *avail)
{
	for (uint32_t i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->load[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*avail = l->filesz - (vaddr - l->vaddr);
		return img->view.base + l->offset + (vaddr - l->vaddr);
	}
	*avail = 0;
	return NULL;
}

bool image_holds(const struct image *img, uint64_t vaddr)
{
	for (uint32_t i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->load[i];

		if (vaddr >= l->vaddr && vaddr - l->vaddr < l->memsz)
			return true;
	}
	return false;
}

size_t image_text(const struct image *img, struct image_segment *seg, size_t cap)
{
	size_t n = 0;

	for (uint32_t i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->load[i];

		if (!(l->flags & PF_X) || !l->filesz)
			continue;
		if (n < cap)
			seg[n] = (struct image_segment){ l->vaddr, l->filesz, l->offset,
							 img->view.base + l->offset };
		n++;
	}
	return n;
}

bool image_in_text(const struct image *img, uint64_t vaddr)
{
	for (uint32_t i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->load[i];

		if ((l->flags & PF_X) && vaddr >= l->vaddr && vaddr - l->vaddr < l->filesz)
			return true;
	}
	return false;
}

/*
 * How well a mapping fits a segment; 0: not at all. lld lays segments out so that two of them share
 * a page of the file, which then is mapped twice: the permission to execute, then the segment's
 * first page, identify the segment of a mapping.
 */
static int load_fit(const struct image_load *l, const struct map_entry *map, uint64_t page)
{
	uint64_t first = l->offset & ~(page - 1);

	if (!l->filesz || map->offset < first || map->offset >= l->offset + l->filesz)
		return 0;
	return 1 + 2 * (map->x == !!(l->flags & PF_X)) + (map->offset == first);
}

bool image_bias(const struct image *img, const struct map_entry *map, uint64_t *bias)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct image_load *best = NULL;
	int best_fit = 0;

	for (uint32_t i = 0; i < img->load_count; i++) {
		int fit = load_fit(&img->load[i], map, page);

		if (fit > best_fit) {
			best_fit = fit;
			best = &img->load[i];
		}
	}
	if (!best)
		return false;
	/* Modulo 2^64: a prelinked or non-PIE file has bias 0, or a negative one. */
	*bias = map->start - (best->vaddr - best->offset + map->offset);
	return true;
}
