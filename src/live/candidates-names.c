/* SPDX-License-Identifier: MIT */
/* Functions as targets: their names, whether they can be hooked, the command of a sweep. */
#include "candidates-names.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "candidates-infer.h"
#include "elf/module.h"
#include "elf/symbol.h"
#include "src/base/caps.h"
#include "src/base/must.h"

enum { SWEPT_MOST = 5, LOOKS = 5 };
#define LOOK_AGAIN_NS 100000000
#define SWEPT_LEAST   0.02

static bool is_main(const struct session_config *cfg, struct image *img)
{
	const char *path = image_name(img);
	size_t len = strlen(path);

	for (size_t i = 0; i < cfg->n_pids; i++) {
		char link[64], exe[PATH_MAX];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%d/exe", cfg->pids[i]);
		n = CAPS(readlink(link, exe, sizeof(exe) - 1));
		exe[n > 0 ? n : 0] = '\0';
		if (strncmp(exe, path, len) != 0 || (exe[len] && strcmp(exe + len, " (deleted)")))
			return false;
	}
	return cfg->n_pids > 0;
}

/* Several functions of a file may have one name: then only the address means this one. */
static bool is_unique(struct image *img, const char *name, uint64_t start)
{
	struct symbol_list list = { 0 };
	struct sb_err err = { 0 };
	bool unique;

	if (symbol_find(img, name, SYMBOL_LITERAL, &list, &err) < 0)
		return false;
	unique = list.count == 1 && list.sym[0].vaddr == start;
	symbol_list_free(&list);
	return unique;
}

char *candidates_name(const struct session_config *cfg, struct image *img, uint64_t start)
{
	const char *module = is_main(cfg, img) ? "" : module_file_name(image_name(img));
	char *name = must(symbol_holder(img, start)), *target;

	if (!is_unique(img, name, start)) {
		free(name);
		if (asprintf(&name, "0x%llx", (unsigned long long)start) < 0)
			abort();
	}
	if (asprintf(&target, "%s:%s%s", module, glob_is_pattern(name) ? "=" : "", name) < 0)
		abort();
	free(name);
	return target;
}

/* Assembly that the runtime calls has no package. */
bool candidates_runtime(struct image *img, uint64_t vaddr)
{
	static const char *const begin[] = { "runtime.", "internal/", "sync.",
					     "sync/",	 "syscall.",  "type:" };
	uint64_t start, end;
	char *name = NULL;
	bool is;

	if (!image_is_go(img) || !image_function_at(img, vaddr, &start, &end))
		return false;
	name = symbol_holder(img, start);
	is = name && !strchr(name, '.');
	for (size_t i = 0; name && i < sizeof(begin) / sizeof(*begin); i++)
		is |= !strncmp(name, begin[i], strlen(begin[i]));
	free(name);
	return is;
}

/* To look for one in a process would load the agent. */
static void judge_python(struct explain_candidate *c, bool inject)
{
	c->hookable = inject;
	if (!inject)
		c->why = must_strdup("only the inject backend hooks Python functions");
}

/* Not all texts are targets: a file name may hold a ':'. */
static size_t parse(bool inject, struct explain_result *res, struct spec_list *list, size_t *of)
{
	for (size_t i = 0; i < res->n_candidates; i++) {
		struct sb_err err = { 0 };
		char *word = res->candidate[i].target;
		size_t before = list->count;

		if (!strncmp(word, "py:", 3)) {
			judge_python(&res->candidate[i], inject);
			continue;
		}
		if (spec_parse_words(&word, 1, list, &err) < 0)
			res->candidate[i].why = must_strdup(err.what);
		else if (list->count == before + 1)
			of[before] = i;
		else
			spec_list_cut(list, before);
	}
	return list->count;
}

static void judge(struct explain_candidate *c, const struct result_target *t)
{
	free(c->why);
	c->why = NULL;
	c->hookable = t->n_sites > 0;
	if (c->hookable)
		return;
	c->why = must_strdup(t->n_refused && t->refused[0].reason ? t->refused[0].reason :
			     t->reason && *t->reason		  ? t->reason :
								    "it cannot be hooked");
}

/* In the processes that run now. False: none can be hooked. */
static bool look_up(const struct sweep_job *job, const struct session_config *cfg, const size_t *of,
		    struct explain_result *res)
{
	struct sb_err err = { 0 };
	struct session_core *s = session_open(job->backend, cfg, &err);
	struct result *list = s ? job->backend->list(s, &err) : NULL;
	bool any = false;

	for (size_t i = 0; i < cfg->targets.count; i++) {
		struct explain_candidate *c = &res->candidate[of[i]];

		if (list && i < list->n_targets) {
			judge(c, &list->target[i]);
		} else {
			free(c->why);
			c->why = must_strdup(err.code ? err.what : "it was not looked up");
		}
		any |= c->hookable;
	}
	result_free(list);
	if (s)
		session_free(s);
	return any;
}

void candidates_check(struct sweep_job *job, struct explain_result *res)
{
	struct session_config cfg = job->opt->session;
	size_t of[CANDIDATES_MOST] = { 0 };

	for (size_t i = 0; i < res->n_waits; i++)
		judge_python(&res->wait[i], job->backend == &backend_inject);
	cfg.targets = (struct spec_list){ 0 };
	cfg.look_only = true;
	if (!parse(job->backend == &backend_inject, res, &cfg.targets, of))
		return;
	/* Of a program that runs again and again there may be no process at this instant. */
	for (int i = 1; !look_up(job, &cfg, of, res) && i < LOOKS; i++)
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
	spec_list_free(&cfg.targets);
}

static void add(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(char **text, const char *fmt, ...)
{
	char *more, *whole;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&more, fmt, ap) < 0)
		abort();
	va_end(ap);
	if (asprintf(&whole, "%s%s", *text, more) < 0)
		abort();
	free(more);
	free(*text);
	*text = whole;
}

static void add_word(char **text, const char *word)
{
	char *quoted = candidates_word(word);

	add(text, " %s", quoted);
	free(quoted);
}

size_t candidates_options(const struct options *opt, const char *word[CANDIDATES_OPTIONS])
{
	enum mechanism mechanism = opt->session.mechanism;
	size_t n = 0;

	if (!opt->session.children)
		word[n++] = "--no-children";
	if (mechanism != MECHANISM_AUTO) {
		word[n++] = "--mechanism";
		word[n++] = mechanism == MECHANISM_INT3 ? "int3" : "jump";
	}
	if (opt->backend) {
		word[n++] = "--backend";
		word[n++] = opt->backend;
	}
	return n;
}

void candidates_command(const struct sweep_job *job, struct explain_result *res)
{
	const struct session_config *cfg = &job->opt->session;
	const char *progress = job->progress_text, *word[CANDIDATES_OPTIONS];
	char *text = must_strdup("sbinject sweep");
	size_t n = 0;

	for (size_t i = 0; i < res->n_candidates && n < SWEPT_MOST; i++) {
		const struct explain_candidate *c = &res->candidate[i];

		if (!c->hookable || c->share.est < SWEPT_LEAST ||
		    (progress && strcmp(progress, c->target) == 0))
			continue;
		add_word(&text, c->target);
		n++;
	}
	if (!n || !progress) {
		res->sweep_why =
			n ? "no progress is given, and a sweep needs what counts the items" :
			    "no function that can be hooked has 2 % of the samples";
		free(text);
		return;
	}
	add(&text, " --progress");
	add_word(&text, progress);
	add(&text, " --time 60s -p %d", cfg->pids[0]);
	for (size_t i = 1; i < cfg->n_pids; i++)
		add(&text, ",%d", cfg->pids[i]);
	n = candidates_options(job->opt, word);
	for (size_t i = 0; i < n; i++)
		add_word(&text, word[i]);
	res->sweep = text;
}
