/* SPDX-License-Identifier: MIT */
/*
 * The functions that exist: those that names lead to, those of classes, those that the garbage
 * collector knows, and the code nested in theirs, since a function that is made at each call of
 * another one exists only for moments.
 */
#include "function.h"

#include <stdlib.h>
#include <string.h>

/* ---- the work list ---- */

/* The code decides, not the function object: since 3.12. */
static bool by_code(const struct walking *w)
{
	return py.hex >= 0x030c0000 && !w->walk->function;
}

/*
 * A walk is done in pieces, and the program runs in between: what is kept from one piece to the
 * next is held by strong references, in memory of the agent, where the garbage collector and the
 * program do not find it. A code object is kept with the globals of its function; a function object
 * is kept only where the object itself matters.
 */
struct todo {
	PyObject *object, *globals; /* globals: object is code */
	int depth;		    /* distance from a namespace, through objects of any kind */
	bool space;		    /* object is a module's namespace, of which ... */
	Py_ssize_t at, size;	    /* ... this much has been visited; its size then */
};

struct pointers { /* open addressing */
	uintptr_t *slot;
	size_t n, size;
};

/* In parts: one that grows is copied in one piece, and there can be a hundred thousand pointers. */
enum { PARTS_SHIFT = 6 };

struct pointer_set {
	struct pointers part[1 << PARTS_SHIFT];
};

static struct place {
	struct walking walking;
	enum { HAS_NONE, BY_NAMES, BY_CLASSES, BY_COLLECTOR, LEAVING } stage;
	struct todo *todo;
	size_t n_todo, mailbox_todo;
	PyObject **kept; /* so that no pointer in `seen` is reused for another object */
	size_t n_kept, mailbox_kept;
	struct pointer_set seen, parents; /* parents: classes whose subclasses are visited, too */
	size_t n_others; /* visited objects that are neither functions nor classes */
	/* Of sys.modules, as in struct todo; and how often it was begun again. */
	Py_ssize_t module_at, n_modules;
	int restarts;
} place;

enum { OTHERS_DEPTH = 3, OTHERS_SIZE = 256, OTHERS_MAX = 50000 };
enum { AT_ONCE = 64, RESTARTS_MAX = 100 };

static bool grown(void **array, size_t n, size_t *mailbox, size_t size)
{
	size_t more = *mailbox ? *mailbox * 2 : 256;
	void *bigger;

	if (n < *mailbox)
		return true;
	bigger = realloc(*array, more * size);
	if (!bigger)
		return false;
	*array = bigger;
	*mailbox = more;
	return true;
}

/* Objects that do not fit any more are not visited; their first calls are seen all the same. */
static void todo_push(struct todo t)
{
	if (!grown((void **)&place.todo, place.n_todo, &place.mailbox_todo, sizeof(*place.todo)))
		return;
	Py_IncRef(t.object);
	Py_IncRef(t.globals);
	place.todo[place.n_todo++] = t;
}

static void todo_add(PyObject *object, PyObject *globals, int depth)
{
	todo_push((struct todo){ .object = object, .globals = globals, .depth = depth });
}

static uint64_t pointer_hash(uintptr_t key)
{
	return (key >> 4) * 0x9e3779b97f4a7c15ull;
}

static uintptr_t *pointer_slot(const struct pointers *p, uintptr_t key)
{
	size_t i = pointer_hash(key) >> 20 & (p->size - 1);

	while (p->slot[i] && p->slot[i] != key)
		i = (i + 1) & (p->size - 1);
	return &p->slot[i];
}

static bool pointers_grow(struct pointers *p)
{
	struct pointers bigger = { .n = p->n, .size = p->size ? p->size * 2 : 64 };

	bigger.slot = calloc(bigger.size, sizeof(*bigger.slot));
	if (!bigger.slot)
		return false;
	for (size_t i = 0; i < p->size; i++)
		if (p->slot[i])
			*pointer_slot(&bigger, p->slot[i]) = p->slot[i];
	free(p->slot);
	*p = bigger;
	return true;
}

/* free() itself may be a target: each call of it would take the delay, with the GIL held. */
static void release(void *memory)
{
	if (memory)
		free(memory);
}

static void pointers_free(struct pointer_set *set)
{
	for (size_t i = 0; i < sizeof(set->part) / sizeof(*set->part); i++)
		release(set->part[i].slot);
}

/* Adds it and returns whether it was there before. It is held until the walk ends. */
static bool met_before(struct pointer_set *set, PyObject *o)
{
	struct pointers *p = &set->part[pointer_hash((uintptr_t)o) >> (64 - PARTS_SHIFT)];
	uintptr_t *slot;

	if (p->n * 2 >= p->size && !pointers_grow(p))
		return true;
	slot = pointer_slot(p, (uintptr_t)o);
	if (*slot)
		return true;
	if (!grown((void **)&place.kept, place.n_kept, &place.mailbox_kept, sizeof(*place.kept)))
		return true;
	Py_IncRef(o);
	place.kept[place.n_kept++] = o;
	*slot = (uintptr_t)o;
	p->n++;
	return false;
}

static bool seen_before(PyObject *o)
{
	return met_before(&place.seen, o);
}

static bool seen_code(struct walking *w, PyObject *code)
{
	return by_code(w) && seen_before(code);
}

/* ---- by names ---- */

/*
 * In the wanted modules, everything that names lead to is visited: functions, classes, and objects
 * that hold functions. That visits none of the program's other objects, of which there can be
 * millions. The collector is no substitute: gc.freeze() (servers that fork call it) hides what
 * exists from it.
 */
static bool is_class(PyObject *o)
{
	return PyType_IsSubtype(py_type(o), &PyType_Type);
}

static bool leads_on(PyObject *o, int depth)
{
	if (py_type(o) == py.function_type || is_class(o))
		return true;
	return depth < OTHERS_DEPTH && py_type(o) != py.module_type && PyObject_GC_IsTracked(o);
}

static void todo_add_all(PyObject *sequence, int depth)
{
	PyObject *list = sequence ? PySequence_List(sequence) : NULL;
	Py_ssize_t n = list ? PyList_Size(list) : 0;

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = PyList_GetItem(list, i);

		if (leads_on(o, depth))
			todo_add(o, NULL, depth);
	}
	PyErr_Clear();
	Py_DecRef(list);
}

static void visit_namespace(PyObject *space, int depth)
{
	PyObject *values = space ? PyMapping_Values(space) : NULL;

	PyErr_Clear();
	todo_add_all(values, depth);
	Py_DecRef(values);
}

/* As type.__dict__ has it: a metaclass may compute attributes, and its code must not run. */
static void visit_class(PyObject *o, int depth)
{
	descrgetfunc get = (descrgetfunc)PyType_GetSlot(py_type(py.class_dict), Py_tp_descr_get);
	PyObject *space;

	if (!get || seen_before(o))
		return;
	space = get(py.class_dict, o, (PyObject *)py_type(o));
	PyErr_Clear();
	visit_namespace(space, depth);
	Py_DecRef(space);
}

/*
 * Every class descends from object. In classes that no name of a wanted module has led to, only
 * functions and descriptors are of interest.
 */
static void visit_family(PyObject *o)
{
	PyObject *children;

	visit_class(o, OTHERS_DEPTH - 1);
	if (met_before(&place.parents, o))
		return;
	children = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", o);
	PyErr_Clear();
	todo_add_all(children, OTHERS_DEPTH - 1);
	Py_DecRef(children);
}

/* The function inside a decorator's wrapper is in the wrapper's closure, or in its attributes. */
static void visit_around(PyObject *function, int depth)
{
	PyObject *closure = py.function_closure ? py.function_closure(function) : NULL;
	PyObject **dict = py.dict_of ? py.dict_of(function) : NULL;
	Py_ssize_t n = closure ? PyTuple_Size(closure) : 0;
	PyObject *o;

	for (Py_ssize_t i = 0; i < n && py.cell_get; i++) {
		o = py.cell_get(PyTuple_GetItem(closure, i));
		if (o && leads_on(o, depth))
			todo_add(o, NULL, depth);
		Py_DecRef(o);
	}
	if (dict && *dict) {
		o = PyDict_GetItemWithError(*dict, py.name[PY_WRAPPED]); /* borrowed */
		if (o && leads_on(o, depth))
			todo_add(o, NULL, depth);
	}
	PyErr_Clear();
}

/* The usual containers of a class's functions; their contents do not change. */
static bool is_descriptor(PyObject *o)
{
	const void *type = py_type(o);

	return type == py.static_method_type || type == py.class_method_type ||
	       type == py.property_type || type == py.method_type;
}

/* There can be any number of other objects; without a GIL they change while they are read. */
static bool is_looked_at(PyObject *o)
{
	if (is_descriptor(o))
		return true;
	if (py.threads || place.n_others == OTHERS_MAX ||
	    (PyDict_CheckExact(o) && PyDict_Size(o) > OTHERS_SIZE) ||
	    (PyList_CheckExact(o) && PyList_Size(o) > OTHERS_SIZE) ||
	    (PyTuple_CheckExact(o) && PyTuple_Size(o) > OTHERS_SIZE))
		return false;
	place.n_others++;
	return true;
}

static int visit_referent(PyObject *o, void *depth)
{
	if (leads_on(o, *(int *)depth))
		todo_add(o, NULL, *(int *)depth);
	return 0;
}

/*
 * The objects that it refers to, by the collector's own method: gc.get_referents() calls audit
 * hooks, which are code of the program.
 */
static void visit_other(PyObject *o, int depth)
{
	traverseproc traverse = (traverseproc)PyType_GetSlot(py_type(o), Py_tp_traverse);

	if (!traverse || !is_looked_at(o))
		return;
	depth++;
	traverse(o, visit_referent, &depth);
}

/*
 * A few thousand objects that the program has not used for long take a microsecond each to be
 * looked at. So where there is a GIL, sys.modules and the namespace of a module are not copied, but
 * visited bit by bit as they are by then. One that has grown or shrunk meanwhile is begun again,
 * since its values may have other places; so some are met more than once.
 */
static Py_ssize_t place_in(PyObject *dict, Py_ssize_t at, Py_ssize_t size)
{
	if (!at || PyDict_Size(dict) == size || place.restarts == RESTARTS_MAX)
		return at;
	place.restarts++;
	return 0;
}

/* The rest of it beneath what the first of its values lead to. */
static void visit_some(const struct todo *t)
{
	size_t rest = place.n_todo;
	Py_ssize_t at = place_in(t->object, t->at, t->size);
	bool more = true;
	PyObject *o;

	todo_push((struct todo){ .object = t->object, .space = true });
	if (place.n_todo == rest)
		return;
	for (int n = 0; n < AT_ONCE && more; n++) {
		more = PyDict_Next(t->object, &at, NULL, &o);
		if (more && leads_on(o, 0))
			todo_add(o, NULL, 0);
	}
	place.todo[rest].at = more ? at : PY_SSIZE_T_MAX;
	place.todo[rest].size = PyDict_Size(t->object);
}

static void visit_module(PyObject *module)
{
	struct walk *walk = place.walking.walk;
	PyObject *space = PyModule_GetDict(module); /* borrowed */

	if (!walk->wanted(walk, space, NULL))
		return;
	if (py.threads)
		visit_namespace(space, 0);
	else
		todo_push((struct todo){ .object = space, .space = true });
}

static void visit_todo(struct todo *t)
{
	struct walking *w = &place.walking;

	if (t->space) {
		if (t->at != PY_SSIZE_T_MAX)
			visit_some(t);
	} else if (t->globals) {
		visit_code(w, t->object, t->globals, NULL, 0);
	} else if (py_type(t->object) == py.function_type) {
		if (!seen_before(t->object)) {
			visit_function(w, t->object);
			visit_around(t->object, t->depth);
		}
	} else if (is_class(t->object)) {
		if (place.stage == BY_CLASSES)
			visit_family(t->object);
		else
			visit_class(t->object, 0);
	} else if (py_type(t->object) == py.module_type) {
		visit_module(t->object);
	} else {
		visit_other(t->object, t->depth);
	}
}

static void add_modules(PyObject *modules)
{
	PyObject *list = PyMapping_Values(modules);
	Py_ssize_t n = list ? PyList_Size(list) : 0;

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *module = PyList_GetItem(list, i);

		if (py_type(module) == py.module_type)
			todo_add(module, NULL, 0);
	}
	PyErr_Clear();
	Py_DecRef(list);
}

/*
 * All of them, bit by bit: which ones are wanted is found out one by one, there can be thousands.
 * False: there are no more.
 */
static bool next_modules(void)
{
	PyObject *modules = PySys_GetObject("modules"), *module; /* borrowed */
	bool in_place = modules && PyDict_Check(modules) && !py.threads, more = in_place;
	size_t before = place.n_todo;

	if (modules && !in_place && !place.n_modules) {
		add_modules(modules);
		place.n_modules = 1;
		return place.n_todo > before;
	}
	if (in_place)
		place.module_at = place_in(modules, place.module_at, place.n_modules);
	for (int n = 0; n < AT_ONCE && more && place.n_todo == before; n++) {
		more = PyDict_Next(modules, &place.module_at, NULL, &module);
		if (more && py_type(module) == py.module_type && !seen_before(module))
			todo_add(module, NULL, 0);
	}
	if (in_place)
		place.n_modules = PyDict_Size(modules);
	return more;
}

static bool enough(void)
{
	const struct walk *walk = place.walking.walk;

	return walk->enough && walk->enough(walk);
}

static int visit_all(void)
{
	while (!enough() && (place.n_todo || (place.stage == BY_NAMES && next_modules()))) {
		if (place.n_todo) {
			struct todo t = place.todo[--place.n_todo]; /* NOLINT(*unix.Malloc) */

			visit_todo(&t);
			Py_DecRef(t.globals);
			Py_DecRef(t.object);
		}
		if (slice_over())
			return SB_AGENT_AGAIN;
	}
	return 0;
}

/* ---- by the collector's objects ---- */

/* Of many functions with one code, one is enough where the code decides. */
static void add_function(struct walking *w, PyObject *function)
{
	PyObject *code = py_function_code(function), *globals = py_function_globals(function);

	if (!code || !globals || !visit_wanted(w, globals, code))
		;
	else if (!by_code(w))
		todo_add(function, NULL, 0);
	else if (!seen_before(code))
		todo_add(code, globals, 0);
	Py_DecRef(globals);
	Py_DecRef(code);
}

/* In one piece: the collector's list cannot be kept, nor visited in parts. */
static int add_known(struct walking *w)
{
	PyObject *objects = py_objects(-1);
	Py_ssize_t n = objects ? PyList_Size(objects) : 0;

	if (!objects)
		return agent_fail(SB_AGENT_PYTHON, "gc.get_objects() failed");
	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = PyList_GetItem(objects, i);

		if (py_type(o) == py.function_type)
			add_function(w, o);
	}
	Py_DecRef(objects);
	return 0;
}

/* ---- a walk ---- */

void walk_lose(void)
{
	memset(&place, 0, sizeof(place));
}

void walk_drop(void)
{
	struct place was = place;

	/* Releasing objects runs code of the program. */
	walk_lose();
	for (size_t i = 0; i < was.n_todo; i++) {
		Py_DecRef(was.todo[i].globals);
		Py_DecRef(was.todo[i].object);
	}
	for (size_t i = 0; i < was.n_kept; i++)
		Py_DecRef(was.kept[i]);
	release(was.todo); /* NOLINT(*unix.Malloc): `place` has none of it any more */
	release(was.kept);
	pointers_free(&was.seen);
	pointers_free(&was.parents);
}

int walk_leave(void)
{
	if (place.stage == HAS_NONE)
		return 0;
	place.stage = LEAVING;
	for (size_t n = 1; place.n_todo || place.n_kept; n++) {
		if (place.n_todo) {
			struct todo t = place.todo[--place.n_todo]; /* NOLINT(*unix.Malloc) */

			Py_DecRef(t.globals);
			Py_DecRef(t.object);
		} else {
			Py_DecRef(
				place.kept[--place.n_kept]); /* NOLINT(*unix.Malloc): walk_drop() */
		}
		if (n % 64 == 0 && slice_over())
			return SB_AGENT_AGAIN;
	}
	walk_drop();
	return 0;
}

static int look_further(struct walking *w)
{
	enum walk_more more = w->walk->more ? w->walk->more(w->walk) : WALK_ALL;
	int rc = 0;

	if (more == WALK_NO_MORE)
		return 0;
	place.stage = more == WALK_ALL ? BY_COLLECTOR : BY_CLASSES;
	if (more == WALK_ALL)
		rc = add_known(w);
	else
		todo_add((PyObject *)&PyBaseObject_Type, NULL, 0);
	if (rc)
		return rc;
	return slice_over() ? SB_AGENT_AGAIN : visit_all();
}

int walk_piece(struct walk *walk)
{
	struct walking *w = &place.walking;
	int rc = 0;

	/* the object visited last may be gone */
	*w = (struct walking){ .walk = walk, .seen = seen_code };
	if (place.stage == HAS_NONE)
		place.stage = BY_NAMES;
	if (place.stage != LEAVING)
		rc = visit_all();
	if (!rc && place.stage == BY_NAMES)
		rc = look_further(w);
	if (!rc)
		rc = walk_leave();
	if (rc && rc != SB_AGENT_AGAIN)
		walk_drop();
	return rc;
}
