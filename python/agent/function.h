/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_FUNCTION_H
#define SB_AGENT_FUNCTION_H

#include "agent.h"

/* The state of a walk over functions, from one to the next. */
struct walking {
	struct walk *walk;
	/*
	 * Marks this code as visited and returns whether it was already. NULL: each function
	 * counts.
	 */
	bool (*seen)(struct walking *, PyObject *code);
	PyObject *globals; /* of the previous function: a module's functions come in sequence */
	bool wanted;
};

/* Whether the walk looks for functions of this module, or for this code. */
bool visit_wanted(struct walking *w, PyObject *globals, PyObject *code);

/* Passes a function's code and all that is nested in it to the walk, if it is wanted. */
void visit_function(struct walking *w, PyObject *function);

/* The same for code whose function is gone. qualname NULL: unknown. depth: 0. */
void visit_code(struct walking *w, PyObject *code, PyObject *globals, const char *qualname,
		int depth);

#endif
