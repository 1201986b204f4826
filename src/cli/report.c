/* SPDX-License-Identifier: MIT */
/* `sbinject report TRACE`: what a trace shows, and its conversion. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "command.h"
#include "role.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/out/out.h"
#include "src/out/place.h"
#include "src/out/report.h"
#include "src/spec/spec.h"
#include "trace/copy.h"
#include "trace/sum.h"

enum { SLOWEST_MAX = 10000, GAPS = 20 };

struct report {
	struct sum_options sum;
	const char *trace, *output, *format, *folded, *svg, *json;
	int32_t *pid;
	bool help;
};

typedef int take_fn(struct report *r, const char *arg, struct sb_err *err);

/* ---- options ---- */

static int take_slowest(struct report *r, const char *arg, struct sb_err *err)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || !n || n > SLOWEST_MAX)
		return err_set(err, SB_EUSAGE, "--slowest '%s': a number from 1 to %d", arg,
			       SLOWEST_MAX);
	r->sum.slowest = n;
	return 0;
}

static int take_gaps(struct report *r, const char *arg, struct sb_err *err)
{
	r->sum.gaps = GAPS;
	return arg ? spec_duration(arg, &r->sum.gap_min_ns, err) : 0;
}

static int take_timeline(struct report *r, const char *arg, struct sb_err *err)
{
	(void)arg;
	(void)err;
	r->sum.timeline = true;
	return 0;
}

static int take_histogram(struct report *r, const char *arg, struct sb_err *err)
{
	(void)arg;
	(void)err;
	r->sum.histogram = true;
	return 0;
}

static int take_from(struct report *r, const char *arg, struct sb_err *err)
{
	return spec_duration(arg, &r->sum.filter.from_ns, err);
}

static int take_to(struct report *r, const char *arg, struct sb_err *err)
{
	int ret = spec_duration(arg, &r->sum.filter.to_ns, err);

	if (ret == 0 && !r->sum.filter.to_ns)
		return err_set(err, SB_EUSAGE, "--to 0: no call begins before the trace");
	return ret;
}

static int take_pid(struct report *r, const char *arg, struct sb_err *err)
{
	const char *at = arg;

	while (*at) {
		char *end;
		long pid = strtol(at, &end, 10);
		size_t n = r->sum.filter.n_pids;

		if (end == at || (*end && *end != ',') || pid <= 0 || pid > INT32_MAX)
			return err_set(err, SB_EUSAGE, "--pid '%s': not a list of process ids",
				       arg);
		r->pid = must_realloc(r->pid, (n + 1) * sizeof(*r->pid));
		r->pid[n] = (int32_t)pid;
		r->sum.filter.n_pids = n + 1;
		at = *end ? end + 1 : end;
	}
	r->sum.filter.pid = r->pid;
	return 0;
}

static int take_help(struct report *r, const char *arg, struct sb_err *err)
{
	(void)arg;
	(void)err;
	r->help = true;
	return 0;
}

static const struct row {
	const char *name;
	char letter;
	take_fn *take; /* NULL: a text, kept as it is */
	size_t to;     /* offset in struct report */
	int has_arg;
	const char *arg, *help;
} rows[] = {
	{ "slowest", 0, take_slowest, 0, required_argument, "N",
	  "the N slowest calls, each by itself" },
	{ "gaps", 0, take_gaps, 0, optional_argument, NULL,
	  "the longest times without a call, by thread (--gaps=TIME: so long or longer)" },
	{ "timeline", 0, take_timeline, 0, no_argument, NULL, "a row for each thread" },
	{ "histogram", 0, take_histogram, 0, no_argument, NULL,
	  "how many calls of each function took how long" },
	{ "function", 0, NULL, offsetof(struct report, sum.filter.function), required_argument,
	  "GLOB", "count only these: a name, or MODULE:NAME" },
	{ "thread", 0, NULL, offsetof(struct report, sum.filter.thread), required_argument, "GLOB",
	  "only these threads: a tid, or a name" },
	{ "pid", 'p', take_pid, 0, required_argument, "PID,...", "only these processes" },
	{ "from", 0, take_from, 0, required_argument, "TIME",
	  "count calls that begin then or later, since the trace began" },
	{ "to", 0, take_to, 0, required_argument, "TIME", "count calls that begin before" },
	{ "output", 'o', NULL, offsetof(struct report, output), required_argument, "FILE",
	  "write the chosen spans as a trace, by the name's ending or --format" },
	{ "format", 0, NULL, offsetof(struct report, format), required_argument,
	  "pftrace|json|jsonl", "the format of --output" },
	{ "folded", 0, NULL, offsetof(struct report, folded), required_argument, "FILE|-",
	  "stacks of own time in ns, for flame graph tools" },
	{ "svg", 0, NULL, offsetof(struct report, svg), required_argument, "FILE",
	  "a flame graph of own times" },
	{ "json", 0, NULL, offsetof(struct report, json), required_argument, "FILE|-",
	  "the report as JSON" },
	{ "help", 'h', take_help, 0, no_argument, NULL, "this text" },
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static int take(struct report *r, const struct row *row, const char *arg, struct sb_err *err)
{
	if (row->take)
		return row->take(r, arg, err);
	*(const char **)((char *)r + row->to) = arg;
	return 0;
}

/* The row of what getopt_long() returned; NULL: it is no option. */
static const struct row *row_of(int c, int index)
{
	if (c == 0)
		return &rows[index];
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].letter == c)
			return &rows[i];
	return NULL;
}

static int check(struct report *r, int argc, char **argv, struct sb_err *err)
{
	if (r->help)
		return 0;
	if (optind + 1 == argc) {
		r->trace = argv[optind];
	} else {
		err_set(err, SB_EUSAGE,
			optind < argc ? "report reads one trace: '%s' is another" :
					"report needs a trace",
			optind < argc ? argv[optind + 1] : "");
		err_hint(err, "sbinject report out.pftrace");
		return -SB_EUSAGE;
	}
	if (r->format && !r->output)
		return err_set(err, SB_EUSAGE,
			       "--format is the format of --output, which is missing");
	if (r->sum.filter.to_ns && r->sum.filter.to_ns <= r->sum.filter.from_ns)
		return err_set(err, SB_EUSAGE, "--to is not after --from");
	return 0;
}

static int parse(struct report *r, int argc, char **argv, struct sb_err *err)
{
	struct option options[ROWS + 1] = { { 0 } };
	int c, index = 0, ret = 0;

	for (size_t i = 0; i < ROWS; i++)
		options[i] = (struct option){ rows[i].name, rows[i].has_arg, NULL, 0 };
	optind = 1;
	opterr = 0;
	while (ret == 0 && (c = getopt_long(argc, argv, "p:o:h", options, &index)) != -1) {
		const struct row *row = row_of(c, index);

		if (!row) {
			err_set(err, SB_EUSAGE, "report: '%s' is no option, or lacks its value",
				argv[optind - 1]);
			err_hint(err, "sbinject report --help");
			return -SB_EUSAGE;
		}
		ret = take(r, row, optarg, err);
	}
	r->sum.stacks = r->folded || r->svg;
	r->sum.role = role_of;
	r->sum.lock = role_lock;
	r->sum.result_name = role_result_name;
	return ret == 0 ? check(r, argc, argv, err) : ret;
}

static void report_help(FILE *to)
{
	fputs("\n  Reads a trace: of Perfetto's format (.pftrace, as sbinject writes it), Chrome's "
	      "(.json)\n  or lines of JSON (.jsonl). TRACE may be - or a pipe.\n\n",
	      to);
	for (size_t i = 0; i < ROWS; i++) {
		char head[64];

		snprintf(head, sizeof(head), "--%s %s", rows[i].name,
			 rows[i].arg ? rows[i].arg : "");
		if (rows[i].letter)
			fprintf(to, "  -%c, %-24s %s\n", rows[i].letter, head, rows[i].help);
		else
			fprintf(to, "  %-28s %s\n", head, rows[i].help);
	}
}

/* ---- input and output ---- */

static int open_trace(const char *path, struct sb_err *err)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) :
				     dup(STDIN_FILENO);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		errno = EISDIR;
		fd = -1;
	}
	if (fd < 0) {
		err_sys(err, SB_EFILE, "cannot read the trace %s", path);
		err_hint(err, "name a file that `sbinject trace -o FILE` wrote");
	}
	return fd;
}

static int cannot_write(const char *path, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];

	err_sys(err, SB_EFILE, "cannot write %s", text_quote(path, shown, sizeof(shown)));
	err_hint(err, "check that the directory exists, may be written to and has room");
	return -SB_EFILE;
}

typedef void write_fn(FILE *to, const struct sum *sum, const char *file);

static void write_folded(FILE *to, const struct sum *sum, const char *file)
{
	(void)file;
	out_report_folded(to, sum);
}

static int write_file(const char *path, const struct sum *sum, const char *file, write_fn *write,
		      struct sb_err *err)
{
	bool is_stdout = !strcmp(path, "-"), failed;
	FILE *to = is_stdout ? stdout : out_place_stream(path);

	if (!to)
		return cannot_write(path, err);
	write(to, sum, file);
	failed = fflush(to) || ferror(to);
	if (!is_stdout && fclose(to))
		failed = true;
	return failed ? cannot_write(path, err) : 0;
}

/* Nothing is written over the trace that is read. */
static int check_output(const char *path, int fd, struct sb_err *err)
{
	struct stat in, out;

	if (!path || !strcmp(path, "-"))
		return 0;
	if (stat(path, &out) == 0 && fstat(fd, &in) == 0 && S_ISREG(in.st_mode) &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
		err_set(err, SB_EUSAGE, "'%s' is the trace that is read", path);
		err_hint(err, "write to another file");
		return -SB_EUSAGE;
	}
	return out_check(path, err);
}

static int check_outputs(const struct report *r, int fd, struct sb_err *err)
{
	const char *const paths[] = { r->output, r->folded, r->svg, r->json };
	int ret = 0;

	for (size_t i = 0; i < 4 && ret == 0; i++)
		ret = check_output(paths[i], fd, err);
	return ret;
}

static int convert(const struct report *r, int fd, struct sb_err *err)
{
	struct trace_reading reading;
	enum trace_format format;
	int out, ret;

	ret = trace_format_of(r->output, r->format, &format, err);
	if (ret < 0)
		return ret;
	out = strcmp(r->output, "-") ? out_place_open(r->output, O_CREAT | O_TRUNC) :
				       dup(STDOUT_FILENO);
	if (out < 0)
		return cannot_write(r->output, err);
	ret = trace_copy(fd, r->trace, out, format, &r->sum.filter, &reading, err);
	if (close(out) < 0 && ret == 0)
		ret = cannot_write(r->output, err);
	if (ret == 0 && (reading.cut || *reading.damage))
		fprintf(stderr,
			"sbinject: the trace is cut off or damaged: what could be read, %llu "
			"bytes, is written\n",
			(unsigned long long)reading.bytes);
	return ret;
}

static void print(const struct report *r, const struct sum *sum)
{
	out_report(stdout, sum, r->trace);
	if (r->sum.histogram)
		out_report_histogram(stdout, sum);
	if (r->sum.slowest)
		out_report_slowest(stdout, sum);
	if (r->sum.gaps)
		out_report_gaps(stdout, sum);
	if (r->sum.timeline)
		out_report_timeline(stdout, sum);
}

static bool to_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int summarize(const struct report *r, int fd, struct sb_err *err)
{
	struct sum *sum = sum_new(&r->sum);
	int ret = sum_read(sum, fd, r->trace, err);

	if (ret == 0 && !to_stdout(r->json) && !to_stdout(r->folded))
		print(r, sum);
	if (ret == 0 && r->folded)
		ret = write_file(r->folded, sum, r->trace, write_folded, err);
	if (ret == 0 && r->svg)
		ret = write_file(r->svg, sum, r->trace, out_report_flame, err);
	if (ret == 0 && r->json) {
		char *doc = out_report_json(sum, r->trace);

		ret = out_document(r->json, doc, err);
		free(doc);
	}
	sum_free(sum);
	return ret;
}

static int report(const struct report *r, struct sb_err *err)
{
	int fd = open_trace(r->trace, err), ret;

	if (fd < 0)
		return -SB_EFILE;
	ret = check_outputs(r, fd, err);
	if (ret == 0)
		ret = r->output ? convert(r, fd, err) : summarize(r, fd, err);
	close(fd);
	return ret;
}

static int report_main(const struct command *cmd, int argc, char **argv)
{
	struct report r = { .help = false };
	struct sb_err err = { 0 };
	int ret = parse(&r, argc, argv, &err);

	if (ret == 0 && r.help)
		command_print_usage(stdout, cmd);
	else if (ret == 0)
		ret = report(&r, &err);
	if (err.code)
		command_print_error(&err);
	free(r.pid);
	return ret < 0 ? err_exit_status(err.code) : 0;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "what a trace shows: functions, slowest calls, gaps, flame graph",
	.usage = "report [OPTIONS] TRACE\nreport [OPTIONS] TRACE -o FILE",
	.run = report_main,
	.help = report_help,
};
