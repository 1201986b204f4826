/* SPDX-License-Identifier: MIT */
#ifndef SB_CLI_FIND_NEXT_H
#define SB_CLI_FIND_NEXT_H

#include "src/out/find.h"

/*
 * What `find` proposes to do next: the sweep, again, of those targets that it left open or whose
 * interval is wide, with the time that is enough by the noise it has seen; and by itself a target
 * with a remedy (sweep/result.h): an option and its value that decide it.
 */
struct find_next_about {
	const char *document; /* of the sweep; NULL: there is none */
	char **word;	      /* its command, "sweep" first; NULL-terminated */
	double time_s;	      /* its --time */
	bool is_target;	      /* the progress is a function */
	const char *response; /* a source of how long responses take; NULL: none is known */
};

/* Fills out->next. The commands belong to *out: find_next_free(). */
void find_next(const struct find_next_about *about, struct out_find *out);
#define FIND_NEXT_WHOLE "the whole of what ended early"
/* Takes over the command. */
void find_next_add(struct out_find *out, const char *why, char *command);
void find_next_free(struct out_find *out);

/* Did this sweep end before its last window? NULL: no. */
bool find_ended_early(const char *document);

/* "sbinject WORD...", for a shell; the caller frees. */
char *find_join(char *const *word);

#endif
