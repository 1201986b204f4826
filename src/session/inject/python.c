/* SPDX-License-Identifier: MIT */
#include "python.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "elf/interpreter.h"
#include "inject/fault.h"
#include "python/agent/agent-image.h"
#include "src/base/log.h"
#include "src/base/text.h"

#define MS 1000000ull

enum { ENTER_MS = 1000, SAY_AFTER_MS = 1000, ANEW_MS = 50, LOAD_TRIES = 5, LOAD_AGAIN_MS = 20 };

_Static_assert((int)INTERPRETER_FUNCTIONS == (int)ENTRY_PENDING, "one order for both rooms");

/* Records a reason that applies to all Python targets; if any agent works it applies to none. */
static void explain(struct inject_session *s, const struct sb_err *why)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->kind == SPEC_PYTHON && !s->target[i].module_seen)
			s->target[i].why = *why;
}

static void seen(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->kind == SPEC_PYTHON)
			s->target[i].module_seen = true;
}

/* The agent has no file: the dynamic linker gets it as /proc/self/fd/N. */
static int check_proc(pid_t pid, struct sb_err *err)
{
	char path[64], root[PATH_MAX];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/root/proc/self", pid);
	if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	n = readlink(path, root, sizeof(root) - 1);
	if (n < 0)
		return 0; /* it has ended */
	root[n] = '\0';
	err_set(err, SB_EREFUSED,
		"process %d: its root directory has no /proc, which the agent needs", pid);
	err_hint(err, "mount -t proc proc %.100s/proc", strcmp(root, "/") ? root : "");
	return -SB_EREFUSED;
}

static int find_interpreter(pid_t pid, struct interpreter *in, struct sb_err *err)
{
	struct maps maps;
	int ret = maps_read(pid, &maps, err);

	if (ret < 0)
		return ret;
	ret = interpreter_find(pid, &maps, in, err);
	maps_free(&maps);
	if (ret == 0)
		ret = check_proc(pid, err);
	if (ret < 0)
		interpreter_free(in);
	return ret;
}

static int look_for_one(pid_t pid, struct sb_err *err)
{
	struct interpreter in;
	int ret = find_interpreter(pid, &in, err);

	if (ret == 0)
		interpreter_free(&in);
	return ret;
}

int python_check(const struct inject_session *s, const pid_t *pids, size_t n, struct sb_err *err)
{
	struct sb_err refused = { 0 };

	if (!python_wanted(s))
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct sb_err why = { 0 };

		if (look_for_one(pids[i], &why) == 0)
			return 0;
		if (why.code == SB_EREFUSED && !refused.code)
			refused = why;
	}
	if (!refused.code)
		return 0; /* no interpreter yet; a child may have one */
	*err = refused;
	return -(int)err->code;
}

/* ---- loading ---- */

static int send_targets(struct inject_session *s, struct room *room, struct sb_err *err)
{
	struct room_target *list = calloc(s->n_targets, sizeof(*list));
	size_t n = 0;
	int ret;

	if (!list)
		abort();
	for (size_t i = 0; i < s->n_targets; i++) {
		const struct spec *spec = s->target[i].spec;

		if (spec->kind != SPEC_PYTHON || s->target[i].removed)
			continue;
		list[n].cell = (uint32_t)i;
		list[n].flags = (strchr(spec->module, '/') ? SB_TARGET_FILE : 0) |
				(spec->resume ? SB_TARGET_RESUME : 0) |
				(spec->rest ? SB_TARGET_REST : 0) |
				(s->cfg->sweeping || spec->timed ? SB_TARGET_SPANS : 0) |
				(s->cfg->by_function && !spec->thread ? SB_TARGET_EACH : 0);
		list[n].module = spec->module;
		list[n].name = spec->symbol;
		n++;
	}
	ret = room_targets(room, list, n, err);
	free(list);
	return ret;
}

static size_t agent_size(void)
{
	return (size_t)((uintptr_t)agent_image_end - (uintptr_t)agent_image);
}

/*
 * The interpreter that answers a command may have ended before the answer is seen, and then the
 * next one's start must ring: only an end before the command does not matter.
 */
static void note_ends(struct record *rec)
{
	const struct space *space = rec->space;

	if (space && space->control && space->proc)
		rec->python.ends = page_ended(&space->control->page, space->proc);
}

static void ask(const struct inject_session *s, struct record *rec)
{
	note_ends(rec);
	room_ask(rec->python.room, s->cfg->look_only ? SB_AGENT_LIST :
				   s->armed	     ? SB_AGENT_APPLY :
						       SB_AGENT_READY);
}

static int make_room(struct inject_session *s, struct record *rec, struct space *space, pid_t pid,
		     struct sb_err *err)
{
	struct interpreter in;
	struct room_setup setup = {
		.agent = agent_image,
		.agent_size = agent_size(),
	};
	int ret = find_interpreter(pid, &in, err);

	if (ret < 0)
		return ret;
	memcpy(setup.function, in.function, sizeof(in.function));
	setup.runtime = in.runtime;
	setup.runtime_size = in.runtime_size;
	setup.eval = in.eval;
	setup.eval_size = in.eval_size;
	setup.gil = in.gil;
	interpreter_free(&in);
	ret = room_open(&rec->python.room, space, &s->tree, pid, &setup, err);
	if (ret == 0)
		ret = send_targets(s, rec->python.room, err);
	if (ret == 0)
		ask(s, rec);
	return ret;
}

/* Plants doorbells at the functions that an interpreter enters at its start. */
static int hang_bells(struct inject_session *s, struct record *rec, struct space *space, pid_t pid,
		      struct sb_err *err)
{
	struct interpreter in;
	struct found found = { 0 };
	int ret = find_interpreter(pid, &in, err);

	if (ret < 0)
		return ret;
	for (const char *const *name = interpreter_start_functions; *name; name++)
		session_add_bell(s, space, &found, in.img, in.bias, *name);
	interpreter_free(&in);
	plans_make(s->plans, &found, false);
	rec->python.belled = rec->python.starting = true;
	if (rec->python.room)
		rec->python.room->bell_only = true;
	ret = session_hook_found(s, space, pid, &found, err);
	found_free(&found);
	return ret;
}

/* Two agents in one interpreter would take each other's work for their own. */
static bool has_dormant(struct inject_session *s, struct record *rec, pid_t pid)
{
	struct sb_err why = { 0 };
	bool agent;

	if (!space_has_dormant(pid, &agent) || !agent)
		return false;
	err_set(&why, SB_EREFUSED, "an agent of an earlier sbinject is still in its interpreter");
	err_hint(&why, "sbinject recover -p %d removes it at the interpreter's next safe point",
		 pid);
	if (!rec->python.said)
		session_warn(s, "process %d: %s; %s", pid, why.what, why.hint);
	rec->python.said = true;
	explain(s, &why);
	return true;
}

int python_look(struct inject_session *s, struct record *rec, struct space *space, pid_t pid,
		bool fresh, struct sb_err *err)
{
	struct sb_err why = { 0 };

	if (!python_wanted(s) || rec->python.looked || rec->ended)
		return 0;
	if (look_for_one(pid, &why) < 0) {
		if (why.code == SB_ENOPROC)
			return 0;
		if (why.code != SB_ENOMODULE && !rec->python.said)
			session_warn(s, "%s%s%s", why.what, why.hint[0] ? "; " : "", why.hint);
		rec->python.said |= why.code != SB_ENOMODULE;
		explain(s, &why);
		return 0;
	}
	if (has_dormant(s, rec, pid))
		return 0;
	if (!agent_size())
		return err_set(err, SB_EREFUSED,
			       "this sbinject was built without Python support (no Python.h)");
	rec->python.looked = true;
	if (!space->control) {
		int ret = session_setup(s, space, pid, err);

		if (ret < 0)
			return ret;
	}
	return fresh ? hang_bells(s, rec, space, pid, err) : make_room(s, rec, space, pid, err);
}

static void be_quiet(struct record *rec)
{
	struct space *space = rec->space;

	if (space && space->control && space->proc)
		page_quiet(&space->control->page, space->proc, rec->python.ends);
}

/* An interpreter has ended, as an embedded one may: its next start loads the agent anew. */
static void begin_anew(struct inject_session *s, struct record *rec)
{
	struct python *py = &rec->python;

	if (!py->applied || py->leaving || !room_ended(py->room))
		return;
	log_debug("process %d: its interpreter has ended", rec->pid);
	py->applied = false;
	py->starting = py->belled;
	room_ask(py->room, s->armed ? SB_AGENT_APPLY : SB_AGENT_READY);
	py->room->retry_ns = clock_ns() + ANEW_MS * MS; /* most likely the process ends, too */
}

bool python_may_start(struct inject_session *s, struct record *rec)
{
	if (rec->python.belled && rec->python.room)
		begin_anew(s, rec);
	return rec->python.belled && !rec->python.applied;
}

/*
 * Lends the thread that starts an interpreter to the agent. It may take a moment to stop on a busy
 * machine. Where it cannot be lent at all the interpreter starts without the agent, which then
 * enters as into one that runs.
 */
static void enter_at_bell(struct inject_session *s, struct room *room, pid_t tid)
{
	uint64_t until = clock_ns() + ENTER_MS * MS;

	room->bell_only = true;
	while (!room->remote.lent && !room_step(room, &s->tree, clock_ns(), tid))
		if (!room->remote.lent && clock_ns() >= until) {
			room->bell_only = false;
			return;
		}
}

bool python_ring(struct inject_session *s, struct record *rec)
{
	struct space *space = rec->space;
	struct python *py = &rec->python;
	struct sb_err err = { 0 };
	pid_t pid = rec->pid, tid;

	if (!python_may_start(s, rec))
		return false;
	space_get(space);
	fault_point("ring", pid);
	tid = room_at_bell(space, &s->tree);
	if (tid)
		note_ends(rec);
	if (tid && !py->room && make_room(s, rec, space, pid, &err) < 0) {
		session_warn(s, "process %d: its Python functions are not watched: %s", pid,
			     err.what);
		explain(s, &err);
		py->belled = false;
		be_quiet(rec);
		tid = 0;
	}
	if (tid && py->room)
		enter_at_bell(s, py->room, tid);
	space_put(space);
	return tid != 0;
}

/* ---- at work ---- */

static void failed(struct inject_session *s, struct record *rec, const struct room_answer *answer)
{
	struct sb_err why = { 0 };

	switch (answer->status) {
	case SB_AGENT_LOAD:
		err_set(&why, SB_ETARGET, "the agent could not be loaded: %.160s", answer->reason);
		break;
	case SB_AGENT_UNSUPPORTED:
		err_set(&why, SB_EREFUSED, "%.200s", answer->reason);
		break;
	case SB_AGENT_NO_TOOL:
		err_set(&why, SB_EREFUSED, "all tool ids of sys.monitoring are taken");
		err_hint(&why, "stop a debugger, profiler or coverage tool in that process");
		break;
	default:
		err_set(&why, SB_ETARGET, "%.200s", answer->reason);
		break;
	}
	explain(s, &why);
	session_warn(s, "process %d: its Python functions are not watched: %s%s%s", rec->pid,
		     why.what, why.hint[0] ? "; " : "", why.hint);
}

/* The reason for each target until one of its functions is found. */
static void explain_none(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		const struct spec *spec = s->target[i].spec;
		struct sb_err none = { 0 };

		if (spec->kind != SPEC_PYTHON)
			continue;
		err_set(&none, SB_ENOSYMBOL, "no function of that name%s %s",
			spec->rest && i ? " that no pattern before it matches" : "",
			s->cfg->look_only ? "is there" : "has been called");
		if (!s->cfg->look_only)
			err_hint(&none, "sbinject list -p PID shows the functions that are there");
		s->target[i].why = none;
	}
}

static void finished(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	struct room_answer answer;

	stall_point("carried-out");
	room_answer(py->room, &answer);
	if (answer.status == SB_AGENT_LOAD && !py->applied && py->loads++ < LOAD_TRIES) {
		ask(s, rec);
		py->room->retry_ns = now + LOAD_AGAIN_MS * MS;
		return;
	}
	be_quiet(rec);
	py->starting = py->room->bell_only = false;
	if (answer.status == SB_AGENT_OK) {
		if (!py->applied)
			log_debug("process %d: Python %u.%u, agent at work, a counted call costs "
				  "%.0f ns",
				  rec->pid, answer.python >> 24, answer.python >> 16 & 255,
				  clock_to_ns(&s->clk, (double)answer.cost_ticks));
		py->applied = true;
		if (s->armed && !py->dirty)
			log_debug("process %d: Python targets in force", rec->pid);
		seen(s);
		s->gil |= !(answer.flags & SB_ROOM_FREE_THREADED);
		python_held(s, rec);
		explain_none(s);
	} else if (!py->applied) {
		failed(s, rec, &answer);
	}
}

void python_say(struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	const char *why = py->room->waits_for;

	if (py->said || !py->room->asked_ns || now - py->room->asked_ns < SAY_AFTER_MS * MS)
		return;
	py->said = true;
	log_note("process %d: waiting for its interpreter: %s", rec->pid,
		 why ? why : "it has not reached a point where Python code may run");
}

/* Waits for an interpreter that turns out not to have started. */
static void await_start(struct inject_session *s, struct record *rec)
{
	struct space *space = space_get(rec->space);
	struct sb_err err = { 0 };

	if (hang_bells(s, rec, space, rec->pid, &err) < 0 && err.code != SB_ENOPROC)
		session_warn(s, "process %d: %s", rec->pid, err.what);
	space_put(space);
}

static bool step_one(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	bool under_way = true;

	begin_anew(s, rec);
	/* Only the thread at its bell can carry a command into an interpreter that starts. */
	if (py->starting && !py->room->remote.lent)
		return false;
	if (room_asked(py->room)) {
		if (room_step(py->room, &s->tree, now, 0)) {
			finished(s, rec, now);
			under_way = (py->dirty && py->applied) || room_asked(py->room);
		} else if (py->room->not_ready && !py->belled && !rec->ended) {
			await_start(s, rec);
		} else {
			python_say(rec, now);
		}
	} else if (py->dirty && py->applied) {
		struct sb_err err = { 0 };

		if (py->relist && send_targets(s, py->room, &err) < 0)
			session_warn(s, "%s", err.what);
		py->dirty = py->relist = false;
		note_ends(rec);
		room_ask(py->room, SB_AGENT_APPLY);
	} else {
		under_way = false;
	}
	return under_way;
}

/* --no-follow: a process is traced only while it is changed. */
static bool step_traced(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct proc *proc = tree_proc(&s->tree, rec->pid);
	struct sb_err err = { 0 };
	bool busy;

	if (!proc || proc->session != rec)
		return false;
	if (!proc->traced && !rec->python.dirty && !room_asked(rec->python.room))
		return false;
	if (session_retake(s, proc, &err) < 0)
		return false;
	rec->python.at_work = true;
	busy = step_one(s, rec, now);
	rec->python.at_work = busy;
	return busy;
}

bool python_step(struct inject_session *s, uint64_t now)
{
	bool busy = false;

	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->python.room && rec->space) {
			busy |= python_peek(s, rec, now);
			busy |= step_traced(s, rec, now);
			s->answer_rings(s); /* an interpreter's lock may be held meanwhile */
		}
	return busy;
}

bool inject_timing(const struct session_core *core)
{
	const struct inject_session *s = session_of(core);
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->python.room && rec->python.applied &&
		    (rec->python.dirty || room_asked(rec->python.room)))
			return false;
	return true;
}

void python_relist(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		rec->python.dirty = rec->python.relist = true;
}

void python_forked(struct record *child, const struct record *parent)
{
	if (!parent || !parent->python.room || !child->space || !child->space->room_size)
		return;
	child->python = parent->python;
	child->python.room = room_fork(parent->python.room, child->space, child->pid);
	note_ends(child);
	if (child->python.applied)
		be_quiet(child);
}

void python_wait(struct inject_session *s)
{
	session_alive(s); /* other targets may count already */
	session_wait(s);
}

void python_warn_of_late(struct inject_session *s, uint64_t patience_ms)
{
	for (struct record *rec = s->records; rec; rec = rec->next) {
		const struct room *room = rec->ended ? NULL : rec->python.room;

		if (room && room_asked(room) && !rec->python.starting)
			session_warn(s,
				     "process %d: its interpreter reached no safe point within %d "
				     "s (%s); "
				     "its calls count from when it does",
				     rec->pid, (int)(patience_ms / 1000),
				     room->waits_for ? room->waits_for : "it is busy");
	}
}

void python_explain_late(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next) {
		const struct python *py = &rec->python;
		struct sb_err why = { 0 };

		if (rec->ended || !py->room || py->applied || py->starting || !room_asked(py->room))
			continue;
		err_set(&why, SB_ENOMODULE,
			"the interpreter of process %d reached no safe point, so no call was seen: "
			"%s",
			rec->pid, py->room->waits_for ? py->room->waits_for : "it was busy");
		explain(s, &why);
	}
}

bool python_settle(struct inject_session *s, uint64_t patience_ms)
{
	uint64_t until = clock_ns() + patience_ms * MS;
	bool busy = python_wanted(s);

	while (busy && !session_ends(s) && clock_ns() < until) {
		python_wait(s);
		busy = python_step(s, clock_ns());
	}
	return !busy || session_ends(s);
}
