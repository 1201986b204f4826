/* SPDX-License-Identifier: MIT */
#include "beside.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

static size_t in_kernel(const struct spec_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++)
		n += spec_in_kernel(&list->spec[i]);
	return n;
}

static struct spec_list part_of(const struct spec_list *list, bool kernel)
{
	struct spec_list part = { .spec = must_calloc(list->count, sizeof(*part.spec)) };

	for (size_t i = 0; i < list->count; i++)
		if (spec_in_kernel(&list->spec[i]) == kernel)
			part.spec[part.count++] = list->spec[i];
	return part;
}

bool beside_split(const struct backend *backend, const struct session_config *cfg,
		  struct session_config *own, struct session_config *kernel)
{
	size_t n = in_kernel(&cfg->targets);

	*own = *kernel = *cfg;
	own->targets.spec = kernel->targets.spec = NULL;
	if (backend == &backend_uprobe || !n || n == cfg->targets.count) {
		own->targets = cfg->targets;
		return false;
	}
	own->targets = part_of(&cfg->targets, false);
	kernel->targets = part_of(&cfg->targets, true);
	kernel->trace_fd = cfg->kernel_trace_fd;
	/* Its window is that of the first. */
	kernel->start_ns = kernel->for_ns = 0;
	kernel->start_on = NULL;
	/* What only the other backends know. */
	kernel->mechanism = MECHANISM_AUTO;
	kernel->by_function = kernel->perf_map = kernel->perf_map_keep = kernel->evidence = false;
	kernel->max_slowdown = 0;
	kernel->trace_stacks = 0;
	kernel->device_times = false;
	kernel->strays = NULL;
	return true;
}

void beside_free(struct session_config *own, struct session_config *kernel)
{
	if (!kernel->targets.spec)
		return;
	free(own->targets.spec);
	free(kernel->targets.spec);
}

void beside_order(struct spec_list *list)
{
	struct spec_list own = part_of(list, false), kernel = part_of(list, true);

	if (own.count)
		memcpy(list->spec, own.spec, own.count * sizeof(*own.spec));
	if (kernel.count)
		memcpy(list->spec + own.count, kernel.spec, kernel.count * sizeof(*kernel.spec));
	free(own.spec);
	free(kernel.spec);
}

/* ---- one result of two ---- */

/* m counts that are 0, behind the first n. */
static void widen(struct result_process *p, size_t n, size_t all, size_t m)
{
	p->counts = must_realloc(p->counts, (all + m + 1) * sizeof(*p->counts));
	memmove(p->counts + n + m, p->counts + n, (all - n) * sizeof(*p->counts));
	memset(p->counts + n, 0, m * sizeof(*p->counts));
}

static struct result_process *process_of(struct result *res, size_t known,
					 const struct result_process *from)
{
	for (size_t i = 0; i < known; i++)
		if (res->process[i].pid == from->pid &&
		    res->process[i].generation == from->generation)
			return &res->process[i];
	return NULL;
}

/* Of a process that the first session does not list. Its memory becomes res's. */
static struct result_process *take_process(struct result *res, struct result_process *from)
{
	struct result_process *p;

	res->process = must_realloc(res->process, (res->n_processes + 1) * sizeof(*p));
	p = &res->process[res->n_processes++];
	*p = *from;
	from->comm = from->exe = NULL;
	p->counts = must_calloc(res->n_targets + 1, sizeof(*p->counts));
	return p;
}

static void merge_processes(struct result *res, size_t n, struct result *kernel)
{
	size_t known = res->n_processes, m = kernel->n_targets;

	for (size_t i = 0; i < known; i++)
		widen(&res->process[i], n, res->n_targets - m, m);
	for (size_t i = 0; i < kernel->n_processes; i++) {
		struct result_process *from = &kernel->process[i];
		struct result_process *to = process_of(res, known, from);

		if (!to)
			to = take_process(res, from);
		memcpy(to->counts + n, from->counts, m * sizeof(*to->counts));
	}
}

void beside_merge(struct result *res, size_t n, struct result *kernel)
{
	size_t m = kernel->n_targets, all = res->n_targets;

	res->target = must_realloc(res->target, (all + m + 1) * sizeof(*res->target));
	memmove(res->target + n + m, res->target + n, (all - n) * sizeof(*res->target));
	memcpy(res->target + n, kernel->target, m * sizeof(*res->target));
	res->n_targets = all + m;
	merge_processes(res, n, kernel);
	for (size_t i = 0; i < kernel->n_warnings; i++)
		result_warn(res, "%s", kernel->warning[i]);
	res->trace.calls += kernel->trace.calls;
	res->trace.lost += kernel->trace.lost;
	res->trace.filtered += kernel->trace.filtered;
	kernel->n_targets = 0;
	result_free(kernel);
}
