/* SPDX-License-Identifier: MIT */
/* Targets as lines of the module's list: finding, adding, removing, counting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "files.h"
#include "priv.h"
#include "elf/resolve.h"
#include "inject/clock.h"
#include "src/base/must.h"
#include "src/base/text.h"

int ksession_check_spec(const struct spec *spec, struct sb_err *err)
{
	const char *what = spec->kind == SPEC_PYTHON ? "Python functions" :
			   spec->kind == SPEC_LINE   ? "source lines" :
			   spec->thread		     ? "thread=" :
			   spec->every > 1	     ? "every=" :
			   spec->start_ns	     ? "start=" :
			   spec->for_ns		     ? "for=" :
			   spec->at		     ? "at=exit and at=both" :
			   spec->listed ? "lists of a preset (PRESET:FUNCTION is one target)" :
					  NULL;

	if (!what)
		return 0;
	err_set(err, SB_EUSAGE, "target '%s': the kernel module does not know %s", spec->text,
		what);
	err_hint(err, "--backend inject does");
	return -SB_EUSAGE;
}

void ksession_free_lines(struct ktarget *own)
{
	for (size_t i = 0; i < own->n_lines; i++) {
		free(own->line[i].name);
		free(own->line[i].module);
		free(own->line[i].symbol);
		free(own->line[i].build_id);
	}
	free(own->line);
	*own = (struct ktarget){ 0 };
}

static void add_line(struct ktarget *own, const char *module, const char *symbol,
		     const struct resolve_site *rs)
{
	struct line *l;
	int len;

	own->line = must_realloc(own->line, (own->n_lines + 1) * sizeof(*own->line));
	l = &own->line[own->n_lines++];
	*l = (struct line){ .module = text_dup(module), .symbol = text_dup(symbol) };
	len = asprintf(&l->name, "%s:%s", module, symbol);
	if (len < 0)
		abort();
	l->build_id = text_dup(rs ? image_build_id(rs->img) : "");
	l->address = rs ? rs->addr : 0;
	l->size = rs ? rs->size : 0;
}

/* The names that a pattern matches are found in the process; the module gets plain names only. */
static int find_in_process(struct kmod_session *s, size_t target, struct sb_err *err)
{
	struct resolve_request req = target_request(s->target[target].spec);
	struct resolve_access none = { 0 };
	struct resolve_result res = { 0 };
	struct maps maps = { 0 };
	int ret = maps_read(s->cfg->pids[0], &maps, err);

	if (ret == 0)
		ret = resolve_target(s->cfg->pids[0], &maps, &req, &none, &res, err);
	for (size_t i = 0; ret == 0 && i < res.count; i++) {
		const struct resolve_site *rs = &res.site[i];

		if (rs->addr == rs->func)
			add_line(&s->own[target], image_name(rs->img), rs->name, rs);
		else
			ret = err_set(err, SB_EREFUSED, "the kernel module hooks entries only");
	}
	if (ret == 0 && !res.count)
		ret = err_set(err, SB_ENOMODULE, "no mapped module matches");
	resolve_free(&res);
	maps_free(&maps);
	return ret;
}

int ksession_find(struct kmod_session *s, size_t target, struct sb_err *err)
{
	const struct spec *spec = s->target[target].spec;
	char quoted[TEXT_QUOTE_SIZE];
	int ret = 0;

	if (s->own[target].n_lines)
		return 0;
	if (spec->module[0] == '/' && !glob_is_pattern(spec->module) &&
	    !glob_is_pattern(spec->symbol)) {
		add_line(&s->own[target], spec->module, spec->symbol, NULL);
	} else if (s->cfg->n_pids) {
		ret = find_in_process(s, target, err);
	} else {
		ret = err_set(err, SB_EUSAGE,
			      "the kernel module needs the file's path and the function's name, or "
			      "a process (-p)");
	}
	if (ret < 0)
		err_prefix(err, "target '%s'", text_quote(spec->text, quoted, sizeof(quoted)));
	s->target[target].planted = s->own[target].n_lines > 0;
	return ret;
}

/* The process that a target is for: its own pid=, else the session's process. 0: every process. */
pid_t ksession_whom(const struct kmod_session *s, size_t target)
{
	if (s->target[target].spec->pid)
		return s->target[target].spec->pid;
	return s->cfg->n_pids ? s->cfg->pids[0] : s->cfg->launched;
}

int ksession_put_in(struct kmod_session *s, size_t target, struct sb_err *err)
{
	unsigned long long delay_ns = s->target[target].delay_ns;
	struct ktarget *own = &s->own[target];
	struct sb_err ignored = { 0 };
	char limit[32] = "";
	int ret = 0;

	if (ksession_whom(s, target))
		snprintf(limit, sizeof(limit), " pid=%d", ksession_whom(s, target));
	for (size_t i = 0; i < own->n_lines && ret == 0; i++) {
		struct line *l = &own->line[i];

		if (l->in)
			kmod_write("targets", &ignored, "=%s %llu", l->name, delay_ns);
		else
			ret = kmod_write("targets", err, "+%s %llu%s", l->name, delay_ns, limit);
		l->in = ret == 0;
	}
	if (ret == 0 && !s->target[target].open)
		target_switch(&s->target[target], true, clock_ns());
	return ret;
}

void ksession_take_out(struct kmod_session *s, size_t target)
{
	struct ktarget *own = &s->own[target];
	char *list = kmod_read("targets_list");
	struct sb_err ignored = { 0 };
	uint64_t hits;

	if (s->target[target].open)
		target_switch(&s->target[target], false, clock_ns());
	for (size_t i = 0; i < own->n_lines; i++) {
		struct line *l = &own->line[i];

		if (!l->in)
			continue;
		if (kmod_hits(list, l->name, &hits))
			l->past += hits;
		kmod_write("targets", &ignored, "-%s", l->name);
		l->in = false;
	}
	free(list);
}

static uint64_t hits_of(const struct ktarget *own)
{
	char *list = kmod_read("targets_list");
	uint64_t hits = 0, one;

	for (size_t i = 0; i < own->n_lines; i++) {
		hits += own->line[i].past;
		if (own->line[i].in && kmod_hits(list, own->line[i].name, &one))
			hits += one;
	}
	free(list);
	return hits;
}

/*
 * The module measures one sum for all targets. A target gets the share of it that its hits times
 * delay have of the total. With one target that is exact.
 */
void ksession_counts_of(struct kmod_session *s, struct result_counts *counts)
{
	char *stats = kmod_read("stats");
	double total = (double)(kmod_number(stats, "total_delay_ns: ") - s->delay_before), all = 0;

	free(stats);
	for (size_t i = 0; i < s->n_targets; i++) {
		counts[i] = (struct result_counts){ .hits = hits_of(&s->own[i]) };
		counts[i].delayed = s->target[i].delay_ns ? counts[i].hits : 0;
		all += (double)counts[i].delayed * (double)s->target[i].delay_ns;
	}
	for (size_t i = 0; i < s->n_targets && all > 0; i++)
		counts[i].injected_ns = (uint64_t)(total * (double)counts[i].delayed *
						   (double)s->target[i].delay_ns / all);
}
