/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_PY_H
#define SB_AGENT_PY_H

/*
 * The interpreter, through its stable ABI. One binary serves every version, so no code here reads
 * an object's fields: reference counts change by calls (the macros assume a layout, and
 * free-threaded builds have another), types are compared by an offset found at start.
 */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

enum py_name {
	PY_NAME,     /* __name__ */
	PY_QUALNAME, /* __qualname__ */
	PY_CO_NAME,
	PY_CO_QUALNAME,
	PY_CO_FILENAME,
	PY_CO_FIRSTLINENO,
	PY_CO_CONSTS,
	PY_CO_FLAGS,
	PY_WRAPPED, /* __wrapped__ */
	PY_N_NAMES,
};

struct py {
	bool open;
	bool threads; /* a free-threaded build: Python runs in several threads at once */
	uint32_t hex; /* PY_VERSION_HEX of the interpreter */
	PyObject *name[PY_N_NAMES];
	/* Looked up once: dlsym() takes long in a process of hundreds of libraries. */
	void *code_type, *function_type, *module_type;
	void *static_method_type, *class_method_type, *property_type, *method_type;
	size_t type_off;
	/*
	 * Of a function, borrowed: see py_function_code(). Reading its attribute __code__ would
	 * call audit hooks.
	 */
	PyObject *(*function_code)(PyObject *), *(*function_globals)(PyObject *);
	PyObject *(*weakref_object)(PyObject *ref); /* borrowed; weakref_get returns a new one */
	int (*weakref_get)(PyObject *ref, PyObject **object);
	/* NULL where the type is missing: then names lead to fewer functions. */
	PyObject *(*function_closure)(PyObject *), *(*cell_get)(PyObject *),
		**(*dict_of)(PyObject *);
	/* 3.13 and later; NULL before. */
	int (*dict_get)(PyObject *dict, PyObject *key, PyObject **value);
	int (*finalizing)(void);
	int (*gc_disable)(void), (*gc_enable)(void); /* return the state before */
	PyObject *gc;				     /* the module */
	PyObject *class_dict;			     /* the descriptor type.__dict__["__dict__"] */
};

extern struct py py;

int py_open(void); /* 0, or an enum sb_agent_error */
void py_close(void);

/* A function of the interpreter outside the limited API; NULL where it is missing. */
void *py_symbol(const char *name);

static inline void *py_type(PyObject *o)
{
	return *(void **)((char *)o + py.type_off);
}

/* The attribute, a new reference; NULL without an exception when there is none. */
PyObject *py_attr(PyObject *o, enum py_name name);
long py_attr_long(PyObject *o, enum py_name name, long otherwise);

/* The text of a str, valid as long as the str; NULL without an exception otherwise. */
const char *py_text(PyObject *str);

/* globals["__name__"] as text, valid as long as *held, a new reference; "": there is none. */
const char *py_module_name(PyObject *globals, PyObject **held);

/* Of a function, new references. */
PyObject *py_function_code(PyObject *function);
PyObject *py_function_globals(PyObject *function);

/*
 * A weak reference that the program does not find among the objects of its garbage collector. The
 * collector need not visit it: it refers to nothing that could be part of a cycle.
 */
PyObject *py_ref_new(PyObject *object);
bool py_ref_alive(PyObject *ref, PyObject *object);

/*
 * A function object, for code that may be unloaded before the object is freed: its definition is in
 * an object that it holds, since without a GIL the thread that made it frees it, possibly late.
 */
PyObject *py_callable(PyObject *(*call)(PyObject *self, PyObject *const *args, Py_ssize_t n));

/* The number of references to an object, by the interpreter's own count; -1: unknown. */
long py_references(PyObject *object);

/*
 * The objects that the garbage collector knows, of one generation or (-1) of all; a new list, or
 * NULL.
 */
PyObject *py_objects(long generation);

/* Runs source in a new dict of globals, which it returns; NULL with an exception. */
PyObject *py_run(const char *source);

/* Frees the globals, and the functions that refer to them; they may be NULL. */
void py_run_end(PyObject *globals);

/*
 * Removes an exception, if there is one: the agent's code has run a signal handler of the program,
 * which raised it. py_pass_on(), at the end, raises it in the program, in this thread, as soon as
 * the program runs on.
 */
bool py_interrupted(void);
void py_pass_on(void);

/* Whether one thread at a time runs Python now. */
bool py_gil(void);

/* Whether a tracer, a profiler or another tool would see a function of the agent run. */
bool py_observed(void);

#endif
