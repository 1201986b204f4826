/* SPDX-License-Identifier: MIT */
#ifndef SB_KERNEL_TRACEFS_H
#define SB_KERNEL_TRACEFS_H

#include <stdbool.h>

/* What tracefs knows: where it is not mounted, it is mounted for this process alone. NULL: it
 * cannot be read; the functions below take that. */
enum tracefs_hookable { TRACEFS_UNKNOWN, TRACEFS_PLACE, TRACEFS_NO_PLACE };

/* The functions that the kernel was built with a place for hooks in. */
struct tracefs_functions;
struct tracefs_functions *tracefs_functions_open(void);
enum tracefs_hookable tracefs_hookable(const struct tracefs_functions *f, const char *name);
void tracefs_functions_close(struct tracefs_functions *f);

/* Events. tracefs_subsystem(): of the event of that name; "raw": there is none. */
struct tracefs_events;
struct tracefs_events *tracefs_events_open(void);
const char *tracefs_subsystem(const struct tracefs_events *e, const char *name);
typedef void tracefs_event_fn(void *ctx, const char *subsystem, const char *name);
void tracefs_events_each(const struct tracefs_events *e, tracefs_event_fn *fn, void *ctx);
void tracefs_events_close(struct tracefs_events *e);

#endif
