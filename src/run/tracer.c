/* SPDX-License-Identifier: MIT */
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "beside.h"
#include "wire.h"
#include "elf/reader.h"
#include "inject/clock.h"
#include "inject/fault.h"
#include "src/base/crowd.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/control/server.h"
#include "stream.h"
#include "witness.h"

enum { PENDING_SHOWN = 5, /* pending targets to report, of many */ SIGNALS = 8 /* read at once */ };

struct tracer {
	const struct tracer_job *job;
	struct session_core *session;
	struct session_core *kernel; /* of targets in the kernel, beside them; NULL: none */
	bool kernel_opened;	     /* ... which count from the window of the first session on */
	struct wire_out out;
	int sigfd;
	size_t typed; /* targets that this session began with */
	bool quit;
	uint64_t next_status;
	struct control_state control;
	struct control_server *server; /* NULL: none */
	struct stream events;
	uint64_t next_look;		     /* at what /proc has of the evidence */
	char hear[CONTROL_MAX_REQUEST + 16]; /* unhandled input from the command line */
	size_t heard;
};

static void send_log(enum log_level level, const char *line, void *ctx)
{
	struct tracer *t = ctx;
	char byte = (char)level;

	wire_send(&t->out, WIRE_LOG, &byte, 1, line, strlen(line));
}

static void send_error(struct tracer *t, const struct sb_err *err)
{
	wire_send(&t->out, WIRE_ERROR, err, sizeof(*err), NULL, 0);
}

/* Of a target with time=yes. */
static void fill_times(const struct backend *b, struct session_core *s, size_t index,
		       struct wire_status_target *to)
{
	struct session_target target;
	struct result_times times;

	session_state(s, index, &target);
	if (!b->times || !target.spec->timed)
		return;
	b->times(s, index, &times);
	to->calls = times.calls;
	to->calls_ns = times.inclusive_ns;
	free(times.bucket);
}

/* Returns the end of the list. */
static struct wire_status_target *fill_status(const struct backend *b, struct session_core *s,
					      struct wire_status_target *list, double *t_s)
{
	size_t n = session_targets(s);
	struct result_counts *counts = must_calloc(n + 1, sizeof(*counts));

	session_counts(s, counts, t_s);
	for (size_t i = 0; i < n; i++) {
		list[i] = (struct wire_status_target){ .hits = counts[i].hits,
						       .delayed = counts[i].delayed,
						       .injected_ns = counts[i].injected_ns,
						       .overrun_ns = counts[i].overrun_ns };
		fill_times(b, s, i, &list[i]);
	}
	free(counts);
	return list + n;
}

/* The command line has the targets in the kernel behind those that were typed. */
static void put_behind(struct wire_status_target *list, size_t typed, size_t n, size_t kernel)
{
	struct wire_status_target *moved = must_calloc(kernel + 1, sizeof(*moved));

	memcpy(moved, list + n, kernel * sizeof(*moved));
	memmove(list + typed + kernel, list + typed, (n - typed) * sizeof(*moved));
	memcpy(list + typed, moved, kernel * sizeof(*moved));
	free(moved);
}

static void send_status(struct tracer *t)
{
	size_t n = session_targets(t->session), kernel = t->kernel ? session_targets(t->kernel) : 0;
	struct wire_status_target *list = must_calloc(n + kernel + 1, sizeof(*list)), *end;
	double t_s, ignored;

	end = fill_status(t->job->backend, t->session, list, &t_s);
	if (t->kernel) {
		fill_status(&backend_uprobe, t->kernel, end, &ignored);
		put_behind(list, t->typed, n, kernel);
	}
	wire_send(&t->out, WIRE_STATUS, &t_s, sizeof(t_s), list, (n + kernel) * sizeof(*list));
	free(list);
}

static void send_result(struct tracer *t, enum session_end end, struct result *res)
{
	uint32_t code = end;
	char *json = result_to_json(res, false);

	wire_send(&t->out, WIRE_END, &code, sizeof(code), json, strlen(json));
	control_server_close(t->server, json);
	t->server = NULL;
	free(json);
	result_free(res);
}

static void answer(struct tracer *t, const char *request, size_t len)
{
	char *text = control_answer(&t->control, request, len);

	wire_send(&t->out, WIRE_ANSWER, text, strlen(text), NULL, 0);
	free(text);
	t->quit |= t->control.stop;
}

/* Handles the whole messages in the input. False: the input is invalid. */
static bool take_messages(struct tracer *t)
{
	size_t at = 0;
	uint32_t len;

	while (at < t->heard) {
		const char *msg = t->hear + at;

		if (*msg == WIRE_QUIT) {
			t->quit = true;
			at++;
			continue;
		}
		if (*msg != WIRE_ASK)
			return false;
		if (t->heard - at < 1 + sizeof(len))
			break;
		memcpy(&len, msg + 1, sizeof(len));
		if (len > CONTROL_MAX_REQUEST)
			return false;
		if (t->heard - at < 1 + sizeof(len) + len)
			break;
		answer(t, msg + 1 + sizeof(len), len);
		at += 1 + sizeof(len) + len;
	}
	memmove(t->hear, t->hear + at, t->heard - at);
	t->heard -= at;
	return true;
}

/* The end of the command line ends the session. */
static void hear(struct tracer *t)
{
	ssize_t n = recv(t->out.fd, t->hear + t->heard, sizeof(t->hear) - t->heard, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		t->out.broken = t->quit = true;
	if (n > 0)
		t->heard += (size_t)n;
	if (!take_messages(t))
		t->quit = true;
}

static void read_signals(struct tracer *t)
{
	struct signalfd_siginfo si[SIGNALS];
	ssize_t n;

	do {
		n = read(t->sigfd, si, sizeof(si));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*si); i++)
			if (si[i].ssi_signo != SIGCHLD)
				t->quit = true;
	} while (n == sizeof(si));
}

static void wait_for_something(struct tracer *t, int ms)
{
	enum { OWN = 4 };
	struct pollfd fds[OWN + CONTROL_FDS] = {
		{ .fd = t->out.fd, .events = POLLIN | (t->out.len ? POLLOUT : 0) },
		{ .fd = t->sigfd, .events = POLLIN },
		{ .fd = t->job->backend->fd(t->session), .events = POLLIN },
		{ .fd = t->kernel ? backend_uprobe.fd(t->kernel) : -1, .events = POLLIN },
	};
	size_t n;

	n = OWN + control_server_poll(t->server, fds + OWN);
	poll(fds, n, ms);
	if (fds[0].revents)
		hear(t);
	if (fds[1].revents)
		read_signals(t);
	control_server_serve(t->server, fds + OWN, n - OWN, &t->control);
	t->quit |= t->control.stop;
	wire_flush(&t->out);
}

/*
 * For a session in the middle of an operation: sends its messages. A request is left unread, since
 * it would change the session during the operation; only the request to end is recognised.
 */
static bool asked_to_end(void *ctx)
{
	struct tracer *t = ctx;
	char byte = 0;
	ssize_t n = recv(t->out.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	read_signals(t);
	wire_flush(&t->out);
	return t->quit || n == 0 || (n == 1 && !t->heard && byte == WIRE_QUIT);
}

static int status_due(struct tracer *t, int ms)
{
	uint64_t now = clock_ns(), interval = t->job->interval_ns;
	uint64_t left;

	if (!interval)
		return ms;
	if (!t->next_status)
		t->next_status = now + interval;
	if (now >= t->next_status) {
		send_status(t);
		stream_counters(&t->events, t->control.evidence);
		t->next_status += (now - t->next_status + interval) / interval * interval;
	}
	left = (t->next_status - now) / 1000000 + 1;
	return left < (uint64_t)ms ? (int)left : ms;
}

static void drain(struct tracer *t)
{
	struct pollfd fd = { .fd = t->out.fd, .events = POLLOUT };

	/* No thread of the target is held any more: the command line may take its time. */
	while (!wire_flush(&t->out))
		poll(&fd, 1, 1000);
}

/* A list of a preset: once, by its first target. */
static bool tell_list(const struct session_target *s)
{
	const struct spec *spec = s->spec;

	if (!s->pending || spec->follows)
		return false;
	log_note("preset '%s' is pending: no mapped library is %s", spec->row->preset->name,
		 spec->module);
	return true;
}

/* For a command that has not begun: reports only what no library that it loads can change. */
static bool show_one(const struct tracer *t, const struct session_target *s)
{
	char hint[sizeof(s->why->hint)];
	const struct maps none = { 0 };

	if (!s->pending || s->spec->kind == SPEC_PYTHON || s->spec->optional)
		return false;
	if (s->spec->listed)
		return !t->job->cfg->launched && !s->seen && tell_list(s);
	if (t->job->cfg->launched) {
		if (guess_target(s->spec, 0, &none, "", hint, sizeof(hint)) != GUESS_WRITTEN)
			return false;
		log_warn("target '%s': %s", s->spec->text, hint);
	} else if (!s->why) {
		return false;
	} else if (s->guess == GUESS_AWAITED) {
		log_note("target '%s' is pending: %s", s->spec->text, s->why->hint);
	} else {
		log_warn("target '%s' is pending: %s%s%s", s->spec->text, s->why->what,
			 s->why->hint[0] ? "; " : "", s->why->hint);
	}
	return true;
}

/* Reports the targets that are waited for. */
static void tell_pending(const struct tracer *t)
{
	size_t shown = 0, n = session_targets(t->session);

	for (size_t i = 0; i < n && shown < PENDING_SHOWN; i++) {
		struct session_target s = { 0 };

		session_state(t->session, i, &s);
		shown += show_one(t, &s);
	}
	if (shown == PENDING_SHOWN)
		log_note("more may be pending: sbctl list shows what is hooked");
}

/* Both count in the same window, that of the first session. */
static void open_kernel(struct tracer *t)
{
	if (!t->kernel || t->kernel_opened || !session_begun(t->session))
		return;
	session_enable(t->kernel, true);
	t->kernel_opened = true;
}

/* The end of the first session is that of both. */
static void step_kernel(struct tracer *t, int *ms)
{
	struct sb_err ignored = { 0 };
	int own = *ms;

	if (!t->kernel)
		return;
	open_kernel(t);
	backend_uprobe.step(t->kernel, &own, &ignored);
	*ms = own < *ms ? own : *ms;
}

static enum session_end run(struct tracer *t, struct sb_err *err)
{
	enum session_end end;
	int ms = 0;

	while (!t->quit) {
		end = t->job->backend->step(t->session, &ms, err);
		step_kernel(t, &ms);
		stream_states(&t->events, t->session);
		witness_look(t->control.evidence, &t->next_look);
		if (end != SESSION_RUNS)
			return end;
		wait_for_something(t, status_due(t, ms));
	}
	return SESSION_RUNS;
}

/* Before the attach, since it takes some tenths of a second. */
static void open_evidence(struct tracer *t)
{
	const struct sb_err *limit;

	if (!t->job->cfg->evidence)
		return;
	t->control.evidence = witness_open(t->job->cfg, t->events.to);
	limit = evidence_limit(t->control.evidence);
	if (limit)
		log_note("--evidence is what /proc has: %s; %s", limit->what, err_remedy(limit));
	witness_measure(t->control.evidence, t->job->cfg);
}

/* After the attach, whose stops are no waits of the program. */
static void begin_evidence(struct tracer *t)
{
	if (!t->control.evidence)
		return;
	witness_begin(t->control.evidence, t->job->cfg);
	stream_waits(&t->events, t->control.evidence);
}

/* Programs in the kernel take a while, and hold no thread: they come first, and count nothing yet.
 */
static int attach(struct tracer *t, struct sb_err *err)
{
	if (t->job->backend->check(t->session, err) < 0 ||
	    (t->kernel && backend_uprobe.check(t->kernel, err) < 0))
		return -1;
	open_evidence(t);
	if (t->kernel)
		session_enable(t->kernel, false);
	if (t->kernel && session_attach(t->kernel, err) < 0)
		return -1;
	if (session_attach(t->session, err) == 0) {
		open_kernel(t);
		return 0;
	}
	if (t->kernel)
		session_detach(t->kernel);
	return -1;
}

static void detach(struct tracer *t)
{
	if (t->kernel)
		session_enable(t->kernel, false);
	session_detach(t->session);
	if (t->kernel)
		session_detach(t->kernel);
}

static struct result *result_of(struct tracer *t)
{
	struct result *res = session_result(t->session);

	if (t->kernel)
		beside_merge(res, t->typed, session_result(t->kernel));
	return res;
}

static void do_run(struct tracer *t)
{
	struct result_evidence evidence = { 0 };
	struct sb_err err = { 0 }, why = { 0 };
	struct result *res;
	enum session_end end;

	if (stream_open(&t->events, t->job->events, &err) < 0 || attach(t, &err) < 0) {
		stream_close(&t->events, &evidence.stream);
		send_error(t, &err);
		return;
	}
	begin_evidence(t);
	t->server = control_server_open(t->job->session_pid, &why);
	if (!t->server)
		log_warn("sbctl cannot reach this session: %s%s%s", why.what,
			 why.hint[0] ? "; " : "", why.hint);
	stream_event(&t->events, "attached", NULL);
	tell_pending(t);
	stream_states(&t->events, t->session);
	wire_send(&t->out, WIRE_READY, "", 0, NULL, 0);
	end = run(t, &err);
	stream_end(&t->events, t->control.evidence, &evidence);
	stream_event(&t->events, "detaching", NULL);
	detach(t);
	if (t->control.evidence)
		witness_measured(t->control.evidence, &evidence);
	stream_states(&t->events, t->session);
	stream_event(&t->events, "detached", NULL);
	stream_close(&t->events, &evidence.stream);
	if (end == SESSION_END_SLOWDOWN)
		send_error(t, &err);
	res = result_of(t);
	res->evidence = evidence;
	send_result(t, end, res);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors but the standard ones and these; 0: none. */
static void keep_only(int *fd, size_t n)
{
	unsigned int next = 3;

	qsort(fd, n, sizeof(*fd), by_number);
	for (size_t i = 0; i < n; i++) {
		if (fd[i] < 3)
			continue;
		if ((unsigned int)fd[i] > next)
			syscall(SYS_close_range, next, (unsigned int)fd[i] - 1, 0);
		next = (unsigned int)fd[i] + 1;
	}
	syscall(SYS_close_range, next, ~0u, 0);
}

/* Detaches from the terminal, its signals and its files. */
static void detach_from_terminal(int keep_fd, const struct tracer_job *job)
{
	int keep[] = { keep_fd, job->cfg->trace_fd, job->cfg->kernel_trace_fd, job->events };
	int null = open("/dev/null", O_RDWR);

	setsid();
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	keep_only(keep, sizeof(keep) / sizeof(*keep));
	prctl(PR_SET_NAME, "sbinject-tracer");
	/* Its memory holds data of its targets. */
	prctl(PR_SET_DUMPABLE, 0);
}

static void catch_signals(struct tracer *t)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	t->sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool open_sessions(struct tracer *t, const struct session_config *own,
			  const struct session_config *kernel, struct sb_err *err)
{
	t->typed = own->targets.count;
	t->session = session_open(t->job->backend, own, err);
	if (!t->session || !kernel)
		return t->session;
	t->kernel = backend_uprobe.probe(err) < 0 ? NULL :
						    session_open(&backend_uprobe, kernel, err);
	return t->kernel;
}

static void tracer_main(const struct tracer_job *job, int fd, pid_t client)
{
	static struct tracer t; /* static: it is large */
	struct session_config cfg, kernel;
	bool beside = beside_split(job->backend, job->cfg, &cfg, &kernel);
	struct sb_err err = { 0 };

	t.job = job;
	crowd_hurry(); /* its parent's priority ended at the fork */
	detach_from_terminal(fd, job);
	reader_start(); /* with nothing of a target in its memory */
	catch_signals(&t);
	wire_open(&t.out, fd);
	log_set_sink(send_log, &t);
	fault_client(client);
	cfg.ends = kernel.ends = asked_to_end;
	cfg.ends_ctx = kernel.ends_ctx = &t;
	if (!open_sessions(&t, &cfg, beside ? &kernel : NULL, &err)) {
		send_error(&t, &err);
	} else {
		t.control = (struct control_state){ .backend = job->backend,
						    .session = t.session,
						    .default_ns = job->default_ns,
						    .changed = stream_event,
						    .ctx = &t.events };
		do_run(&t);
		evidence_close(t.control.evidence);
	}
	if (t.kernel)
		session_free(t.kernel);
	if (t.session)
		session_free(t.session);
	beside_free(&cfg, &kernel);
	drain(&t);
	wire_close(&t.out);
	close(t.sigfd);
}

pid_t tracer_start(const struct tracer_job *job, int *fd)
{
	pid_t client = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		tracer_main(job, pair[1], client);
		_exit(0);
	}
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*fd = pair[0];
	return pid;
}
