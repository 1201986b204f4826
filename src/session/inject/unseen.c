/* SPDX-License-Identifier: MIT */
/* Python calls that an agent could not see: avoids them, and warns of the rest. */
#include "python.h"

#define MS 1000000ull

enum { PEEK_MS = 50, UNSTEADY_MS = 5000 };

static const struct {
	uint32_t flag;
	const char *text;
} unseen[] = {
	{ SB_MAILBOX_DROPPED,
	  "another frame evaluation function's owner (a compiler of Python code?) took "
	  "sbinject's out; until it was put back calls were not seen" },
	{ SB_MAILBOX_DEEP, "calls beneath a recursion of more than 5000 were not seen" },
};

/* The longest time that the agent has held the GIL. */
void python_held(struct inject_session *s, const struct record *rec)
{
	struct mailbox_answer answer;

	mailbox_answer(rec->python.mailbox, &answer);
	for (int i = 0; i < 2 && !(answer.flags & SB_MAILBOX_FREE_THREADED); i++) {
		uint64_t ns = (uint64_t)clock_to_ns(&s->clk, (double)answer.held_ticks[i]);

		if (rec->python.applied && ns > s->gil_ns[i])
			s->gil_ns[i] = ns;
	}
}

void python_warn_unseen(struct inject_session *s, struct record *rec)
{
	struct mailbox_answer answer;

	mailbox_answer(rec->python.mailbox, &answer);
	for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++) {
		if (!(answer.flags & ~rec->python.warned & unseen[i].flag))
			continue;
		rec->python.warned |= unseen[i].flag;
		session_warn(s, "process %d: %s: hits may be missing", rec->pid, unseen[i].text);
	}
}

/*
 * Before 3.12 another tool can remove the agent from the chain, without a notice to the agent. If
 * the agent is put back while the other tool is absent, it stays, below it; so frequent looks wait
 * for such a moment. True meanwhile.
 */
bool python_peek(struct inject_session *s, struct record *rec, uint64_t now)
{
	struct python *py = &rec->python;
	bool closely = now < py->unsteady;

	if (!py->applied || py->leaving)
		return false;
	if (!closely && now - py->peeked < PEEK_MS * MS)
		return false;
	py->peeked = now;
	python_warn_unseen(s, rec);
	if (!mailbox_dropped(py->mailbox))
		return closely;
	if (!py->unsteady)
		py->unsteady = now + UNSTEADY_MS * MS;
	py->dirty = true;
	return true;
}
