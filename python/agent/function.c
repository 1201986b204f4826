/* SPDX-License-Identifier: MIT */
/* A function, its code, the code nested in it, and their names. */
#include "function.h"

#include <string.h>

#include "text.h"

#define DEPTH_MAX    32
#define CO_OPTIMIZED 1

/*
 * 3.10: the body of a class stores __qualname__ first of all, so that is its first constant; NULL
 * for other code. The function that runs it for a moment has only the last part as its name.
 */
static PyObject *class_name(PyObject *code)
{
	PyObject *consts = NULL, *first = NULL, *name;
	const char *whole, *last;

	if (py_attr_long(code, PY_CO_FLAGS, CO_OPTIMIZED) & CO_OPTIMIZED)
		return NULL;
	name = py_attr(code, PY_CO_NAME);
	consts = py_attr(code, PY_CO_CONSTS);
	if (consts && PyTuple_Size(consts) > 0)
		first = PyTuple_GetItem(consts, 0);
	last = py_text(name);
	whole = first ? py_text(first) : NULL;
	if (!whole || !last || strcmp(last_part(whole), last))
		first = NULL;
	Py_IncRef(first);
	Py_DecRef(consts);
	Py_DecRef(name);
	return first;
}

/* The qualified name of code in the code of that name; a new str, or NULL. */
static PyObject *nested_name(PyObject *outer, const char *outer_name, PyObject *code)
{
	PyObject *name = py_attr(code, PY_CO_NAME), *whole = class_name(code);
	const char *text = py_text(name);
	bool function = py_attr_long(outer, PY_CO_FLAGS, 0) & CO_OPTIMIZED;

	if (text && !whole)
		whole = PyUnicode_FromFormat(function ? "%s.<locals>.%s" : "%s.%s", outer_name,
					     text);
	if (!whole)
		PyErr_Clear();
	Py_DecRef(name);
	return whole;
}

void visit_code(struct walking *w, PyObject *code, PyObject *globals, const char *qualname,
		int depth)
{
	PyObject *consts;
	Py_ssize_t n;

	if (qualname || py.hex >= 0x030b0000)
		w->walk->found(w->walk, code, globals, qualname);
	consts = depth < DEPTH_MAX ? py_attr(code, PY_CO_CONSTS) : NULL;
	n = consts ? PyTuple_Size(consts) : 0;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *inner = PyTuple_GetItem(consts, i), *name = NULL;

		if (py_type(inner) != py.code_type)
			continue;
		if (py.hex < 0x030b0000 && qualname)
			name = nested_name(code, qualname, inner);
		visit_code(w, inner, globals, py_text(name), depth + 1);
		Py_DecRef(name);
	}
	Py_DecRef(consts);
}

/*
 * A function's own name is its code's name only when the program has not renamed it, as
 * functools.wraps() does: a wrapper may also be named wrapper in its own right.
 */
static PyObject *function_name(PyObject *function, PyObject *code)
{
	PyObject *qualname = py_attr(function, PY_QUALNAME), *name = py_attr(code, PY_CO_NAME);
	const char *whole = py_text(qualname), *last = py_text(name);

	if (!whole || !last || strcmp(last_part(whole), last) ||
	    PyObject_HasAttr(function, py.name[PY_WRAPPED])) {
		Py_DecRef(qualname);
		qualname = NULL;
	}
	Py_DecRef(name);
	return qualname;
}

bool visit_wanted(struct walking *w, PyObject *globals, PyObject *code)
{
	/*
	 * A file's functions share their globals, but functions of other files may share them too.
	 */
	if (globals != w->globals || (!w->wanted && w->walk->by_file))
		w->wanted = w->walk->wanted(w->walk, globals, code);
	w->globals = globals;
	return w->wanted;
}

void visit_function(struct walking *w, PyObject *function)
{
	PyObject *code = py_function_code(function), *globals = py_function_globals(function);
	PyObject *name = NULL;

	if (code && globals && visit_wanted(w, globals, code)) {
		if (w->walk->found && !(w->seen && w->seen(w, code))) {
			if (py.hex < 0x030b0000)
				name = class_name(code);
			if (py.hex < 0x030b0000 && !name)
				name = function_name(function, code);
			visit_code(w, code, globals, py_text(name), 0);
		}
		if (w->walk->function)
			w->walk->function(w->walk, function, code);
	}
	Py_DecRef(name);
	Py_DecRef(globals);
	Py_DecRef(code);
}

/* ---- 3.10: the name of one code object ---- */

struct search {
	struct walk walk;
	PyObject *code;
	PyObject *name; /* found */
};

static bool search_wanted(struct walk *walk, PyObject *globals, PyObject *code)
{
	(void)globals, (void)code;
	return !((struct search *)walk)->name;
}

static void search_found(struct walk *walk, PyObject *code, PyObject *globals, const char *qualname)
{
	struct search *s = (struct search *)walk;

	(void)globals;
	if (code == s->code && !s->name)
		s->name = PyUnicode_FromString(qualname);
}

/* A function that is called for the first time is young: most searches end in generation 0. */
static PyObject *search_generation(struct search *s, long generation)
{
	struct walking w = { .walk = &s->walk };
	PyObject *objects = py_objects(generation), *o;
	Py_ssize_t n = objects ? PyList_Size(objects) : 0;

	for (Py_ssize_t i = n - 1; i >= 0 && !s->name; i--) {
		o = PyList_GetItem(objects, i);
		if (py_type(o) == py.function_type)
			visit_function(&w, o);
	}
	Py_DecRef(objects);
	return s->name;
}

PyObject *names_find(PyObject *code, const char *co_name, PyObject *generator)
{
	struct search s = { .walk = { .wanted = search_wanted, .found = search_found },
			    .code = code };
	PyObject *name = generator ? py_attr(generator, PY_QUALNAME) : NULL;
	const char *text = py_text(name);

	if (text && !strcmp(last_part(text), co_name))
		return name;
	Py_DecRef(name);
	name = class_name(code);
	if (name)
		return name;
	if (!strcmp(co_name, "<module>"))
		return PyUnicode_FromString(co_name);
	for (long generation = 0; generation < 3; generation++)
		if (search_generation(&s, generation))
			return s.name;
	return PyUnicode_FromString(co_name);
}
