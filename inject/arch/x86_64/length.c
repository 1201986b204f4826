/* SPDX-License-Identifier: MIT */
/*
 * The length of an x86-64 instruction, and the places of its fields. One character per opcode:
 *
 *	-  opcode alone		m  ModRM		b  imm8		w  imm16
 *	z  imm16/32		M  ModRM + imm8		Z  ModRM + imm16/32
 *	v  imm16/32/64		e  enter's 3 bytes	o  moffs
 *	j  rel8			J  rel32		g  f6, f7: an immediate only for test
 *	r  valid, but privileged or never generated; R, q: the same with imm8, ModRM
 *	.  no instruction, or a prefix that was read before
 *
 * Unsupported and so refused: APX (REX2, EVEX map 4) and far branches with a prefix of 66.
 */
#include <string.h>
#include "x86.h"

static const char map_one[257] = "mmmmbz..mmmmbz.."  /* 00 */
				 "mmmmbz..mmmmbz.."  /* 10 */
				 "mmmmbz..mmmmbz.."  /* 20 */
				 "mmmmbz..mmmmbz.."  /* 30 */
				 "................"  /* 40: REX */
				 "----------------"  /* 50 */
				 "...m....zZbMrrrr"  /* 60 */
				 "jjjjjjjjjjjjjjjj"  /* 70 */
				 "MZ.Mmmmmmmmmmmmm"  /* 80 */
				 "----------.-----"  /* 90 */
				 "oooo----bz------"  /* a0 */
				 "bbbbbbbbvvvvvvvv"  /* b0 */
				 "MMw-..MZe-wr-b.r"  /* c0 */
				 "mmmm...-mmmmmmmm"  /* d0 */
				 "jjjjRRRRJJ.jrrrr"  /* e0 */
				 ".r..--gg--rr--mm"; /* f0 */

static const char map_0f[257] = "qmqq.-rrrr.-.m-M"  /* 00 */
				"mmmmmmmmmmmmmmmm"  /* 10 */
				"qqqq....mmmmmmmm"  /* 20 */
				"r-r-rr.r........"  /* 30 */
				"mmmmmmmmmmmmmmmm"  /* 40 */
				"mmmmmmmmmmmmmmmm"  /* 50 */
				"mmmmmmmmmmmmmmmm"  /* 60 */
				"MMMMmmm-qqmmmmmm"  /* 70 */
				"JJJJJJJJJJJJJJJJ"  /* 80 */
				"mmmmmmmmmmmmmmmm"  /* 90 */
				"---mMm..--rmMmmm"  /* a0 */
				"mmmmmmmmmmMmmmmm"  /* b0 */
				"mmMmMMMm--------"  /* c0 */
				"mmmmmmmmmmmmmmmm"  /* d0 */
				"mmmmmmmmmmmmmmmm"  /* e0 */
				"mmmmmmmmmmmmmmmm"; /* f0 */

enum { VEX_NONE, VEX_VEX, VEX_EVEX, VEX_XOP };

struct cursor {
	const uint8_t *p;
	size_t avail, pos;
	struct x86_form *form;
	int vex;
};

/* The byte at the cursor; beyond the end `avail` is exceeded, and the caller checks that last. */
static uint8_t peek(const struct cursor *c, size_t ahead)
{
	return c->pos + ahead < c->avail ? c->p[c->pos + ahead] : 0;
}

static void read_prefixes(struct cursor *c)
{
	struct x86_form *f = c->form;

	for (; c->pos < c->avail; c->pos++) {
		uint8_t b = c->p[c->pos];

		if ((b & 0xf0) == 0x40) {
			f->rex_w = b & 8;
			continue;
		}
		if (b == 0x66)
			f->opsize = true;
		else if (b == 0x67)
			f->addrsize = true;
		else if (b == 0xf2 || b == 0xf3)
			f->rep = b;
		else if (b != 0xf0 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x26 &&
			 b != 0x64 && b != 0x65)
			return;
		f->rex_w = false; /* a REX has an effect only directly before the opcode */
	}
}

/* Reads a VEX, EVEX or XOP prefix up to its opcode; false: not a supported one. */
static bool read_vex(struct cursor *c)
{
	static const uint8_t size[] = { 0, 3, 4, 3 };
	uint8_t first = peek(c, 0), second = peek(c, 1);

	c->vex = first == 0x62 ? VEX_EVEX : first == 0x8f ? VEX_XOP : VEX_VEX;
	if (first == 0xc5) {
		c->form->map = 1;
		c->pos += 2;
		return true;
	}
	c->form->map = second & (c->vex == VEX_EVEX ? 7 : 31);
	c->form->rex_w = peek(c, 2) & 0x80;
	c->pos += size[c->vex];
	if (c->vex == VEX_XOP)
		return c->form->map >= 8 && c->form->map <= 10;
	if (c->vex == VEX_VEX)
		return c->form->map >= 1 && c->form->map <= 3;
	return c->form->map >= 1 && c->form->map <= 6 && c->form->map != 4 && !(second & 8);
}

/* Moves to the opcode, past all prefixes. */
static bool read_opcode(struct cursor *c)
{
	struct x86_form *f = c->form;
	uint8_t b;

	read_prefixes(c);
	b = peek(c, 0);
	if (b == 0xc4 || b == 0xc5 || b == 0x62 || (b == 0x8f && (peek(c, 1) & 0x1f) >= 8)) {
		if (!read_vex(c))
			return false;
	} else if (b == 0x0f) {
		uint8_t next = peek(c, 1);

		f->map = next == 0x38 ? 2 : next == 0x3a ? 3 : 1;
		c->pos += f->map == 1 ? 1 : 2;
	}
	f->op_off = c->pos;
	f->opcode = peek(c, 0);
	c->pos++;
	return true;
}

static char opcode_class(const struct cursor *c)
{
	const struct x86_form *f = c->form;
	char class;

	if (f->map == 0)
		return map_one[f->opcode];
	if (f->map != 1)
		return f->map == 3 || f->map == 8 ? 'M' : f->map == 10 ? 'Z' : 'm';
	class = map_0f[f->opcode];
	if (c->vex == VEX_NONE)
		return class;
	/* the vector forms of the 0f map: kmov, kortest and the AVX-512 conversions take ModRM */
	if (class == 'M' && f->opcode != 0xa4 && f->opcode != 0xac && f->opcode != 0xba)
		return 'M';
	return f->opcode == 0x77 ? '-' : 'm';
}

static void read_modrm(struct cursor *c)
{
	struct x86_form *f = c->form;
	unsigned int mod, rm;

	f->modrm_off = c->pos;
	f->modrm = peek(c, 0);
	c->pos++;
	mod = f->modrm >> 6;
	rm = f->modrm & 7;
	if (mod == 3)
		return;
	if (rm == 4)
		f->sib = peek(c, 0), c->pos++;
	f->rip = mod == 0 && rm == 5;
	f->disp_len = mod == 1 ? 1 : mod == 2 || f->rip ? 4 : 0;
	if (mod == 0 && rm == 4 && (f->sib & 7) == 5)
		f->disp_len = 4;
	if (f->disp_len)
		f->disp_off = c->pos;
	c->pos += f->disp_len;
}

static unsigned int imm_length(const struct cursor *c, char class)
{
	const struct x86_form *f = c->form;
	bool word = f->opsize && !f->rex_w;

	switch (class) {
	case 'b':
	case 'M':
	case 'j':
	case 'R':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'J':
		return 4;
	case 'z':
	case 'Z':
		return word && f->map != 10 ? 2 : 4;
	case 'v':
		return f->rex_w ? 8 : word ? 2 : 4;
	case 'o':
		return f->addrsize ? 4 : 8;
	case 'g':
		if (f->modrm & 0x30)
			return 0;
		return f->opcode == 0xf6 ? 1 : word ? 2 : 4;
	default:
		return 0;
	}
}

/*
 * A near branch with 66 and no REX.W is 16 bits wide on AMD and 32 on Intel; extrq and insertq have
 * two immediates, unlike any other instruction with these opcodes.
 */
static bool ambiguous(const struct x86_form *f, char class)
{
	if ((class == 'J' || class == 'j') && f->opsize && !f->rex_w)
		return true;
	return f->map == 1 && f->opcode == 0x78 && (f->opsize || f->rep == 0xf2);
}

/* The operand of lea cannot be a register; data often looks like that. */
static bool is_lea_of_register(const struct x86_form *f)
{
	return f->map == 0 && f->opcode == 0x8d && f->modrm >= 0xc0;
}

unsigned int x86_length(const uint8_t *p, size_t avail, struct x86_form *form)
{
	struct cursor c = { p, avail > 15 ? 15 : avail, 0, form, VEX_NONE };
	char class;

	memset(form, 0, sizeof(*form));
	if (!read_opcode(&c))
		return 0;
	class = opcode_class(&c);
	if (class == '.' || (c.vex == VEX_NONE && ambiguous(form, class)))
		return 0;
	if (strchr("mMZgq", class))
		read_modrm(&c);
	form->odd = strchr("rRq", class) || is_lea_of_register(form);
	form->imm_len = imm_length(&c, class);
	if (form->imm_len)
		form->imm_off = c.pos;
	c.pos += form->imm_len;
	if (c.pos > c.avail)
		return 0;
	form->len = c.pos;
	return form->len;
}
