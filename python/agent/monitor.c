/* SPDX-License-Identifier: MIT */
/*
 * 3.12 and later: sys.monitoring (PEP 669).
 *
 * Two tool ids. The finder has PY_START for all code: it judges a code object at its first call and
 * answers DISABLE, so that the interpreter itself remembers and later calls cost nothing. The
 * watcher has PY_START (and PY_RESUME) for each of the code objects that matched; they are switched
 * off while no target counts.
 *
 * Properties of the interpreter that this code works around (Python/instrumentation.c):
 *
 * - DISABLE outlives its tool: the code object keeps "tool N, PY_START: active" and "not here"
 *   until it is run under another set of events. A new owner of id N receives no event for it. So a
 *   new list of targets gets a new finder id before the old one is freed, and
 *   sys.monitoring.restart_events() voids the marks that an earlier one has left. That would also
 *   re-enable what other tools have disabled: where there is another tool, existing code is
 *   searched instead, in all that the garbage collector knows.
 * - For the same reason a watched code object gets the event PY_RETURN first and then PY_START: the
 *   second is new to it whatever was left behind, and is put into the code.
 * - The events for a frame that ends by an exception, and for a throw into a generator, can only be
 *   set for all code or for none: the watcher sets these two while calls are timed, and filters
 *   them itself.
 */
#include "agent.h"

#include "span.h"
#include "table.h"
#include "tool.h"
#include "turn.h"

#define PATIENCE 10000 /* naps that a first call waits for its turn: a second or more */
#define DRAIN	 5000  /* naps for all to leave */

static struct {
	bool open; /* the fields below are valid */
	PyObject *disable;
	PyObject *find, *watch, *resume, *leave, *throw; /* callbacks */
	PyObject *(*call)(PyObject *, PyObject *const *, size_t, PyObject *);
	bool spans;	     /* the watcher receives frames that end by an exception */
	bool paused;	     /* the finder's global event is off */
	bool restarts;	     /* the next finder voids what earlier ones have disabled */
	int finder, watcher; /* tool ids; the same one where no second is free */
} mon;

/* ---- callbacks: called for every event, must be quick, may never raise ---- */

static PyObject *answer(PyObject *value)
{
	Py_IncRef(value);
	return value;
}

/* In the caller's own code, which saves a nanosecond per call. */
static inline __attribute__((always_inline)) void begun(const PyObject *code, bool resumed)
{
	const struct watch *w = table_watch(code);
	bool spans;

	if (!w)
		return;
	spans = w->spans;
	watch_hit(w, resumed);
	if (spans && py.threads)
		w = table_watch(code);
	if (spans && w && w->spans)
		span_enter(w, false);
}

/*
 * Without a GIL: a note from the watcher to the finder, which receives the same event after it. It
 * is before the arguments, which the interpreter passes with PY_VECTORCALL_ARGUMENTS_OFFSET: a
 * callee may write there, and must restore the old contents. Here that is NULL in an array that is
 * made anew for each event and passed to all its callbacks, so that the note ends with the event. A
 * value other than NULL is not overwritten: that is another caller's call.
 */
static PyObject **note_place(PyObject *const *args)
{
	return (PyObject **)(uintptr_t)args - 1;
}

static PyObject *on_watched(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	(void)self;
	if (n > 0)
		begun(args[0], false);
	return answer(Py_None);
}

static PyObject *on_watched_without_gil(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	if (!*note_place(args))
		*note_place(args) = mon.watch;
	return on_watched(self, args, n);
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
static long watcher_events(void);

/*
 * Without a GIL: all other threads have been stopped once and run on, each outside the hot path. A
 * change of a tool's events causes that even where it changes nothing; but the id must be the
 * agent's.
 */
static void pass_all(void)
{
	PyObject *objects;

	if (tool_is_ours(mon.watcher)) {
		tool_set(mon.watcher, watcher_events());
		return;
	}
	objects = PyObject_CallMethod(py.gc, "get_objects", NULL);
	if (!objects)
		PyErr_Clear();
	Py_DecRef(objects);
}

enum first {
	FIRST_NOTHING,
	FIRST_FOUND,  /* it matches, and only the agent receives this call */
	FIRST_SHARED, /* as always, where one id does it all */
};

/*
 * A code object that another thread has judged before: in this very call, if the watcher did not
 * receive it.
 */
static enum first known(const struct entry *e, bool watched)
{
	if (mon.finder == mon.watcher)
		return FIRST_SHARED;
	return watched || !e->watch ? FIRST_NOTHING : FIRST_FOUND;
}

/* The interpreter has refused the watch, as it does at its limit of recursion. The finder receives
 * each call until it has accepted it. */
static bool is_refused(const struct watch *w)
{
	return mon.finder != mon.watcher && w && !w->on && watch_wanted(w);
}

static enum first first_call(PyObject *code, bool watched)
{
	const struct entry *e = table_find(code);
	struct watch *w;

	if (!agent.started)
		return FIRST_NOTHING;
	if (e && entry_valid(e) && !is_refused(e->watch))
		return known(e, watched);
	if (e && entry_valid(e)) {
		monitor_set(e->watch, true);
		return FIRST_FOUND;
	}
	w = judge(code, PyEval_GetGlobals(), NULL, NULL);
	if (!w)
		return FIRST_NOTHING;
	monitor_set(w, watch_wanted(w));
	if (py.threads && retired_many()) {
		pass_all();
		retired_free();
	}
	return FIRST_FOUND;
}

static PyObject *judged(PyObject *code, bool watched)
{
	bool again = mon.finder == mon.watcher;
	const struct watch *w;
	enum first first;

	if (!turn_take(PATIENCE))
		return Py_None; /* the next call is a first one again */
	first = first_call(code, watched);
	turn_give();
	if (first == FIRST_SHARED)
		begun(code, false);
	else if (first == FIRST_FOUND && (w = table_watch(code))) {
		watch_hit(w, false);
		again |= is_refused(w);
	}
	return again && first != FIRST_NOTHING ? Py_None : mon.disable;
}

/*
 * The first call of a code object under this finder. If it matches, this call is counted here: the
 * watcher receives only later ones, since the interpreter selects the receivers of an event before
 * the first callback of it runs. Without a GIL it may be the first call in several threads, of
 * which one judges; the watcher's id is the higher one there, so that it receives the event first
 * and leaves a note.
 */
static PyObject *on_first(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	bool watched = !py.threads || mon.finder > mon.watcher || *note_place(args) == mon.watch;
	PyObject *result;

	(void)self;
	if (n < 1 || !agent.started)
		return answer(mon.disable);
	turn_enter();
	result = answer(judged(args[0], watched));
	turn_leave();
	return result;
}

static int take_watcher(void)
{
	int tool = NO_TOOL;

	for (int id = 5; py.threads && id > 3 && tool == NO_TOOL; id--)
		if (tool_take(id))
			tool = id;
	return tool == NO_TOOL ? tool_take_below(TOOLS) : tool;
}

static int take_finder(void)
{
	int tool = py.threads ? tool_take_below(mon.watcher) : NO_TOOL;

	return tool == NO_TOOL ? tool_take_below(TOOLS) : tool;
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
		tool_set_local(mon.watcher, w->code, EVENT_RETURN);
	if (spans) /* which is new to it only by the next line */
		tool_set_local(mon.watcher, w->code, EVENT_START);
	w->on = tool_set_local(mon.watcher, w->code, on ? events : 0) && on;
	w->was_on |= w->on;
	w->spans = w->on && spans;
	w->changed = false;
	return 0;
}

/* The watcher's events for all code. */
static long watcher_events(void)
{
	long events = mon.spans ? tool_event.unwind | tool_event.throw : 0;

	return mon.finder == mon.watcher && !mon.paused ? events | EVENT_START : events;
}

static void monitor_spans(bool any)
{
	if (mon.spans == any)
		return;
	mon.spans = any;
	tool_set(mon.watcher, watcher_events());
}

static void forget_all(void)
{
	PyObject **held[] = { &mon.disable, &mon.find,	&mon.watch,
			      &mon.resume,  &mon.leave, &mon.throw };

	mon.open = false;
	tool_close();
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
	if (tool_call(mon.watcher, EVENT_START, mon.watch) &&
	    tool_call(mon.watcher, EVENT_RESUME, mon.resume) &&
	    tool_call(mon.watcher, EVENT_RETURN, mon.leave) &&
	    tool_call(mon.watcher, EVENT_YIELD, mon.leave) &&
	    tool_call(mon.watcher, tool_event.unwind, mon.leave) &&
	    tool_call(mon.watcher, tool_event.throw, mon.throw))
		return 0;
	tool_drop(mon.watcher);
	return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no callback");
}

static bool make_objects(PyObject *monitoring)
{
	bool open = tool_open(monitoring);

	mon.disable = PyObject_GetAttrString(monitoring, "DISABLE");
	mon.find = py_callable(on_first);
	mon.watch = py_callable(py.threads ? on_watched_without_gil : on_watched);
	mon.resume = py_callable(on_resumed);
	mon.leave = py_callable(on_left);
	mon.throw = py_callable(on_thrown);
	mon.call = (PyObject * (*)(PyObject *, PyObject *const *, size_t, PyObject *))
		py_symbol("PyObject_Vectorcall");
	PyErr_Clear();
	mon.open = open && mon.call && mon.disable && mon.find && mon.watch && mon.resume &&
		   mon.leave && mon.throw;
	return mon.open;
}

/*
 * An object of an earlier start that is still referred to is taken up again, or it would be lost.
 * In the child of a fork in the middle of an earlier start the agent may have tools without a
 * record.
 */
static int monitor_start(void)
{
	PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
	bool fresh = !mon.open;
	int rc;

	if (!monitoring)
		return agent_fail(SB_AGENT_UNSUPPORTED, "this interpreter has no sys.monitoring");
	if (fresh) {
		forget_all();
		if (!make_objects(monitoring)) {
			forget_all();
			return agent_fail(SB_AGENT_PYTHON, "sys.monitoring is not as expected");
		}
	}
	tool_drop_others(NO_TOOL, NO_TOOL);
	rc = take_tools();
	if (rc && fresh)
		forget_all();
	return rc;
}

/* One id only: it finds and watches. Code that it has disabled cannot be enabled again. */
static int share_tool(void)
{
	mon.finder = mon.watcher;
	agent.flags |= SB_MAILBOX_ONE_TOOL;
	if (tool_call(mon.finder, EVENT_START, mon.find) && tool_set(mon.finder, watcher_events()))
		return 0;
	return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no event");
}

/*
 * Whether a finder was here before, in this session or an earlier one: the next finder may not
 * receive what it has disabled, unless it restarts events. The mark is in the interpreter's own
 * dict, which no code of the program sees.
 */
static const char marked[] = "sbinject finder";

/*
 * A finder that restarts events receives the first call of all code, whatever was there before: so
 * existing code is not watched one by one, which takes long where there is much.
 */
static enum existing monitor_existing(void)
{
	PyObject *dict = PyInterpreterState_GetDict(agent.interp); /* borrowed */
	bool stale = !dict || PyDict_GetItemString(dict, marked);

	mon.restarts = !py.threads && tool_is_alone();
	if (mon.restarts)
		return EXISTING_NOTED;
	return py.threads || stale ? EXISTING_SEARCHED : EXISTING_NAMED;
}

static void mark(void)
{
	PyObject *dict = PyInterpreterState_GetDict(agent.interp); /* borrowed */

	if (dict && PyDict_SetItemString(dict, marked, Py_None))
		PyErr_Clear();
}

/*
 * A finder that has seen nothing yet. Where no id is left for it, the old one stays: code that was
 * never called is still new to it, other code has just been searched. If it is the only one, its
 * global event is off until the new watches have their events (monitor_set): a code object in which
 * it was disabled would not take the event as new.
 */
static int new_finder(bool first)
{
	int fresh, old = mon.finder;

	tool_drop_others(old, mon.watcher); /* as in monitor_start() */
	fresh = take_finder();
	if (fresh == NO_TOOL && first)
		return share_tool();
	if (fresh == NO_TOOL) {
		if (old == mon.watcher)
			mon.paused = tool_set(old, 0);
		return 0;
	}
	if (!tool_call(fresh, EVENT_START, mon.find) || !tool_set(fresh, EVENT_START)) {
		tool_drop(fresh);
		return agent_fail(SB_AGENT_PYTHON, "sys.monitoring takes no event");
	}
	mon.finder = fresh;
	if (old != mon.watcher) {
		tool_drop(old);
		return 0;
	}
	if (tool_set(old, watcher_events()) && tool_call(old, EVENT_START, mon.watch))
		agent.flags &= ~(uint32_t)SB_MAILBOX_ONE_TOOL;
	return 0;
}

static int monitor_relist(bool first)
{
	int rc;

	mark();
	rc = new_finder(first);
	if (!rc && mon.restarts)
		tool_restart();
	mon.restarts = false;
	return rc;
}

static int monitor_settle(bool any)
{
	(void)any;
	if (mon.paused) {
		mon.paused = false;
		tool_set(mon.finder, watcher_events());
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

static bool referred_to(void)
{
	return py_references(mon.find) != 1 || py_references(mon.watch) != 1 ||
	       py_references(mon.resume) != 1 || py_references(mon.leave) != 1 ||
	       py_references(mon.throw) != 1;
}

/*
 * Whether every other thread has left the agent's code. No thread enters it any more, and threads
 * seen in it are counted; those just before or after that pass a point where they can be stopped.
 */
static bool drained(void)
{
	if (!py.threads)
		return true;
	for (int i = 0; turn_anyone(); i++) {
		if (i == DRAIN)
			return false;
		turn_rest();
	}
	pass_all();
	return !turn_anyone();
}

static void monitor_quiet(void)
{
	if (!mon.open)
		return;
	tool_drop_others(mon.watcher, mon.watcher);
	mon.finder = mon.watcher;
	mon.spans = false;
	mon.paused = true; /* requests no event */
	if (tool_is_ours(mon.watcher))
		tool_set(mon.watcher, 0);
}

static void monitor_let_go(struct watch *w)
{
	if (w->was_on && py_ref_alive(w->ref, w->code) && tool_is_ours(mon.watcher))
		tool_set_local(mon.watcher, w->code, 0);
}

static int monitor_stop(void)
{
	bool gone;

	if (!mon.open)
		return 0;
	tool_silence(mon.watcher);
	gone = drained();
	tool_drop(mon.watcher);
	mon.finder = mon.watcher = NO_TOOL;
	mon.paused = false;
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
	mon.paused = mon.spans = false;
	forget_all();
}

const struct backend monitor_backend = {
	.start = monitor_start,
	.existing = monitor_existing,
	.relist = monitor_relist,
	.set = monitor_set,
	.settle = monitor_settle,
	.quiet = monitor_quiet,
	.let_go = monitor_let_go,
	.stop = monitor_stop,
	.ended = monitor_ended,
	.once = monitor_once,
	.spans = monitor_spans,
	.span = monitor_span,
	.extra_ns = 2, /* seen on 3.12 to 3.14 */
};
