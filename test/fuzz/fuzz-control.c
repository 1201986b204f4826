/* SPDX-License-Identifier: MIT */
/*
 * What clients may say to a session's socket: lines of requests, to a session that has no process.
 * Beside crashes it looks for broken promises: an answer is one line of JSON that says ok, or an
 * error by name; no target is there twice; what was refused changed nothing.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "src/control/control.h"
#include "src/session/core.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

enum { ROOM = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_nothing(struct session_core *s, struct sb_err *err)
{
	(void)err;
	session_arm(s);
	return 0;
}

static void close_nothing(struct session_core *s)
{
	(void)s;
}

static int check_spec(struct session_core *s, const struct spec *spec, struct sb_err *err)
{
	(void)s;
	(void)err;
	MUST(spec->delay_ns <= SPEC_DELAY_MAX_NS);
	return 0;
}

static int add(struct session_core *s, size_t index, struct sb_err *err)
{
	if (s->target[index].spec->every != 13) /* one that is nowhere to be found */
		return 0;
	return err_set(err, SB_ENOSYMBOL, "target '%s' is not there", s->target[index].spec->text);
}

static int take_out(struct session_core *s, size_t index, struct sb_err *err)
{
	MUST(index < s->n_targets && s->target[index].removed);
	return s->target[index].every == 7 ? err_set(err, SB_ETARGET, "it does not hold still") : 0;
}

static void apply(struct session_core *s, size_t index)
{
	MUST(index < s->n_targets && s->target[index].delay_ns <= SPEC_DELAY_MAX_NS);
}

static void counts(struct session_core *s, size_t first, size_t n, struct result_counts *out)
{
	MUST(first + n <= s->n_targets);
	memset(out, 0, n * sizeof(*out));
}

static size_t lanes(struct session_core *s, struct session_lane **out, uint64_t *t_ns)
{
	*out = calloc(s->n_targets + 1, sizeof(**out));
	MUST(*out);
	*t_ns = 1;
	return s->n_targets;
}

static size_t pids(struct session_core *s, pid_t **out)
{
	*out = calloc(1, sizeof(**out));
	MUST(*out);
	return s->enabled;
}

static const struct backend nobody = {
	.name = "nobody",
	.size = sizeof(struct session_core),
	.spare_targets = ROOM,
	.open = open_nothing,
	.close = close_nothing,
	.check_spec = check_spec,
	.add = add,
	.remove = take_out,
	.apply = apply,
	.counts = counts,
	.lanes = lanes,
	.pids = pids,
};

static void check_answer(const char *answer, bool *ok)
{
	json_t *reply = json_loads(answer, 0, NULL), *name = json_object_get(reply, "error");

	MUST(reply && !strchr(answer, '\n') && json_is_boolean(json_object_get(reply, "ok")));
	*ok = json_is_true(json_object_get(reply, "ok"));
	MUST(*ok == !name);
	MUST(*ok || (json_string_value(name)[0] == 'E' && json_object_get(reply, "what")));
	json_decref(reply);
}

static void check_list(const struct session_core *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		for (size_t k = i + 1; k < s->n_targets; k++)
			MUST(s->target[i].spec->pid != s->target[k].spec->pid ||
			     strcmp(s->target[i].spec->text, s->target[k].spec->text) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct session_config cfg = { 0 };
	struct session_core *s = session_open(&nobody, &cfg, NULL);
	struct control_state state = { .backend = &nobody, .session = s, .default_ns = 1000 };
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *line = at, *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = s->n_targets;
		char *answer;
		bool ok;

		stop = stop ? stop : end;
		answer = control_answer(&state, line, (size_t)(stop - line));
		check_answer(answer, &ok);
		MUST(ok || s->n_targets == n);
		free(answer);
		check_list(s);
		at = stop + 1;
	}
	session_free(s);
	return 0;
}
