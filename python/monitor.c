/* SPDX-License-Identifier: MIT */
/*
 * 3.12 and later: sys.monitoring (PEP 669).
 *
 * Two tool ids. The finder has PY_START for all code: it judges a code object at its first call
 * and answers DISABLE, so that the interpreter itself remembers and later calls cost nothing.
 * The watcher has PY_START (and PY_RESUME) for the code objects that matched, one by one; they
 * are switched off while nobody counts.
 *
 * What the interpreter does that is written around here (Python/instrumentation.c):
 *
 * - DISABLE outlives its tool: the code object keeps "tool N, PY_START: active" and "not here"
 *   until it is run under another set of events. A new owner of id N is never told of it. So a
 *   new list of targets gets a new finder id before the old one is given back, and what exists
 *   already is looked for at start, since an earlier attach may have left such marks. (Nor is
 *   sys.monitoring.restart_events() a way: it brings back what other tools had disabled.)
 * - For the same reason a watched code object is told PY_RETURN first and PY_START then: the
 *   second is new to it whatever was left behind, and is put into the code.
 * - free_tool_id() of 3.12 and 3.13.0 leaves events and callbacks behind: they are cleared first.
 * - A frame that ends by an exception, and a generator that is thrown into, are told for all code
 *   or for none: the watcher asks for these two while calls are timed, and sorts them out itself.
 * - Ids 0 to 2 and 5 have names (debugger, coverage, profiler, optimizer); others are taken
 *   first, so that what is left behind troubles nobody.
 */
#include "agent.h"

#include <string.h>

#include "span.h"
#include "table.h"
#include "turn.h"

#define EVENT_START  (1L << 0)
#define EVENT_RESUME (1L << 1)
#define EVENT_RETURN (1L << 2)
#define EVENT_YIELD  (1L << 3)
#define NO_TOOL	     (-1)
#define TOOLS	     6
#define PATIENCE     10000 /* naps that a first call waits for its turn: a second or more */
#define DRAIN	     5000  /* naps for all to leave */

static struct {
	PyObject *module; /* sys.monitoring */
	PyObject *disable, *name;
	PyObject *find, *watch, *resume, *leave, *throw; /* callbacks */
	long unwind, throw_event; /* events whose numbers differ between versions */
	bool spans;		  /* the watcher asks for these */
	PyObject *(*call)(PyObject *, PyObject *const *, size_t, PyObject *);
	bool paused;	     /* the finder's global event is off */
	int finder, watcher; /* tool ids; the same one where no second is free */
	int passing;	     /* one more than the id of a finder that comes or goes */
} mon;

/* ---- callbacks: called for every event, must be quick, may never raise ---- */

static PyObject *answer(PyObject *value)
{
	Py_IncRef(value);
	return value;
}

static void begun(const PyObject *code, bool resumed)
{
	const struct watch *w = table_watch(code);

	if (!w)
		return;
	watch_hit(w, resumed);
	if (py.threads)
		w = table_watch(code);
	if (w && w->spans)
		span_enter(w, false);
}

/*
 * Without a GIL: what the watcher leaves for the finder, which is told of the same event after
 * it. It lies before the arguments, where the interpreter's way of calling allows a function to
 * write (PY_VECTORCALL_ARGUMENTS_OFFSET), and nowhere else: that is made anew for each event.
 */
static PyObject **told(PyObject *const *args)
{
	return (PyObject **)(uintptr_t)args - 1;
}

static PyObject *on_watched(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n > 0)
		begun(args[0], false);
	if (py.threads)
		*told(args) = mon.watch;
	return answer(Py_None);
}

static PyObject *on_resumed(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n > 0)
		begun(args[0], true);
	return answer(Py_None);
}

/* Returned, raised or yielded. */
static PyObject *on_left(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	const struct watch *w = n > 0 ? table_watch(args[0]) : NULL;

	(void)self;
	if (w && w->spans)
		span_leave(w);
	return answer(Py_None);
}

/* Resumed by an exception, which is no hit. */
static PyObject *on_thrown(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	const struct watch *w = n > 0 ? table_watch(args[0]) : NULL;

	(void)self;
	if (w && w->spans)
		span_enter(w, false);
	return answer(Py_None);
}

static int monitor_set(struct watch *w, bool on);
static bool set_global(int tool, long events);
static long watcher_events(void);

/* What is retired is freed after all threads have been stopped once, as each such call does. */
static void free_retired(void)
{
	set_global(mon.watcher, watcher_events());
	retired_free();
}

enum first {
	FIRST_NOTHING,
	FIRST_FOUND,  /* it matches, and nobody but us is told of this call */
	FIRST_SHARED, /* as always, where one id does it all */
};

/*
 * A code object that others have judged before us: in this call, in another thread, if the
 * watcher was not told of it.
 */
static enum first known(const struct entry *e, bool watched)
{
	if (mon.finder == mon.watcher)
		return FIRST_SHARED;
	return watched || !e->watch ? FIRST_NOTHING : FIRST_FOUND;
}

static enum first first_call(PyObject *code, bool watched)
{
	const struct entry *e = table_find(code);
	struct watch *w;

	if (!agent.started)
		return FIRST_NOTHING;
	if (e && entry_valid(e))
		return known(e, watched);
	w = judge(code, PyEval_GetGlobals(), NULL, NULL);
	if (!w)
		return FIRST_NOTHING;
	monitor_set(w, watch_wanted(w));
	if (py.threads && retired_many())
		free_retired();
	return FIRST_FOUND;
}

static PyObject *judged(PyObject *code, bool watched)
{
	bool one = mon.finder == mon.watcher;
	const struct watch *w;
	enum first first;

	if (!turn_take(PATIENCE))
		return Py_None; /* the next call is a first one again */
	first = first_call(code, watched);
	turn_give();
	if (first == FIRST_SHARED)
		begun(code, false);
	else if (first == FIRST_FOUND && (w = table_watch(code)))
		watch_hit(w, false);
	return one && first != FIRST_NOTHING ? Py_None : mon.disable;
}

/*
 * The first call of a code object under this finder. If it matches, this call is counted here:
 * the watcher is told of the next one only, since who is told of an event is decided before the
 * first callback of it runs. Without a GIL it may be the first call in several threads, of which
 * one judges; the watcher's id is the higher one there, so that it is told first and says so.
 */
static PyObject *on_first(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	bool watched = !py.threads || mon.finder > mon.watcher || *told(args) == mon.watch;
	PyObject *result;

	(void)self;
	if (n < 1 || !agent.started)
		return answer(mon.disable);
	turn_enter();
	result = answer(judged(args[0], watched));
	turn_leave();
	return result;
}

/*
 * A function object. Its definition lies in an object that it holds: without a GIL the thread that
 * made it is told to free it, and that may be when the agent is gone.
 */
static PyObject *function_new(PyObject *(*call)(PyObject *, PyObject *const *, Py_ssize_t))
{
	static const char name[] = "sbinject";
	PyObject *held = PyBytes_FromStringAndSize(NULL, sizeof(PyMethodDef) + sizeof(name)), *f;
	PyMethodDef *def = held ? (PyMethodDef *)(void *)PyBytes_AsString(held) : NULL;

	if (!def)
		return NULL;
	*def = (PyMethodDef){ (char *)(def + 1), (PyCFunction)(void (*)(void))call, METH_FASTCALL,
			      NULL };
	memcpy(def + 1, name, sizeof(name));
	f = PyCFunction_NewEx(def, held, NULL);
	Py_DecRef(held);
	return f;
}

/* ---- sys.monitoring ---- */

/* A call of it; false: it raised (cleared). */
static bool ask(PyObject *result)
{
	if (!result)
		PyErr_Clear();
	Py_DecRef(result);
	return result;
}

static bool set_local(PyObject *code, long events)
{
	return ask(PyObject_CallMethod(mon.module, "set_local_events", "iOl", mon.watcher, code,
				       events));
}

static bool set_global(int tool, long events)
{
	return ask(PyObject_CallMethod(mon.module, "set_events", "il", tool, events));
}

static bool set_callback(int tool, long event, PyObject *callback)
{
	return ask(
		PyObject_CallMethod(mon.module, "register_callback", "ilO", tool, event, callback));
}

/* Whether the id is still ours: another tool may have freed it. */
static bool tool_is_ours(int tool)
{
	PyObject *name = PyObject_CallMethod(mon.module, "get_tool", "i", tool);

	if (!name)
		PyErr_Clear();
	Py_DecRef(name);
	return name && name == mon.name;
}

/* An id below that one. */
static int take_tool(int below)
{
	static const signed char order[] = { 3, 4, 5, 2, 1, 0 };

	for (size_t i = 0; i < sizeof(order); i++)
		if (order[i] < below &&
		    ask(PyObject_CallMethod(mon.module, "use_tool_id", "iO", order[i], mon.name)))
			return order[i];
	return NO_TOOL;
}

static int take_watcher(void)
{
	int tool = NO_TOOL;

	for (int id = 5; py.threads && id > 3 && tool == NO_TOOL; id--)
		if (ask(PyObject_CallMethod(mon.module, "use_tool_id", "iO", id, mon.name)))
			tool = id;
	return tool == NO_TOOL ? take_tool(TOOLS) : tool;
}

static int take_finder(void)
{
	int tool = py.threads ? take_tool(mon.watcher) : NO_TOOL;

	return tool == NO_TOOL ? take_tool(TOOLS) : tool;
}

/* Nobody is told of anything any more. */
static bool silence_tool(int tool)
{
	const long events[] = { EVENT_START, EVENT_RESUME, EVENT_RETURN,
				EVENT_YIELD, mon.unwind,   mon.throw_event };

	if (tool == NO_TOOL || !tool_is_ours(tool))
		return false;
	set_global(tool, 0);
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		set_callback(tool, events[i], Py_None);
	return true;
}

static void drop_tool(int tool)
{
	if (silence_tool(tool))
		ask(PyObject_CallMethod(mon.module, "free_tool_id", "i", tool));
}

/*
 * A child that is forked while another thread is in the midst of that has it half done: it is
 * finished there before anything else.
 */
static void drop_passing(void)
{
	if (mon.passing)
		drop_tool(mon.passing - 1);
	mon.passing = 0;
}

/* ---- the backend ---- */

static int monitor_set(struct watch *w, bool on)
{
	long events = EVENT_START | (w->resume ? EVENT_RESUME : 0);
	bool spans = on && watch_spans(w);

	if (mon.finder == mon.watcher)
		on = w->n; /* one id: it cannot be switched off without losing it for good */
	if (w->on == on && w->spans == spans && !w->changed)
		return 0;
	if (spans)
		events |= EVENT_RESUME | EVENT_RETURN | EVENT_YIELD;
	if (on && !w->was_on)
		set_local(w->code, EVENT_RETURN);
	if (spans) /* which is new to it by the next line only */
		set_local(w->code, EVENT_START);
	w->on = set_local(w->code, on ? events : 0) && on;
	w->was_on |= w->on;
	w->spans = w->on && spans;
	w->changed = false;
	return 0;
}

/* What the watcher is told of all code. */
static long watcher_events(void)
{
	long events = mon.spans ? mon.unwind | mon.throw_event : 0;

	return mon.finder == mon.watcher && !mon.paused ? events | EVENT_START : events;
}

static void monitor_spans(bool any)
{
	if (mon.spans == any)
		return;
	mon.spans = any;
	set_global(mon.watcher, watcher_events());
}

static void forget_all(void)
{
	PyObject **held[] = { &mon.module, &mon.disable, &mon.name,  &mon.find,
			      &mon.watch,  &mon.resume,	 &mon.leave, &mon.throw };

	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++) {
		Py_DecRef(*held[i]);
		*held[i] = NULL;
	}
}

static int take_tools(void)
{
	mon.watcher = take_watcher();
	if (mon.watcher == NO_TOOL)
		return agent_fail(SB_AGENT_NO_TOOL, "all tool ids of sys.monitoring are taken");
	mon.finder = NO_TOOL;
	if (set_callback(mon.watcher, EVENT_START, mon.watch) &&
	    set_callback(mon.watcher, EVENT_RESUME, mon.resume) &&
	    set_callback(mon.watcher, EVENT_RETURN, mon.leave) &&
	    set_callback(mon.watcher, EVENT_YIELD, mon.leave) &&
	    set_callback(mon.watcher, mon.unwind, mon.leave) &&
	    set_callback(mon.watcher, mon.throw_event, mon.throw))
		return 0;
	drop_tool(mon.watcher);
	return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no callback");
}

/* An event's bit, as the interpreter itself calls it. */
static long event_of(PyObject *monitoring, const char *name)
{
	PyObject *events = PyObject_GetAttrString(monitoring, "events"), *value;
	long bit;

	value = events ? PyObject_GetAttrString(events, name) : NULL;
	bit = value ? PyLong_AsLong(value) : 0;
	PyErr_Clear();
	Py_DecRef(value);
	Py_DecRef(events);
	return bit > 0 ? bit : 0;
}

static bool make_objects(PyObject *monitoring)
{
	Py_IncRef(monitoring);
	mon.module = monitoring;
	mon.disable = PyObject_GetAttrString(monitoring, "DISABLE");
	mon.name = PyUnicode_FromString("sbinject");
	mon.find = function_new(on_first);
	mon.watch = function_new(on_watched);
	mon.resume = function_new(on_resumed);
	mon.leave = function_new(on_left);
	mon.throw = function_new(on_thrown);
	mon.unwind = event_of(monitoring, "PY_UNWIND");
	mon.throw_event = event_of(monitoring, "PY_THROW");
	mon.call = (PyObject * (*)(PyObject *, PyObject *const *, size_t, PyObject *))
		py_symbol("PyObject_Vectorcall");
	PyErr_Clear();
	return mon.disable && mon.name && mon.find && mon.watch && mon.resume && mon.leave &&
	       mon.throw &&mon.unwind && mon.throw_event && mon.call;
}

static int monitor_start(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
	bool fresh = !mon.module;
	int rc;

	if (!monitoring)
		return agent_fail(SB_AGENT_UNSUPPORTED, "this interpreter has no sys.monitoring");
	/* In the child of a fork in the midst of an earlier start. */
	if (!fresh) {
		drop_passing();
		drop_tool(mon.finder);
		drop_tool(mon.watcher);
	}
	/* What somebody still holds of an earlier time is taken up again, or it would be lost. */
	if (fresh && !make_objects(monitoring)) {
		forget_all();
		return agent_fail(SB_AGENT_PYTHON, "sys.monitoring is not as expected");
	}
	rc = take_tools();
	if (rc && fresh)
		forget_all();
	return rc;
}

/* One id only: it finds and watches. Codes that it has disabled cannot be had back. */
static int share_tool(void)
{
	mon.finder = mon.watcher;
	agent.flags |= SB_ROOM_ONE_TOOL;
	if (set_callback(mon.finder, EVENT_START, mon.find) &&
	    set_global(mon.finder, watcher_events()))
		return 0;
	return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no event");
}

/*
 * A finder that has seen nothing yet. Where no id is left for it, the old one stays: codes that
 * were never called are still new to it, the others have just been looked for. If it is the only
 * one, its global event is off until the new ones have been told theirs (monitor_set): a code
 * object in which it was disabled would not take it as new.
 */
static int monitor_relist(bool first)
{
	int fresh, old = mon.finder;

	drop_passing();
	fresh = take_finder();
	if (fresh == NO_TOOL && first)
		return share_tool();
	if (fresh == NO_TOOL) {
		if (old == mon.watcher)
			mon.paused = set_global(old, 0);
		return 0;
	}
	mon.passing = fresh + 1;
	if (!set_callback(fresh, EVENT_START, mon.find) || !set_global(fresh, EVENT_START)) {
		drop_passing();
		return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no event");
	}
	mon.finder = fresh;
	mon.passing = old != mon.watcher ? old + 1 : 0;
	drop_passing();
	if (old != mon.watcher)
		return 0;
	if (set_global(old, watcher_events()) && set_callback(old, EVENT_START, mon.watch))
		agent.flags &= ~(uint32_t)SB_ROOM_ONE_TOOL;
	return 0;
}

static int monitor_settle(bool any)
{
	(void)any;
	if (mon.paused) {
		mon.paused = false;
		set_global(mon.finder, watcher_events());
	}
	return 0;
}

static void monitor_once(struct watch *w)
{
	PyObject *args[] = { NULL, w->code, Py_None };

	Py_DecRef(mon.call(mon.watch, args + 1, 2, NULL));
}

static void monitor_span(struct watch *w)
{
	PyObject *args[] = { NULL, w->code, Py_None, Py_None };

	Py_DecRef(mon.call(mon.watch, args + 1, 2, NULL));
	Py_DecRef(mon.call(mon.leave, args + 1, 3, NULL));
}

/* How many references an object has; the interpreter's own way, whatever its layout. */
static long references(PyObject *o)
{
	PyObject *count = PySys_GetObject("getrefcount"), *n; /* borrowed */
	long refs;

	n = count ? PyObject_CallFunctionObjArgs(count, o, NULL) : NULL;
	refs = n ? PyLong_AsLong(n) : -1;
	PyErr_Clear();
	Py_DecRef(n);
	return refs;
}

static bool referred_to(void)
{
	return references(mon.find) != 1 || references(mon.watch) != 1 ||
	       references(mon.resume) != 1 || references(mon.leave) != 1 ||
	       references(mon.throw) != 1;
}

/*
 * Whether every other thread has left our code. Nobody comes any more, and who was seen to be in
 * it is counted; those just before or after that pass a point where they can be stopped.
 */
static bool drained(void)
{
	bool ours = tool_is_ours(mon.watcher);

	for (int i = 0; py.threads && turn_anyone(); i++) {
		if (i == DRAIN)
			return false;
		turn_rest();
	}
	if (py.threads && ours)
		set_global(mon.watcher, 0);
	else if (py.threads)
		ask(PyObject_CallMethod(py.gc, "get_objects", NULL));
	return !py.threads || !turn_anyone();
}

static int monitor_stop(void)
{
	bool gone;

	if (!mon.module)
		return 0;
	if (tool_is_ours(mon.watcher))
		for (struct watch *w = table_watches(); w; w = w->next)
			if (w->was_on && py_ref_alive(w->ref, w->code))
				set_local(w->code, 0);
	drop_passing();
	if (mon.finder != mon.watcher)
		drop_tool(mon.finder);
	mon.finder = mon.watcher;
	silence_tool(mon.watcher);
	gone = drained();
	drop_tool(mon.watcher);
	mon.finder = mon.watcher = NO_TOOL;
	mon.spans = false;
	if (!gone)
		return agent_fail(SB_AGENT_BUSY, "a thread is still in a callback");
	if (referred_to())
		return agent_fail(SB_AGENT_BUSY, "a callback is still referred to");
	forget_all();
	return 0;
}

/* Tool ids, events and callbacks go with the interpreter. */
static void monitor_ended(void)
{
	mon.finder = mon.watcher = NO_TOOL;
	mon.passing = 0;
	mon.paused = mon.spans = false;
	forget_all();
}

const struct backend monitor_backend = {
	.start = monitor_start,
	.relist = monitor_relist,
	.set = monitor_set,
	.settle = monitor_settle,
	.stop = monitor_stop,
	.ended = monitor_ended,
	.once = monitor_once,
	.spans = monitor_spans,
	.span = monitor_span,
	.extra_ns = 2, /* seen on 3.12 to 3.14 */
};
