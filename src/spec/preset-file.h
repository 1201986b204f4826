/* SPDX-License-Identifier: MIT */
#ifndef SB_PRESET_FILE_H
#define SB_PRESET_FILE_H

#include <limits.h>
#include <stddef.h>
#include "src/base/err.h"

/*
 * Reads a file of that name from the user's directory of presets, else from the one beside the
 * program. NULL: there is none, else the caller frees. SB_EFILE: it is not to be trusted, or cannot
 * be read.
 */
struct preset_text {
	char path[PATH_MAX + 64], *text;
	size_t len;
};

int preset_read(const char *file, struct preset_text *text, struct sb_err *err);

#endif
