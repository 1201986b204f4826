/* SPDX-License-Identifier: MIT */
/* The offsets are those of the published releases; all that is read by them is checked. */
#include "pyframes-layout.h"

#include <stddef.h>

/* By version; addresses as offsets from _PyRuntime. */
static const struct sb_page_python layouts[] = {
	{ .version = 0x030a,
	  .thread_id = 176,
	  .frame = 24,
	  .cframe = 48,
	  .cframe_previous = 8,
	  .code = 32,
	  .previous = 24,
	  .instr = 96,
	  .line = 100,
	  .name = 112,
	  .file = 104,
	  .table = 120,
	  .first_line = 40,
	  .ascii = 48,
	  .compact = 72,
	  .key = 584,
	  .ending = 16 },
	{ .version = 0x030b,
	  .thread_id = 152,
	  .cframe = 56,
	  .cframe_frame = 8,
	  .cframe_previous = 16,
	  .code = 32,
	  .previous = 48,
	  .instr = 56,
	  .owner = 69,
	  .name = 128,
	  .file = 112,
	  .table = 136,
	  .first_line = 72,
	  .traceable = 168,
	  .units = 184,
	  .ascii = 48,
	  .compact = 72,
	  .key = 592,
	  .ending = 24 },
	{ .version = 0x030c,
	  .thread_id = 136,
	  .cframe = 56,
	  .cframe_frame = 0,
	  .cframe_previous = 8,
	  .code = 0,
	  .previous = 8,
	  .instr = 56,
	  .owner = 70,
	  .name = 128,
	  .file = 112,
	  .table = 136,
	  .first_line = 68,
	  .traceable = 176,
	  .units = 192,
	  .ascii = 40,
	  .compact = 56,
	  .key = 1544,
	  .ending = 24 },
	{ .version = 0x030d,
	  .thread_id = 152,
	  .frame = 72,
	  .code = 0,
	  .previous = 8,
	  .instr = 56,
	  .owner = 70,
	  .name = 128,
	  .file = 112,
	  .table = 136,
	  .first_line = 68,
	  .traceable = 184,
	  .units = 200,
	  .ascii = 40,
	  .compact = 56,
	  .key = 2160,
	  .ending = 608 },
};

const struct sb_page_python *pyframes_layout(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}
