/* SPDX-License-Identifier: MIT */
/*
 * The summary of a run: the table of targets, and below it the notices that prevent a wrong reading
 * of the table: a target without hits must not look like one that does not matter.
 */
#include "out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"
#include "device.h"
#include "evidence.h"
#include "grid.h"
#include "preset.h"
#include "times.h"
#include "src/base/text.h"

#define NOTICES_MAX   10 /* of one kind; the rest is counted */
#define PROCESSES_MAX 20
#define ROLES_FROM    9 /* from so many processes on they are shown by role */
#define ROLE_MAX      64

static const struct out_col target_cols[] = {
	{ "target", OUT_NAME, 0 },  { "mechanism", OUT_TEXT, 2 }, { "sites", OUT_FIGURE, 2 },
	{ "procs", OUT_FIGURE, 1 }, { "hits", OUT_FIGURE, 2 },	  { "hits/s", OUT_FIGURE, 2 },
	{ "asked", OUT_FIGURE, 2 }, { "given", OUT_FIGURE, 2 },	  { "injected", OUT_FIGURE, 3 },
};

/* Was it ever hooked? Otherwise its hits are unknown, not 0. */
static bool was_hooked(const struct result_target *target)
{
	return target->outcome == OUTCOME_DELAYED || target->outcome == OUTCOME_COUNTED ||
	       target->outcome == OUTCOME_NEVER_CALLED;
}

static void add_time(struct out_grid *grid, bool known, double ns)
{
	char buf[32];

	out_grid_add(grid, "%s", known ? out_time(ns, buf, sizeof(buf)) : "-");
}

static void add_count(struct out_grid *grid, bool known, uint64_t n)
{
	if (known)
		out_grid_add(grid, "%" PRIu64, n);
	else
		out_grid_add(grid, "-");
}

/* The mechanisms of a target's sites, each once: "jump", "jump,int3". */
static void add_mechanisms(struct out_grid *grid, const struct result_target *target)
{
	char text[64] = "";

	for (size_t i = 0; i < target->n_sites; i++) {
		const char *name = target->site[i].mechanism;
		size_t used = strlen(text);

		if (name && !strstr(text, name))
			snprintf(text + used, sizeof(text) - used, "%s%s", used ? "," : "", name);
	}
	out_grid_add(grid, "%s", *text ? text : "-");
}

static void add_target_name(struct out_grid *grid, const struct result_target *target)
{
	char *name = out_target_name(target);

	out_grid_add(grid, "%s", name);
	free(name);
}

static void add_target(struct out_grid *grid, const struct result_target *target)
{
	bool hooked = was_hooked(target), timed = hooked && target->active_s > 0;
	const struct result_counts *counts = &target->counts;
	char rate[32];

	add_target_name(grid, target);
	add_mechanisms(grid, target);
	add_count(grid, true, target->n_sites);
	add_count(grid, true, target->procs);
	add_count(grid, hooked, counts->hits);
	out_rate(timed ? (double)counts->hits / target->active_s : NAN, rate, sizeof(rate));
	out_grid_add(grid, "%s", rate);
	add_time(grid, true, (double)target->delay_ns);
	add_time(grid, target->given.known && counts->delayed, target->given.mean);
	add_time(grid, true, (double)counts->injected_ns);
}

/* Notices: a line for each target concerned. */

struct notice {
	const char *label;
	enum result_outcome outcome;
	const char *otherwise; /* if the target carries no reason */
};

static const struct notice notices[] = {
	{ "never called", OUTCOME_NEVER_CALLED, "hooked, and no call came" },
	{ "pending", OUTCOME_PENDING, "its module never appeared" },
	{ "not found", OUTCOME_NO_MATCH, "the module has no such function" },
	{ "refused", OUTCOME_REFUSED, "no site could be hooked" },
};

static void print_notice(FILE *to, const char *label, const struct result_target *target,
			 const char *why)
{
	fprintf(to, "%s: ", label);
	out_target(to, target);
	fputs(": ", to);
	out_shown(to, why);
	fputc('\n', to);
}

static void print_more(FILE *to, size_t n, size_t shown)
{
	if (n > shown)
		fprintf(to, "  and %zu more\n", n - shown);
}

static void print_outcomes(FILE *to, const struct result *res, const struct notice *notice)
{
	size_t n = 0;

	for (size_t i = 0; i < res->n_targets; i++) {
		const struct result_target *target = &res->target[i];
		bool given = target->reason && *target->reason;

		if (target->outcome != notice->outcome || out_preset_folds(target) ||
		    n++ >= NOTICES_MAX)
			continue;
		print_notice(to, notice->label, target, given ? target->reason : notice->otherwise);
	}
	print_more(to, n, NOTICES_MAX);
}

/* The sites of one target that could not be hooked. */
static void print_refused(FILE *to, const struct result_target *target)
{
	if (!target->n_refused)
		return;
	fprintf(to, "%zu site%s of ", target->n_refused, target->n_refused > 1 ? "s" : "");
	out_target(to, target);
	fputs(" not hooked:\n", to);
	for (size_t i = 0; i < target->n_refused && i < NOTICES_MAX; i++) {
		fputs("  ", to);
		out_shown(to, target->refused[i].name ? target->refused[i].name :
							target->refused[i].symbol);
		fputs(": ", to);
		out_shown(to, target->refused[i].reason);
		fputc('\n', to);
	}
	print_more(to, target->n_refused, NOTICES_MAX);
}

static void print_overrun(FILE *to, const struct result_target *target)
{
	char buf[32];

	/* Timer ticks are included: a small overrun is shown in the JSON only. */
	if (target->counts.overrun_ns < target->counts.injected_ns / 1000 + 1)
		return;
	fputs("overrun: ", to);
	out_target(to, target);
	fprintf(to,
		": %s in which its delays were interrupted (preemption), not "
		"counted as injected\n",
		out_time((double)target->counts.overrun_ns, buf, sizeof(buf)));
}

static void print_unknown_given(FILE *to, const struct result_target *target)
{
	if (!target->counts.delayed || target->given.known)
		return;
	print_notice(to, "given unknown", target,
		     *target->given.reason ? target->given.reason : "not measured");
}

/* What was lost because sbinject itself was held up, and the targets concerned. */
static void print_lapses(FILE *to, const struct result *res)
{
	char buf[32];

	if (res->lease_lapsed_hits)
		fprintf(to,
			"lease lapsed: %" PRIu64 " hit%s came while sbinject did not renew its "
			"lease; they are counted as hits and were not delayed\n",
			res->lease_lapsed_hits, res->lease_lapsed_hits > 1 ? "s" : "");
	if (res->doorbells_lost)
		fprintf(to,
			"incomplete: %" PRIu64 " time%s a program ran on before its libraries were "
			"hooked; its calls until then are not counted, of any target\n",
			res->doorbells_lost, res->doorbells_lost > 1 ? "s" : "");
	if (result_incomplete(res) && res->stalled_s > 0)
		fprintf(to,
			"sbinject could not go on for %s: a machine with less load, or a "
			"higher priority (nice, chrt), helps\n",
			out_time(res->stalled_s * 1e9, buf, sizeof(buf)));
}

static void print_gil(FILE *to, const struct result *res)
{
	if (res->gil)
		fputs("python: a call that is delayed holds the GIL; the other Python threads of "
		      "its process wait\n",
		      to);
}

static void print_part(FILE *to, uint64_t n, const char *text)
{
	if (n)
		fprintf(to, "; %" PRIu64 "%s", n, text);
}

/* The single calls in a file. */
static void print_trace(FILE *to, const struct result *res)
{
	const struct result_trace *t = &res->trace;

	if (!t->file)
		return;
	fprintf(to, "recorded: %" PRIu64 " call%s", t->calls, t->calls == 1 ? "" : "s");
	if (t->delays)
		fprintf(to, " and %" PRIu64 " delay%s", t->delays, t->delays == 1 ? "" : "s");
	fputs(" in ", to);
	out_shown(to, t->file);
	print_part(to, t->filtered, " left out, as asked");
	print_part(to, t->lost, " lost: no buffer was free (--ring, --min and --limit-rate)");
	print_part(to, t->stacks, " with their stacks");
	print_part(to, t->stacks_lost, " stacks lost: no buffer was free (--min)");
	print_part(to, t->unseen, " lost: in processes that sbinject does not follow");
	fputc('\n', to);
}

static void print_stops(FILE *to, const struct result *res)
{
	char attach[32], detach[32];

	if (!res->stop_known)
		return;
	fprintf(to, "stopped: at most %s at attach, %s at detach (the thread held longest)",
		out_time((double)res->stop_attach_us * 1e3, attach, sizeof(attach)),
		out_time((double)res->stop_detach_us * 1e3, detach, sizeof(detach)));
	if (res->gil && res->gil_known)
		fprintf(to, "; the GIL at most %s and %s",
			out_time((double)res->gil_attach_us * 1e3, attach, sizeof(attach)),
			out_time((double)res->gil_detach_us * 1e3, detach, sizeof(detach)));
	fputc('\n', to);
}

/* Processes: a row for each target that was hit in a process, or one row without hits. */

static const struct out_col process_cols[] = {
	{ "pid", OUT_FIGURE, 0 },      { "execs", OUT_FIGURE, 2 }, { "name", OUT_TEXT, 2 },
	{ "target", OUT_NAME, 2 },     { "hits", OUT_FIGURE, 2 },  { "delayed", OUT_FIGURE, 2 },
	{ "injected", OUT_FIGURE, 2 },
};

static const char *name_of(const struct result_process *process)
{
	return !process->pid ? "(children not followed)" : process->comm ? process->comm : "-";
}

static void add_process_head(struct out_grid *grid, const struct result_process *process)
{
	if (process->pid)
		out_grid_add(grid, "%d", (int)process->pid);
	else
		out_grid_add(grid, "-");
	add_count(grid, process->pid != 0, process->generation);
	out_grid_add(grid, "%s", name_of(process));
}

static void add_process_row(struct out_grid *grid, const struct result_process *process,
			    const struct result_target *target, const struct result_counts *counts)
{
	add_process_head(grid, process);
	if (target)
		add_target_name(grid, target);
	else
		out_grid_add(grid, "-");
	add_count(grid, counts, counts ? counts->hits : 0);
	add_count(grid, counts, counts ? counts->delayed : 0);
	add_time(grid, counts, counts ? (double)counts->injected_ns : 0);
}

static void add_process(struct out_grid *grid, const struct result *res,
			const struct result_process *process)
{
	static const struct result_counts none;
	size_t rows = 0;

	for (size_t i = 0; process->counts && i < res->n_targets; i++) {
		if (!process->counts[i].hits)
			continue;
		add_process_row(grid, process, &res->target[i], &process->counts[i]);
		rows++;
	}
	if (!rows)
		add_process_row(grid, process, NULL, process->counts ? &none : NULL);
}

static void print_processes(FILE *to, const struct result *res, size_t most)
{
	struct out_grid grid = { process_cols, sizeof(process_cols) / sizeof(process_cols[0]), NULL,
				 0 };

	if (res->n_processes < 2)
		return;
	for (size_t i = 0; i < res->n_processes && i < most; i++)
		add_process(&grid, res, &res->process[i]);
	fputc('\n', to);
	out_grid_print(&grid, to);
	print_more(to, res->n_processes, most);
}

/* Of many processes most do the same work: processes of one role are added up. */

static const struct out_col role_cols[] = {
	{ "procs", OUT_FIGURE, 0 }, { "name", OUT_TEXT, 2 },	  { "target", OUT_NAME, 2 },
	{ "hits", OUT_FIGURE, 2 },  { "delayed", OUT_FIGURE, 2 }, { "injected", OUT_FIGURE, 2 },
};

static bool same_role(const struct result_process *a, const struct result_process *b)
{
	char one[ROLE_MAX], other[ROLE_MAX];

	text_role(name_of(a), one, sizeof(one));
	text_role(name_of(b), other, sizeof(other));
	return !a->pid == !b->pid && !strcmp(one, other);
}

/* The name of all processes of the role, or what their names have in common. */
static void add_role_name(struct out_grid *grid, const struct result *res,
			  const struct result_process *role)
{
	const char *name = name_of(role);
	char common[ROLE_MAX];

	text_role(name, common, sizeof(common));
	for (size_t i = 0; i < res->n_processes && name != common; i++)
		if (same_role(&res->process[i], role) && strcmp(name_of(&res->process[i]), name))
			name = common;
	out_grid_add(grid, "%s", name);
}

static bool is_first(const struct result *res, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (same_role(&res->process[i], &res->process[process]))
			return false;
	return true;
}

/* Adds up the hit processes of a role; returns their number. */
static size_t add_up_role(const struct result *res, const struct result_process *role,
			  size_t target, struct result_counts *sum)
{
	size_t n = 0;

	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < res->n_processes; i++) {
		const struct result_counts *c = res->process[i].counts;

		if (!same_role(&res->process[i], role) || !c || !c[target].hits)
			continue;
		sum->hits += c[target].hits;
		sum->delayed += c[target].delayed;
		sum->injected_ns += c[target].injected_ns;
		n++;
	}
	return n;
}

static void add_role_row(struct out_grid *grid, const struct result *res,
			 const struct result_process *role, size_t procs,
			 const struct result_target *target, const struct result_counts *sum)
{
	out_grid_add(grid, "%zu", procs);
	add_role_name(grid, res, role);
	if (target)
		add_target_name(grid, target);
	else
		out_grid_add(grid, "-");
	add_count(grid, sum, sum ? sum->hits : 0);
	add_count(grid, sum, sum ? sum->delayed : 0);
	add_time(grid, sum, sum ? (double)sum->injected_ns : 0);
}

/* The processes of a role without a hit get a row, too. */
static size_t count_unhit(const struct result *res, const struct result_process *role)
{
	size_t n = 0;

	for (size_t i = 0; i < res->n_processes; i++) {
		const struct result_process *p = &res->process[i];
		uint64_t hits = 0;

		for (size_t t = 0; p->counts && t < res->n_targets; t++)
			hits += p->counts[t].hits;
		n += same_role(p, role) && !hits;
	}
	return n;
}

static void add_role(struct out_grid *grid, const struct result *res,
		     const struct result_process *role)
{
	size_t unhit = count_unhit(res, role), procs;
	struct result_counts sum;

	for (size_t t = 0; t < res->n_targets; t++) {
		procs = add_up_role(res, role, t, &sum);
		if (procs)
			add_role_row(grid, res, role, procs, &res->target[t], &sum);
	}
	memset(&sum, 0, sizeof(sum));
	if (unhit)
		add_role_row(grid, res, role, unhit, NULL, role->counts ? &sum : NULL);
}

static void print_roles(FILE *to, const struct result *res)
{
	struct out_grid grid = { role_cols, sizeof(role_cols) / sizeof(role_cols[0]), NULL, 0 };
	size_t roles = 0;

	for (size_t i = 0; i < res->n_processes; i++) {
		if (!is_first(res, i) || roles++ >= PROCESSES_MAX)
			continue;
		add_role(&grid, res, &res->process[i]);
	}
	fputc('\n', to);
	out_grid_print(&grid, to);
	print_more(to, roles, PROCESSES_MAX);
	fprintf(to, "%zu processes, by name; each by itself: --by-process, or the JSON\n",
		res->n_processes);
}

/* By function: the called functions, the most called first; the rest is counted. */

static const struct out_col function_cols[] = {
	{ "hits", OUT_FIGURE, 2 },
	{ "function", OUT_NAME, 2 },
	{ "module", OUT_NAME, 2 },
};

static int by_name(const void *a, const void *b)
{
	const struct result_site *x = *(struct result_site *const *)a,
				 *y = *(struct result_site *const *)b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->module, y->module);
}

static int by_hits(const void *a, const void *b)
{
	const struct result_site *x = *(struct result_site *const *)a,
				 *y = *(struct result_site *const *)b;

	if (x->hits != y->hits)
		return x->hits < y->hits ? 1 : -1;
	return by_name(a, b);
}

/* A function has one site for each address that processes map it at: add these up. */
static size_t add_up(const struct result_target *target, struct result_site *sum,
		     struct result_site **order)
{
	size_t n = 0, m = 0;

	for (size_t i = 0; i < target->n_sites; i++)
		if (target->site[i].each) {
			sum[n] = target->site[i];
			order[n] = &sum[n];
			n++;
		}
	qsort(order, n, sizeof(*order), by_name);
	for (size_t i = 0; i < n; i++) {
		if (m && !by_name(&order[m - 1], &order[i]))
			order[m - 1]->hits += order[i]->hits;
		else
			order[m++] = order[i];
	}
	qsort(order, m, sizeof(*order), by_hits);
	return m;
}

static void print_functions(FILE *to, const struct result_target *target)
{
	struct out_grid grid = { function_cols, sizeof(function_cols) / sizeof(function_cols[0]),
				 NULL, 0 };
	struct result_site *sum = calloc(target->n_sites + 1, sizeof(*sum));
	struct result_site **order = calloc(target->n_sites + 1, sizeof(struct result_site *));
	size_t n, called = 0;

	if (!sum || !order)
		abort();
	n = add_up(target, sum, order);
	for (; called < n && order[called]->hits; called++) {
		out_grid_add(&grid, "%" PRIu64, order[called]->hits);
		out_grid_add(&grid, "%s", order[called]->name);
		out_grid_add(&grid, "%s", order[called]->module);
	}
	if (n) {
		fputs("\nfunctions of ", to);
		out_target(to, target);
		fprintf(to, ": %zu of %zu were called\n", called, n);
	}
	if (called)
		out_grid_print(&grid, to);
	free(order);
	free(sum);
}

static void print_targets(FILE *to, const struct result *res)
{
	struct out_grid grid = { target_cols, sizeof(target_cols) / sizeof(target_cols[0]), NULL,
				 0 };

	for (size_t i = 0; i < res->n_targets; i++)
		if (!out_preset_folds(&res->target[i]))
			add_target(&grid, &res->target[i]);
	if (grid.n_cells)
		out_grid_print(&grid, to);
}

static bool any_timed(const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].times.known)
			return true;
	return false;
}

static void print_tables(FILE *to, const struct result *res, bool times_first)
{
	bool timed = any_timed(res);

	if (timed && times_first) {
		out_times(to, res, true);
		fputc('\n', to);
	}
	print_targets(to, res);
	if (timed && !times_first) {
		fputc('\n', to);
		out_times(to, res, false);
	}
}

void out_table(FILE *to, const struct result *res, unsigned int how)
{
	bool by_process = how & OUT_BY_PROCESS;

	print_tables(to, res, how & OUT_TIMES_FIRST);
	out_times_notices(to, res);
	for (size_t i = 0; i < sizeof(notices) / sizeof(notices[0]); i++)
		print_outcomes(to, res, &notices[i]);
	out_preset_notices(to, res);
	for (size_t i = 0; i < res->n_targets; i++) {
		print_refused(to, &res->target[i]);
		print_unknown_given(to, &res->target[i]);
		print_overrun(to, &res->target[i]);
	}
	out_cuda(to, res);
	out_device(to, &res->device);
	print_lapses(to, res);
	print_trace(to, res);
	out_evidence(to, &res->evidence);
	print_gil(to, res);
	print_stops(to, res);
	if (by_process || res->n_processes < ROLES_FROM)
		print_processes(to, res, by_process ? SIZE_MAX : PROCESSES_MAX);
	else
		print_roles(to, res);
	for (size_t i = 0; i < res->n_targets; i++)
		if (out_preset_has_functions(&res->target[i]) &&
		    !out_times_functions(to, &res->target[i]))
			print_functions(to, &res->target[i]);
}
