/* SPDX-License-Identifier: MIT */
/* What the stubs that copy the frames of a thread (inject/pyframes.h) know of the interpreter. */
#include "priv.h"

#include "elf/interpreter.h"
#include "inject/pyframes-layout.h"

struct types {
	pid_t pid;
	struct interpreter_types found;
	bool any;
};

static void find_types(void *arg)
{
	struct types *t = arg;
	struct maps maps;

	if (maps_read(t->pid, &maps, NULL) < 0)
		return;
	t->any = interpreter_types(t->pid, &maps, &t->found);
	maps_free(&maps);
}

void pyframes_look(struct inject_session *s, struct space *space, pid_t pid)
{
	struct types t = { .pid = pid };
	const struct sb_page_python *layout;
	struct sb_page_python python;

	if (!s->tracing || !s->cfg->trace_stacks || !space->control ||
	    space->control->page.record.python.version)
		return;
	aside_run(s, find_types, &t);
	layout = t.any ? pyframes_layout(t.found.version) : NULL;
	if (!layout)
		return;
	python = *layout;
	python.specific = arch->thread_values;
	python.key += t.found.runtime;
	python.ending += t.found.runtime;
	python.code_type = t.found.code;
	python.str_type = t.found.str;
	python.bytes_type = t.found.bytes;
	space_python(space, &python);
}
