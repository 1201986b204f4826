/* SPDX-License-Identifier: MIT */
#include "env.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"

#define BLANKS " \t\r\f\v"

/* ---- numbers ---- */

/* Accepts what Python's int() accepts, without signs: 1000, " 1_000 ". */
static bool read_number(const char *text, uint64_t *value)
{
	uint64_t v = 0;
	bool digit = false;

	text += strspn(text, BLANKS "\n");
	for (; *text && !strchr(BLANKS "\n", *text); text++) {
		if (*text == '_' && digit && text[1] >= '0' && text[1] <= '9')
			continue;
		digit = *text >= '0' && *text <= '9';
		if (!digit || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return false;
	}
	*value = v;
	return digit && !text[strspn(text, BLANKS "\n")];
}

static const struct number {
	const char *name;
	size_t to;
	uint64_t preset, least, most, unit;
	const char *hint;
} numbers[] = {
	{ "SPEED_BUMP_DELAY_NS", offsetof(struct spec_env, delay_ns), SPEC_DEFAULT_NS, 0,
	  SPEC_DELAY_MAX_NS, 1, "nanoseconds, from 0 to 10000000000" },
	{ "SPEED_BUMP_FREQUENCY", offsetof(struct spec_env, every), 1, 1, INT64_MAX, 1,
	  "1 delays each call, 10 each tenth" },
	{ "SPEED_BUMP_START_MS", offsetof(struct spec_env, start_ns), 0, 0, INT64_MAX / 1000000,
	  1000000, "milliseconds after the start, 0 for at once" },
	{ "SPEED_BUMP_DURATION_MS", offsetof(struct spec_env, for_ns), 0, 0, INT64_MAX / 1000000,
	  1000000, "milliseconds, 0 for without end" },
};

static int read_one(const struct number *n, const char *text, uint64_t *to, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	uint64_t value = n->preset;
	int rc;

	if (text && *text && (!read_number(text, &value) || value < n->least || value > n->most)) {
		rc = err_set(err, SB_EUSAGE, "%s '%s' is not a valid number", n->name,
			     text_quote(text, shown, sizeof(shown)));
		err_hint(err, "%s", n->hint);
		return rc;
	}
	*to = value * n->unit;
	return 0;
}

int spec_env_read(spec_getenv_fn *get, struct spec_env *env, struct sb_err *err)
{
	int rc = 0;

	*env = (struct spec_env){ .path = get("SPEED_BUMP_TARGETS") };
	if (!env->path || !*env->path) {
		env->path = NULL;
		return 0;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !rc; i++)
		rc = read_one(&numbers[i], get(numbers[i].name),
			      (uint64_t *)((char *)env + numbers[i].to), err);
	return rc;
}

/* ---- patterns ---- */

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static void trim(const char **s, const char **end)
{
	while (*s < *end && is_blank(**s))
		++*s;
	while (*end > *s && is_blank((*end)[-1]))
		--*end;
}

static bool listed(const struct spec_list *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->spec[i].text, word))
			return true;
	return false;
}

static int refuse_line(const char *s, const char *end, const char *why, struct sb_err *err)
{
	char *line = strndup(s, (size_t)(end - s)), shown[TEXT_QUOTE_SIZE];
	int rc;

	if (!line)
		return err_set(err, SB_ENOMEM, "no memory for a line of the patterns' file");
	rc = err_set(err, SB_ESPEC, "'%s' %s", text_quote(line, shown, sizeof(shown)), why);
	err_hint(err, "a line is MODULE:QUALNAME, as vllm.*:Scheduler.schedule; '#' starts a "
		      "comment");
	free(line);
	return rc;
}

static int add_pattern(const char *s, const char *colon, const char *end, struct spec_list *out,
		       struct sb_err *err)
{
	const char *module_end = colon, *name = colon + 1;
	char *word;
	int rc = 0;

	trim(&s, &module_end);
	trim(&name, &end);
	if (s == module_end)
		return refuse_line(s, end, "has no module before its ':'", err);
	if (name == end)
		return refuse_line(s, end, "has no function behind its ':'", err);
	if (memchr(name, ':', (size_t)(end - name)))
		return refuse_line(s, end,
				   module_end - s == 2 && !memcmp(s, "py", 2) ?
					   "starts with py:, which this file does without" :
					   "has a ':' too many",
				   err);
	if (asprintf(&word, "py:%.*s:%.*s", (int)(module_end - s), s, (int)(end - name), name) < 0)
		return err_set(err, SB_ENOMEM, "no memory for a pattern");
	if (!listed(out, word)) {
		rc = spec_parse_words(&word, 1, out, err);
		if (!rc)
			out->spec[out->count - 1].rest = true;
	}
	free(word);
	return rc;
}

/* A '#' behind a blank starts a comment, as in a targets file: no Python name contains either. */
static const char *before_comment(const char *s, const char *end)
{
	for (const char *p = s; p + 1 < end; p++)
		if (is_blank(p[0]) && p[1] == '#')
			return p;
	return end;
}

static int parse_line(const char *s, const char *end, struct spec_list *out, struct sb_err *err)
{
	const char *colon;

	end = before_comment(s, end);
	trim(&s, &end);
	if (s == end || *s == '#')
		return 0;
	if (memchr(s, '\0', (size_t)(end - s)))
		return err_set(err, SB_ESPEC, "a NUL byte: this is not a text file");
	colon = memchr(s, ':', (size_t)(end - s));
	return colon ? add_pattern(s, colon, end, out, err) :
		       refuse_line(s, end, "has no ':'", err);
}

int spec_parse_patterns(const char *text, size_t len, const char *name, struct spec_list *out,
			struct sb_err *err)
{
	static const char bom[] = "\xef\xbb\xbf";
	const char *end, *stop;
	size_t before = out->count;
	char shown[TEXT_QUOTE_SIZE];
	int rc = 0;

	if (len >= 3 && !memcmp(text, bom, 3)) {
		text += 3;
		len -= 3;
	}
	end = text + len;
	for (unsigned int number = 1; text < end && !rc; number++) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (!stop)
			stop = end;
		rc = parse_line(text, stop, out, err);
		if (rc)
			err_prefix(err, "%s:%u", text_quote(name, shown, sizeof(shown)), number);
		text = stop + (stop < end);
	}
	if (rc)
		spec_list_cut(out, before);
	return rc;
}

int spec_env_patterns(const struct spec_env *env, struct spec_list *out, struct sb_err *err)
{
	char *text;
	size_t len;
	int rc = spec_read_bytes(env->path, "SPEED_BUMP_TARGETS", &text, &len, err);

	if (!rc)
		rc = spec_parse_patterns(text ? text : "", len, env->path, out, err);
	free(text);
	return rc;
}
