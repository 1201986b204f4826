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
#include "src/base/caps.h"
#include "src/base/log.h"
#include "src/base/text.h"

#define MS 1000000ull

enum { ENTER_MS = 1000, SAY_AFTER_MS = 1000, ANEW_MS = 50, LOAD_TRIES = 5, LOAD_AGAIN_MS = 20 };
enum { AGAIN_MS = 100, AGAIN_MOST = 8, NAP_NS = 100000 };

_Static_assert((int)INTERPRETER_FUNCTIONS == (int)ENTRY_PENDING, "one order for both mailboxes");

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
	if (CAPS(lstat(path, &st)) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	n = CAPS(readlink(path, root, sizeof(root) - 1));
	if (n < 0)
		return 0; /* it has ended */
	root[n] = '\0';
	err_set(err, SB_EREFUSED,
		"process %d: its root directory has no /proc, which the agent needs", pid);
	err_hint(err, "mount -t proc proc %.100s/proc", strcmp(root, "/") ? root : "");
	return -SB_EREFUSED;
}

struct search {
	pid_t pid;
	struct interpreter *in;
	int ret;
	struct sb_err *err;
};

static void search(void *arg)
{
	struct search *look = arg;
	struct maps maps;

	look->ret = maps_read(look->pid, &maps, look->err);
	if (look->ret < 0)
		return;
	look->ret = interpreter_find(look->pid, &maps, look->in, look->err);
	maps_free(&maps);
	if (look->ret == 0)
		look->ret = check_proc(look->pid, look->err);
	if (look->ret < 0)
		interpreter_free(look->in);
}

static int find_interpreter(struct inject_session *s, pid_t pid, struct interpreter *in,
			    struct sb_err *err)
{
	struct search look = { .pid = pid, .in = in, .err = err };

	aside_run(s, search, &look);
	return look.ret;
}

static int look_for_one(struct inject_session *s, pid_t pid, struct sb_err *err)
{
	struct interpreter in;
	int ret = find_interpreter(s, pid, &in, err);

	if (ret == 0)
		interpreter_free(&in);
	return ret;
}

int python_check(struct inject_session *s, const pid_t *pids, size_t n, struct sb_err *err)
{
	struct sb_err refused = { 0 };

	if (!python_wanted(s))
		return 0;
	for (size_t i = 0; i < n; i++) {
		struct sb_err why = { 0 };

		if (look_for_one(s, pids[i], &why) == 0)
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

static int send_targets(struct inject_session *s, struct mailbox *mailbox, struct sb_err *err)
{
	struct mailbox_target *list = calloc(s->n_targets, sizeof(*list));
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
	ret = mailbox_targets(mailbox, list, n, err);
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
	mailbox_ask(rec->python.mailbox, s->cfg->look_only ? SB_AGENT_LIST :
					 s->armed	   ? SB_AGENT_APPLY :
							     SB_AGENT_READY);
}

static int make_mailbox(struct inject_session *s, struct record *rec, struct space *space,
			pid_t pid, struct sb_err *err)
{
	struct interpreter in;
	struct mailbox_setup setup = {
		.agent = agent_image,
		.agent_size = agent_size(),
	};
	int ret = find_interpreter(s, pid, &in, err);

	if (ret < 0)
		return ret;
	memcpy(setup.function, in.function, sizeof(in.function));
	setup.runtime = in.runtime;
	setup.runtime_size = in.runtime_size;
	setup.eval = in.eval;
	setup.eval_size = in.eval_size;
	setup.gil = in.gil;
	interpreter_free(&in);
	if (rec->ended)
		return memory_err_gone(pid, err);
	ret = mailbox_open(&rec->python.mailbox, space, &s->tree, pid, &setup, err);
	if (ret == 0)
		ret = send_targets(s, rec->python.mailbox, err);
	if (ret == 0)
		ask(s, rec);
	return ret;
}

struct hanging {
	const struct inject_session *s;
	const struct space *space;
	const struct interpreter *in;
	struct found *found;
};

static void find_starts(void *arg)
{
	const struct hanging *h = arg;

	for (const char *const *name = interpreter_start_functions; *name; name++)
		session_add_doorbell(h->s, h->space, h->found, h->in->img, h->in->bias, *name);
	plans_make(h->s->plans, h->found, false);
}

/* Plants doorbells at the functions that an interpreter enters at its start. */
static int hang_doorbells(struct inject_session *s, struct record *rec, struct space *space,
			  pid_t pid, struct sb_err *err)
{
	struct interpreter in;
	struct found found = { 0 };
	int ret = find_interpreter(s, pid, &in, err);

	if (ret < 0)
		return ret;
	aside_run(s, find_starts, &(struct hanging){ s, space, &in, &found });
	interpreter_free(&in);
	rec->python.belled = true;
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
	if (look_for_one(s, pid, &why) < 0) {
		if (why.code == SB_ENOPROC)
			return 0;
		if (why.code != SB_ENOMODULE && !rec->python.said)
			session_warn(s, "%s%s%s", why.what, why.hint[0] ? "; " : "", why.hint);
		rec->python.said |= why.code != SB_ENOMODULE;
		explain(s, &why);
		return 0;
	}
	if (rec->ended) /* meanwhile */
		return 0;
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
	if (!fresh)
		return make_mailbox(s, rec, space, pid, err);
	rec->python.starting = true;
	return hang_doorbells(s, rec, space, pid, err);
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

	if (!py->applied || py->leaving || !mailbox_ended(py->mailbox))
		return;
	log_debug("process %d: its interpreter has ended", rec->pid);
	py->applied = false;
	py->starting = py->belled;
	py->again_ns = py->again = 0;
	mailbox_ask(py->mailbox, s->armed ? SB_AGENT_APPLY : SB_AGENT_READY);
	py->mailbox->retry_ns = clock_ns() + ANEW_MS * MS; /* most likely the process ends, too */
}

bool python_may_start(struct inject_session *s, struct record *rec)
{
	if (rec->python.belled && rec->python.mailbox)
		begin_anew(s, rec);
	return rec->python.belled && !rec->python.applied;
}

/*
 * Has the thread that starts an interpreter enter the agent. It may take a moment to stop on a busy
 * machine. Where it cannot make a remote call at all the interpreter starts without the agent,
 * which then enters as into one that runs.
 */
static void enter_at_doorbell(struct inject_session *s, struct python *py, pid_t tid)
{
	uint64_t until = clock_ns() + ENTER_MS * MS;
	struct mailbox *mailbox = py->mailbox;

	py->rung = true;
	if (mailbox->remote.async) /* with the command, to another thread */
		return;
	mailbox->doorbell_only = true;
	while (!mailbox->remote.async && !mailbox_step(mailbox, &s->tree, clock_ns(), tid)) {
		if (!mailbox->remote.async && clock_ns() >= until) {
			mailbox->doorbell_only = py->starting = false;
			return;
		}
		/* The agent may be at work, for which it needs a processor, too. */
		if (!mailbox->remote.async)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}

bool python_ring(struct inject_session *s, struct record *rec)
{
	struct space *space = rec->space;
	struct python *py = &rec->python;
	struct sb_err err = { 0 };
	pid_t pid = rec->pid, tid;

	if (!python_may_start(s, rec) || fault_point("ring-missed", pid))
		return false;
	space_get(space);
	fault_point("ring", pid);
	tid = mailbox_at_doorbell(space, &s->tree);
	if (tid)
		note_ends(rec);
	if (tid && !py->mailbox && make_mailbox(s, rec, space, pid, &err) < 0) {
		session_warn(s, "process %d: its Python functions are not watched: %s", pid,
			     err.what);
		explain(s, &err);
		py->belled = false;
		be_quiet(rec);
		tid = 0;
	}
	if (tid && py->mailbox)
		enter_at_doorbell(s, py, tid);
	space_put(space);
	return tid != 0;
}

/* ---- at work ---- */

static void failed(struct inject_session *s, struct record *rec,
		   const struct mailbox_answer *answer)
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
	struct mailbox_answer answer;

	stall_point("carried-out");
	mailbox_answer(py->mailbox, &answer);
	if (answer.status == SB_AGENT_LOAD && !py->applied && py->loads++ < LOAD_TRIES) {
		ask(s, rec);
		py->mailbox->retry_ns = now + LOAD_AGAIN_MS * MS;
		return;
	}
	be_quiet(rec);
	py->starting = py->mailbox->doorbell_only = false;
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
		s->gil |= !(answer.flags & SB_MAILBOX_FREE_THREADED);
		python_held(s, rec);
		explain_none(s);
	} else if (!py->applied) {
		failed(s, rec, &answer);
	}
}

void python_say(struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	const char *why = py->mailbox->waits_for;

	if (py->said || !py->mailbox->asked_ns || now - py->mailbox->asked_ns < SAY_AFTER_MS * MS)
		return;
	py->said = true;
	log_note("process %d: waiting for its interpreter: %s", rec->pid,
		 why ? why : "it has not reached a point where Python code may run");
}

/*
 * Waits for an interpreter that turns out not to have started. It may start before its doorbells
 * are there, and then pass none of them for as long as it runs: so the command is tried once more
 * when they are there, and they alone are waited for only where the interpreter has not started
 * then, either. A ring that is answered meanwhile makes that one more try. On a busy machine a
 * thread may leave its doorbell before it is seen, so the command is tried without one a few times
 * more.
 */
static void await_start(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	struct space *space;
	struct sb_err err = { 0 };

	if (py->belled) {
		py->starting |= !py->rung;
		py->mailbox->doorbell_only = py->starting;
		py->mailbox->not_ready = py->rung = false;
		py->again_ns = now + (AGAIN_MS * MS << py->again);
		return;
	}
	stall_point("await-start");
	py->mailbox->not_ready = false;
	space = space_get(rec->space);
	if (hang_doorbells(s, rec, space, rec->pid, &err) < 0 && err.code != SB_ENOPROC)
		session_warn(s, "process %d: %s", rec->pid, err.what);
	space_put(space);
}

static bool try_again(struct python *py, uint64_t now)
{
	if (!py->again_ns || now < py->again_ns || py->again >= AGAIN_MOST)
		return false;
	py->again++;
	py->starting = py->mailbox->doorbell_only = false;
	return true;
}

static bool step_one(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	bool under_way = true;

	begin_anew(s, rec);
	/* Only the thread at its doorbell can carry a command into an interpreter that starts. */
	if (py->starting && !py->mailbox->remote.async && !try_again(py, now))
		return false;
	if (mailbox_asked(py->mailbox)) {
		if (mailbox_step(py->mailbox, &s->tree, now, 0)) {
			finished(s, rec, now);
			under_way = (py->dirty && py->applied) || mailbox_asked(py->mailbox);
		} else if (py->mailbox->not_ready && (!py->starting || py->rung) && !rec->ended) {
			await_start(s, rec, now);
		} else {
			python_say(rec, now);
		}
	} else if (py->dirty && py->applied) {
		struct sb_err err = { 0 };

		if (py->relist && send_targets(s, py->mailbox, &err) < 0)
			session_warn(s, "%s", err.what);
		py->dirty = py->relist = false;
		note_ends(rec);
		mailbox_ask(py->mailbox, SB_AGENT_APPLY);
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
	if (!proc->traced && !rec->python.dirty && !mailbox_asked(rec->python.mailbox))
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
		if (!rec->ended && rec->python.mailbox && rec->space) {
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
		if (!rec->ended && rec->python.mailbox && rec->python.applied &&
		    (rec->python.dirty || mailbox_asked(rec->python.mailbox)))
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
	if (!parent || !parent->python.mailbox || !child->space || !child->space->mailbox_size)
		return;
	child->python = parent->python;
	child->python.mailbox = mailbox_fork(parent->python.mailbox, child->space, child->pid);
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
		const struct mailbox *mailbox = rec->ended ? NULL : rec->python.mailbox;

		if (mailbox && mailbox_asked(mailbox) && !rec->python.starting)
			session_warn(s,
				     "process %d: its interpreter reached no safe point within %d "
				     "s (%s); "
				     "its calls count from when it does",
				     rec->pid, (int)(patience_ms / 1000),
				     mailbox->waits_for ? mailbox->waits_for : "it is busy");
	}
}

void python_explain_late(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next) {
		const struct python *py = &rec->python;
		struct sb_err why = { 0 };

		if (rec->ended || !py->mailbox || py->applied || py->starting ||
		    !mailbox_asked(py->mailbox))
			continue;
		err_set(&why, SB_ENOMODULE,
			"the interpreter of process %d reached no safe point, so no call was seen: "
			"%s",
			rec->pid, py->mailbox->waits_for ? py->mailbox->waits_for : "it was busy");
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
