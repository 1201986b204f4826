/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <errno.h>
#include <string.h>

#include "span.h"
#include "turn.h"

#define PATIENCE 2000 /* naps: some tenths of a second; then another time */

struct agent agent;

int agent_fail(int error, const char *reason)
{
	size_t len = strlen(reason);

	if (len > 255)
		len = 255;
	memcpy(agent.reason, reason, len);
	agent.reason[len] = '\0';
	return error;
}

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

/* Calls are timed from now on, or no more: what is under way belongs to neither. */
static void settle_spans(void)
{
	bool any = anybody_times();

	if (any == agent.times)
		return;
	agent.times = any;
	span_reset();
	agent.backend->spans(any);
}

/* Tells the interpreter of every watch, and lets go those that no target wants any more. */
static int settle(void)
{
	int rc;

	for (struct watch *w = table_watches(), *next; w; w = next) {
		next = w->next;
		if (!py_ref_alive(w->ref, w->code)) {
			table_drop(w);
			continue;
		}
		rc = agent.backend->set(w, watch_wanted(w));
		if (rc)
			return rc;
		if (!w->n)
			table_drop(w);
	}
	settle_spans();
	return agent.backend->settle(anybody_counts());
}

/*
 * Before 3.14.1 a thread that is about to stop all others, as each change of sys.monitoring does,
 * has the lock for that while it waits for one that forks. The child inherits the lock, taken, and
 * waits for ever as soon as it stops its threads, for a collection for instance. We would make
 * that likely in a program that forks, and cannot tell which does.
 */
static bool harms_children(void)
{
	return py.hex < 0x030e0100 && !py_gil();
}

/*
 * The interpreter ends, while the process goes on: an embedded one, which may be started again.
 * Nothing of its objects may be touched later; what comes next begins anew.
 */
static void ended(PyObject *capsule)
{
	struct sb_page_proc *proc;

	(void)capsule;
	agent.token = NULL;
	if (agent.leaving || (!agent.started && !agent.lingers))
		return;
	agent.started = agent.lingers = false;
	agent.backend->ended();
	span_reset();
	table_clear();
	list_free(&agent.list);
	py_close();
	proc = page_proc(&agent.page);
	if (proc)
		__atomic_store_n(&proc->quiet, 0, __ATOMIC_RELEASE);
	__atomic_or_fetch(&agent.room->flags, SB_ROOM_ENDED, __ATOMIC_RELEASE);
}

/* An object that nobody sees and that dies with the interpreter, while objects still can. */
static void token_hang(void)
{
	PyObject *dict = PyInterpreterState_GetDict(agent.interp); /* borrowed */

	if (!dict || agent.token)
		return;
	agent.token = PyCapsule_New(&agent, NULL, ended);
	if (agent.token && !PyDict_SetItemString(dict, "sbinject", agent.token))
		Py_DecRef(agent.token); /* the dict's from here on */
	PyErr_Clear();
}

static void token_take(void)
{
	PyObject *dict = agent.token ? PyInterpreterState_GetDict(agent.interp) : NULL;

	agent.leaving = true;
	/* Without a GIL it may die when we are gone: the thread that made it is told to do it. */
	if (agent.token)
		PyCapsule_SetDestructor(agent.token, NULL);
	if (dict && PyDict_DelItemString(dict, "sbinject"))
		PyErr_Clear();
	agent.token = NULL;
	agent.leaving = false;
}

/* Whether a target of the list may come to be timed. */
static bool may_time(const struct sb_room *room)
{
	const struct sb_room_target *t = (const void *)((const char *)room + room->targets_off);
	uint64_t n = room->n_targets, off = room->targets_off;

	if (off & 3 || off > room->size || n * sizeof(*t) > room->size - off)
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (t[i].flags & SB_TARGET_SPANS)
			return true;
	return false;
}

static int start(const struct sb_room *room)
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
	agent.guest = agent.times = false;
	agent.lingers = true; /* a child that is forked meanwhile has half of it */
	rc = agent.backend->start();
	agent.lingers = was && rc;
	if (rc)
		return rc;
	agent.started = true;
	agent.interp = PyInterpreterState_Get();
	token_hang();
	return cost_measure(may_time(room));
}

static int relist(const struct sb_room *room, bool first)
{
	struct list list;
	int rc;

	if (!first && agent.list.version == room->list)
		return 0;
	rc = list_load(&list, room);
	if (rc)
		return rc;
	list_free(&agent.list);
	agent.list = list;
	agent.list.version = 0; /* none's: a child that is forked meanwhile begins anew */
	span_reset();		/* cells may be others' */
	judge_again();
	rc = judge_existing();
	if (!rc)
		rc = agent.backend->relist(first);
	if (!rc)
		agent.list.version = list.version;
	return rc;
}

static int stop(void)
{
	int rc;

	if (!agent.started && !agent.lingers)
		return 0;
	agent.started = agent.times = false;
	agent.lingers = true; /* a child that is forked meanwhile does it again */
	rc = agent.backend->stop();
	span_reset();
	if (!rc)
		token_take();
	table_clear();
	list_free(&agent.list);
	judge_forget();
	if (!rc)
		retired_free();
	agent.lingers = rc;
	return rc;
}

static int apply(struct sb_room *room)
{
	bool first = !agent.started;
	int rc;

	if (!first && agent.interp != PyInterpreterState_Get())
		return agent_fail(SB_AGENT_UNSUPPORTED, "called in another interpreter");
	rc = first ? start(room) : 0;
	if (!rc)
		rc = relist(room, first);
	if (!rc)
		rc = settle();
	if (rc && first && agent.started)
		stop(); /* the reason stays that of the first failure only if this succeeds */
	room->flags = agent.flags | (py_gil() ? 0 : SB_ROOM_FREE_THREADED);
	room->matched = table_count();
	room->cost_ticks = agent.cost_counted;
	return rc;
}

static int list(const struct sb_room *room)
{
	struct list list;
	int rc = list_load(&list, room);

	if (rc)
		return rc;
	rc = judge_list(&list);
	list_free(&list);
	return rc;
}

static int carry_out(struct sb_room *room)
{
	struct page page;

	room->python = py.hex;
	if (room->command == SB_AGENT_STOP) {
		int rc = stop();

		room->flags = agent.flags;
		return rc;
	}
	if (page_open(&page, room))
		return agent_fail(SB_AGENT_DAMAGED, "the control page makes no sense");
	if (page.session != agent.page.session)
		judge_forget();
	agent.page = page;
	agent.ready = room->command == SB_AGENT_READY;
	agent.room = room;
	if (room->command == SB_AGENT_APPLY || agent.ready)
		return apply(room);
	if (room->command == SB_AGENT_LIST)
		return list(room);
	return agent_fail(SB_AGENT_DAMAGED, "no such command");
}

/*
 * Not in the midst of a change that this thread makes further up, nor does the program wait for
 * long while another one makes its own: nothing has been done then, and it is asked again.
 */
static int carry_out_in_turn(struct sb_room *room)
{
	int rc;

	if (turn_mine() || !turn_take(PATIENCE))
		return SB_AGENT_ELSEWHERE;
	rc = carry_out(room);
	turn_give();
	return rc;
}

/* Garbage collection runs the target's own code; it must not come in between. */
static int without_collection(struct sb_room *room)
{
	int was, rc = py_open();

	if (rc)
		return agent_fail(rc, rc == SB_AGENT_UNSUPPORTED ?
					      "not a CPython of 3.10 or later" :
					      "the agent cannot be set up (gc cannot be imported, "
					      "or memory is short); another attach may do");
	was = py.gc_disable();
	rc = carry_out_in_turn(room);
	if (was)
		py.gc_enable();
	if (!rc && room->command == SB_AGENT_STOP)
		py_close();
	return rc;
}

/*
 * From 3.12 on PyGILState_Ensure() leads a thread back to the subinterpreter in which it sleeps.
 * Objects of one interpreter may not be touched in another.
 */
static bool in_subinterpreter(void)
{
	void *(*main)(void) = (void *(*)(void))py_symbol("PyInterpreterState_Main");

	return main && main() != (void *)PyInterpreterState_Get();
}

__attribute__((visibility("default"))) int sb_agent(struct sb_room *room);

int sb_agent(struct sb_room *room)
{
	int saved_errno = errno, rc;
	PyObject *type, *value, *traceback;

	if (!room || room->magic != SB_ROOM_MAGIC)
		return SB_AGENT_DAMAGED;
	if (in_subinterpreter())
		return SB_AGENT_ELSEWHERE;
	agent.reason = room->reason;
	if (room->version != SB_PAGE_VERSION || room->size < sizeof(*room) || room->size > 1 << 26)
		return agent_fail(SB_AGENT_DAMAGED, "the room makes no sense");
	PyErr_Fetch(&type, &value, &traceback);
	rc = without_collection(room);
	py_pass_on();
	PyErr_Restore(type, value, traceback);
	errno = saved_errno;
	return rc;
}
