/* SPDX-License-Identifier: MIT */
/*
 * How a session of uprobes hears of libraries: by a place in the dynamic linker, armed no wider
 * than it must be. The kernel has no filter that forks inherit, and each place costs a registration
 * and up to 100 ms when it is taken out. So as long as the session is about a few processes that
 * neither fork nor exec, each has a place that the kernel arms in it alone; then one that is in
 * every process of the machine.
 */
#include "priv.h"

enum { ALONE_MAX = 4 };

bool usession_awaits(const struct session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed)
			return true;
	return false;
}

static bool alone(const struct session *s)
{
	size_t n = 0;

	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		n += !rec->ended;
	return !s->cfg->launched && !s->grown && n <= ALONE_MAX;
}

bool usession_ring_one(struct session *s, const char *path, uint32_t dev, uint64_t inode,
		       uint64_t offset, pid_t pid, uint32_t row)
{
	struct urecord *rec = row ? usession_record(s, row) : NULL;

	if (!rec || rec->pid != pid || !alone(s))
		return false;
	if (rec->belled)
		return true;
	if (usession_clash_in(pid, dev, inode, offset)) {
		s->deaf = true;
		return true;
	}
	rec->belled = uprobes_bell(s->u, path, offset, pid, &rec->bell) == 0;
	return rec->belled;
}

void usession_ring_none(struct session *s)
{
	for (struct urecord *rec = s->records; rec; rec = rec->next) {
		if (rec->belled)
			uprobes_disarm(s->u, rec->bell);
		rec->belled = false;
	}
}

bool usession_hears_all(const struct session *s)
{
	for (size_t i = 0; i < s->n_places; i++)
		if (s->place[i].bell && s->place[i].armed)
			return true;
	return false;
}
