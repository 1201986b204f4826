/* SPDX-License-Identifier: MIT */
/*
 * The functions that exist: those that the garbage collector knows, and the code nested in
 * theirs, since a function that is made at each call of another one exists for moments only.
 */
#include "agent.h"

#include <string.h>

#include "text.h"

#define DEPTH_MAX    32
#define CO_OPTIMIZED 1

struct walking {
	struct walk *walk;
	PyObject *globals; /* of the function before: functions of a module come in rows */
	bool wanted;
};

static PyObject *gc_objects(long generation)
{
	PyObject *objects;

	if (generation < 0)
		objects = PyObject_CallMethod(py.gc, "get_objects", NULL);
	else
		objects = PyObject_CallMethod(py.gc, "get_objects", "l", generation);
	if (!objects)
		PyErr_Clear();
	return objects;
}

/*
 * 3.10: the body of a class stores __qualname__ first of all, so that is its first constant; NULL
 * for other code. The function that it is run by for a moment bears the last part only.
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

static void visit_code(struct walking *w, PyObject *code, PyObject *globals, const char *qualname,
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
 * What a function calls itself is its code's name only when nobody has renamed it, as
 * functools.wraps() does: a wrapper may be called wrapper in its own right, too.
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

static void visit_function(struct walking *w, PyObject *function)
{
	PyObject *code = py_function_code(function), *globals = py_function_globals(function);
	PyObject *name = NULL;

	if (code && globals) {
		/* A file's functions share their globals, too. */
		if (globals != w->globals || !w->wanted)
			w->wanted = w->walk->wanted(w->walk, globals, code);
		w->globals = globals;
		if (w->wanted && w->walk->found) {
			if (py.hex < 0x030b0000)
				name = class_name(code);
			if (py.hex < 0x030b0000 && !name)
				name = function_name(function, code);
			visit_code(w, code, globals, py_text(name), 0);
		}
		if (w->wanted && w->walk->function)
			w->walk->function(w->walk, function, code);
	}
	Py_DecRef(name);
	Py_DecRef(globals);
	Py_DecRef(code);
}

/*
 * gc.freeze() (servers that fork call it) takes what exists out of the collector's sight. What
 * can be reached from the modules by names is looked for there then: functions, and what holds
 * them, in namespaces of modules and classes.
 */
static void visit_object(struct walking *w, PyObject *o, PyObject *seen, int depth);

static void visit_namespace(struct walking *w, PyObject *o, PyObject *seen, int depth)
{
	PyObject *space = PyObject_GetAttrString(o, "__dict__"), *values, *list;
	Py_ssize_t n;

	values = space ? PyMapping_Values(space) : NULL;
	list = values ? PySequence_List(values) : NULL;
	n = list ? PyList_Size(list) : 0;
	for (Py_ssize_t i = 0; i < n; i++)
		visit_object(w, PyList_GetItem(list, i), seen, depth);
	PyErr_Clear();
	Py_DecRef(list);
	Py_DecRef(values);
	Py_DecRef(space);
}

/* Attributes of types of the interpreter's own only: those run no code of the program. */
static void visit_held(struct walking *w, PyObject *o, PyObject *seen, int depth)
{
	static const char *const holders[][2] = {
		{ "PyStaticMethod_Type", "__func__" }, { "PyClassMethod_Type", "__func__" },
		{ "PyProperty_Type", "fget" },	       { "PyProperty_Type", "fset" },
		{ "PyProperty_Type", "fdel" },	       { "PyFunction_Type", "__wrapped__" },
		{ "PyMethod_Type", "__func__" },
	};
	PyObject *held;

	for (size_t i = 0; i < sizeof(holders) / sizeof(*holders); i++) {
		if (py_type(o) != py_symbol(holders[i][0]))
			continue;
		held = PyObject_GetAttrString(o, holders[i][1]);
		if (held)
			visit_object(w, held, seen, depth);
		PyErr_Clear();
		Py_DecRef(held);
	}
}

static void visit_object(struct walking *w, PyObject *o, PyObject *seen, int depth)
{
	bool class = PyType_IsSubtype(py_type(o), &PyType_Type);
	PyObject *id;

	if (py_type(o) == py.function_type)
		visit_function(w, o);
	if (depth == DEPTH_MAX)
		return;
	if (class && PyType_GetSlot(py_type(o), Py_tp_getattro) !=
			     PyType_GetSlot(&PyType_Type, Py_tp_getattro))
		return; /* its metaclass has a __getattribute__ of its own: not to be run */
	if (!class) {
		visit_held(w, o, seen, depth + 1);
		return;
	}
	id = PyLong_FromVoidPtr(o);
	if (id && !PySet_Contains(seen, id) && !PySet_Add(seen, id))
		visit_namespace(w, o, seen, depth + 1);
	PyErr_Clear();
	Py_DecRef(id);
}

static bool anything_frozen(void)
{
	PyObject *n = PyObject_CallMethod(py.gc, "get_freeze_count", NULL);
	long frozen = n ? PyLong_AsLong(n) : 0;

	PyErr_Clear();
	Py_DecRef(n);
	return frozen > 0;
}

static void visit_modules(struct walking *w)
{
	PyObject *modules = PySys_GetObject("modules"), *list, *seen; /* borrowed */
	Py_ssize_t n;

	list = modules ? PyMapping_Values(modules) : NULL;
	seen = PySet_New(NULL);
	n = list && seen ? PyList_Size(list) : 0;
	for (Py_ssize_t i = 0; i < n; i++)
		if (py_type(PyList_GetItem(list, i)) == py_symbol("PyModule_Type"))
			visit_namespace(w, PyList_GetItem(list, i), seen, 0);
	PyErr_Clear();
	Py_DecRef(seen);
	Py_DecRef(list);
}

int walk_functions(struct walk *walk)
{
	struct walking w = { .walk = walk };
	PyObject *objects = gc_objects(-1);
	Py_ssize_t n = objects ? PyList_Size(objects) : 0;

	if (!objects)
		return agent_fail(SB_AGENT_PYTHON, "gc.get_objects() failed");
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = PyList_GetItem(objects, i);

		if (py_type(o) == py.function_type)
			visit_function(&w, o);
	}
	Py_DecRef(objects);
	if (anything_frozen())
		visit_modules(&w);
	return 0;
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
	PyObject *objects = gc_objects(generation), *o;
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
