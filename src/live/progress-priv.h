/* SPDX-License-Identifier: MIT */
#ifndef SB_PROGRESS_PRIV_H
#define SB_PROGRESS_PRIV_H

#include "progress.h"

/* Shared by progress*.c only: the operations of a kind of source. */
struct progress_ops {
	int (*open)(struct progress *p, struct sb_err *err);
	int (*read)(struct progress *p, struct progress_value *value, struct sb_err *err);
	void (*close)(struct progress *p);
	uint64_t poll_ns;
};

struct progress {
	const struct progress_ops *ops;
	char *text;	  /* as given */
	const char *rest; /* the text behind the prefix */
	bool response;
	void *own; /* belongs to the kind */
};

extern const struct progress_ops progress_prom, progress_stdout, progress_file, progress_cmd,
	progress_cpu;

/* The last number in a text; false: there is none. */
bool progress_last_number(const char *text, double *number);

#endif
