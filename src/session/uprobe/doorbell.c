/* SPDX-License-Identifier: MIT */
/*
 * Notices of libraries in a session of uprobes: a place in the dynamic linker, armed in as few
 * processes as possible. The kernel has no filter that forks inherit, and each place costs a
 * registration and up to 100 ms at its removal. So while the session concerns a few processes that
 * neither fork nor exec, each of them has a place that the kernel arms in it alone. After that one
 * place is in every process of the machine.
 */
#include "priv.h"

enum { ALONE_MAX = 4 };

bool usession_awaits(const struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed && !spec_in_kernel(s->target[i].spec))
			return true;
	return false;
}

static bool alone(const struct uprobe_session *s)
{
	size_t n = 0;

	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		n += !rec->ended;
	return !s->cfg->launched && !s->grown && n <= ALONE_MAX;
}

bool usession_ring_one(struct uprobe_session *s, const char *path, uint32_t dev, uint64_t inode,
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
	rec->belled = uprobes_doorbell(s->u, path, offset, pid, &rec->doorbell) == 0;
	return rec->belled;
}

void usession_ring_none(struct uprobe_session *s)
{
	for (struct urecord *rec = s->records; rec; rec = rec->next) {
		if (rec->belled)
			uprobes_disarm(s->u, rec->doorbell);
		rec->belled = false;
	}
}

bool usession_hears_all(const struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_places; i++)
		if (s->place[i].doorbell && s->place[i].armed)
			return true;
	return false;
}
