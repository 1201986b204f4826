/* SPDX-License-Identifier: MIT */
#ifndef SB_KMOD_FILES_H
#define SB_KMOD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/base/err.h"

/*
 * The files of the kernel module (inject/kmod/), in /sys/kernel/speed_bump or the folder that
 * $SBINJECT_KMOD_DIR names. Errors are the module's own, in words.
 */
const char *kmod_dir(void); /* NULL: the module is not loaded */

/* Writes one command to one file. */
int kmod_write(const char *file, struct sb_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The whole of a file. The caller frees. NULL: it cannot be read. */
char *kmod_read(const char *file);
/* The number behind a word, such as "total_hits: "; 0: the word is missing. */
uint64_t kmod_number(const char *text, const char *word);
/* The hits of a target in the text of targets_list; false: the target is missing. */
bool kmod_hits(const char *list, const char *name, uint64_t *hits);

#endif
