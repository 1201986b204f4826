/* SPDX-License-Identifier: MIT */
/* The instructions of the target's own code that remote calls run, and whether a thread is in them.
 */
#include <stdlib.h>
#include <string.h>
#include "remote.h"
#include "src/base/maps.h"

enum {
	GADGET_MOST = 8, /* bytes from a gadget's start to its last instruction, at most */
	SEARCH_CHUNK = 1 << 20,
	SEARCH_LIMIT = 16 << 20,
};

/*
 * Best are mappings that stay for good, of the C library and the dynamic linker; then other files.
 * Mappings without a file are last: they may be sbinject's, and about to be removed.
 */
static int gadget_rank(const struct map_entry *m)
{
	const char *name = strrchr(m->path, '/');

	if (!name || !strncmp(name, "/memfd:", 7))
		return 2;
	return strncmp(name, "/libc", 5) && strncmp(name, "/ld-", 4);
}

static bool search_map(const struct memory *mem, const struct map_entry *m, uint8_t *buf,
		       struct arch_gadgets *out)
{
	uint64_t end = m->end - m->start > SEARCH_LIMIT ? m->start + SEARCH_LIMIT : m->end;
	bool found = false;

	for (uint64_t at = m->start; m->x && m->r && at < end && !found;) {
		size_t want = end - at > SEARCH_CHUNK ? SEARCH_CHUNK : end - at;
		size_t got = memory_peek(mem, at, buf, want);

		found = arch->find_gadgets(buf, got, at, out);
		if (got < want || want < SEARCH_CHUNK)
			break;
		at += want - 16; /* a gadget may lie across two chunks */
	}
	return found;
}

int remote_find_gadgets(const struct memory *mem, const struct maps *maps, struct arch_gadgets *out,
			struct sb_err *err)
{
	uint8_t *buf = malloc(SEARCH_CHUNK);
	bool found = false;

	memset(out, 0, sizeof(*out));
	/* Backwards: earlier mappings usually lie above. */
	for (int rank = 0; rank <= 2 && !found; rank++)
		for (size_t i = maps->count; buf && i-- > 0 && !found;)
			found = gadget_rank(&maps->entry[i]) == rank &&
				search_map(mem, &maps->entry[i], buf, out);
	free(buf);
	if (found)
		return 0;
	err_set(err, SB_ETARGET, "process %d: its code has no way to return from a remote call",
		mem->pid);
	err_hint(err, "it is a program without a C library: nothing in it calls rt_sigreturn, "
		      "without which a thread could not be restored safely");
	return -SB_ETARGET;
}

bool remote_under_way(const struct memory *mem, const struct arch_gadgets *gadgets,
		      const struct arch_regs *regs)
{
	uint64_t pc = arch->pc(regs), back[4] = { 0 };

	if (gadgets->sigreturn && pc - gadgets->sigreturn < GADGET_MOST)
		return true;
	if (pc - gadgets->syscall >= GADGET_MOST)
		return false;
	/* At its edge the stack pointer is where the return, or rt_sigreturn, needs it. */
	memory_peek(mem, arch->sp(regs) - 24, back, sizeof(back));
	for (int i = 0; i < 4; i++)
		if (back[i] && (back[i] == gadgets->sigreturn || back[i] == gadgets->pop))
			return true;
	return false;
}
