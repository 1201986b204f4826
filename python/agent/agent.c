/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <errno.h>
#include <string.h>

#include "memory.h"
#include "span.h"
#include "turn.h"

#define PATIENCE 2000 /* naps: some tenths of a second; then it gives up for now */

static bool anybody_counts(void)
{
	for (size_t i = 0; i < agent.list.n; i++) {
		const struct sb_page_cell *cell = page_cell(&agent.page,
							    agent.list.targets[i].cell);

		if (cell && (agent.ready || page_state(cell) != SB_STATE_OFF))
			return true;
	}
	return false;
}

static bool anybody_times(void)
{
	for (size_t i = 0; i < agent.list.n; i++) {
		const struct sb_page_cell *cell = page_cell(&agent.page,
							    agent.list.targets[i].cell);

		if (cell && page_spans(cell))
			return true;
	}
	return false;
}

/* Calls are timed from now on, or no longer: calls under way are in neither group. */
static void settle_spans(void)
{
	bool any = anybody_times();

	if (any == agent.times)
		return;
	agent.times = any;
	span_reset();
	agent.backend->spans(any);
}

/* ---- a command in pieces ---- */

/*
 * A command can be long work, and meanwhile no other thread runs Python. So after about a
 * millisecond it leaves the rest for later (SB_AGENT_AGAIN), and sbinject repeats the command.
 * Anything can happen in between: modules are loaded and removed, a fork, another command in its
 * place, the end of the interpreter.
 */
static struct {
	bool open;
	uint32_t asked, command;
	int stage;
	bool first; /* APPLY: of all lists */
	bool begun; /* the stage */
	enum existing existing;
	bool inside;
	uint32_t list, matched;
} job;

/* Except for its walk: what that holds is released in pieces, as the first stage of the next job.
 */
static void job_leave(void)
{
	cost_drop();
	memset(&job, 0, sizeof(job));
}

static void job_drop(void)
{
	walk_drop();
	cost_drop();
	memset(&job, 0, sizeof(job));
}

/* In the child of a fork in the middle of a piece none of its data is consistent. */
static void job_lose(void)
{
	walk_lose();
	cost_lose();
	memset(&job, 0, sizeof(job));
}

static int stages(int (*const stage[])(struct sb_mailbox *), int n, struct sb_mailbox *mailbox)
{
	int rc;

	do {
		rc = stage[job.stage](mailbox);
		if (rc)
			return rc;
		job.begun = false;
	} while (++job.stage < n && !slice_over());
	return job.stage < n ? SB_AGENT_AGAIN : 0;
}

/*
 * Sets the interpreter's reports for a watch, and drops the watch if no target matches it any more.
 */
static int settle_one(struct watch *w)
{
	int rc;

	if (!py_ref_alive(w->ref, w->code)) {
		table_drop(w);
		return 0;
	}
	rc = agent.backend->set(w, watch_wanted(w));
	if (!rc && !w->n)
		table_drop(w);
	else
		job.matched++;
	return rc;
}

static int settle(struct sb_mailbox *mailbox)
{
	struct watch *w;

	if (!job.begun) {
		table_rewind();
		job.matched = 0;
	}
	job.begun = true;
	while ((w = table_step())) {
		int rc = settle_one(w);

		if (rc)
			return rc;
		if (slice_over())
			return SB_AGENT_AGAIN;
	}
	mailbox->matched = job.matched;
	settle_spans();
	return agent.backend->settle(anybody_counts());
}

/*
 * Before 3.14.1 a thread that is about to stop all others, as each change of sys.monitoring does,
 * holds the lock for that while it waits for one that forks. The child inherits the lock, taken,
 * and waits for ever as soon as it stops its threads, for a collection for instance. The agent
 * would make that likely in a program that forks, and cannot know which program does.
 */
static bool harms_children(void)
{
	return py.hex < 0x030e0100 && !py_gil();
}

/*
 * The interpreter ends, while the process continues: an embedded one, which may be started again.
 * None of its objects may be touched later; the next interpreter starts from nothing.
 */
static void ended(PyObject *capsule)
{
	struct sb_page_ring *ring;

	(void)capsule;
	agent.token = NULL;
	if (agent.leaving || (!agent.started && !agent.lingers))
		return;
	agent.started = agent.listed = agent.lingers = false;
	job_drop();
	agent.backend->ended();
	span_reset();
	table_rewind();
	table_clear();
	list_free(&agent.list);
	py_close();
	ring = page_ring(&agent.page);
	if (ring)
		__atomic_fetch_add(&ring->ended, 1, __ATOMIC_RELEASE);
	__atomic_or_fetch(&agent.mailbox->flags, SB_MAILBOX_ENDED, __ATOMIC_RELEASE);
}

/*
 * An object that the program does not see and that dies with the interpreter, while objects still
 * can.
 */
static void token_hang(void)
{
	PyObject *dict = PyInterpreterState_GetDict(agent.interp); /* borrowed */

	if (!dict || agent.token)
		return;
	agent.token = PyCapsule_New(&agent, NULL, ended);
	if (agent.token && !PyDict_SetItemString(dict, "sbinject", agent.token))
		Py_DecRef(agent.token); /* from here on the dict owns it */
	PyErr_Clear();
}

static void token_take(void)
{
	PyObject *dict = agent.token ? PyInterpreterState_GetDict(agent.interp) : NULL;

	agent.leaving = true;
	/* Without a GIL it may die after the agent is gone: the thread that made it frees it. */
	if (agent.token)
		PyCapsule_SetDestructor(agent.token, NULL);
	if (dict && PyDict_DelItemString(dict, "sbinject"))
		PyErr_Clear();
	agent.token = NULL;
	agent.leaving = false;
}

/* Whether a target of the list may be timed later. */
static bool may_time(const struct sb_mailbox *mailbox)
{
	const struct sb_mailbox_target *t =
		(const void *)((const char *)mailbox + mailbox->targets_off);
	uint64_t n = mailbox->n_targets, off = mailbox->targets_off;

	if (off & 3 || off > mailbox->size || n * sizeof(*t) > mailbox->size - off)
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (t[i].flags & SB_TARGET_SPANS)
			return true;
	return false;
}

static int start(void)
{
	bool was = agent.lingers;
	int rc;

	if (harms_children())
		return agent_fail(
			SB_AGENT_UNSUPPORTED,
			"without a GIL an interpreter before 3.14.1 can lock up in a forked "
			"child when it is watched; PYTHON_GIL=1 gives it one");
	agent.backend = py.hex >= 0x030c0000 ? &monitor_backend : &frame_backend;
	agent.flags = 0;
	agent.guest = agent.times = agent.listed = agent.costed = false;
	agent.lingers = true; /* a child that is forked meanwhile has half of it */
	rc = agent.backend->start();
	agent.lingers = was && rc;
	if (rc)
		return rc;
	agent.started = true;
	agent.interp = PyInterpreterState_Get();
	token_hang();
	return 0;
}

/* ---- APPLY ---- */

static int leave_walk(struct sb_mailbox *mailbox)
{
	(void)mailbox;
	return walk_leave();
}

static int apply_start(struct sb_mailbox *mailbox)
{
	(void)mailbox;
	job.first = !agent.listed;
	return agent.started ? 0 : start();
}

static int apply_cost(struct sb_mailbox *mailbox)
{
	int rc = agent.costed ? 0 : cost_piece(may_time(mailbox));

	agent.costed = !rc;
	return rc;
}

static bool list_is_new(const struct sb_mailbox *mailbox)
{
	return job.first || agent.list.version != mailbox->list;
}

static int apply_list(struct sb_mailbox *mailbox)
{
	struct list list;
	int rc;

	if (!list_is_new(mailbox))
		return 0;
	rc = list_load(&list, mailbox);
	if (rc)
		return rc;
	list_free(&agent.list);
	agent.list = list;
	agent.list.version = 0; /* invalid: a child that is forked meanwhile starts over */
	job.list = list.version;
	span_reset(); /* the cells may belong to other targets */
	return 0;
}

static int apply_again(struct sb_mailbox *mailbox)
{
	if (!list_is_new(mailbox))
		return 0;
	if (!job.begun)
		table_rewind();
	job.begun = true;
	return judge_again();
}

static int apply_existing(struct sb_mailbox *mailbox)
{
	if (!list_is_new(mailbox))
		return 0;
	if (!job.begun)
		job.existing = agent.backend->existing ? agent.backend->existing() : EXISTING_NAMED;
	job.begun = true;
	return judge_existing(job.existing);
}

static int apply_backend(struct sb_mailbox *mailbox)
{
	int rc;

	if (!list_is_new(mailbox))
		return 0;
	if (!job.begun)
		table_rewind();
	job.begun = true;
	rc = agent.backend->relist(job.first);
	if (rc)
		return rc;
	agent.list.version = job.list;
	agent.listed = true;
	return 0;
}

static int stop_at_once(struct sb_mailbox *mailbox);

static int apply(struct sb_mailbox *mailbox)
{
	static int (*const stage[])(
		struct sb_mailbox *) = { leave_walk,  apply_start,    apply_cost,    apply_list,
					 apply_again, apply_existing, apply_backend, settle };
	int rc;

	if (agent.started && agent.interp != PyInterpreterState_Get())
		return agent_fail(SB_AGENT_UNSUPPORTED, "called in another interpreter");
	rc = stages(stage, sizeof(stage) / sizeof(*stage), mailbox);
	if (rc && rc != SB_AGENT_AGAIN && job.first && agent.started)
		stop_at_once(mailbox); /* the reason stays that of the first failure only if this
					* succeeds */
	mailbox->flags = agent.flags | (py_gil() ? 0 : SB_MAILBOX_FREE_THREADED);
	mailbox->cost_ticks = agent.cost_counted;
	return rc;
}

/* ---- STOP ---- */

static bool nothing_to_stop(void)
{
	return !agent.started && !agent.lingers;
}

static int stop_begin(struct sb_mailbox *mailbox)
{
	(void)mailbox;
	if (nothing_to_stop())
		return 0;
	agent.started = agent.listed = agent.times = false;
	agent.lingers = true; /* a child that is forked meanwhile repeats it */
	agent.backend->quiet();
	return 0;
}

static int stop_watches(struct sb_mailbox *mailbox)
{
	struct watch *w;

	(void)mailbox;
	if (nothing_to_stop())
		return 0;
	if (!job.begun)
		table_rewind();
	job.begun = true;
	while ((w = table_step())) {
		if (agent.backend->let_go)
			agent.backend->let_go(w);
		table_drop(w);
		if (slice_over())
			return SB_AGENT_AGAIN;
	}
	return 0;
}

/* No call adds one any more. */
static int stop_entries(struct sb_mailbox *mailbox)
{
	(void)mailbox;
	if (nothing_to_stop())
		return 0;
	if (!job.begun)
		table_rewind();
	job.begun = true;
	return table_empty();
}

static int stop_end(struct sb_mailbox *mailbox)
{
	int rc;

	(void)mailbox;
	if (nothing_to_stop()) { /* a LIST has notes, too */
		judge_forget();
		mem_close();
		return 0;
	}
	rc = agent.backend->stop();
	span_reset();
	if (!rc)
		token_take();
	table_clear();
	list_free(&agent.list);
	judge_forget();
	if (!rc) {
		retired_free();
		mem_close();
	}
	agent.lingers = rc;
	return rc;
}

static int stop(struct sb_mailbox *mailbox)
{
	static int (*const stage[])(struct sb_mailbox *) = { leave_walk, stop_begin, stop_watches,
							     stop_entries, stop_end };
	int rc = stages(stage, sizeof(stage) / sizeof(*stage), mailbox);

	mailbox->flags = agent.flags;
	return rc;
}

static int stop_at_once(struct sb_mailbox *mailbox)
{
	uint64_t end = agent.slice_end;
	int rc;

	job_drop();
	agent.slice_end = 0;
	rc = stop(mailbox);
	agent.slice_end = end;
	return rc;
}

/* ---- LIST ---- */

/* In one piece: the end of the interpreter before the next piece would go unnoticed. */
static int list(const struct sb_mailbox *mailbox)
{
	struct list list;
	int rc = list_load(&list, mailbox);

	if (rc)
		return rc;
	agent.slice_end = 0;
	walk_drop();
	rc = judge_list(&list);
	list_free(&list);
	return rc;
}

/* ---- commands ---- */

static int carry_out(struct sb_mailbox *mailbox)
{
	struct page page;

	mailbox->python = py.hex;
	agent.slice_end = mailbox->slice_ticks ? cpu_ticks() + mailbox->slice_ticks : 0;
	if (mailbox->command == SB_AGENT_STOP)
		return stop(mailbox);
	if (page_open(&page, mailbox))
		return agent_fail(SB_AGENT_DAMAGED, "the control page is not valid");
	if (page.session != agent.page.session)
		judge_forget();
	agent.page = page;
	agent.ready = mailbox->command == SB_AGENT_READY;
	agent.mailbox = mailbox;
	if (mailbox->command == SB_AGENT_APPLY || agent.ready)
		return apply(mailbox);
	if (mailbox->command == SB_AGENT_LIST)
		return list(mailbox);
	return agent_fail(SB_AGENT_DAMAGED, "no such command");
}

/* The next piece of the command that is under way, or another command in its place. */
static int carry_on(struct sb_mailbox *mailbox)
{
	int rc;

	if (job.inside)
		job_lose();
	if (job.open && (job.asked != mailbox->asked || job.command != mailbox->command))
		job_leave();
	job.open = job.inside = true;
	job.asked = mailbox->asked;
	job.command = mailbox->command;
	agent.at_work = true;
	rc = carry_out(mailbox);
	agent.at_work = false;
	job.inside = false;
	if (rc != SB_AGENT_AGAIN)
		job_drop();
	return rc;
}

/*
 * Does nothing in the middle of a change that this thread makes further up, and does not make the
 * program wait for long while another thread makes a change: sbinject then repeats the command.
 */
static int carry_out_in_turn(struct sb_mailbox *mailbox)
{
	int rc;

	if (turn_mine() || !turn_take(PATIENCE))
		return SB_AGENT_ELSEWHERE;
	rc = carry_on(mailbox);
	turn_give();
	return rc;
}

/* Garbage collection runs the target's own code; it must not run in between. */
static int without_collection(struct sb_mailbox *mailbox)
{
	int was, rc = py_open();

	if (rc)
		return agent_fail(rc, rc == SB_AGENT_UNSUPPORTED ?
					      "not a CPython of 3.10 or later" :
					      "the agent cannot be set up (gc cannot be imported, "
					      "or memory is short); another attach may do");
	was = py.gc_disable();
	rc = carry_out_in_turn(mailbox);
	if (was)
		py.gc_enable();
	if (!rc && mailbox->command == SB_AGENT_STOP)
		py_close();
	return rc;
}

/*
 * Since 3.12 PyGILState_Ensure() returns a thread to the subinterpreter in which it sleeps. Objects
 * of one interpreter may not be touched in another.
 */
static bool in_subinterpreter(void)
{
	static void *(*main)(void); /* looked up once: see struct py */

	if (!main)
		main = (void *(*)(void))py_symbol("PyInterpreterState_Main");
	return main && main() != (void *)PyInterpreterState_Get();
}

__attribute__((visibility("default"))) int sb_agent(struct sb_mailbox *mailbox);

int sb_agent(struct sb_mailbox *mailbox)
{
	int saved_errno = errno, rc;
	PyObject *type, *value, *traceback;

	if (!mailbox || mailbox->magic != SB_MAILBOX_MAGIC)
		return SB_AGENT_DAMAGED;
	if (in_subinterpreter())
		return SB_AGENT_ELSEWHERE;
	agent.reason = mailbox->reason;
	if (mailbox->version != SB_PAGE_VERSION || mailbox->size < sizeof(*mailbox) ||
	    mailbox->size > 1 << 26)
		return agent_fail(SB_AGENT_DAMAGED, "the mailbox is not valid");
	PyErr_Fetch(&type, &value, &traceback);
	rc = without_collection(mailbox);
	py_pass_on();
	PyErr_Restore(type, value, traceback);
	errno = saved_errno;
	return rc;
}
