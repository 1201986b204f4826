/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TOOL_H
#define SB_AGENT_TOOL_H

#include "py.h"

/*
 * Tools of sys.monitoring (PEP 669): ids that are taken and given back, what they are told of, and
 * whom it is told to. An id may be freed and taken by others at any time; what is ours is told by
 * the very object that names it. What returns bool is false where the interpreter raised
 * something, which is cleared.
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

/* Before all else; false: sys.monitoring is not as expected. What was opened is to be closed. */
bool tool_open(PyObject *monitoring);
void tool_close(void); /* ids are not given back by this */

bool tool_take(int id); /* this very id */
/* Some id below that one, those that have no name first; NO_TOOL: none is left. */
int tool_take_below(int id);
bool tool_is_ours(int id);
bool tool_is_alone(void);	     /* whoever else has an id? Nobody. */
void tool_silence(int id);	     /* nobody is told of anything any more, if it is ours */
void tool_drop(int id);		     /* silenced and given back, if it is ours */
void tool_drop_others(int a, int b); /* all of ours but these */

bool tool_set(int id, long events);			  /* of all code */
bool tool_set_local(int id, PyObject *code, long events); /* of this one */
bool tool_call(int id, long event, PyObject *callback);
bool tool_restart(void); /* what any tool has disabled is told again */

#endif
