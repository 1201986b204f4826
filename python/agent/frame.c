/* SPDX-License-Identifier: MIT */
/*
 * 3.10 and 3.11: a frame evaluation function (PEP 523). One for all threads, beneath every profiler
 * and tracer, and removed while no target counts.
 *
 * It passes every frame on to the function that was there before, as a sibling call: no return
 * address of this library is ever on a stack, so it can be unloaded under whatever is running
 * (test/case/python-agent-code.sh reads the machine code).
 *
 * The definition of a hit gives the same counts as in later versions:
 *
 * - A generator (coroutine, asynchronous generator) is one call, at its first start. On 3.10 its
 *   frame is not evaluated before. On 3.11 it is, once, to make the generator; that does not count.
 * - throw() into a frame is neither a call nor a resumption.
 *
 * While calls are timed, timed functions are called from here and return to here: the agent cannot
 * be unloaded before they have returned. So a function's first call by a thread is passed on as any
 * other: a function that is called once may be the program's main loop.
 *
 * The frame's fields depend on the version and are checked at start, with the agent's own
 * functions.
 */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "span.h"
#include "table.h"
#include "text.h"

#define CO_ANY_GENERATOR 0x2a0 /* generator, coroutine, asynchronous generator */

typedef PyObject *eval_fn(void *tstate, void *frame, int throwing);

/* Both versions: */
#define FRAME_CODE 32
#define CODE_FLAGS 48 /* 3.11 */
#define REF_OBJECT 16 /* of a weak reference */
#define REF_COUNT  0
/* 3.10 */
#define FRAME10_GLOBALS 48
#define FRAME10_GEN	88
#define FRAME10_LASTI	96
/* 3.11 */
#define FRAME11_GLOBALS	    8
#define FRAME11_PREV_INSTR  56
#define FRAME11_FUNCTION    0
#define FUNCTION11_CODE	    48
#define FUNCTION11_VERSION  128
#define CODE11_FIRST_TRACED 168
#define CODE11_UNITS	    184

/* Of the interpreter's state: */
#define INTERP10_EVAL 0x558
#define INTERP11_EVAL 0x590

#define FIELD(type, object, off) (*(type *)((char *)(object) + (off)))

enum moment { CREATION, START, RESUMPTION };

static struct {
	eval_fn *next; /* the function before the agent's */
	eval_fn *(*get)(void *interp);
	void (*set)(void *interp, eval_fn *fn);
	void *interp;
	uint64_t *word; /* the interpreter's word for it; NULL: unknown */
	uint64_t gone;	/* its value while there is no function */
	bool installed;
	bool inlines;	     /* 3.11 */
	bool deep;	     /* beneath on_deep_frame() */
	unsigned long timed; /* calls that on_timed_frame() waits for */
	bool inside;	     /* judging; frames that the interpreter runs meanwhile are passed on */
} fr;

static enum moment moment_of(void *frame, PyObject *code)
{
	char *units, *prev;

	if (py.hex < 0x030b0000)
		return FIELD(int, frame, FRAME10_LASTI) < 0 ? START : RESUMPTION;
	if (!(FIELD(int, code, CODE_FLAGS) & CO_ANY_GENERATOR))
		return START;
	units = (char *)code + CODE11_UNITS;
	prev = FIELD(char *, frame, FRAME11_PREV_INSTR);
	if (prev < units)
		return CREATION;
	return prev < units + 2 * FIELD(int, code, CODE11_FIRST_TRACED) ? START : RESUMPTION;
}

/*
 * Early releases of 3.11 (3.11.2 is one) run a __getitem__ inside its caller's evaluation, where
 * obj[key] has been specialised for it, and never call the frame evaluation function. They
 * specialise for functions whose version fits into 16 bits: a larger one keeps a function visible,
 * at the price that its other calls are not specialised either for that time.
 */
#define VISIBLE 0x80000000u

/*
 * Weak references to these functions, hidden like those of py_ref_new(); but not one that the
 * program has, too.
 */
static struct {
	PyObject **ref;
	size_t n, room;
} visible;

/* Removes dead ones; if few were dead, makes more space. */
static bool visible_grow(void)
{
	size_t kept = 0, room;
	PyObject **bigger;

	for (size_t i = 0; i < visible.n; i++) {
		PyObject *ref = visible.ref[i];

		if (FIELD(PyObject *, ref, REF_OBJECT) == Py_None)
			Py_DecRef(ref);
		else
			visible.ref[kept++] = ref;
	}
	visible.n = kept;
	if (kept < visible.room / 2)
		return true;
	room = visible.room ? visible.room * 2 : 64;
	bigger = realloc(visible.ref, room * sizeof(*bigger));
	if (!bigger)
		return false;
	visible.ref = bigger;
	visible.room = room;
	return true;
}

static bool visible_add(PyObject *function)
{
	int collected = py.gc_disable(); /* it would run the target's code */
	PyObject *ref = NULL;

	if (visible.n < visible.room || visible_grow())
		ref = PyWeakref_NewRef(function, NULL);
	if (collected)
		py.gc_enable();
	if (!ref) {
		PyErr_Clear();
		return false;
	}
	if (FIELD(Py_ssize_t, ref, REF_COUNT) == 1)
		PyObject_GC_UnTrack(ref);
	visible.ref[visible.n++] = ref;
	return true;
}

/* No version: the interpreter assigns one when it needs one. */
static void visible_forget(void)
{
	for (size_t i = 0; i < visible.n; i++) {
		PyObject *ref = visible.ref[i], *function = FIELD(PyObject *, ref, REF_OBJECT);

		if (function != Py_None && FIELD(uint32_t, function, FUNCTION11_VERSION) >= VISIBLE)
			FIELD(uint32_t, function, FUNCTION11_VERSION) = 0;
		Py_DecRef(ref);
	}
	free(visible.ref);
	memset(&visible, 0, sizeof(visible));
}

static bool is_getitem(const struct watch *w)
{
	return py.hex < 0x030c0000 && py.hex >= 0x030b0000 && w->qualname &&
	       !strcmp(last_part(w->qualname), "__getitem__");
}

static void keep_visible(PyObject *function, struct watch *w)
{
	static uint32_t last;
	uint32_t *version = &FIELD(uint32_t, function, FUNCTION11_VERSION);

	if (!is_getitem(w) || FIELD(PyObject *, function, FUNCTION11_CODE) != w->code ||
	    *version >= VISIBLE || !visible_add(function))
		return;
	*version = VISIBLE | ++last;
}

static int frame_set(struct watch *w, bool on)
{
	w->on = on;
	w->spans = on && watch_spans(w);
	w->changed = false;
	w->getitem = is_getitem(w);
	return 0;
}

static struct watch *judge_frame(void *frame, PyObject *code)
{
	bool old = py.hex < 0x030b0000;
	PyObject *globals = FIELD(PyObject *, frame, old ? FRAME10_GLOBALS : FRAME11_GLOBALS);
	struct watch *w;
	int collected;

	fr.inside = true;
	collected = py.gc_disable(); /* it would run the target's code */
	w = judge(code, globals, NULL, old ? FIELD(PyObject *, frame, FRAME10_GEN) : NULL);
	if (w)
		frame_set(w, true);
	else
		table_put(code, NULL);
	if (collected)
		py.gc_enable();
	fr.inside = false;
	return w;
}

/* A frame whose code matches, or was not judged yet. */
static __attribute__((noinline)) void on_notable(void *frame, PyObject *code, struct watch *w,
						 int throwing)
{
	enum moment moment;

	if (!agent.started || fr.inside || throwing)
		return;
	if (!w)
		w = judge_frame(frame, code);
	if (!w)
		return;
	moment = moment_of(frame, code);
	if (w->getitem)
		keep_visible(FIELD(PyObject *, frame, FRAME11_FUNCTION), w);
	if (moment == START)
		watch_hit(w, false);
	else if (moment == RESUMPTION && w->resume)
		watch_hit(w, true);
}

static PyObject *on_frame(void *tstate, void *frame, int throwing);

/*
 * The owner of the function before the agent's restores its own predecessor when it leaves, and
 * that removes the agent's as well: torch dynamo does that at each call of a compiled function.
 * There is no notice of it. So sbinject reads the interpreter's word at intervals, and sends an
 * APPLY. In a chain with the agent's function, the word is never `none` or the agent's successor:
 * either value means that the agent's was removed.
 */
static void find_word(eval_fn *now)
{
	eval_fn *none = (eval_fn *)py_symbol("_PyEval_EvalFrameDefault");
	uint64_t *word = &FIELD(uint64_t, fr.interp,
				py.hex < 0x030b0000 ? INTERP10_EVAL : INTERP11_EVAL);
	bool ours;

	fr.word = NULL;
	if (!none)
		return;
	fr.set(fr.interp, on_frame);
	ours = *word == (uint64_t)on_frame;
	fr.set(fr.interp, none);
	fr.gone = *word;
	fr.set(fr.interp, now);
	if (ours && fr.gone != (uint64_t)on_frame)
		fr.word = word;
}

/* The agent's function is in the chain, or no longer. */
static void announce(bool in)
{
	if (!agent.mailbox)
		return;
	agent.mailbox->eval_next = fr.next ? (uint64_t)fr.next : fr.gone;
	agent.mailbox->eval_gone = fr.gone;
	__atomic_store_n(&agent.mailbox->eval_at, in ? (uint64_t)fr.word : 0, __ATOMIC_RELEASE);
}

static bool is_default(eval_fn *fn)
{
	return fn == (eval_fn *)py_symbol("_PyEval_EvalFrameDefault");
}

static bool was_dropped(void)
{
	eval_fn *now = fr.get(fr.interp);

	if (!fr.installed || fr.deep || (now != fr.next && !is_default(now)))
		return false;
	agent.flags |= SB_MAILBOX_DROPPED;
	return true;
}

/*
 * 3.11 runs Python calls of Python functions without the C stack, but not while there is a frame
 * evaluation function. A recursion that relies on it (sys.setrecursionlimit()) must not fail
 * because of the agent: from a depth that any stack allows, the rest of it runs without the agent,
 * and calls beneath are not seen. The frame here is the one that stays on the stack meanwhile.
 */
#define DEEP		   5000
#define TSTATE11_REMAINING 32
#define TSTATE11_LIMIT	   36

static __attribute__((noinline)) PyObject *on_deep_frame(void *tstate, void *frame, int throwing)
{
	PyObject *result;

	if (fr.deep || fr.get(fr.interp) != on_frame)
		return fr.next(tstate, frame, throwing);
	fr.deep = true;
	agent.flags |= SB_MAILBOX_DEEP;
	announce(false);
	fr.set(fr.interp, fr.next);
	result = fr.next(tstate, frame, throwing);
	fr.deep = false;
	if (fr.installed && fr.get(fr.interp) == fr.next)
		fr.set(fr.interp, on_frame);
	announce(fr.installed);
	return result;
}

static bool is_deep(const void *tstate)
{
	return fr.inlines &&
	       FIELD(int, tstate, TSTATE11_LIMIT) - FIELD(int, tstate, TSTATE11_REMAINING) > DEEP;
}

static __attribute__((noinline)) PyObject *on_timed_frame(void *tstate, void *frame, int throwing)
{
	PyObject *code = FIELD(PyObject *, frame, FRAME_CODE), *result;
	const struct entry *e = table_lookup(code);
	const struct watch *w = e ? e->watch : NULL;
	uint32_t epoch = span_epoch();

	if (!w || !agent.started || fr.inside || moment_of(frame, code) == CREATION ||
	    !span_enter(w, true))
		return fr.next(tstate, frame, throwing);
	fr.timed++;
	result = fr.next(tstate, frame, throwing);
	fr.timed--;
	/* It may have been a long time: check that everything is still there. */
	if (epoch != span_epoch())
		return result;
	e = table_lookup(code);
	if (e && e->watch == w)
		span_leave(w);
	return result;
}

static PyObject *on_frame(void *tstate, void *frame, int throwing)
{
	PyObject *code = FIELD(PyObject *, frame, FRAME_CODE);
	struct entry *e = table_lookup(code);
	struct watch *w = NULL;

	/* A weak reference that has lost its object shows that this is another one. */
	if (__builtin_expect(e && e->ref && FIELD(PyObject *, e->ref, REF_OBJECT) == code, 1)) {
		w = e->watch;
		if (__builtin_expect(!w && !is_deep(tstate), 1))
			return fr.next(tstate, frame, throwing);
	}
	on_notable(frame, code, w, throwing);
	if (__builtin_expect(is_deep(tstate), 0))
		return on_deep_frame(tstate, frame, throwing);
	if (__builtin_expect(w && w->spans, 0))
		return on_timed_frame(tstate, frame, throwing);
	return fr.next(tstate, frame, throwing);
}

/* ---- checks of the frame's layout ---- */

static struct {
	PyObject *code, *globals;
	int limit;
	unsigned seen; /* bits by enum moment */
	bool wrong, interrupted;
} probed;

static void probe(const void *tstate, void *frame, PyObject *code)
{
	bool old = py.hex < 0x030b0000;
	char *prev = old ? NULL : FIELD(char *, frame, FRAME11_PREV_INSTR);
	char *units = (char *)code + CODE11_UNITS;

	probed.seen |= 1u << moment_of(frame, code);
	if (FIELD(PyObject *, frame, old ? FRAME10_GLOBALS : FRAME11_GLOBALS) != probed.globals)
		probed.wrong = true;
	if (!old && (FIELD(int, tstate, TSTATE11_LIMIT) != probed.limit ||
		     FIELD(int, tstate, TSTATE11_REMAINING) > probed.limit ||
		     FIELD(int, tstate, TSTATE11_REMAINING) < -100))
		fr.inlines = false; /* unknown: deep recursions are as on 3.10 */
	if (!old && (prev < units - 2 || prev > units + 1000))
		probed.wrong = true;
	if (old &&
	    (FIELD(int, frame, FRAME10_LASTI) < -1 || FIELD(int, frame, FRAME10_LASTI) > 1000))
		probed.wrong = true;
}

static PyObject *on_probe(void *tstate, void *frame, int throwing)
{
	PyObject *code = FIELD(PyObject *, frame, FRAME_CODE);

	if (code == probed.code)
		probe(tstate, frame, code);
	return fr.next(tstate, frame, throwing);
}

/* Calls it, or makes and resumes it twice; returns whether the observed moments are as expected. */
static bool probe_function(PyObject *globals, const char *name, unsigned expected)
{
	PyObject *function = PyMapping_GetItemString(globals, name), *result = NULL, *ref;

	probed.code = function ? py_function_code(function) : NULL;
	probed.globals = globals;
	probed.limit = Py_GetRecursionLimit();
	probed.seen = 0;
	if (probed.code) {
		fr.set(fr.interp, on_probe);
		result = PyObject_CallObject(function, NULL);
		if (result && PyIter_Check(result))
			for (int i = 0; i < 2; i++)
				Py_DecRef(PyIter_Next(result));
		fr.set(fr.interp, fr.next);
		ref = PyWeakref_NewRef(probed.code, NULL);
		if (!ref || FIELD(PyObject *, ref, REF_OBJECT) != probed.code)
			probed.wrong = true;
		Py_DecRef(ref);
	}
	probed.interrupted |= py_interrupted();
	Py_DecRef(probed.code);
	Py_DecRef(result);
	Py_DecRef(function);
	return result && probed.seen == expected;
}

static bool frames_as_expected(bool *interrupted)
{
	PyObject *globals = py_run("def plain(): pass\n"
				   "def generator():\n yield\n yield\n");
	unsigned generator = 1 << START | 1 << RESUMPTION;
	bool fine;

	probed.wrong = probed.interrupted = false;
	if (py.hex >= 0x030b0000)
		generator |= 1 << CREATION;
	fine = globals && probe_function(globals, "plain", 1 << START) &&
	       probe_function(globals, "generator", generator) && !probed.wrong;
	py_run_end(globals);
	*interrupted = py_interrupted() || probed.interrupted;
	return fine;
}

/* ---- the backend ---- */

/* A signal handler of the program may interrupt it: then repeat it once. */
static bool frames_checked(void)
{
	bool interrupted = true, fine = false;

	for (int tries = 0; !fine && interrupted && tries < 4; tries++)
		fine = frames_as_expected(&interrupted);
	return fine;
}

static int frame_start(void)
{
	eval_fn *now;

	fr.get = (eval_fn * (*)(void *)) py_symbol("_PyInterpreterState_GetEvalFrameFunc");
	fr.set = (void (*)(void *, eval_fn *))py_symbol("_PyInterpreterState_SetEvalFrameFunc");
	fr.interp = PyInterpreterState_Get();
	fr.inlines = py.hex >= 0x030b0000;
	if (!fr.get || !fr.set)
		return agent_fail(SB_AGENT_UNSUPPORTED, "this interpreter has no PEP 523");
	now = fr.get(fr.interp);
	if (now == on_frame || fr.installed)
		return 0; /* still in the chain from an earlier time */
	fr.next = now;
	if (!is_default(now))
		agent.guest = true; /* it may watch code: run no function of the agent */
	else if (!py_observed() && !frames_checked())
		return agent_fail(SB_AGENT_UNSUPPORTED, "frames of this interpreter are not as in "
							"its published version");
	find_word(now);
	return 0;
}

static int frame_relist(bool first)
{
	(void)first;
	return table_forget();
}

/*
 * Whether the agent's function is out: not if another function was added later, which may call it.
 */
static bool uninstall(void)
{
	eval_fn *now = fr.get(fr.interp);

	if (fr.deep) {
		fr.installed = false; /* the next start finds that out */
		return false;
	}
	if (now == on_frame)
		fr.set(fr.interp, fr.next);
	else if (!was_dropped())
		return false;
	fr.installed = false;
	announce(false);
	return true;
}

static int frame_settle(bool any)
{
	if (!any && fr.installed)
		uninstall();
	if (!any || (fr.installed && !was_dropped()))
		return 0;
	fr.installed = true;
	if (fr.deep)
		return 0;
	fr.next = fr.get(fr.interp);
	fr.set(fr.interp, on_frame);
	announce(true);
	return 0;
}

static void frame_quiet(void)
{
	if (fr.installed && !fr.inside)
		uninstall();
}

static int frame_stop(void)
{
	if (fr.deep) {
		fr.installed = false;
		return agent_fail(SB_AGENT_BUSY, "a deep recursion has to return first");
	}
	if (fr.inside || (fr.installed && !uninstall()))
		return agent_fail(SB_AGENT_BUSY,
				  "another frame evaluation function came after the agent's");
	visible_forget();
	if (fr.timed)
		return agent_fail(SB_AGENT_BUSY, "a call that is timed has to return first");
	return 0;
}

static void frame_ended(void)
{
	if (fr.installed)
		uninstall();
	fr.installed = false;
	visible_forget();
}

/* As the interpreter would, for an estimate. */
static void frame_once(struct watch *w)
{
	const struct entry *e = table_lookup(w->code);

	if (e && e->watch)
		watch_hit(e->watch, false);
}

static void frame_spans(bool any)
{
	(void)any;
}

static void frame_span(struct watch *w)
{
	frame_once(w);
	if (span_enter(w, true))
		span_leave(w);
}

const struct backend frame_backend = {
	.start = frame_start,
	.relist = frame_relist,
	.set = frame_set,
	.settle = frame_settle,
	.quiet = frame_quiet,
	.stop = frame_stop,
	.ended = frame_ended,
	.once = frame_once,
	.spans = frame_spans,
	.span = frame_span,
	.function = keep_visible,
	.extra_ns = 3, /* 1 on 3.10, 7 on 3.11 */
};
