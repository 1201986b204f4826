/* SPDX-License-Identifier: MIT */
/* The copy of pyframes.h that stubs call: its bytes lie behind their common code. */
#include "pyframes-code.h"
#include "pyframes.h"

uint64_t pyframes_stub(const struct sb_page_python *py, struct sb_page_stack *to, char *area,
		       uint64_t thread)
{
	return pyframes_copy(py, thread, 0, area, to);
}
