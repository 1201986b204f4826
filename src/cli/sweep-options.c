/* SPDX-License-Identifier: MIT */
#include "sweep-options.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"
#include "src/spec/spec.h"

typedef int take_fn(struct sweep_options *o, const char *arg, struct sb_err *err);

static int keep(char **to, const char *arg)
{
	free(*to);
	*to = text_dup(arg);
	return 0;
}

static int take_plot(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	const char *dot = strrchr(arg, '.');

	if (dot && (!strcmp(dot, ".svg") || !strcmp(dot, ".png") || !strcmp(dot, ".pdf")))
		return keep(&o->plot, arg);
	err_set(err, SB_EUSAGE, "--plot '%s': unknown kind of picture", arg);
	err_hint(err, "name a file that ends in .svg, .png or .pdf");
	return -SB_EUSAGE;
}

static int take_doses(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	char *copy = text_dup(arg), *save = NULL;
	int ret = 0;

	for (char *word = strtok_r(copy, ",", &save); word && ret == 0;
	     word = strtok_r(NULL, ",", &save)) {
		uint64_t ns;

		ret = spec_delay(word, &ns, err);
		if (ret == 0 && !ns)
			ret = err_set(err, SB_EUSAGE,
				      "--doses: leave out 0, which a sweep always measures");
		if (ret == 0 && o->n_doses == DRIVE_DOSES)
			ret = err_set(err, SB_EUSAGE, "--doses: at most %d", DRIVE_DOSES);
		if (ret < 0)
			break;
		o->dose_ns = reallocarray(o->dose_ns, o->n_doses + 1, sizeof(*o->dose_ns));
		if (!o->dose_ns)
			abort();
		o->dose_ns[o->n_doses++] = ns;
	}
	free(copy);
	if (ret == 0 && !o->n_doses)
		ret = err_set(err, SB_EUSAGE, "--doses: none is given");
	return ret;
}

static int take_time(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	return spec_duration(arg, &o->time_ns, err);
}

static int take_guard(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	return spec_duration(arg, &o->guard_ns, err);
}

static int take_number(const char *option, const char *arg, uint64_t *n, struct sb_err *err)
{
	char *end;

	*n = strtoull(arg, &end, 10);
	if (isdigit((unsigned char)arg[0]) && !*end)
		return 0;
	return err_set(err, SB_EUSAGE, "%s '%s': not a number", option, arg);
}

static int take_runs(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	uint64_t n;

	if (take_number("--runs", arg, &n, err) < 0)
		return -SB_EUSAGE;
	if (n < 2 || n > 100000) {
		err_set(err, SB_EUSAGE, "--runs %s: between 2 and 100000 runs of each arm", arg);
		err_hint(err, "eight give an interval that means something");
		return -SB_EUSAGE;
	}
	o->runs = (unsigned int)n;
	return 0;
}

static int take_seed(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	o->seed_given = true;
	return take_number("--seed", arg, &o->seed, err);
}

static int take_threshold(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	char *end;

	o->threshold = strtod(arg, &end);
	if (end != arg && !*end && o->threshold > 0 && o->threshold < 1)
		return 0;
	return err_set(err, SB_EUSAGE, "--threshold '%s': a kappa between 0 and 1, as 0.1", arg);
}

static int take_lane(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	for (int mode = LANE_AUTO; mode <= LANE_ALL; mode++)
		if (!strcmp(arg, lane_mode_name((enum lane_mode)mode))) {
			o->lane = (enum lane_mode)mode;
			return 0;
		}
	return err_set(err, SB_EUSAGE, "--lane '%s': auto, process, thread or all", arg);
}

static int take_evidence(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	o->no_evidence = arg && !strcmp(arg, "none");
	o->evidence = !o->no_evidence;
	return arg && o->evidence ? evidence_groups_read(arg, &o->groups, err) : 0;
}

static int take_self_check(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	(void)arg;
	(void)err;
	o->self_check = true;
	return 0;
}

static int take_quantile(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	static const struct {
		const char *name;
		double share;
	} known[] = { { "mean", 0 }, { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(arg, known[i].name)) {
			o->quantile = known[i].share;
			return 0;
		}
	return err_set(err, SB_EUSAGE, "--quantile '%s': mean, p50, p90 or p99", arg);
}

static int take_adjust(struct sweep_options *o, const char *arg, struct sb_err *err)
{
	if (o->n_adjust == SWEEP_ADJUST) {
		err_set(err, SB_EUSAGE, "--adjust: at most %d", SWEEP_ADJUST);
		err_hint(err, "each costs some of what the blocks know");
		return -SB_EUSAGE;
	}
	o->adjust[o->n_adjust++] = text_dup(arg);
	return 0;
}

static const struct row {
	const char *name;
	take_fn *take;	 /* NULL: a text, kept as it is */
	size_t to;	 /* offset in struct sweep_options */
	const char *arg; /* NULL: no argument; "[=...]": one only behind '=' */
	const char *help;
} rows[] = {
	{ "progress", NULL, offsetof(struct sweep_options, progress), "SOURCE",
	  "what counts items: a TARGET's hits, prom:URL#METRIC{..}, file:PATH, cmd:.., "
	  "stdout:REGEX" },
	{ "response", NULL, offsetof(struct sweep_options, response), "SOURCE",
	  "a latency instead of time per item: prom:URL#HISTOGRAM, or the calls of a TARGET" },
	{ "quantile", take_quantile, 0, "mean|p50|p90|p99",
	  "what of the response is judged (mean)" },
	{ "adjust", take_adjust, 0, "SOURCE",
	  "take out of the times what comes of this count, an item; rate:SOURCE: a second" },
	{ "doses", take_doses, 0, "TIME,...",
	  "delays a hit (default: doubled until they are felt)" },
	{ "time", take_time, 0, "TIME", "budget of the whole sweep (default 60s)" },
	{ "runs", take_runs, 0, "N", "run COMMAND N times in each arm, instead of a live process" },
	{ "guard", take_guard, 0, "TIME", "left out after each change (default: by the pipeline)" },
	{ "threshold", take_threshold, 0, "K", "a kappa below this counts as none (0.1)" },
	{ "lane", take_lane, 0, "auto|process|thread|all", "what is delayed side by side (auto)" },
	{ "self-check", take_self_check, 0, NULL,
	  "first delay the progress function itself: kappa must be 1" },
	{ "evidence", take_evidence, 0, "[=GROUPS]",
	  "why, by BPF: time, waits, switches, faults, io, network, locks; or none" },
	{ "seed", take_seed, 0, "N", "of the order of arms; as recorded in the result" },
	{ "csv", NULL, offsetof(struct sweep_options, csv), "FILE", "every window" },
	{ "html", NULL, offsetof(struct sweep_options, html), "FILE",
	  "a page for people: the answer, tables, pictures" },
	{ "plot", take_plot, 0, "FILE.svg|png|pdf", "pictures, by gnuplot" },
	{ "events", NULL, offsetof(struct sweep_options, events), "FILE",
	  "each change of arm as a line of JSON, with both clocks" },
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static bool has_optional(const struct row *row)
{
	return row->arg && row->arg[0] == '[';
}

void sweep_options_help(FILE *to)
{
	fputs("\noptions of a sweep:\n", to);
	for (int i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
			 rows[i].arg && !has_optional(&rows[i]) ? " " : "",
			 rows[i].arg ? rows[i].arg : "");
		fprintf(to, "  %-28s %s\n", left, rows[i].help);
	}
}

/* The row that a word names, and its argument if that is in the same word. */
static const struct row *row_of(const char *word, const char **arg)
{
	size_t len;

	if (strncmp(word, "--", 2) != 0 || !word[2])
		return NULL;
	word += 2;
	len = strcspn(word, "=");
	*arg = word[len] ? word + len + 1 : NULL;
	for (int i = 0; i < ROWS; i++)
		if (strlen(rows[i].name) == len && !strncmp(rows[i].name, word, len))
			return &rows[i];
	return NULL;
}

int sweep_options_take(int *argc, char **argv, struct sweep_options *out, struct sb_err *err)
{
	int kept = 1, at = 1, ret = 0;

	while (at < *argc && strcmp(argv[at], "--") != 0) {
		const char *arg = NULL;
		const struct row *row = row_of(argv[at], &arg);

		if (!row) {
			argv[kept++] = argv[at++];
			continue;
		}
		at++;
		if (row->arg && !has_optional(row) && !arg) {
			if (at == *argc || !strcmp(argv[at], "--"))
				return err_set(err, SB_EUSAGE, "--%s needs %s", row->name,
					       row->arg);
			arg = argv[at++];
		}
		if (!row->arg && arg)
			return err_set(err, SB_EUSAGE, "--%s takes no argument", row->name);
		ret = row->take ? row->take(out, arg, err) :
				  keep((char **)((char *)out + row->to), arg);
		if (ret < 0)
			return ret;
	}
	while (at < *argc)
		argv[kept++] = argv[at++];
	argv[kept] = NULL;
	*argc = kept;
	return 0;
}

void sweep_options_free(struct sweep_options *opt)
{
	free(opt->progress);
	free(opt->response);
	for (size_t i = 0; i < opt->n_adjust; i++)
		free(opt->adjust[i]);
	free(opt->csv);
	free(opt->html);
	free(opt->plot);
	free(opt->events);
	free(opt->dose_ns);
}
