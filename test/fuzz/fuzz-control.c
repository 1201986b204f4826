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
#include "src/session/targets.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

enum { ROOM = 6 };

struct session {
	struct target target[ROOM];
	size_t n;
	bool enabled;
	unsigned int changes;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err)
{
	int ret = targets_place(s->target, s->n, ROOM, spec, index, err);

	MUST(spec->delay_ns <= SPEC_DELAY_MAX_NS);
	if (ret < 0)
		return ret;
	s->changes++;
	targets_enter(s->target, &s->n, *index, spec);
	if (spec->every != 13)
		return 0;
	targets_forget(s->target, &s->n, *index); /* one that is nowhere to be found */
	return err_set(err, SB_ENOSYMBOL, "target '%s' is not there", spec->text);
}

static int take_out(struct session *s, size_t index, struct sb_err *err)
{
	MUST(index < s->n && !s->target[index].removed);
	s->target[index].removed = true;
	s->changes++;
	return s->target[index].every == 7 ? err_set(err, SB_ETARGET, "it does not hold still") : 0;
}

static void update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every)
{
	MUST(index < s->n && delay_ns <= SPEC_DELAY_MAX_NS);
	target_change(&s->target[index], delay_ns, every);
	s->changes++;
}

static void enable(struct session *s, bool on)
{
	s->enabled = on;
	s->changes++;
}

static bool enabled(const struct session *s)
{
	return s->enabled;
}

static void mute(struct session *s, size_t index, bool on)
{
	MUST(index < s->n);
	s->target[index].muted = on;
	s->changes++;
}

static size_t targets(const struct session *s)
{
	return s->n;
}

static void target(struct session *s, size_t index, struct session_target *out)
{
	MUST(index < s->n);
	target_show(&s->target[index], out);
}

static void state_of(const struct session *s, size_t index, struct session_target *out)
{
	target((struct session *)s, index, out);
}

static size_t lanes(struct session *s, struct session_lane **out, uint64_t *t_ns)
{
	*out = calloc(s->n + 1, sizeof(**out));
	MUST(*out);
	*t_ns = 1;
	return s->n;
}

static size_t pids(struct session *s, pid_t **out)
{
	*out = calloc(1, sizeof(**out));
	MUST(*out);
	return s->enabled;
}

static const struct backend nobody = {
	.name = "nobody",
	.add = add,
	.remove = take_out,
	.update = update,
	.enable = enable,
	.enabled = enabled,
	.mute = mute,
	.targets = targets,
	.target = target,
	.state = state_of,
	.lanes = lanes,
	.pids = pids,
};

static void check_answer(const char *answer, bool *ok)
{
	json_t *said = json_loads(answer, 0, NULL), *name = json_object_get(said, "error");

	MUST(said && !strchr(answer, '\n') && json_is_boolean(json_object_get(said, "ok")));
	*ok = json_is_true(json_object_get(said, "ok"));
	MUST(*ok == !name);
	MUST(*ok || (json_string_value(name)[0] == 'E' && json_object_get(said, "what")));
	json_decref(said);
}

static void check_list(const struct session *s)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = i + 1; k < s->n; k++)
			MUST(s->target[i].spec->pid != s->target[k].spec->pid ||
			     strcmp(s->target[i].spec->text, s->target[k].spec->text) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session s = { .enabled = true };
	struct control_state state = { .backend = &nobody, .session = &s, .default_ns = 1000 };
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *line = at, *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = s.n;
		char *answer;
		bool ok;

		stop = stop ? stop : end;
		answer = control_answer(&state, line, (size_t)(stop - line));
		check_answer(answer, &ok);
		MUST(ok || s.n == n);
		free(answer);
		check_list(&s);
		at = stop + 1;
	}
	for (size_t i = 0; i < s.n; i++)
		target_free(&s.target[i]);
	return 0;
}
