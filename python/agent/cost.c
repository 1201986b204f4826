/* SPDX-License-Identifier: MIT */
/*
 * The cost of a counted call, measured in the interpreter where it is subtracted: a small function
 * is called in a loop, watched and not watched in turns, with a page of its own that no other code
 * uses. The cost of a delayed call beside the time that its spin measured is subtracted from every
 * delay.
 *
 * Where another tool would see that function run, none is run: the hook is called directly then,
 * and the interpreter's share is a constant that was measured elsewhere.
 */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "memory.h"
#include "span.h"

#define ROUNDS 15
#define CALLS  200

struct subject {
	PyObject *globals, *function, *code, *loop, *turns;
	PyObject *beside; /* a loop over an unwatched function; or NULL */
	struct watch *watch;
	struct page page; /* of its own */
	struct sb_page_cell *cell;
};

static const struct sb_page_record no_process;

static const char source[] = "def function(): pass\n"
			     "def loop(turns):\n"
			     " for _ in turns: function()\n"
			     "def other(): pass\n"
			     "def beside(turns):\n"
			     " for _ in turns: other()\n";

/* A page with one cell, one slot, and one block for the times of calls: number 1. */
static bool page_make(struct subject *s)
{
	size_t cell = 1024 + (1 + SB_PAGE_SHARED_SLOTS) * SB_PAGE_SLOT_SIZE;
	size_t block = (1 + SB_PAGE_SHARED_SLOTS) * sizeof(struct sb_page_span);
	char *memory = calloc(1, 1024 + cell + 2 * block);

	if (!memory)
		return false;
	s->page = (struct page){ .base = memory,
				 .size = 1024 + cell + 2 * block,
				 .blocks_off = 1024,
				 .block_size = cell,
				 .cell_size = cell,
				 .spans_off = 1024 + cell,
				 .span_size = block,
				 .span_blocks = 2,
				 .targets_max = 1,
				 .slots = 1,
				 .record = &no_process };
	((struct sb_page_header *)memory)->lease_until = cpu_ticks() + (1ull << 60);
	s->cell = (struct sb_page_cell *)(memory + 1024);
	s->cell->overrun_limit = 1 << 20;
	s->cell->span_block = 1;
	s->cell->pause_above = UINT64_MAX;
	return true;
}

/* Of this thread. */
static const struct sb_page_span *spans_of(const struct subject *s)
{
	return page_span(&s->page, s->cell, (uint32_t)(cpu_thread() >> 12));
}

static bool watch_make(struct subject *s)
{
	struct watch *w = mem_new(sizeof(*w));

	if (!w)
		return false;
	w->code = s->code;
	w->n = 1;
	w->cells = mem_new(2 * sizeof(*w->cells));
	w->ref = py_ref_new(s->code);
	if (w->cells)
		w->cells[1].index = CELL_NONE;
	if (w->cells && w->ref && !table_put(s->code, w)) {
		s->watch = w;
		return true;
	}
	Py_DecRef(w->ref);
	mem_free(w->cells);
	mem_free(w);
	return false;
}

static bool subject_open(struct subject *s, bool run)
{
	memset(s, 0, sizeof(*s));
	if (!run) { /* a function that never runs has a code object all the same */
		s->code = Py_CompileString("0", "<sbinject>", 258 /* Py_eval_input */);
		return s->code && page_make(s) && watch_make(s);
	}
	s->globals = py_run(source);
	if (!s->globals)
		return false;
	s->function = PyMapping_GetItemString(s->globals, "function");
	s->loop = PyMapping_GetItemString(s->globals, "loop");
	/* Where there is no GIL, switching one function on and off stops all threads each time. */
	if (py.threads)
		s->beside = PyMapping_GetItemString(s->globals, "beside");
	s->turns = PyTuple_New(CALLS);
	for (int i = 0; s->turns && i < CALLS; i++) {
		Py_IncRef(Py_None);
		PyTuple_SetItem(s->turns, i, Py_None);
	}
	s->code = s->function ? py_function_code(s->function) : NULL;
	return s->loop && s->turns && s->code && page_make(s) && watch_make(s);
}

static void subject_close(struct subject *s)
{
	PyObject *held[] = { s->turns, s->loop, s->code, s->function, s->beside };

	if (s->watch)
		table_drop(s->watch);
	free(s->page.base);
	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
		Py_DecRef(held[i]);
	py_run_end(s->globals);
	PyErr_Clear();
}

/* Ticks of CALLS calls; 0: an exception was raised. */
static uint64_t time_calls(struct subject *s, bool watched)
{
	PyObject *result, *loop = s->beside && !watched ? s->beside : s->loop;
	uint64_t start;

	if (loop == s->loop) {
		agent.backend->set(s->watch, watched);
		agent.backend->settle(watched);
	}
	start = cpu_ticks();
	result = PyObject_CallFunctionObjArgs(loop, s->turns, NULL);
	start = cpu_ticks() - start;
	Py_DecRef(result);
	return py_interrupted() ? 0 : start;
}

static int64_t median(int64_t *v, int n)
{
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && v[j - 1] > v[j]; j--) {
			int64_t t = v[j];

			v[j] = v[j - 1];
			v[j - 1] = t;
		}
	return v[n / 2];
}

/* The measurement, from one piece to the next. */
static struct measuring {
	bool open, run; /* run: the function is called */
	struct subject subject;
	struct page page; /* the agent's own */
	uint32_t state;	  /* SB_STATE_COUNT, then SB_STATE_SLOW */
	int round;
	int64_t cost[ROUNDS];
	int64_t counted, delayed; /* -1: unknown */
} m;

#define WARM_UP (-2)

/* One round: the cost of a watched call above an unwatched one, beside its spin. */
static bool round_of(struct subject *s)
{
	uint64_t spun, off, on;

	s->cell->state = m.state;
	s->cell->flags = m.state == SB_STATE_SLOW ? SB_CELL_DELAY : 0;
	spun = page_counts(&s->page, s->cell)->slot[0].injected_ticks;
	off = time_calls(s, false);
	on = time_calls(s, true);
	if (!off || !on)
		return false;
	spun = page_counts(&s->page, s->cell)->slot[0].injected_ticks - spun;
	if (m.round >= 0)
		m.cost[m.round] = (int64_t)(on - off - spun);
	return true;
}

/* False: more rounds are to follow. */
static bool rounds(void)
{
	while (m.state <= SB_STATE_SLOW) {
		bool fine = round_of(&m.subject);

		if (!fine)
			return true;
		if (++m.round == ROUNDS) {
			int64_t cost = median(m.cost, ROUNDS) / CALLS;

			if (m.state == SB_STATE_COUNT)
				m.counted = cost;
			else
				m.delayed = cost;
			m.state++;
			m.round = WARM_UP;
		}
		if (m.state <= SB_STATE_SLOW && slice_over())
			return false;
	}
	return true;
}

/* No other tool may see the function: the time of the hook plus the constant. */
static int64_t estimate(struct subject *s)
{
	int64_t cost[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = cpu_ticks();

		for (int j = 0; j < CALLS; j++)
			agent.backend->once(s->watch);
		cost[i] = (int64_t)(cpu_ticks() - start);
	}
	return median(cost, ROUNDS) / CALLS;
}

/* The timed calls of one round, in ticks per call: their whole cost, and the part within them. */
static bool span_round(struct subject *s, bool run, int64_t *whole, int64_t *within)
{
	const struct sb_page_span *spans = spans_of(s);
	uint64_t ticks = spans->ticks, n = spans->calls, off = 0, on;

	if (run) {
		off = time_calls(s, false);
		on = time_calls(s, true);
	} else {
		on = cpu_ticks();
		for (int i = 0; i < CALLS; i++)
			agent.backend->span(s->watch);
		on = cpu_ticks() - on;
	}
	ticks = spans->ticks - ticks;
	n = spans->calls - n;
	if (!on || (run && !off) || !n)
		return false;
	*whole = (int64_t)(on - off) / CALLS;
	*within = (int64_t)(ticks / n);
	return true;
}

/* The time of a function that does nothing is the timing's addition to every other's. */
static bool span_costs(struct subject *s, bool run)
{
	int64_t whole[ROUNDS], within[ROUNDS], cost;
	bool fine = true;

	s->cell->state = SB_STATE_COUNT;
	s->cell->flags = SB_CELL_SPANS;
	agent.cost_span = agent.cost_within = 0;
	agent.backend->spans(true);
	for (int i = -2; i < ROUNDS && fine; i++)
		fine = span_round(s, run, &whole[i < 0 ? 0 : i], &within[i < 0 ? 0 : i]);
	s->cell->flags = 0;
	agent.backend->set(s->watch, false);
	agent.backend->settle(false);
	agent.backend->spans(false);
	span_reset();
	if (!fine)
		return false;
	cost = median(whole, ROUNDS);
	agent.cost_span = cost > 0 ? (uint64_t)cost : 0;
	agent.cost_within = (uint64_t)median(within, ROUNDS);
	return true;
}

static int begin(void)
{
	uint64_t hz = agent.page.tsc_hz;
	struct subject *s = &m.subject;

	m = (struct measuring){ .run = !agent.guest && !py_observed(),
				.state = SB_STATE_COUNT,
				.round = WARM_UP,
				.counted = -1,
				.delayed = -1 };
	agent.cost = 0;
	for (int tries = 0; !subject_open(s, m.run); tries++) {
		py_interrupted();
		subject_close(s);
		if (tries == 3)
			return agent_fail(SB_AGENT_PYTHON,
					  "the hook's own cost could not be measured");
	}
	s->cell->delay_ticks = hz ? hz / 2000000 : 1000;
	m.open = true;
	return 0;
}

static void settled_by(bool spans)
{
	struct subject *s = &m.subject;

	if (m.counted < 0 || m.delayed < 0) {
		uint64_t hz = m.page.tsc_hz;

		s->cell->state = SB_STATE_COUNT;
		m.counted = m.delayed = estimate(s) +
					(int64_t)(hz / 1000000 * agent.backend->extra_ns / 1000);
	}
	if (spans && !(m.run && span_costs(s, true)))
		span_costs(s, false);
	agent.cost = (uint64_t)m.delayed;
	agent.cost_counted = (uint64_t)m.counted;
}

/* The agent uses a page of its own only while no code of the program runs. */
int cost_piece(bool spans)
{
	struct page page = agent.page;
	int rc = m.open ? 0 : begin();
	bool all;

	if (rc)
		return rc;
	/* A tool that has started since the last piece would see the function run. */
	if (m.run && py_observed()) {
		m.run = false;
		m.counted = m.delayed = -1;
	}
	m.page = page;
	agent.page = m.subject.page;
	agent.page.tsc_hz = page.tsc_hz; /* distinguishes long spins from short ones */
	all = !m.run || rounds();
	agent.backend->set(m.subject.watch, false);
	agent.backend->settle(false);
	if (all)
		settled_by(spans);
	agent.page = page;
	if (!all)
		return SB_AGENT_AGAIN;
	cost_drop();
	return 0;
}

void cost_lose(void)
{
	memset(&m, 0, sizeof(m));
}

void cost_drop(void)
{
	struct measuring was = m;

	cost_lose();
	if (was.open)
		subject_close(&was.subject);
}
