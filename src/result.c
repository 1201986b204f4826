/* SPDX-License-Identifier: MIT */
#include "result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const outcome_names[] = {
	[OUTCOME_DELAYED] = "delayed",	 [OUTCOME_COUNTED] = "counted",
	[OUTCOME_PENDING] = "pending",	 [OUTCOME_NEVER_CALLED] = "never_called",
	[OUTCOME_NO_MATCH] = "no_match", [OUTCOME_REFUSED] = "refused",
};

const char *result_outcome_name(enum result_outcome outcome)
{
	size_t i = (size_t)outcome;

	return i < sizeof(outcome_names) / sizeof(outcome_names[0]) ? outcome_names[i] : NULL;
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct result *result_new(size_t n_targets)
{
	struct result *res = must(calloc(1, sizeof(*res)));

	res->exit = -1;
	res->n_targets = n_targets;
	res->target = n_targets ? must(calloc(n_targets, sizeof(*res->target))) : NULL;
	return res;
}

static void free_strings(char **s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(s[i]);
	free(s);
}

static void free_target(struct result_target *target)
{
	for (size_t i = 0; i < target->n_sites; i++) {
		struct result_site *site = &target->site[i];

		free(site->module);
		free(site->build_id);
		free(site->symbol);
		free(site->mechanism);
		free(site->pids);
	}
	for (size_t i = 0; i < target->n_refused; i++) {
		free(target->refused[i].module);
		free(target->refused[i].symbol);
		free(target->refused[i].reason);
	}
	free(target->site);
	free(target->refused);
	free(target->spec);
	free(target->reason);
}

static void free_process(struct result_process *process)
{
	free(process->comm);
	free(process->exe);
	free(process->counts);
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
	free(res->target);
	free(res->process);
	free(res->tag);
	free_strings(res->argv, res->n_argv);
	free_strings(res->warning, res->n_warnings);
	free(res->version);
	free(res->host);
	free(res->backend);
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
