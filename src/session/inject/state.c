/* SPDX-License-Identifier: MIT */
/*
 * Shared by every file of the session: the end of the session, its leases, its waits. Nothing here
 * changes a process.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>
#include "python.h"

#define MS 1000000ull

enum { STALL_MS = 1000 };

/*
 * While threads are held the tracer must not queue behind the very threads it is about to stop. Its
 * children do not inherit the class (SCHED_RESET_ON_FORK).
 */
void session_hurry(bool on)
{
	struct sched_param prio = { .sched_priority = on ? 2 : 0 };

	sched_setscheduler(0, (on ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &prio);
}

bool session_ends(const struct inject_session *s)
{
	return s->cfg->ends && s->cfg->ends(s->cfg->ends_ctx);
}

void session_alive(struct inject_session *s)
{
	uint64_t now = clock_ns();

	if (s->last_step && now - s->last_step > STALL_MS * MS)
		s->stalled_ns += now - s->last_step;
	s->last_step = now;
	doorbells_alive(s->doorbells);
}

bool session_interrupted(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t waits;

	sigpending(&waits);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (sigismember(&waits, ends[i]))
			return true;
	return false;
}

bool python_wanted(const struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->kind == SPEC_PYTHON && !s->target[i].removed)
			return true;
	return false;
}

bool python_busy(const struct record *rec)
{
	return rec->python.mailbox && (rec->python.at_work || mailbox_busy(rec->python.mailbox));
}

void python_changed(struct inject_session *s, struct record *rec)
{
	uint64_t on = 1469598103934665603ull;

	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->kind == SPEC_PYTHON)
			on = (on ^ (i << 2 | (size_t)s->own[i].timed << 1 |
				    (s->target[i].open && rec->in_scope[i]))) *
			     1099511628211ull;
	rec->python.dirty |= on != rec->python.on;
	rec->python.on = on;
}

struct record *record_of(const struct inject_session *s, const struct space *space)
{
	struct record *rec = s->records;

	while (rec && (rec->space != space || rec->ended))
		rec = rec->next;
	return rec;
}

void session_probes_in(struct inject_session *s, pid_t pid, const char *module, char *buf,
		       size_t size)
{
	buf[0] = '\0';
	if (!s->foreign_known)
		foreign_read(&s->foreign);
	s->foreign_known = true;
	for (size_t i = 0; i < s->foreign.n && !buf[0]; i++)
		if (foreign_is_in(&s->foreign.probe[i], pid, module))
			foreign_holder(&s->foreign.probe[i], buf, size);
}

void session_wait(struct inject_session *s)
{
	nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	tree_dispatch(&s->tree);
	s->answer_rings(s);
	tree_bury(&s->tree);
}
