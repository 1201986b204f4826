/* SPDX-License-Identifier: MIT */
#ifndef SB_INTERPRETER_H
#define SB_INTERPRETER_H

#include "resolve.h"

/*
 * The CPython interpreter that a process has mapped: a libpython, or an executable that it is
 * linked into. Only symbols of its dynamic symbol table are needed, so that stripped builds work;
 * all addresses are run-time addresses, 0 where there is no such symbol.
 */
enum interpreter_function {
	INTERPRETER_DLOPEN, /* these four of the C library */
	INTERPRETER_DLSYM,
	INTERPRETER_DLCLOSE,
	INTERPRETER_DLERROR,
	INTERPRETER_ADD_PENDING, /* Py_AddPendingCall */
	INTERPRETER_MAKE_PENDING,
	INTERPRETER_THIS_STATE,	   /* PyGILState_GetThisThreadState */
	INTERPRETER_CURRENT_STATE, /* PyThreadState_GetUnchecked or its earlier name */
	INTERPRETER_IS_INITIALIZED,
	INTERPRETER_ENSURE, /* PyGILState_Ensure, PyGILState_Release */
	INTERPRETER_RELEASE,
	INTERPRETER_REQUIRED,
	/* _PyEval_AddPendingCall; 0 before 3.12, where only the main thread ran its calls */
	INTERPRETER_ADD_ANY = INTERPRETER_REQUIRED,
	INTERPRETER_MAIN, /* PyInterpreterState_Main; may be 0, too */
	INTERPRETER_FUNCTIONS
};

struct interpreter {
	uint64_t function[INTERPRETER_FUNCTIONS];
	uint64_t runtime, runtime_size; /* _PyRuntime, which contains the interpreter's own locks */
	/*
	 * The function that runs Python, in builds in which queueing a call takes locks that
	 * threads hold for an instant: free-threaded ones, and those with a GIL from 3.13 on (gil:
	 * a call for all takes the GIL's own mutex). 0 in others. A size of 0: that function is
	 * hidden, and eval is another place in the interpreter.
	 */
	uint64_t eval, eval_size;
	bool gil;
	uint64_t version_address; /* Py_Version, an unsigned long; 0 before 3.11 */
	struct image *img;	  /* counted reference */
	uint64_t bias;
};

/*
 * 0, or: SB_ENOMODULE no interpreter is mapped (yet); SB_EREFUSED with the reason: older than 3.10,
 * without the symbols, or a C library that cannot load libraries.
 */
int interpreter_find(pid_t pid, const struct maps *maps, struct interpreter *out,
		     struct sb_err *err);
void interpreter_free(struct interpreter *in);

/*
 * The first four functions alone, of the C library that a process has mapped, whether there is an
 * interpreter or not. False: it has none, or one that cannot load libraries.
 */
bool interpreter_loader(pid_t pid, const struct maps *maps,
			uint64_t function[INTERPRETER_ADD_PENDING]);

/*
 * Where the interpreter has what a reader of its frames needs. False: there is none (yet), or it is
 * a free-threaded one, or has not all of the symbols.
 */
struct interpreter_types {
	uint32_t version; /* PY_VERSION_HEX >> 16, from 3.10 on */
	uint64_t runtime, code, str, bytes;
};
bool interpreter_types(pid_t pid, const struct maps *maps, struct interpreter_types *out);

/*
 * Functions of the interpreter that are entered, with its lock held, early in its life and where
 * Python code may run: sites for the doorbell of its start. Written to names[], ended by NULL; the
 * caller's lookup skips those that this build lacks.
 */
extern const char *const interpreter_start_functions[];

#endif
