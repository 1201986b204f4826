/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_HOST_H
#define SB_OUT_HOST_H

#include <stddef.h>
#include <sys/utsname.h>
#include <time.h>

/* The machine that this program runs on, for the documents. Unknown is an empty text. */
struct out_host {
	char name[256], cpu[256];
	struct utsname kernel;
	long cpus;
};

void out_host(struct out_host *host);

/* "2026-11-25 16:18:47 +0000" */
char *out_when(time_t when, char *buf, size_t size);

#endif
