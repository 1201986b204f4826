/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_REQUESTS_H
#define SB_UPROBE_REQUESTS_H

#include "inject/uprobe/kernel-abi.h"
#include "src/session/trace-pipe.h"

/*
 * Recorded calls of ioctl(), as calls of a function of the request's name: NV_ESC_RM_CONTROL, or
 * "ioctl 0xc020462a" where it has none. Only for spans.c. Zeros are an empty one.
 */
enum { REQUEST_VALUES = 6 /* device, cmd, detail, status, result, detail_name */ };

struct requests {
	struct request_name {
		char device[KERNEL_DEVICE];
		uint32_t cmd, number; /* as the call has them */
		uint32_t function;    /* from REQUESTS_FROM on */
	} * known;
	size_t n;
	bool others; /* there are more than that */
	char **text; /* that were sent, by number - 1: of devices and details */
	size_t n_texts;
};

enum { REQUESTS_FROM = 1 << 16, REQUESTS_MOST = 1 << 10, REQUEST_TEXTS_MOST = 512 };

/* What each call has, with values->set filled in. */
void requests_values(struct trace_values *values);
/* The call's function, which is declared where it is new, and its values. */
uint32_t requests_take(struct requests *r, const struct kernel_span *span, struct trace_valued *to,
		       struct trace_bytes *bytes);
void requests_free(struct requests *r);

#endif
