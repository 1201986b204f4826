/* SPDX-License-Identifier: MIT */
#include "result.h"
#include "evidence.h"
#include "src/base/must.h"

#include <stdarg.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/text.h"

static const char *const outcome_names[] = {
	[OUTCOME_DELAYED] = "delayed",	 [OUTCOME_COUNTED] = "counted",
	[OUTCOME_PENDING] = "pending",	 [OUTCOME_NEVER_CALLED] = "never_called",
	[OUTCOME_NO_MATCH] = "no_match", [OUTCOME_REFUSED] = "refused",
	[OUTCOME_MATCHED] = "matched",
};

bool result_incomplete(const struct result *res)
{
	return res->lease_lapsed_hits || res->doorbells_lost;
}

const char *result_outcome_name(enum result_outcome outcome)
{
	size_t i = (size_t)outcome;

	return i < sizeof(outcome_names) / sizeof(outcome_names[0]) ? outcome_names[i] : NULL;
}

struct result *result_new(size_t n_targets)
{
	struct result *res = must_calloc(1, sizeof(*res));

	res->exit = -1;
	res->n_targets = n_targets;
	res->target = n_targets ? must_calloc(n_targets, sizeof(*res->target)) : NULL;
	return res;
}

static void free_strings(char **s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(s[i]);
	free(s);
}

void result_refused_free(struct result_refused *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].module);
		free(list[i].symbol);
		free(list[i].name);
		free(list[i].reason);
		free(list[i].pids);
	}
	free(list);
}

void result_add_pid(pid_t **pids, size_t *n, pid_t pid)
{
	for (size_t i = 0; i < *n; i++)
		if ((*pids)[i] == pid)
			return;
	*pids = must(reallocarray(*pids, *n + 1, sizeof(**pids)));
	(*pids)[(*n)++] = pid;
}

static uint64_t hash(uint64_t h, const char *text)
{
	do
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	while (*text++);
	return h;
}

/* The hash avoids most comparisons of texts among ten thousand entries. */
static bool is_refused(const struct result_refused *r, const struct result_refused *refused,
		       uint64_t key)
{
	return r->hash == key && !strcmp(r->symbol, refused->symbol) &&
	       !strcmp(r->module, refused->module) && !strcmp(r->reason, refused->reason);
}

void result_refuse(struct result_refused **list, size_t *n, const struct result_refused *refused,
		   pid_t pid)
{
	uint64_t key = hash(hash(hash(0xcbf29ce484222325ull, refused->symbol), refused->module),
			    refused->reason);
	struct result_refused *r = *list;

	while (r < *list + *n && !is_refused(r, refused, key))
		r++;
	if (r == *list + *n) {
		*list = must(reallocarray(*list, *n + 1, sizeof(**list)));
		r = &(*list)[(*n)++];
		*r = (struct result_refused){
			.module = text_dup(refused->module),
			.symbol = text_dup(refused->symbol),
			.name = text_dup(refused->name),
			.reason = text_dup(refused->reason),
			.address = refused->address,
			.hash = key,
		};
	}
	for (size_t i = 0; i < refused->n_pids; i++)
		result_add_pid(&r->pids, &r->n_pids, refused->pids[i]);
	if (pid)
		result_add_pid(&r->pids, &r->n_pids, pid);
}

void result_site_free(struct result_site *site)
{
	free(site->times.bucket);
	free(site->module);
	free(site->build_id);
	free(site->symbol);
	free(site->name);
	free(site->mechanism);
	free(site->untimed);
	free(site->file);
	free(site->pids);
}

static void free_target(struct result_target *target)
{
	for (size_t i = 0; i < target->n_sites; i++)
		result_site_free(&target->site[i]);
	result_refused_free(target->refused, target->n_refused);
	result_refused_free(target->untimed, target->n_untimed);
	free(target->times.bucket);
	free(target->site);
	free(target->spec);
	free(target->at);
	free(target->preset);
	free(target->kind);
	free(target->reason);
}

static void free_process(struct result_process *process)
{
	free(process->comm);
	free(process->exe);
	free(process->counts);
}

static void split(uint64_t ns, struct timespec_ns *out)
{
	out->s = (int64_t)(ns / 1000000000);
	out->ns = (uint32_t)(ns % 1000000000);
}

struct result *result_of_session(size_t n_targets, const char *backend, uint64_t started,
				 uint64_t ended, double wall_s)
{
	struct result *res = result_new(n_targets);
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	res->host = text_dup(host);
	res->backend = text_dup(backend);
	res->exit = -1;
	split(started, &res->started);
	split(ended, &res->ended);
	res->wall_s = wall_s;
	res->stalled_s = NAN;
	return res;
}

static int by_pid(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

size_t result_processes(const struct result_target *rt)
{
	size_t n = 0, total = 0, distinct = 0;
	pid_t *pids;

	for (size_t i = 0; i < rt->n_sites; i++)
		total += rt->site[i].n_pids;
	pids = must(malloc((total + 1) * sizeof(*pids)));
	for (size_t i = 0; i < rt->n_sites; i++)
		for (size_t k = 0; k < rt->site[i].n_pids; k++)
			pids[n++] = rt->site[i].pids[k];
	qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		distinct += !i || pids[i] != pids[i - 1];
	free(pids);
	return distinct;
}

static void evidence_free(struct result_evidence *e)
{
	for (size_t i = 0; i < e->n_threads; i++)
		free(e->thread[i].name);
	free(e->thread);
	free(e->source);
	free(e->limit);
	rows_free(&e->machine);
	result_cgroup_free(&e->cgroup);
	free(e->hardware.limit);
	rows_free(&e->memory[0]);
	rows_free(&e->memory[1]);
	free(e->remedy);
}

void result_device_free(struct result_device *d)
{
	for (size_t i = 0; i < d->n_rows; i++)
		free(d->row[i].name);
	free(d->row);
	free(d->busy);
	free(d->reason);
	*d = (struct result_device){ .asked = false };
}

static void free_launches(struct result_launches *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->row[i].preset);
		free(l->row[i].name);
	}
	free(l->row);
	free(l->reason);
}

void result_free(struct result *res)
{
	if (!res)
		return;
	for (size_t i = 0; i < res->n_targets; i++)
		free_target(&res->target[i]);
	for (size_t i = 0; i < res->n_processes; i++)
		free_process(&res->process[i]);
	for (size_t i = 0; i < res->n_tags; i++) {
		free(res->tag[i].key);
		free(res->tag[i].value);
	}
	for (size_t i = 0; i < res->n_cuda; i++) {
		free(res->cuda[i].name);
		free(res->cuda[i].reason);
	}
	free(res->cuda);
	free_launches(&res->launches);
	json_decref(res->lock_order);
	result_device_free(&res->device);
	free(res->target);
	free(res->process);
	free(res->tag);
	free_strings(res->argv, res->n_argv);
	free_strings(res->warning, res->n_warnings);
	free(res->version);
	free(res->host);
	free(res->backend);
	free(res->gil);
	free(res->trace.file);
	evidence_free(&res->evidence);
	free(res->exit_reason);
	free(res);
}

void result_warn(struct result *res, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	res->warning = must(reallocarray(res->warning, res->n_warnings + 1, sizeof(char *)));
	res->warning[res->n_warnings++] = text;
}

void result_reason(struct result_target *rt, const struct sb_err *why)
{
	char reason[900] = "";

	if (rt->outcome == OUTCOME_PENDING || rt->outcome == OUTCOME_NO_MATCH ||
	    (rt->outcome == OUTCOME_REFUSED && !rt->n_refused))
		snprintf(reason, sizeof(reason), "%s%s%s", why->what, why->hint[0] ? "; " : "",
			 why->hint);
	else if (rt->outcome == OUTCOME_NEVER_CALLED && rt->active_s == 0)
		snprintf(reason, sizeof(reason), "its window never opened: nothing was counted");
	else if (rt->outcome == OUTCOME_REFUSED)
		snprintf(reason, sizeof(reason), "%s", rt->refused[0].reason);
	rt->reason = text_dup(reason);
}
