/* SPDX-License-Identifier: MIT */
/* Optional targets that this kernel lacks: one line for each reason, since many have the same. */
#include <stdio.h>
#include <string.h>
#include "priv.h"
#include "src/base/log.h"

enum { LINE_MOST = 900 };

static bool lacked(const struct target *t)
{
	return t->spec->optional && !t->planted && t->why.code;
}

/* Without such a name each has its near ones; otherwise the reason is what several share. */
static bool alike(const struct target *a, const struct target *b)
{
	return a->why.code == b->why.code &&
	       (a->why.code == SB_ENOSYMBOL || !strcmp(a->why.what, b->why.what));
}

static bool is_first(const struct uprobe_session *s, size_t target)
{
	for (size_t i = 0; i < target; i++)
		if (lacked(&s->target[i]) && alike(&s->target[i], &s->target[target]))
			return false;
	return true;
}

/* "kernel:f (did you mean 'g'?)" */
static size_t add_name(char *line, size_t n, const struct target *t)
{
	bool near = t->why.code == SB_ENOSYMBOL && t->why.hint[0];

	n += (size_t)snprintf(line + n, LINE_MOST - n, "%s%s%s%s%s", n ? ", " : "", t->spec->text,
			      near ? " (" : "", near ? t->why.hint : "", near ? ")" : "");
	return n < LINE_MOST ? n : LINE_MOST - 1;
}

static void tell(const struct uprobe_session *s, size_t first)
{
	const struct target *t = &s->target[first];
	char line[LINE_MOST] = "";
	size_t n = 0;

	for (size_t i = first; i < s->n_targets; i++)
		if (lacked(&s->target[i]) && alike(&s->target[i], t))
			n = add_name(line, n, &s->target[i]);
	if (t->why.code == SB_ENOSYMBOL)
		log_note("--kernel: left out, as this kernel has no such name: %s", line);
	else
		log_note("--kernel: left out: %s: %s", line, t->why.what);
}

void usession_tell_lacks(const struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (lacked(&s->target[i]) && is_first(s, i))
			tell(s, i);
}
