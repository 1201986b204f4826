/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TOOL_H
#define SB_AGENT_TOOL_H

#include "py.h"

/*
 * Tools of sys.monitoring (PEP 669): taking and freeing their ids, their events, and their
 * callbacks. Other tools may free and take an id at any time; the agent recognizes its own ids by
 * the very object that names them. A bool result is false where the interpreter raised an
 * exception, which is cleared.
 */

#define EVENT_START  (1L << 0)
#define EVENT_RESUME (1L << 1)
#define EVENT_RETURN (1L << 2)
#define EVENT_YIELD  (1L << 3)
#define TOOLS	     6
#define NO_TOOL	     (-1)

/* Events whose numbers differ between versions. */
struct tool_events {
	long unwind, throw;
};

extern struct tool_events tool_event;

/* Before all else; false: sys.monitoring is not as expected. Call tool_close() in either case. */
bool tool_open(PyObject *monitoring);
void tool_close(void); /* does not free ids */

bool tool_take(int id); /* this id only */
/* An id below that one, unnamed ids first; NO_TOOL: none is left. */
int tool_take_below(int id);
bool tool_is_ours(int id);
bool tool_is_alone(void);	     /* whether no other tool has an id */
void tool_silence(int id);	     /* switches all its events off, if the id is the agent's */
void tool_drop(int id);		     /* silences and frees it, if it is the agent's */
void tool_drop_others(int a, int b); /* all of the agent's except these */

bool tool_set(int id, long events);			  /* of all code */
bool tool_set_local(int id, PyObject *code, long events); /* of this one */
bool tool_call(int id, long event, PyObject *callback);
bool tool_restart(void); /* what any tool has disabled is reported again */

#endif
