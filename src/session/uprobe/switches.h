/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_SWITCHES_H
#define SB_UPROBE_SWITCHES_H

#include "inject/uprobe/kernel-abi.h"
#include "src/session/trace-pipe.h"

/*
 * Recorded runs of interrupt handlers, as calls of a function of the handler's name, and times of
 * threads without a processor, as calls of a function that says why. Only for spans.c. Zeros are an
 * empty one.
 */
enum { INTERRUPT_VALUES = 3 /* irq, cpu, result */ };

struct switches {
	char (*handler)[KERNEL_DEVICE]; /* declared, by number of the function */
	size_t n;
	unsigned int reasons; /* declared, bits */
};

enum { SWITCHES_FROM = 1 << 17, HANDLERS_MOST = 256 };

/* What each run of a handler has, with values->set filled in. */
void switches_values(struct trace_values *values);
/* The function, which is declared where it is new. Of an interrupt also its values, and in `track`
 * the name of its track, that of its processor. */
uint32_t switches_interrupt(struct switches *s, const struct kernel_span *span,
			    struct trace_valued *to, char track[16], struct trace_bytes *bytes);
uint32_t switches_offcpu(struct switches *s, const struct kernel_span *span,
			 struct trace_bytes *bytes);
void switches_free(struct switches *s);

#endif
