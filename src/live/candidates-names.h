/* SPDX-License-Identifier: MIT */
#ifndef SB_CANDIDATES_NAMES_H
#define SB_CANDIDATES_NAMES_H

#include "elf/image.h"
#include "job.h"
#include "src/result/explain.h"

enum { CANDIDATES_MOST = 10, WAITS_MOST = 5 };

/* The function of a file that begins at start, as a target that means just this one. The caller
 * frees. */
char *candidates_name(const struct session_config *cfg, struct image *img, uint64_t start);

/* Is the function at an address of a Go program one of Go's runtime? */
bool candidates_runtime(struct image *img, uint64_t vaddr);

/* Which of the candidates of a result can be hooked, and why the others cannot: as `list`. */
void candidates_check(struct sweep_job *job, struct explain_result *res);

/*
 * Those options that a sweep has to share, as words: --no-children, --mechanism, --backend. Returns
 * how many words.
 */
enum { CANDIDATES_OPTIONS = 5 };
size_t candidates_options(const struct options *opt, const char *word[CANDIDATES_OPTIONS]);

/* The command of a sweep of the first of those. */
void candidates_command(const struct sweep_job *job, struct explain_result *res);

#endif
