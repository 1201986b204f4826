/* SPDX-License-Identifier: MIT */
#include "ehframe.h"
#include "view.h"

/* Pointer encodings of the .eh_frame format (LSB, "DWARF Exception Header Encoding"). */
enum {
	PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_OMIT = 0xff,
};

/* Size of a value in this encoding; 0: not one that a linker writes here. */
static size_t encoded_size(uint8_t enc)
{
	static const uint8_t size[16] = {
		[PE_ABSPTR] = 8, [PE_UDATA2] = 2, [PE_UDATA4] = 4, [PE_UDATA8] = 8,
		[PE_SDATA2] = 2, [PE_SDATA4] = 4, [PE_SDATA8] = 8,
	};

	return enc == PE_OMIT ? 0 : size[enc & PE_FORMAT];
}

static uint64_t encoded_value(const uint8_t *p, uint8_t enc)
{
	switch (enc & PE_FORMAT) {
	case PE_UDATA2:
		return ld16(p);
	case PE_SDATA2:
		return (uint64_t)(int16_t)ld16(p);
	case PE_UDATA4:
		return ld32(p);
	case PE_SDATA4:
		return (uint64_t)(int32_t)ld32(p);
	default:
		return ld64(p);
	}
}

void ehframe_open(struct ehframe *eh, const struct image *img, uint64_t hdr_vaddr, uint64_t size)
{
	size_t avail, at = 4, count_size, ptr_size;
	const uint8_t *hdr = image_bytes(img, hdr_vaddr, &avail);
	uint64_t count;

	*eh = (struct ehframe){ .img = img, .vaddr = hdr_vaddr };
	if (!hdr)
		return;
	avail = size < avail ? (size_t)size : avail;
	/* All linkers write the table as sdata4 relative to the header. */
	if (avail < at || hdr[0] != 1 || hdr[3] != (PE_DATAREL | PE_SDATA4))
		return;
	ptr_size = encoded_size(hdr[1]);
	count_size = encoded_size(hdr[2]);
	if (!ptr_size || !count_size || avail < at + ptr_size + count_size)
		return;
	at += ptr_size;
	count = encoded_value(hdr + at, hdr[2]);
	at += count_size;
	if (count > (avail - at) / 8)
		count = (avail - at) / 8;
	eh->count = (uint32_t)(count < UINT32_MAX ? count : UINT32_MAX);
	eh->table = eh->count ? hdr + at : NULL;
}

static uint64_t table_value(const struct ehframe *eh, uint32_t i, unsigned int column)
{
	return eh->vaddr + (uint64_t)(int32_t)ld32(eh->table + (size_t)i * 8 + column * 4);
}

/* A record (CIE or FDE): its bytes after the length field. */
static bool read_record(const struct ehframe *eh, uint64_t vaddr, const uint8_t **body,
			uint64_t *body_vaddr, size_t *len)
{
	size_t avail;
	const uint8_t *p = image_bytes(eh->img, vaddr, &avail);
	uint32_t n;

	if (!p || avail < 4)
		return false;
	n = ld32(p);
	/* No tool writes 64-bit DWARF into .eh_frame. */
	if (n < 4 || n == UINT32_MAX || n > avail - 4)
		return false;
	*body = p + 4;
	*body_vaddr = vaddr + 4;
	*len = n;
	return true;
}

static bool skip_leb128(const uint8_t *p, size_t len, size_t *at)
{
	while (*at < len)
		if (!(p[(*at)++] & 0x80))
			return true;
	return false;
}

/* Steps over code alignment, data alignment, return register and the augmentation's length. */
static bool skip_cie_numbers(const uint8_t *p, size_t len, size_t *at)
{
	for (unsigned int i = 0; i < 4; i++) {
		/* The register was a byte in version 1. */
		bool is_byte = i == 2 && p[4] == 1;

		if (is_byte ? ++*at > len : !skip_leb128(p, len, at))
			return false;
	}
	return true;
}

/* The encoding of the FDE's addresses ('R' of the augmentation), and whether its FDEs have
 * augmentation data; false if unknown. */
static bool fde_encoding(const struct ehframe *eh, uint64_t cie, uint8_t *enc, bool *data)
{
	const uint8_t *p, *aug, *aug_end;
	uint64_t unused;
	size_t len, at;

	if (!read_record(eh, cie, &p, &unused, &len) || len < 6 || ld32(p) != 0)
		return false;
	aug = p + 5;
	aug_end = memchr(aug, '\0', len - 5);
	if (!aug_end)
		return false;
	*enc = PE_ABSPTR;
	*data = *aug == 'z';
	if (!*data)
		return !*aug;
	at = (size_t)(aug_end - p) + 1;
	if (!skip_cie_numbers(p, len, &at))
		return false;
	for (aug++; *aug; aug++) {
		if (at >= len)
			return false;
		if (*aug == 'R')
			*enc = p[at++];
		else if (*aug == 'L')
			at++;
		else if (*aug == 'P')
			at += 1 + encoded_size(p[at]);
		else if (*aug != 'S' && *aug != 'B')
			return false;
	}
	return true;
}

/* What an FDE covers, and its instructions. */
struct fde {
	uint64_t start, end;
	const uint8_t *insns;
	size_t n_insns; /* bytes */
};

static bool find_insns(struct fde *f, const uint8_t *p, size_t len, size_t at, bool data)
{
	size_t skip = 0;

	/* The augmentation's length is a ULEB128; more than 127 bytes of it are not known. */
	if (data && at < len)
		skip = p[at++];
	if (skip > 127 || skip > len - at)
		return false;
	f->insns = p + at + skip;
	f->n_insns = len - at - skip;
	return true;
}

static bool read_fde(const struct ehframe *eh, uint64_t fde, struct fde *f)
{
	const uint8_t *p;
	uint64_t body, range;
	uint8_t enc;
	size_t len, size;
	bool data;

	if (!read_record(eh, fde, &p, &body, &len) || ld32(p) == 0 ||
	    !fde_encoding(eh, body - ld32(p), &enc, &data))
		return false;
	size = encoded_size(enc);
	if (!size || len < 4 + 2 * size || !find_insns(f, p, len, 4 + 2 * size, data))
		return false;
	f->start = encoded_value(p + 4, enc);
	if ((enc & 0x70) == PE_PCREL)
		f->start += body + 4;
	/* A length has the format of the address, but is neither signed nor relative. */
	range = encoded_value(p + 4 + size, enc);
	range &= size < 8 ? (1ull << size * 8) - 1 : UINT64_MAX;
	f->end = f->start + range;
	return f->end > f->start;
}

/*
 * The first instructions, which apply at the very start, up to the first advance. A function begins
 * with the state of its CIE: the caller's frame 8 bytes above rsp. Code that begins with another
 * one is entered by jumps, with a frame in place.
 */
static bool has_frame(const struct fde *f)
{
	enum {
		ADVANCE = 1, /* in the two upper bits */
		DEF_CFA = 0x0c,
		DEF_CFA_REGISTER = 0x0d,
		DEF_CFA_OFFSET = 0x0e,
		CFA_AT_ENTRY = 8,
	};

	if (!f->n_insns || f->insns[0] >> 6 == ADVANCE)
		return false;
	if (f->insns[0] == DEF_CFA_OFFSET)
		return f->n_insns > 1 && f->insns[1] != CFA_AT_ENTRY;
	return f->insns[0] == DEF_CFA || f->insns[0] == DEF_CFA_REGISTER;
}

bool ehframe_begins_inside(const struct ehframe *eh, uint64_t vaddr)
{
	uint32_t rank = ehframe_rank(eh, vaddr);
	struct fde f;

	return rank && table_value(eh, rank - 1, 0) == vaddr &&
	       read_fde(eh, table_value(eh, rank - 1, 1), &f) && f.start == vaddr && has_frame(&f);
}

bool ehframe_entry(const struct ehframe *eh, uint32_t i, uint64_t *start, uint64_t *end)
{
	struct fde f;

	*start = table_value(eh, i, 0);
	if (!read_fde(eh, table_value(eh, i, 1), &f) || f.start != *start)
		return false;
	*end = f.end;
	return true;
}

/* ---- the frame ---- */

static uint64_t read_leb128(const uint8_t *p, size_t len, size_t *at, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte = 0;

	while (*at < len && shift < 64) {
		byte = p[(*at)++];
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			break;
	}
	if (is_signed && shift < 64 && (byte & 0x40))
		v |= UINT64_MAX << shift;
	return v;
}

/* p: a CIE that fde_encoding() has accepted. */
static bool read_cie(const uint8_t *p, size_t len, struct ehframe_frame *f)
{
	const char *aug = (const char *)p + 5;
	size_t at = 5 + strlen(aug) + 1, skip;

	f->signal = strchr(aug, 'S');
	f->code_align = read_leb128(p, len, &at, false);
	f->data_align = (int64_t)read_leb128(p, len, &at, true);
	if (p[4] == 1 && at < len)
		f->ra = p[at++];
	else
		f->ra = read_leb128(p, len, &at, false);
	skip = *aug == 'z' ? (size_t)read_leb128(p, len, &at, false) : 0;
	if (at > len || skip > len - at)
		return false;
	f->cie = p + at + skip;
	f->n_cie = len - at - skip;
	return true;
}

bool ehframe_frame(const struct ehframe *eh, uint64_t vaddr, struct ehframe_frame *frame)
{
	uint32_t rank = ehframe_rank(eh, vaddr);
	const uint8_t *p, *cie;
	uint64_t body, unused, at;
	size_t len;
	struct fde f;

	if (!rank)
		return false;
	at = table_value(eh, rank - 1, 1);
	if (!read_fde(eh, at, &f) || vaddr < f.start || vaddr >= f.end ||
	    !read_record(eh, at, &p, &body, &len) ||
	    !read_record(eh, body - ld32(p), &cie, &unused, &len))
		return false;
	*frame = (struct ehframe_frame){
		.start = f.start, .end = f.end, .insns = f.insns, .n_insns = f.n_insns
	};
	return read_cie(cie, len, frame);
}

uint32_t ehframe_rank(const struct ehframe *eh, uint64_t vaddr)
{
	uint32_t lo = 0, hi = eh->count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (table_value(eh, mid, 0) <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool ehframe_find(const struct ehframe *eh, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	uint32_t rank = ehframe_rank(eh, vaddr);

	if (!rank)
		return false;
	if (!ehframe_entry(eh, rank - 1, start, end)) {
		/* The next entry's start bounds it; the last one has no bound. */
		if (rank >= eh->count)
			return false;
		*end = table_value(eh, rank, 0);
	}
	return *start <= vaddr && vaddr < *end;
}
