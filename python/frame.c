// SPDX-License-Identifier: MIT
/*
 * 3.10 and 3.11: a frame evaluation function (PEP 523). One for all threads, beneath every
 * profiler and tracer, and taken out while nobody counts.
 *
 * It hands every frame on to the function that was there before, as a sibling call: no return
 * address of this library ever lies on a stack, so that it can be unloaded under whatever is
 * running (test/case/python-agent-code.sh reads the machine code).
 *
 * What a hit is, so that counts are those of later versions:
 *
 * - A generator (coroutine, asynchronous generator) is one call, at its first start. On 3.10 its
 *   frame is not evaluated before. On 3.11 it is, once, to make the generator; that is none.
 * - throw() into a frame is neither a call nor a resumption.
 *
 * The frame's fields are known by version and checked at start, with functions of our own.
 */
#include "agent.h"

#include "table.h"

#define CO_ANY_GENERATOR 0x2a0 /* generator, coroutine, asynchronous generator */

typedef PyObject *eval_fn(void *tstate, void *frame, int throwing);

/* Both versions: */
#define FRAME_CODE 32
#define CODE_FLAGS 48 /* 3.11 */
#define REF_OBJECT 16 /* of a weak reference */
/* 3.10 */
#define FRAME10_GLOBALS 48
#define FRAME10_GEN	88
#define FRAME10_LASTI	96
/* 3.11 */
#define FRAME11_GLOBALS	    8
#define FRAME11_PREV_INSTR  56
#define CODE11_FIRST_TRACED 168
#define CODE11_UNITS	    184

#define FIELD(type, object, off) (*(type *)((char *)(object) + (off)))

enum moment { CREATION, START, RESUMPTION };

static struct {
	eval_fn *next; /* who was there before */
	eval_fn *(*get)(void *interp);
	void (*set)(void *interp, eval_fn *fn);
	void *interp;
	bool installed;
	bool inside; /* judging; what the interpreter runs meanwhile is passed through */
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

static struct watch *judge_frame(void *frame, PyObject *code)
{
	bool old = py.hex < 0x030b0000;
	PyObject *globals = FIELD(PyObject *, frame, old ? FRAME10_GLOBALS : FRAME11_GLOBALS);
	struct watch *w;
	int collected;

	fr.inside = true;
	collected = py.gc_disable(); /* it would run the target's code */
	w = judge(code, globals, NULL, old ? FIELD(PyObject *, frame, FRAME10_GEN) : NULL);
	if (!w)
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
	if (moment == START)
		watch_hit(w, false);
	else if (moment == RESUMPTION && w->resume)
		watch_hit(w, true);
}

static PyObject *on_frame(void *tstate, void *frame, int throwing)
{
	PyObject *code = FIELD(PyObject *, frame, FRAME_CODE);
	struct entry *e = table.entries ? table_lookup(code) : NULL;
	struct watch *w = NULL;

	/* A weak reference that has lost its object says that this is another one. */
	if (__builtin_expect(e && e->ref && FIELD(PyObject *, e->ref, REF_OBJECT) == code, 1)) {
		w = e->watch;
		if (__builtin_expect(!w, 1))
			return fr.next(tstate, frame, throwing);
	}
	on_notable(frame, code, w, throwing);
	return fr.next(tstate, frame, throwing);
}

/* ---- are frames what they are taken for? ---- */

static struct {
	PyObject *code, *globals;
	unsigned seen; /* bits by enum moment */
	bool wrong;
} probed;

static void probe(void *frame, PyObject *code)
{
	bool old = py.hex < 0x030b0000;
	char *prev = old ? NULL : FIELD(char *, frame, FRAME11_PREV_INSTR);
	char *units = (char *)code + CODE11_UNITS;

	probed.seen |= 1u << moment_of(frame, code);
	if (FIELD(PyObject *, frame, old ? FRAME10_GLOBALS : FRAME11_GLOBALS) != probed.globals)
		probed.wrong = true;
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
		probe(frame, code);
	return fr.next(tstate, frame, throwing);
}

/* Calls it, or makes and resumes it twice; whether the moments seen are those expected. */
static bool probe_function(PyObject *globals, const char *name, unsigned expected)
{
	PyObject *function = PyMapping_GetItemString(globals, name), *result = NULL, *ref;

	probed.code = function ? py_attr(function, PY_CODE) : NULL;
	probed.globals = globals;
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
	py_interrupted();
	Py_DecRef(probed.code);
	Py_DecRef(result);
	Py_DecRef(function);
	return result && probed.seen == expected;
}

static bool frames_as_expected(void)
{
	PyObject *globals = py_run("def plain(): pass\n"
				   "def generator():\n yield\n yield\n");
	unsigned generator = 1 << START | 1 << RESUMPTION;
	bool fine;

	probed.wrong = false;
	if (py.hex >= 0x030b0000)
		generator |= 1 << CREATION;
	fine = globals && probe_function(globals, "plain", 1 << START) &&
	       probe_function(globals, "generator", generator) && !probed.wrong;
	Py_DecRef(globals);
	return fine;
}

/* ---- the backend ---- */

static bool is_default(eval_fn *fn)
{
	return fn == (eval_fn *)py_symbol("_PyEval_EvalFrameDefault");
}

static int frame_start(void)
{
	eval_fn *now;

	fr.get = (eval_fn * (*)(void *)) py_symbol("_PyInterpreterState_GetEvalFrameFunc");
	fr.set = (void (*)(void *, eval_fn *))py_symbol("_PyInterpreterState_SetEvalFrameFunc");
	fr.interp = PyInterpreterState_Get();
	if (!fr.get || !fr.set)
		return agent_fail(SB_AGENT_UNSUPPORTED, "this interpreter has no PEP 523");
	now = fr.get(fr.interp);
	if (now == on_frame || fr.installed)
		return 0; /* still in the chain from an earlier time */
	fr.next = now;
	if (!is_default(now))
		agent.guest = true; /* what is there may look at code: run none of ours */
	else if (!frames_as_expected())
		return agent_fail(SB_AGENT_UNSUPPORTED, "frames of this interpreter are not as in "
							"its published version");
	return 0;
}

static int frame_relist(bool first)
{
	(void)first;
	table_forget();
	return 0;
}

static int frame_set(struct watch *w, bool on)
{
	w->on = on;
	w->changed = false;
	return 0;
}

/* Whether we are out: not if another function came after us, which may call us. */
static bool uninstall(void)
{
	eval_fn *now = fr.get(fr.interp);

	if (now == on_frame)
		fr.set(fr.interp, fr.next);
	else if (!is_default(now) && now != fr.next)
		return false;
	fr.installed = false;
	return true;
}

static int frame_settle(bool any)
{
	if (!any && fr.installed)
		uninstall();
	if (!any || fr.installed)
		return 0;
	fr.next = fr.get(fr.interp);
	fr.set(fr.interp, on_frame);
	fr.installed = true;
	return 0;
}

static int frame_stop(void)
{
	if (fr.inside || (fr.installed && !uninstall()))
		return agent_fail(SB_AGENT_BUSY,
				  "another frame evaluation function came after the agent's");
	return 0;
}

/* As the interpreter would, for an estimate. */
static void frame_once(struct watch *w)
{
	const struct entry *e = table_lookup(w->code);

	if (e && e->watch)
		watch_hit(e->watch, false);
}

const struct backend frame_backend = {
	.start = frame_start,
	.relist = frame_relist,
	.set = frame_set,
	.settle = frame_settle,
	.stop = frame_stop,
	.once = frame_once,
	.extra_ns = 15,
};
