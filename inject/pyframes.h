/* SPDX-License-Identifier: MIT */
#ifndef SB_PYFRAMES_H
#define SB_PYFRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include "page-abi.h"

/*
 * Copies the Python frames of the calling thread (struct sb_page_frame). In-target code: it calls
 * nothing, allocates nothing, takes no lock, and needs no GIL. The frames of a thread, their code
 * and its texts are held by the interpreter for as long as the thread is in a call, and change by
 * that thread alone, until the interpreter ends: so that is looked at before and after.
 *
 * All of it is inlined into one function, whose frame pointer a recovery from a fault relies on
 * (stub-code.S).
 */
#define PYFRAMES static inline __attribute__((always_inline))

enum {
	PYFRAMES_MOST = 1000,	  /* frames looked at */
	PYFRAMES_TABLE = 1 << 20, /* bytes of a code object's table of lines */
	PYFRAMES_FILES = 8,	  /* whose texts are not written again */
	PYFRAMES_GENERATOR = 1,	  /* owner of a frame: FRAME_OWNED_BY_GENERATOR */
	PYFRAMES_NATIVE = 3,	  /* ... and FRAME_OWNED_BY_CSTACK, from 3.12 on */
	PYFRAMES_LENGTH = 16,	  /* of a str and of bytes, in every version */
	PYFRAMES_STATE = 32,	  /* of a str */
	PYFRAMES_BYTES = 32,	  /* of bytes: where they begin */
	PYFRAMES_KEYS = 32,
};

struct pyframes {
	const struct sb_page_python *py;
	char *area;
	uint64_t used, sum, word; /* word: that is not full yet */
	uint64_t own;		  /* left out if it is the first frame's code */
	uint32_t fill;
	uint32_t files;
	uint64_t file[PYFRAMES_FILES];
	uint16_t file_at[PYFRAMES_FILES];
};

#define PYFRAMES_AT(type, base, off) \
	(*(const volatile __typeof__(type) *)(uintptr_t)((base) + (off)))

PYFRAMES void pyframes_put(struct pyframes *p, uint64_t word)
{
	*(volatile uint64_t *)(p->area + p->used) = word;
	p->sum += word;
	p->used += 8;
}

PYFRAMES void pyframes_byte(struct pyframes *p, uint32_t byte)
{
	p->word |= (uint64_t)(byte & 0xff) << 8 * p->fill;
	if (++p->fill < 8)
		return;
	pyframes_put(p, p->word);
	p->word = p->fill = 0;
}

/* ---- texts ---- */

struct pyframes_text {
	uint64_t at;
	uint32_t width; /* bytes of a character */
	uint32_t n;
	bool cut; /* there are more than n */
};

PYFRAMES bool pyframes_text_at(const struct pyframes *p, uint64_t str, struct pyframes_text *t)
{
	uint32_t state;
	uint64_t n;

	if (!str || str & 7 || PYFRAMES_AT(uint64_t, str, 8) != p->py->str_type)
		return false;
	state = PYFRAMES_AT(uint32_t, str, PYFRAMES_STATE);
	n = PYFRAMES_AT(uint64_t, str, PYFRAMES_LENGTH);
	t->width = state >> 2 & 7;
	if (!(state & 0x20) || !t->width || t->width > 4 || t->width == 3)
		return false; /* not compact */
	t->at = str + (state & 0x40 ? p->py->ascii : p->py->compact);
	t->cut = n * t->width > SB_PAGE_FRAME_TEXT / 2;
	t->n = (uint32_t)(t->cut ? SB_PAGE_FRAME_TEXT / 2 / t->width : n);
	if (state & 0x40) {
		t->cut = n > SB_PAGE_FRAME_TEXT;
		t->n = (uint32_t)(t->cut ? SB_PAGE_FRAME_TEXT : n);
	}
	return true;
}

PYFRAMES uint32_t pyframes_char(const struct pyframes_text *t, uint32_t i)
{
	return t->width == 1 ? PYFRAMES_AT(uint8_t, t->at, i) :
	       t->width == 2 ? PYFRAMES_AT(uint16_t, t->at, 2 * (uint64_t)i) :
			       PYFRAMES_AT(uint32_t, t->at, 4 * (uint64_t)i);
}

/* Bytes in UTF-8. A lone surrogate is a byte of a file's name that is no UTF-8, or nothing. */
PYFRAMES uint32_t pyframes_utf8(uint32_t c)
{
	if (c >= 0xd800 && c <= 0xdfff)
		return 1;
	return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

PYFRAMES uint32_t pyframes_size(const struct pyframes_text *t)
{
	uint32_t n = t->cut ? 3 : 0;

	for (uint32_t i = 0; i < t->n; i++)
		n += pyframes_utf8(pyframes_char(t, i));
	return n;
}

/* `size` bytes, whatever the text is by now. */
PYFRAMES void pyframes_text(struct pyframes *p, const struct pyframes_text *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t c = pyframes_char(t, i), n = pyframes_utf8(c);

		if (n == 1) {
			pyframes_byte(p, c < 0x80		    ? c :
					 c >= 0xdc80 && c <= 0xdcff ? c & 0xff :
								      '?');
			continue;
		}
		pyframes_byte(p, n == 2 ? 0xc0 | c >> 6 : n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
		if (n > 3)
			pyframes_byte(p, 0x80 | (c >> 12 & 0x3f));
		if (n > 2)
			pyframes_byte(p, 0x80 | (c >> 6 & 0x3f));
		pyframes_byte(p, 0x80 | (c & 0x3f));
	}
	for (int i = 0; t->cut && i < 3; i++)
		pyframes_byte(p, '.');
}

/* ---- lines ---- */

/* 3.10: pairs of bytes: code, and what is added to the line for it; -128: it has none. */
PYFRAMES uint32_t pyframes_line_10(uint64_t table, uint64_t size, uint64_t at, uint32_t line)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i + 1 < size; i += 2) {
		int8_t more = PYFRAMES_AT(int8_t, table, i + 1);

		end += PYFRAMES_AT(uint8_t, table, i);
		if (more != -128)
			line += (uint32_t)more;
		if (at < end)
			return more == -128 ? 0 : line;
	}
	return 0;
}

PYFRAMES uint32_t pyframes_varint(uint64_t table, uint64_t size, uint64_t *i)
{
	uint32_t value = 0, byte = 0x40;

	for (uint32_t shift = 0; byte & 0x40 && *i < size && shift < 32; shift += 6) {
		byte = PYFRAMES_AT(uint8_t, table, (*i)++);
		value |= (byte & 0x3f) << shift;
	}
	return value;
}

/* From 3.11 on: entries whose first byte has bit 7, a kind, and the number of their units. */
PYFRAMES uint32_t pyframes_line_11(uint64_t table, uint64_t size, uint64_t at, uint32_t line)
{
	uint64_t end = 0, i = 0;

	while (i < size) {
		uint8_t first = PYFRAMES_AT(uint8_t, table, i++), kind = first >> 3 & 15;
		uint32_t more;

		end += 2 * ((first & 7) + 1u);
		if (kind == 13 || kind == 14) {
			more = pyframes_varint(table, size, &i);
			line += more & 1 ? 0u - (more >> 1) : more >> 1;
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10u;
		}
		if (at < end)
			return kind == 15 ? 0 : line;
		while (i < size && !(PYFRAMES_AT(uint8_t, table, i) & 0x80))
			i++;
	}
	return 0;
}

/* at: of the instruction in its code, bytes; below 0: it has not begun. */
PYFRAMES uint32_t pyframes_line(const struct pyframes *p, uint64_t code, int64_t at)
{
	uint64_t table = PYFRAMES_AT(uint64_t, code, p->py->table), size;
	uint32_t line = PYFRAMES_AT(uint32_t, code, p->py->first_line);

	if (at < 0)
		return line;
	if (!table || table & 7 || PYFRAMES_AT(uint64_t, table, 8) != p->py->bytes_type)
		return 0;
	size = PYFRAMES_AT(uint64_t, table, PYFRAMES_LENGTH);
	if (size > PYFRAMES_TABLE)
		return 0;
	return p->py->version == 0x030a ?
		       pyframes_line_10(table + PYFRAMES_BYTES, size, (uint64_t)at, line) :
		       pyframes_line_11(table + PYFRAMES_BYTES, size, (uint64_t)at, line);
}

/* ---- a frame ---- */

/* The file's word in the frame that is about to be written: how long, or in which one it is. */
PYFRAMES uint16_t pyframes_file(struct pyframes *p, uint64_t str, const struct pyframes_text *file)
{
	for (uint32_t i = 0; i < PYFRAMES_FILES && i < p->files; i++)
		if (p->file[i] == str)
			return SB_FRAME_SAME | p->file_at[i];
	p->file[p->files % PYFRAMES_FILES] = str;
	p->file_at[p->files % PYFRAMES_FILES] = (uint16_t)(p->used / 8);
	p->files++;
	return (uint16_t)pyframes_size(file);
}

PYFRAMES bool pyframes_room(const struct pyframes *p)
{
	return p->used + 3 * 8 + 2 * (SB_PAGE_FRAME_TEXT + 8) <= SB_PAGE_FRAMES;
}

PYFRAMES bool pyframes_write(struct pyframes *p, uint64_t code, uint32_t line)
{
	uint64_t file_str = PYFRAMES_AT(uint64_t, code, p->py->file);
	struct pyframes_text name, file;
	uint64_t what = line;
	uint16_t file_word;

	if (!pyframes_text_at(p, PYFRAMES_AT(uint64_t, code, p->py->name), &name) ||
	    !pyframes_text_at(p, file_str, &file))
		return false;
	file_word = pyframes_file(p, file_str, &file);
	what |= (uint64_t)pyframes_size(&name) << 32 | (uint64_t)file_word << 48;
	pyframes_put(p, 0);
	pyframes_put(p, what);
	pyframes_text(p, &name);
	if (!(file_word & SB_FRAME_SAME))
		pyframes_text(p, &file);
	while (p->fill)
		pyframes_byte(p, 0);
	return true;
}

PYFRAMES bool pyframes_is_code(const struct pyframes *p, uint64_t code)
{
	return code && !(code & 7) && PYFRAMES_AT(uint64_t, code, 8) == p->py->code_type;
}

/* ---- the frames of a thread ---- */

PYFRAMES enum sb_page_frames_end pyframes_walk_10(struct pyframes *p, uint64_t state)
{
	const struct sb_page_python *py = p->py;
	uint64_t frame = PYFRAMES_AT(uint64_t, state, py->frame);
	uint64_t cframe = PYFRAMES_AT(uint64_t, state, py->cframe);

	for (int n = 0; frame; n++) {
		uint64_t code = PYFRAMES_AT(uint64_t, frame, py->code);
		uint32_t line = PYFRAMES_AT(uint32_t, frame, py->line);

		if (n == PYFRAMES_MOST || !pyframes_room(p))
			return SB_FRAMES_FULL;
		if (!pyframes_is_code(p, code) || !cframe || cframe & 7)
			return SB_FRAMES_ODD;
		if (!line)
			line = pyframes_line(p, code,
					     2 * (int64_t)PYFRAMES_AT(int32_t, frame, py->instr));
		if (!pyframes_write(p, code, line))
			return SB_FRAMES_ODD;
		pyframes_put(p, cframe);
		cframe = PYFRAMES_AT(uint64_t, cframe, py->cframe_previous);
		frame = PYFRAMES_AT(uint64_t, frame, py->previous);
		if (frame & 7)
			return SB_FRAMES_ODD;
	}
	return SB_FRAMES_ALL;
}

/* A frame that has not begun is not yet one: the interpreter does not show it, either. */
PYFRAMES bool pyframes_begun(const struct pyframes *p, uint64_t frame, uint64_t code, int64_t at)
{
	int64_t first = 2 * (int64_t)PYFRAMES_AT(int32_t, code, p->py->traceable);

	if (PYFRAMES_AT(uint8_t, frame, p->py->owner) == PYFRAMES_GENERATOR)
		return true;
	return p->py->version < 0x030d ? at >= first : at > first;
}

/* One frame that is no end of a call's. */
PYFRAMES bool pyframes_frame(struct pyframes *p, uint64_t frame)
{
	uint64_t code = PYFRAMES_AT(uint64_t, frame, p->py->code);
	const bool own = code == p->own;
	int64_t at;

	p->own = 0;
	if (own)
		return true;
	if (!pyframes_is_code(p, code))
		return false;
	at = (int64_t)(PYFRAMES_AT(uint64_t, frame, p->py->instr) - code - p->py->units);
	return !pyframes_begun(p, frame, code, at) ||
	       pyframes_write(p, code, pyframes_line(p, code, at));
}

PYFRAMES enum sb_page_frames_end pyframes_walk_11(struct pyframes *p, uint64_t state)
{
	const struct sb_page_python *py = p->py;
	uint64_t cframe = py->cframe ? PYFRAMES_AT(uint64_t, state, py->cframe) : 0, frame;

	if (py->cframe && (!cframe || cframe & 7))
		return SB_FRAMES_ODD;
	frame = cframe ? PYFRAMES_AT(uint64_t, cframe, py->cframe_frame) :
			 PYFRAMES_AT(uint64_t, state, py->frame);
	for (int n = 0; frame; n++) {
		uint8_t owner;

		if (n == PYFRAMES_MOST || !pyframes_room(p))
			return SB_FRAMES_FULL;
		if (frame & 7)
			return SB_FRAMES_ODD;
		owner = PYFRAMES_AT(uint8_t, frame, py->owner);
		if (py->version > 0x030b && owner == PYFRAMES_NATIVE)
			pyframes_put(p, frame);
		else if (!pyframes_frame(p, frame))
			return SB_FRAMES_ODD;
		if (py->version == 0x030b && PYFRAMES_AT(uint8_t, frame, py->owner - 1)) {
			pyframes_put(p, cframe); /* the first frame of its call: is_entry */
			cframe = PYFRAMES_AT(uint64_t, cframe, py->cframe_previous);
			if (!cframe || cframe & 7)
				return SB_FRAMES_ODD;
		}
		frame = PYFRAMES_AT(uint64_t, frame, py->previous);
	}
	return SB_FRAMES_ALL;
}

/* The state of the thread with this thread pointer; 0: it has none. */
PYFRAMES uint64_t pyframes_state(const struct sb_page_python *py, uint64_t thread)
{
	uint32_t is_made = PYFRAMES_AT(uint32_t, py->key, 0);
	uint32_t key = PYFRAMES_AT(uint32_t, py->key, 4);
	uint64_t state;

	if (!is_made || key >= PYFRAMES_KEYS)
		return 0;
	state = PYFRAMES_AT(uint64_t, thread, py->specific + 16ull * key + 8);
	if (!state || state & 7 || PYFRAMES_AT(uint64_t, state, py->thread_id) != thread)
		return 0;
	return state;
}

/*
 * Writes the frames into SB_PAGE_FRAMES bytes at area, and into *to how many these are. Returns
 * what the check has of them. own: the code of a call that is about to end, whose frame is still
 * there; from 3.12 on.
 */
PYFRAMES uint64_t pyframes_copy(const struct sb_page_python *py, uint64_t thread, uint64_t own,
				char *area, struct sb_page_stack *to)
{
	struct pyframes p = { .py = py, .area = area, .own = own };
	uint32_t end = SB_FRAMES_NONE;
	uint64_t state = 0;

	if (PYFRAMES_AT(uint64_t, py->ending, 0))
		end = SB_FRAMES_ENDING;
	else
		state = pyframes_state(py, thread);
	if (state)
		end = py->version == 0x030a ? pyframes_walk_10(&p, state) :
					      pyframes_walk_11(&p, state);
	if (state && PYFRAMES_AT(uint64_t, py->ending, 0)) {
		end = SB_FRAMES_ENDING;
		p.used = p.sum = 0;
	}
	to->frames = (uint32_t)p.used;
	to->frames_end = end;
	return p.sum + (p.used | (uint64_t)end << 32);
}

#endif
