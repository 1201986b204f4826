/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "beside.h"
#include "events.h"
#include "trace-file.h"
#include "tracer.h"
#include "wire.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/control/metrics.h"
#include "src/out/out.h"
#include "src/session/inject/recover.h"
#include "src/session/strays.h"

enum { TRACE_FLUSH_MS = 1000 };

/* A tracer that was asked to end, and sends nothing for so long, is ended by the next signal. */
#define PATIENCE_NS 5000000000ull

struct client {
	struct options *opt;
	const struct backend *backend;
	struct client_outcome *out;
	struct launch command;
	bool launched; /* the command is the target */
	pid_t tracer;
	struct wire_in in;
	int sigfd;
	bool ready, done;
	double last_t;
	struct wire_status_target *last; /* counters of the last status line */
	bool status_line;		 /* an unfinished line is on the terminal */
	bool interrupted;		 /* the user has requested the end */
	uint64_t asked_ns;	  /* the first request to end, or what it sent since; 0: none */
	bool driven;		  /* by client_open(): its caller decides about the end */
	struct metrics *metrics;  /* NULL: none */
	bool failed;		  /* there is no tracer */
	char *answer;		  /* to the last request; owned */
	bool hold_command;	  /* client_release() releases it */
	struct trace_file *trace; /* NULL: none */
};

static void on_log(struct client *c, const char *payload, size_t len)
{
	if (len)
		log_line((enum log_level)payload[0], "%s", payload + 1);
	(void)c;
}

static void tell_tracer(struct client *c)
{
	if (!c->asked_ns)
		c->asked_ns = clock_ns();
	if (write(c->in.fd, &(char){ WIRE_QUIT }, 1) < 0)
		log_debug("the tracer is gone already");
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_stdout(const char *path)
{
	return path && (!strcmp(path, "-") || !strncmp(path, "/dev/", 5));
}

/*
 * The terminal shows its prompt again, and the reader of a pipe waits for its end. A file as the
 * output is still written to. --json - keeps standard output; --from-env, which a program starts
 * for itself, keeps standard error.
 */
static void release_streams(const struct options *opt)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool kept[3] = {
		[STDOUT_FILENO] = is_stdout(opt->json) || is_stdout(opt->jsonl),
		[STDERR_FILENO] = opt->from_env,
	};

	fflush(NULL);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (!kept[fd] && !is_file(fd))
			dup2(null, fd);
	if (null > 2)
		close(null);
}

/* Reports the attach to a waiting process: a program on its descriptor, a shell behind --daemon. */
static void tell_attached(const struct client *c)
{
	if (c->opt->status_fd)
		dprintf(c->opt->status_fd, "attached %d\n", getpid());
	if (!c->opt->ready_pipe)
		return;
	log_note("attached, in the background: kill %d detaches", getpid());
	if (c->opt->interval_ns && !c->opt->metrics_file && !c->opt->report &&
	    isatty(STDERR_FILENO))
		log_note("--interval shows nothing in the background: use sbctl watch");
	release_streams(c->opt);
	if (write(c->opt->ready_pipe, &(char){ 0 }, 1) < 0)
		log_debug("no reader waited for the attach");
	close(c->opt->ready_pipe);
	c->opt->ready_pipe = 0;
}

static int start_metrics(struct client *c)
{
	const struct metrics_config cfg = {
		.listen = c->opt->metrics,
		.file = c->opt->metrics_file,
		.report = c->opt->report,
		.by_pid = c->opt->metrics_by_pid,
		.interval_ns = c->opt->interval_ns,
		.session = getpid(),
	};

	return cfg.listen || cfg.file || cfg.report ?
		       metrics_open(&cfg, &c->metrics, &c->out->error) :
		       0;
}

/* The tracer gets one end of a pipe. */
static int start_trace(struct client *c)
{
	struct trace_file_config cfg = {
		.path = c->opt->trace_path,
		.version = SB_VERSION,
		.command = c->opt->typed,
		.launcher = c->opt->launcher,
	};
	struct session_config own, kernel;
	bool beside;

	if (!cfg.path)
		return 0;
	if (trace_format_of(cfg.path, c->opt->trace_format, &cfg.format, &c->out->error) < 0)
		return -1;
	beside = beside_split(c->backend, &c->opt->session, &own, &kernel);
	beside_free(&own, &kernel);
	c->trace = trace_file_open(&cfg, &c->opt->session.trace_fd,
				   beside ? &c->opt->session.kernel_trace_fd : NULL,
				   &c->out->error);
	return c->trace ? 0 : -1;
}

/* The tracer writes; the file is opened here, where the standard output is ours. *fd: negative, or
 * for the tracer. */
static int start_events(const struct client *c, int *fd)
{
	*fd = c->opt->events ? events_place(c->opt->events) : -1;
	return *fd >= 0 || !c->opt->events ?
		       0 :
		       err_sys(&c->out->error, SB_EFILE, "cannot write %s", c->opt->events);
}

/* An error of the file is the run's, unless there is another. */
static void end_trace(struct client *c)
{
	struct sb_err err = { 0 };

	c->out->traced = c->trace;
	if (trace_file_close(c->trace, &c->out->trace, &c->out->launches, &c->out->devices, &err) <
		    0 &&
	    !c->out->error.code)
		c->out->error = err;
	c->trace = NULL;
}

static void on_ready(struct client *c, const char *payload, size_t len)
{
	(void)payload;
	(void)len;
	c->ready = true;
	if (c->trace)
		trace_file_begin(c->trace);
	tell_attached(c);
	if (c->hold_command)
		return;
	if (c->command.pid && launch_go(&c->command, c->tracer, &c->out->error) < 0)
		tell_tracer(c);
	else if (!c->command.pid && !c->opt->background && isatty(STDERR_FILENO))
		log_note("attached; Ctrl-C detaches");
}

static void on_error(struct client *c, const char *payload, size_t len)
{
	if (len == sizeof(c->out->error))
		memcpy(&c->out->error, payload, len);
	c->done = !c->ready;
}

static void fill_status(const struct client *c, struct out_status *st,
			const struct wire_status_target *now)
{
	for (size_t i = 0; i < st->n; i++) {
		struct out_status_target *t = &st->target[i];
		uint64_t delayed = now[i].delayed - c->last[i].delayed;
		uint64_t calls = now[i].calls - c->last[i].calls;

		t->spec = c->opt->session.targets.spec[i].text;
		t->pid = c->opt->session.targets.spec[i].pid;
		t->total = (struct result_counts){ now[i].hits, now[i].delayed, now[i].injected_ns,
						   now[i].overrun_ns };
		t->delta = (struct result_counts){ now[i].hits - c->last[i].hits, delayed,
						   now[i].injected_ns - c->last[i].injected_ns,
						   now[i].overrun_ns - c->last[i].overrun_ns };
		t->given_ns = delayed ? (double)t->delta.injected_ns / (double)delayed : -1;
		t->timed = c->opt->session.targets.spec[i].timed;
		t->took_ns = calls ? (double)(now[i].calls_ns - c->last[i].calls_ns) /
					     (double)calls :
				     -1;
	}
}

static void on_status(struct client *c, const char *payload, size_t len)
{
	size_t n = c->opt->session.targets.count;
	const struct wire_status_target *now = (const void *)(payload + sizeof(double));
	struct out_status st = { .n = n };

	/* Targets that were added later are not in the status line. */
	if (len < sizeof(double) + n * sizeof(*now) || c->opt->quiet)
		return;
	memcpy(&st.t_s, payload, sizeof(double));
	st.interval_s = st.t_s - c->last_t;
	st.target = calloc(n + 1, sizeof(*st.target));
	if (!st.target)
		abort();
	fill_status(c, &st, now);
	out_status(stderr, &st, isatty(STDERR_FILENO));
	c->status_line = isatty(STDERR_FILENO);
	memcpy(c->last, now, n * sizeof(*now));
	c->last_t = st.t_s;
	free(st.target);
}

static void on_end(struct client *c, const char *payload, size_t len)
{
	struct sb_err err = { 0 };
	uint32_t end;

	c->done = true;
	if (len < sizeof(end))
		return;
	memcpy(&end, payload, sizeof(end));
	c->out->end = end;
	if (result_from_json(payload + sizeof(end), &c->out->result, &err) < 0)
		c->out->error = err;
}

static void on_answer(struct client *c, const char *payload, size_t len)
{
	free(c->answer);
	c->answer = strndup(payload, len);
}

static void (*const handlers[])(struct client *, const char *, size_t) = {
	[WIRE_LOG] = on_log,	   [WIRE_READY] = on_ready, [WIRE_ERROR] = on_error,
	[WIRE_STATUS] = on_status, [WIRE_END] = on_end,	    [WIRE_ANSWER] = on_answer,
};

static void hear_tracer(struct client *c)
{
	enum wire_type type;
	char *payload;
	size_t len;
	int alive = wire_read(&c->in);

	if (c->asked_ns)
		c->asked_ns = clock_ns();
	while (wire_next(&c->in, &type, &payload, &len))
		if (type < sizeof(handlers) / sizeof(*handlers) && handlers[type])
			handlers[type](c, payload, len);
	if (alive < 0 && !c->done) {
		c->done = true;
		c->out->tracer_died = true;
	}
}

/* It hangs, or is stopped: its end is noticed at its socket, and what it left is removed. */
static void end_tracer(const struct client *c)
{
	log_warn("the tracer has not ended within %llu s: it is killed, and its targets are "
		 "restored",
		 PATIENCE_NS / 1000000000ull);
	kill(c->tracer, SIGKILL);
}

/*
 * A launched command gets its signals as without sbinject: those of the terminal it has already;
 * those sent to us alone are passed on. With -p each of them means: detach and end.
 */
static void on_signal(struct client *c, const struct signalfd_siginfo *si)
{
	bool sent = si->ssi_code <= 0;

	if (si->ssi_signo == SIGCHLD) {
		if (launch_poll(&c->command) && !c->launched)
			tell_tracer(c);
		return;
	}
	c->interrupted = true;
	if (c->asked_ns && clock_ns() - c->asked_ns > PATIENCE_NS && !c->done) {
		end_tracer(c);
		return;
	}
	if (c->driven)
		return;
	if (!c->launched)
		tell_tracer(c);
	else if (!c->ready && si->ssi_signo != SIGINT)
		tell_tracer(c);
	if (c->command.pid && sent && !c->command.ended)
		kill(c->command.pid, (int)si->ssi_signo);
}

static void read_signals(struct client *c)
{
	struct signalfd_siginfo si;

	while (read(c->sigfd, &si, sizeof(si)) == sizeof(si))
		on_signal(c, &si);
}

static void catch_signals(struct client *c)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	c->sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

bool client_pump(struct client *c, int timeout_ms)
{
	struct pollfd fds[2 + TRACE_FILE_INPUTS] = {
		{ .fd = c->in.fd, .events = POLLIN },
		{ .fd = c->sigfd, .events = POLLIN },
	};

	if (c->done)
		return false;
	if (c->trace && (timeout_ms < 0 || timeout_ms > TRACE_FLUSH_MS))
		timeout_ms = TRACE_FLUSH_MS;
	trace_file_poll(c->trace, fds + 2);
	poll(fds, 2 + TRACE_FILE_INPUTS, timeout_ms);
	if (c->trace)
		trace_file_read(c->trace);
	if (fds[1].revents)
		read_signals(c);
	if (fds[0].revents)
		hear_tracer(c);
	return !c->done;
}

static void loop(struct client *c)
{
	while (client_pump(c, -1))
		;
	if (c->status_line)
		fputc('\n', stderr);
}

/* The hooks are removed (or were never planted): the command runs to its own end. */
static void await_command(struct client *c)
{
	struct pollfd fd = { .fd = c->sigfd, .events = POLLIN };

	if (!c->command.pid)
		return;
	if (!c->ready) {
		launch_abandon(&c->command);
		waitpid(c->command.pid, NULL, 0);
		c->command.pid = 0;
		return;
	}
	while (!launch_poll(&c->command)) {
		poll(&fd, 1, -1);
		read_signals(c);
	}
	c->out->has_command = true;
	c->out->command_status = launch_exit_status(&c->command);
}

/* Puts the named processes before their children. */
static void put_first(pid_t *pids, size_t *n, size_t *named, pid_t pid)
{
	size_t i = *named;

	while (i < *n && pids[i] != pid)
		i++;
	if (i == *n)
		++*n;
	pids[i] = pids[*named];
	pids[(*named)++] = pid;
}

/* Restores what a dead tracer left behind. */
static void restore_targets(struct client *c)
{
	const struct session_config *cfg = &c->opt->session;
	struct sb_err err = { 0 };
	size_t n, named = 0, restored = 0;
	pid_t *pids;

	waitpid(c->tracer, NULL, 0);
	if (c->backend->recover)
		c->backend->recover();
	strays_find(cfg->strays, &pids, &n, NULL);
	/* A tracer that was killed at its very first step leaves a descriptor, without our mark. */
	pids = realloc(pids, (n + cfg->n_pids + 1) * sizeof(*pids));
	if (!pids)
		abort();
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (strays_is_root(cfg->strays, cfg->pids[i]))
			put_first(pids, &n, &named, cfg->pids[i]);
	if (cfg->launched && !launch_poll(&c->command))
		put_first(pids, &n, &named, cfg->launched);
	recover_processes(pids, n, named, &restored, &err);
	free(pids);
	err_set(&c->out->error, SB_EINTERNAL, "the tracer died; %zu process%s restored", restored,
		restored == 1 ? " was" : "es were");
	if (err.code)
		err_hint(&c->out->error, "%s", err.what);
	else
		err_hint(&c->out->error, "the targets continue unchanged");
}

static void skip_add(struct session_config *cfg, pid_t pid)
{
	cfg->skip = realloc(cfg->skip, (cfg->n_skip + 1) * sizeof(*cfg->skip));
	if (!cfg->skip)
		abort();
	cfg->skip[cfg->n_skip++] = pid;
}

/* A process named by the user is also identified by its start time: its pid may be reused. */
static int start_strays(struct session_config *cfg)
{
	cfg->strays = strays_new();
	if (!cfg->strays)
		return -1;
	for (size_t i = 0; i < cfg->n_pids; i++)
		strays_root(cfg->strays, cfg->pids[i]);
	if (cfg->launched)
		strays_root(cfg->strays, cfg->launched);
	return 0;
}

static int start(struct client *c, const struct backend *backend)
{
	struct session_config *cfg = &c->opt->session;
	struct tracer_job job = { .backend = backend,
				  .cfg = cfg,
				  .interval_ns = c->opt->interval_ns,
				  .session_pid = getpid(),
				  .default_ns = c->opt->default_ns };

	c->backend = backend;
	skip_add(cfg, getpid());
	if (c->opt->background)
		skip_add(cfg, getppid()); /* the target may have started us */
	if (start_metrics(c) < 0)
		return -1;
	c->launched = c->opt->command && !cfg->n_pids && !cfg->all;
	if (c->opt->command &&
	    launch_start(&c->command, c->opt->command, c->launched, &c->out->error) < 0)
		return -1;
	if (c->command.pid && !cfg->all)
		skip_add(cfg, c->command.pid);
	cfg->launched = c->launched ? c->command.pid : 0;
	cfg->command = c->launched ? c->opt->command : NULL;
	if (c->launched)
		cfg->n_skip--; /* it is the target */
	if (start_strays(cfg) < 0)
		return err_set(&c->out->error, SB_ENOMEM, "no memory for the tracer");
	if (start_events(c, &job.events) < 0 || start_trace(c) < 0)
		return -1;
	catch_signals(c);
	c->tracer = tracer_start(&job, &c->in.fd);
	if (job.events >= 0)
		close(job.events);
	if (cfg->trace_fd)
		close(cfg->trace_fd);
	if (cfg->kernel_trace_fd)
		close(cfg->kernel_trace_fd);
	if (c->tracer < 0)
		return err_sys(&c->out->error, SB_ESYS, "the tracer could not be started");
	return 0;
}

static struct client *client_new(struct options *opt, struct client_outcome *out)
{
	struct client *c = calloc(1, sizeof(*c));

	memset(out, 0, sizeof(*out));
	if (!c)
		abort();
	c->opt = opt;
	c->out = out;
	c->sigfd = c->in.fd = -1;
	c->last = calloc(opt->session.targets.count + 1, sizeof(*c->last));
	if (!c->last)
		abort();
	return c;
}

static void client_end(struct client *c)
{
	if (c->tracer > 0 && !c->failed) {
		loop(c);
		if (c->out->tracer_died)
			restore_targets(c);
	}
	end_trace(c);
	metrics_close(c->metrics, c->out->result);
	await_command(c);
	if (c->tracer > 0)
		waitpid(c->tracer, NULL, 0);
	strays_free(c->opt->session.strays);
	c->opt->session.strays = NULL;
	free(c->in.buf);
	free(c->last);
	free(c->answer);
	free(c);
}

void client_run(struct options *opt, const struct backend *backend, struct client_outcome *out)
{
	struct client *c = client_new(opt, out);

	c->failed = start(c, backend) < 0;
	client_end(c);
}

struct client *client_open(struct options *opt, const struct backend *backend, bool hold,
			   struct client_outcome *out)
{
	struct client *c = client_new(opt, out);

	c->driven = true;
	c->hold_command = hold;
	c->failed = start(c, backend) < 0;
	while (!c->failed && !c->ready && client_pump(c, -1))
		if (c->interrupted && !c->asked_ns)
			tell_tracer(c);
	if (c->ready)
		return c;
	client_close(c);
	return NULL;
}

int client_release(struct client *c)
{
	c->hold_command = false;
	return c->command.pid ? launch_go(&c->command, c->tracer, &c->out->error) : 0;
}

const char *client_ask(struct client *c, const char *request)
{
	uint32_t len = (uint32_t)strlen(request);
	char *msg = malloc(1 + sizeof(len) + len);
	bool sent;

	if (!msg)
		abort();
	msg[0] = WIRE_ASK;
	memcpy(msg + 1, &len, sizeof(len));
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): its length goes before it */
	memcpy(msg + 1 + sizeof(len), request, len);
	free(c->answer);
	c->answer = NULL;
	sent = write(c->in.fd, msg, 1 + sizeof(len) + len) == (ssize_t)(1 + sizeof(len) + len);
	free(msg);
	while (sent && !c->answer && client_pump(c, -1))
		if (c->interrupted && !c->asked_ns)
			tell_tracer(c);
	return c->answer;
}

bool client_interrupted(const struct client *c)
{
	return c->interrupted;
}

void client_detach(struct client *c)
{
	if (!c->done && c->in.fd >= 0)
		tell_tracer(c);
	loop(c);
}

void client_close(struct client *c)
{
	if (!c->done && c->in.fd >= 0)
		tell_tracer(c);
	client_end(c);
}
