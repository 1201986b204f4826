/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_FUNCTION_H
#define SB_AGENT_FUNCTION_H

#include "agent.h"

/* A walk over functions, as it comes from one to the next. */
struct walking {
	struct walk *walk;
	/* Whether this code has been visited; from now on it has. NULL: each function counts. */
	bool (*seen)(struct walking *, PyObject *code);
	PyObject *globals; /* of the function before: functions of a module come in rows */
	bool wanted;
};

/* Whether functions of this module, or this one's code, are what the walk is after. */
bool visit_wanted(struct walking *w, PyObject *globals, PyObject *code);

/* Tells the walk of a function's code and of all that is nested in it, if it is wanted. */
void visit_function(struct walking *w, PyObject *function);

/* The same for code whose function is gone. qualname NULL: not known. depth: 0. */
void visit_code(struct walking *w, PyObject *code, PyObject *globals, const char *qualname,
		int depth);

#endif
