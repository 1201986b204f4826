/* SPDX-License-Identifier: MIT */
/* `sbinject TARGET ... -p PID` and `sbinject TARGET ... -- COMMAND`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "command.h"
#include "options.h"
#include "role.h"
#include "run.h"
#include "trace-locks.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/out/device.h"
#include "src/out/evidence.h"
#include "src/out/out.h"
#include "src/result/cuda.h"
#include "src/run/backends.h"
#include "src/run/client.h"
#include "trace/kernels.h"

enum { EXIT_OWN = 125, EXIT_NOEXEC = 126, EXIT_NOCMD = 127, EXIT_NO_MATCH = 3 };

void run_help_keys(FILE *to)
{
	for (size_t i = 0; spec_key(i); i++) {
		char left[64];

		snprintf(left, sizeof(left), "%s=%s", spec_key(i)->name, spec_key(i)->arg);
		fprintf(to, "  %-32s %s\n", left, spec_key(i)->help);
	}
	fputs("\n", to);
}

static void run_help(FILE *to)
{
	fputs("\n  TARGET is MODULE:SYMBOL, MODULE:=SYMBOL, MODULE:@FILE:LINE or "
	      "py:MODULE:QUALNAME,\n  kernel:NAME, tracepoint:SUBSYSTEM:NAME, ioctl:DEVICE,\n  "
	      "interrupt:HANDLER or offcpu:THREAD;\n"
	      "  DELAY a time with its unit (5us); KEY one of\n\n",
	      to);
	run_help_keys(to);
	options_help(to, VERB_RUN);
	fputs("\n", to);
	command_print_verbs(to);
	fputs("\n  sbinject(1) has it all.\n", to);
}

/* In launch mode our own failures differ from the exit statuses of the command. */
static int own_exit(const struct options *opt, enum sb_code code)
{
	if (code == SB_ENOCMD)
		return EXIT_NOCMD;
	if (code == SB_ENOEXEC)
		return EXIT_NOEXEC;
	return opt->command ? EXIT_OWN : err_exit_status(code);
}

static int check(struct options *opt, struct sb_err *err)
{
	bool attach = opt->session.n_pids > 0 || opt->session.all;

	if (!attach && !opt->command) {
		err_set(err, SB_EUSAGE,
			"neither a process (-p PID) nor a command (-- COMMAND) is given");
		err_hint(err, "sbinject --help shows the forms");
		return -SB_EUSAGE;
	}
	if (!opt->session.targets.count &&
	    (opt->trace || (attach && !opt->background && !opt->session.evidence))) {
		err_set(err, SB_EUSAGE, "no target is given");
		err_hint(err, opt->trace ? "sbinject trace -p PID libc.so.6:getpid" :
					   "sbinject -p PID libc.so.6:getpid 5us");
		return -SB_EUSAGE;
	}
	if (out_check_standard(opt->command, opt->json, opt->jsonl, opt->events, err) < 0)
		return -(int)err->code;
	if (out_check(opt->json, err) < 0 || out_check(opt->jsonl, err) < 0 ||
	    out_check(opt->events, err) < 0 || out_check(opt->trace_path, err) < 0)
		return -(int)err->code;
	return opt->command ? launch_check(opt->command, err) : 0;
}

static bool any_site(const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].n_sites)
			return true;
	return false;
}

static bool all_hit(const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (!res->target[i].counts.hits)
			return false;
	return true;
}

static int exit_of(const struct options *opt, const struct client_outcome *out)
{
	if (out->error.code && !(out->has_command && out->tracer_died))
		return own_exit(opt, out->error.code);
	if (opt->require_hits && out->result && !all_hit(out->result))
		return EXIT_OWN;
	/* Incomplete figures are a failure of sbinject's own. */
	if (out->result && result_incomplete(out->result) && !out->command_status)
		return opt->command ? EXIT_OWN : err_exit_status(SB_ESYS);
	if (out->has_command)
		return out->command_status;
	if (out->result && out->result->left_behind)
		return err_exit_status(SB_ETARGET);
	return out->result && out->result->n_targets && !any_site(out->result) ? EXIT_NO_MATCH : 0;
}

static const char *exit_reason(const struct client_outcome *out)
{
	static const char *const names[] = {
		[SESSION_RUNS] = "signal",
		[SESSION_END_FOR] = "for",
		[SESSION_END_TARGET] = "target ended",
		[SESSION_END_SLOWDOWN] = "max-slowdown",
	};

	return names[out->end];
}

/* A key that leaves calls of a target out of its counts. */
static const char *limit_of(const struct options *opt, const char *text)
{
	const struct spec_list *list = &opt->session.targets;

	for (size_t i = 0; i < list->count; i++) {
		const struct spec *spec = &list->spec[i];

		if (strcmp(spec->text, text) != 0)
			continue;
		return spec->thread   ? "thread= limits it" :
		       spec->start_ns ? "start= limits it" :
		       spec->for_ns   ? "for= limits it" :
					NULL;
	}
	return NULL;
}

/* What the functions of the preset `cuda` add up to. */
static void add_cuda(struct result *res, const struct options *opt)
{
	const struct preset *preset;
	struct result_row *row;
	char **text;

	if (preset_get("cuda", 4, &preset, NULL) < 0 || !preset)
		return;
	row = must_calloc(preset->n_rows, sizeof(*row));
	text = must_calloc(preset->n_rows, sizeof(*text));
	for (size_t i = 0; i < preset->n_rows; i++) {
		if (asprintf(&text[i], "cuda:%s", preset->row[i].function) < 0)
			abort();
		row[i].spec = text[i];
		row[i].kind = preset_kind_name(preset->row[i].kind);
		row[i].limited = limit_of(opt, text[i]);
	}
	result_cuda(res, "cuda", row, preset->n_rows, limit_of(opt, RESULT_IOCTLS));
	for (size_t i = 0; i < preset->n_rows; i++)
		free(text[i]);
	free(text);
	free(row);
}

/* Why the launches of the recorded calls are not all launches; NULL: they are. */
static const char *launches_missed(const struct result *res, const struct client_outcome *out)
{
	return !out->traced			    ? "calls were not recorded (-o FILE)" :
	       res->trace.lost || res->trace.unseen ? "calls were lost when they were recorded" :
	       res->trace.filtered ? "calls were left out when they were recorded" :
	       !out->trace.end_ns  ? "the record has no end" :
	       !out->launches	   ? "no call of a function that launches was recorded" :
				     NULL;
}

static void add_number(struct result *res, const char *name, uint64_t n)
{
	res->cuda = must_realloc(res->cuda, (res->n_cuda + 1) * sizeof(*res->cuda));
	res->cuda[res->n_cuda++] =
		(struct result_figure){ .name = must_strdup(name), .known = true, .n = n };
}

static bool has_launches(const struct result *res)
{
	for (size_t i = 0; i < res->n_cuda; i++)
		if (!strcmp(res->cuda[i].name, "launches"))
			return true;
	return false;
}

/* Launches by kernel, where the run has functions that launch. */
static void add_launches(struct result *res, const struct client_outcome *out)
{
	struct result_launches *l = &res->launches;
	const char *why = launches_missed(res, out);
	struct kernels_name *name;

	if (why && (has_launches(res) || out->launches))
		l->reason = must_strdup(why);
	if (why)
		return;
	name = kernels_by_name(out->launches, &l->n);
	l->known = true;
	l->row = must_calloc(l->n + 1, sizeof(*l->row));
	for (size_t i = 0; i < l->n; i++)
		l->row[i] = (struct result_launched){
			.preset = must_strdup(role_api(name[i].api)),
			.name = name[i].name ? must_strdup(name[i].name) : NULL,
			.launches = name[i].launches,
			.total_ns = name[i].total_ns,
			.handles = name[i].handles,
		};
	free(name);
	add_number(res, "kernels_left_out", out->launches->others);
	add_number(res, "kernels_unknown", out->launches->unknown);
}

/* Why what was recorded of devices is not all of it; NULL: it is. */
static const char *device_missed(const struct result *res, const struct client_outcome *out)
{
	const struct result_device *d = &res->device;

	return d->reason		      ? d->reason :
	       !d->counted		      ? "no process used a device" :
	       d->dropped || d->cupti_dropped ? "records were dropped" :
	       d->unknown	  ? "some records were of an unknown kind or without times" :
	       !out->trace.end_ns ? "the record has no end" :
				    NULL;
}

/* What devices did, by what was written: the tracer has counted the same records. */
static void add_device(struct result *res, const struct client_outcome *out)
{
	struct result_device *d = &res->device;
	const char *why = device_missed(res, out);
	struct devices none = { .n_rows = 0 }, *all = out->devices ? out->devices : &none;
	uint64_t n;

	if (!d->asked)
		return;
	n = all->kernels.n + all->copies.n + all->memsets.n;
	if (d->counted &&
	    (d->written + d->dropped + d->unknown != d->records || (!why && n != d->written)))
		result_warn(
			res,
			"%llu records of devices, and %llu written, %llu dropped, %llu unknown, "
			"%llu in the trace: do not rely on device times",
			(unsigned long long)d->records, (unsigned long long)d->written,
			(unsigned long long)d->dropped, (unsigned long long)d->unknown,
			(unsigned long long)n);
	if (why && !d->reason)
		d->reason = must_strdup(why);
	if (why)
		return;
	d->known = true;
	devices_finish(all);
	out_device_fill(d, all);
}

static void complete(struct result *res, const struct options *opt,
		     const struct client_outcome *out, int argc, char **argv)
{
	free(res->version);
	res->version = text_dup(SB_VERSION);
	free(res->argv);
	free(res->tag);
	res->n_argv = (size_t)argc;
	res->argv = calloc((size_t)argc + 1, sizeof(*res->argv));
	res->tag = calloc(opt->n_tags + 1, sizeof(*res->tag));
	if (!res->argv || !res->tag)
		abort();
	for (int i = 0; i < argc; i++)
		res->argv[i] = text_dup(argv[i]);
	res->n_tags = opt->n_tags;
	for (size_t i = 0; i < opt->n_tags; i++) {
		res->tag[i].key = text_dup(opt->tag[i].key);
		res->tag[i].value = text_dup(opt->tag[i].value);
	}
	res->exit = exit_of(opt, out);
	free(res->exit_reason);
	res->exit_reason = text_dup(exit_reason(out));
	add_cuda(res, opt);
	add_launches(res, out);
	add_device(res, out);
	if (res->trace.file && opt->trace_path) {
		free(res->trace.file);
		res->trace.file = text_dup(opt->trace_path);
	}
}

static int write_result(const struct options *opt, const struct result *res,
			const struct trace_locks *locks)
{
	struct sb_err err = { 0 };

	if (!opt->quiet && res->n_targets)
		out_table(stderr, res,
			  (opt->by_process ? OUT_BY_PROCESS : 0) |
				  (opt->trace ? OUT_TIMES_FIRST : 0));
	else if (!opt->quiet)
		out_evidence(stderr, &res->evidence);
	if (!opt->quiet)
		trace_locks_print(stderr, locks);
	if (opt->json)
		out_json(opt->json, res, false, &err);
	if (opt->jsonl)
		out_json(opt->jsonl, res, true, &err);
	if (!err.code)
		return 0;
	command_print_error(&err);
	return opt->command ? EXIT_OWN : 1;
}

static void say_unmet(const struct options *opt, const struct result *res)
{
	for (size_t i = 0; opt->require_hits && i < res->n_targets; i++)
		if (!res->target[i].counts.hits)
			log_error("--require-hits: target '%s' was never hit", res->target[i].spec);
}

/* The device agent is loaded by the inject backend, into processes that it traces throughout. */
static int check_device_times(const struct options *opt, const struct backend *backend,
			      struct sb_err *err)
{
	if (!opt->session.device_times || (backend == &backend_inject && opt->session.follow))
		return 0;
	err_set(err, SB_EUSAGE, "--device-times needs --backend inject, and not --no-follow");
	err_hint(err, "sbinject trace --device-times -o trace.pftrace cuda -p PID");
	return -SB_EUSAGE;
}

static int run_session(struct options *opt, int argc, char **argv, struct sb_err *err)
{
	const struct backend *backend = backend_choose(opt->backend, &opt->session, err);
	struct trace_locks *locks;
	struct client_outcome out;
	int status, failed = 0;

	if (!backend || check_device_times(opt, backend, err) < 0)
		return own_exit(opt, err->code);
	opt->launcher = role_launcher;
	client_run(opt, backend, &out);
	status = exit_of(opt, &out);
	*err = out.error;
	if (out.result) {
		complete(out.result, opt, &out, argc, argv);
		locks = trace_locks_read(opt, out.result);
		failed = write_result(opt, out.result, locks);
		trace_locks_free(locks);
		say_unmet(opt, out.result);
		result_free(out.result);
	}
	if (out.launches)
		kernels_free(out.launches);
	free(out.launches);
	if (out.devices)
		devices_free(out.devices);
	free(out.devices);
	return failed && !out.has_command ? failed : status;
}

/* Without a target there is nothing to trace. */
static int run_untouched(const struct options *opt, struct sb_err *err)
{
	execvp(opt->command[0], opt->command);
	return own_exit(opt, err_sys(err, SB_ENOEXEC, "%s", opt->command[0]) ? SB_ENOEXEC : 0);
}

/* The waiting half of --daemon: waits until the hooks are in force, or an error was printed. */
static int await_attached(int fd, pid_t pid)
{
	char status = 1;
	ssize_t n;

	do
		n = read(fd, &status, 1);
	while (n < 0 && errno == EINTR);
	if (status)
		waitpid(pid, NULL, 0);
	return status;
}

/* Closes all other descriptors that we inherited: a session must not hold them open. */
static void keep_only(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	low = low > 2 ? low : 2;
	if (low > 3)
		syscall(SYS_close_range, 3, low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, low + 1, high - 1, 0);
	syscall(SYS_close_range, high + 1, ~0u, 0);
}

/*
 * --daemon: the session continues in a child. True in the process that only waits; *status is then
 * its exit status.
 */
static bool left_to_child(struct options *opt, int *status, struct sb_err *err)
{
	int fds[2];
	pid_t pid;

	if (!opt->background)
		return false;
	if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		*status = err_exit_status((enum sb_code) - err_sys(err, SB_ESYS, "--daemon"));
		return true;
	}
	close(fds[pid ? 1 : 0]);
	if (pid) {
		opt->status_fd = 0;
		*status = await_attached(fds[0], pid);
		return true;
	}
	setsid();
	opt->ready_pipe = fds[1];
	keep_only(opt->status_fd, opt->ready_pipe);
	return false;
}

/* The last output: to the reader of --status-fd, and to the process that waits for a --daemon. */
static void tell_ended(const struct options *opt, int status)
{
	char byte = (char)status;

	signal(SIGPIPE, SIG_IGN);
	if (opt->status_fd)
		dprintf(opt->status_fd, "ended %d\n", status);
	if (opt->ready_pipe && write(opt->ready_pipe, &byte, 1) < 0)
		log_debug("no reader waited for the end");
}

static int run_checked(struct options *opt, int argc, char **argv, struct sb_err *err)
{
	int status;

	struct sb_err none = { 0 };

	/* Without a target the command is only traced, so that sbctl can add some. If tracing is
	 * not permitted the command runs all the same. */
	if (!opt->session.targets.count && opt->command && !opt->session.n_pids &&
	    !opt->session.evidence && !backend_choose(opt->backend, &opt->session, &none))
		return run_untouched(opt, err);
	if (left_to_child(opt, &status, err))
		return status;
	return run_session(opt, argc, argv, err);
}

/* The words as typed, for the result: getopt_long() moves the options to the front. */
static char **typed_words(int argc, char **argv, enum option_verb verb, int *n)
{
	char **typed = malloc(((size_t)argc + 2) * sizeof(*typed));

	if (!typed)
		abort();
	*n = 0;
	if (verb != VERB_RUN) /* argv[0] is the verb */
		typed[(*n)++] = (char *)"sbinject";
	for (int i = 0; i < argc; i++)
		typed[(*n)++] = argv[i];
	return typed;
}

/* The words in one text, for the file of a trace. */
static char *join(int n, char **words)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%s", i ? " " : "", words[i]);
	fclose(f);
	return text;
}

int run_verb(const struct command *cmd, int argc, char **argv, enum option_verb verb)
{
	struct sb_err err = { 0 };
	struct options opt;
	int status, n_typed;
	char **typed = typed_words(argc, argv, verb, &n_typed);

	if (options_parse(argc, argv, verb, &opt, &err) < 0) {
		status = own_exit(&opt, err.code);
	} else if (opt.help) {
		command_print_usage(stdout, cmd);
		status = 0;
	} else if (opt.version) {
		printf("sbinject %s\n", SB_VERSION);
		status = 0;
	} else if (check(&opt, &err) < 0) {
		status = own_exit(&opt, err.code);
	} else {
		opt.typed = join(n_typed, typed);
		status = run_checked(&opt, n_typed, typed, &err);
	}
	if (err.code)
		command_print_error(&err);
	tell_ended(&opt, status);
	options_free(&opt);
	free(typed);
	return status;
}

static int run_main(const struct command *cmd, int argc, char **argv)
{
	return run_verb(cmd, argc, argv, VERB_RUN);
}

const struct command cmd_run = {
	.name = "",
	.summary = "slow functions of a running or a started program",
	.usage = "[OPTIONS] [TARGET [DELAY] [KEY=VALUE]...]... -p PID[,PID...]\n"
		 "[OPTIONS] [TARGET [DELAY] [KEY=VALUE]...]... -- COMMAND [ARG...]\n"
		 "[OPTIONS] TARGET ... -p PID -- COMMAND [ARG...]",
	.run = run_main,
	.help = run_help,
};
