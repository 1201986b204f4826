/* SPDX-License-Identifier: MIT */
/*
 * Recorded calls of the kernel's places: from the ring of their programs to the pipe of the trace,
 * in a thread of its own, since the reader of the pipe may be slow.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "priv.h"
#include "inject/clock.h"
#include "requests.h"
#include "switches.h"
#include "src/spec/ioctls.h"
#include "src/session/trace-pipe.h"

enum { LOOK_MS = 20 };

struct place_name {
	char *name, *module;
	uint32_t set, n_values, in_span; /* values in the trace, and in what the program writes */
	bool declared;
	enum spec_kind kind; /* SPEC_IOCTL and the two behind it: each call is a function by what
				it says */
};

struct thread_name {
	uint32_t tid, pid;
	char comm[16];
};

struct uspans {
	int fd;
	double rate; /* calls a second at most; 0: all */
	pthread_t thread;
	pthread_mutex_t lock;
	struct kernel_reader *reader;
	struct trace_bytes bytes;
	struct place_name *place;
	size_t n_places;
	uint32_t n_sets;
	struct thread_name *known; /* its number in the trace is its index, from 1 */
	size_t n_known;
	struct requests requests;
	struct switches switches;
	pid_t *pid; /* declared */
	size_t n_pids;
	uint64_t begun_ns, calls, filtered, second, in_second;
	bool end, deaf; /* deaf: the pipe's reader is gone */
};

/* ---- declarations ---- */

static void declare_process(struct uspans *u, pid_t pid, const char *thread)
{
	char comm[64], *exe = NULL;

	for (size_t i = 0; i < u->n_pids; i++)
		if (u->pid[i] == pid)
			return;
	result_add_pid(&u->pid, &u->n_pids, pid);
	processes_names(pid, comm, sizeof(comm), &exe);
	free(exe);
	trace_put_process(&u->bytes, &(struct trace_process){ pid, *comm ? comm : thread });
}

/* Of no thread: what is known apart by its name, an interrupted processor or an idle one. */
static bool same_thread(const struct thread_name *t, const struct kernel_span *span)
{
	return t->tid == span->tid && t->pid == span->pid &&
	       (span->pid || !memcmp(t->comm, span->comm, sizeof(span->comm)));
}

/* The latest ones first: they come in rows. */
static uint32_t thread_of(struct uspans *u, const struct kernel_span *span)
{
	struct thread_name *t;
	size_t i = u->n_known;

	while (i && !same_thread(&u->known[i - 1], span))
		i--;
	if (i && !memcmp(u->known[i - 1].comm, span->comm, sizeof(span->comm)))
		return (uint32_t)i;
	if (!i) {
		declare_process(u, (pid_t)span->pid,
				span->pid ? span->comm : "interrupts and idle processors");
		u->known = must_realloc(u->known, (u->n_known + 1) * sizeof(*u->known));
		i = ++u->n_known;
	}
	t = &u->known[i - 1];
	*t = (struct thread_name){ .tid = span->tid, .pid = span->pid };
	memcpy(t->comm, span->comm, sizeof(t->comm));
	t->comm[sizeof(t->comm) - 1] = '\0';
	trace_put_thread(&u->bytes, &(struct trace_thread){ .id = (uint32_t)i,
							    .pid = (int32_t)span->pid,
							    .tid = (int32_t)span->tid,
							    .name = t->comm });
	return (uint32_t)i;
}

static void declare_place(struct uspans *u, uint32_t place)
{
	struct place_name *p = &u->place[place];

	if (!p->declared)
		trace_put_function(&u->bytes, &(struct trace_function){ place + 1, TRACE_KERNEL,
									p->name, p->module });
	p->declared = true;
}

/* ---- calls ---- */

static bool too_many(struct uspans *u, const struct kernel_span *span)
{
	uint64_t second = span->start_ns / 1000000000;

	if (second != u->second)
		u->in_second = 0;
	u->second = second;
	return u->rate > 0 && (double)++u->in_second > u->rate;
}

/* The function and the values of a call. */
static void fill(struct uspans *u, struct kernel_span *span, struct trace_valued *v)
{
	const struct place_name *p = &u->place[span->place];

	switch (p->kind) {
	case SPEC_IOCTL:
		v->plain.function = requests_take(&u->requests, span, v, &u->bytes);
		break;
	case SPEC_INTERRUPT:
		v->plain.function = switches_interrupt(&u->switches, span, v, span->comm,
						       &u->bytes);
		break;
	case SPEC_OFFCPU:
		v->plain.function = switches_offcpu(&u->switches, span, &u->bytes);
		break;
	default:
		declare_place(u, span->place);
		memcpy(v->value, span->value, p->n_values * sizeof(*v->value));
	}
}

/* A call that began before the trace is none of it. */
static void on_span(void *ctx, const struct kernel_span *given)
{
	struct uspans *u = ctx;
	struct kernel_span span = { 0 };
	struct trace_valued v = { .plain = { .start_ns = given->start_ns,
					     .dur_ns = given->dur_ns,
					     .function = given->place + 1,
					     .kind = TRACE_CALL } };

	if (given->place >= u->n_places || given->start_ns < u->begun_ns || too_many(u, given)) {
		u->filtered++;
		return;
	}
	memcpy(&span, given, KERNEL_SPAN_SIZE(u->place[given->place].in_span));
	fill(u, &span, &v);
	v.plain.thread = thread_of(u, &span);
	v.set = u->place[span.place].set;
	if (u->place[span.place].n_values)
		trace_put_valued(&u->bytes, &v, 1);
	else
		trace_put_spans(&u->bytes, &v.plain, 1);
	u->calls++;
}

static void send(struct uspans *u)
{
	for (size_t at = 0; at < u->bytes.len && !u->deaf;) {
		ssize_t n = write(u->fd, u->bytes.data + at, u->bytes.len - at);

		if (n < 0 && errno != EINTR)
			u->deaf = true;
		at += n > 0 ? (size_t)n : 0;
	}
	u->bytes.len = 0;
}

static void *run(void *ctx)
{
	struct uspans *u = ctx;
	bool end = false;

	while (!end) {
		kernel_reader_wait(u->reader, LOOK_MS);
		pthread_mutex_lock(&u->lock);
		end = u->end;
		kernel_reader_take(u->reader);
		pthread_mutex_unlock(&u->lock);
		send(u);
	}
	return NULL;
}

/* ---- life ---- */

static void put_begin(struct uspans *u)
{
	struct trace_begin begin = { .begin_unix_ns = clock_realtime_ns() };
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	u->begun_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	begin.begin_ns = u->begun_ns;
	trace_put(&u->bytes, TRACE_MESSAGE_BEGIN, &begin, sizeof(begin));
}

struct uspans *uspans_open(const struct session_config *cfg, int ring, struct sb_err *err)
{
	struct uspans *u = must_calloc(1, sizeof(*u));
	sigset_t all, old;
	int ret;

	u->fd = cfg->trace_fd;
	u->rate = cfg->trace_rate;
	u->reader = kernel_reader_open(ring, on_span, u);
	put_begin(u);
	pthread_mutex_init(&u->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = u->reader ? pthread_create(&u->thread, NULL, run, u) : ENOMEM;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		return u;
	kernel_reader_close(u->reader);
	free(u->bytes.data);
	free(u);
	err_set(err, SB_ENOMEM, "no thread for the calls of the kernel's functions: %s",
		strerror(ret));
	return NULL;
}

void uspans_hold(struct uspans *u)
{
	if (u)
		pthread_mutex_lock(&u->lock);
}

void uspans_go(struct uspans *u)
{
	if (u)
		pthread_mutex_unlock(&u->lock);
}

static bool put_values(struct uspans *u, const struct spec *spec, uint32_t *set)
{
	struct trace_values values = { .set = u->n_sets, .n = (uint32_t)spec->n_values };

	if (!spec->n_values && spec->kind != SPEC_IOCTL && spec->kind != SPEC_INTERRUPT)
		return true;
	if (u->n_sets == TRACE_VALUE_SETS)
		return false;
	for (size_t i = 0; i < spec->n_values; i++) {
		memcpy(values.value[i].name, spec->value[i].name, sizeof(values.value[i].name));
		values.value[i].type = spec->value[i].type;
	}
	if (spec->kind == SPEC_IOCTL)
		requests_values(&values);
	else if (spec->kind == SPEC_INTERRUPT)
		switches_values(&values);
	*set = u->n_sets++;
	trace_put_values(&u->bytes, &values);
	return true;
}

bool uspans_name(struct uspans *u, uint32_t place, const char *name, const char *module,
		 const struct spec *spec)
{
	struct place_name *p;
	uint32_t set = 0;

	if (!u)
		return true;
	if (!put_values(u, spec, &set))
		return false;
	while (u->n_places <= place) {
		u->place = must_realloc(u->place, (u->n_places + 1) * sizeof(*u->place));
		u->place[u->n_places++] = (struct place_name){ 0 };
	}
	p = &u->place[place];
	*p = (struct place_name){ .name = must_strdup(name),
				  .module = must_strdup(module),
				  .set = set,
				  .n_values = (uint32_t)spec->n_values,
				  .in_span = (uint32_t)spec->n_values,
				  .kind = spec->kind };
	if (spec->kind == SPEC_IOCTL) {
		p->n_values = REQUEST_VALUES;
		p->in_span = KERNEL_IOCTL_VALUES;
		ioctls_load();
	} else if (spec->kind == SPEC_INTERRUPT) {
		p->n_values = INTERRUPT_VALUES;
		p->in_span = KERNEL_INTERRUPT_VALUES;
	} else if (spec->kind == SPEC_OFFCPU) {
		p->in_span = KERNEL_OFFCPU_VALUES;
	}
	return true;
}

static void put_end(struct uspans *u, const struct uspans_sums *sums)
{
	struct timespec now;
	struct trace_end end = { .spans = u->calls,
				 .lost = sums->lost,
				 .filtered = sums->filtered };

	clock_gettime(CLOCK_MONOTONIC, &now);
	end.end_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	trace_put(&u->bytes, TRACE_MESSAGE_END, &end, sizeof(end));
	send(u);
}

void uspans_close(struct uspans *u, struct uspans_sums *sums)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	u->end = true;
	pthread_mutex_unlock(&u->lock);
	pthread_join(u->thread, NULL);
	sums->calls += u->calls;
	sums->filtered += u->filtered;
	put_end(u, sums);
	close(u->fd);
	kernel_reader_close(u->reader);
	pthread_mutex_destroy(&u->lock);
	for (size_t i = 0; i < u->n_places; i++) {
		free(u->place[i].name);
		free(u->place[i].module);
	}
	free(u->place);
	requests_free(&u->requests);
	switches_free(&u->switches);
	free(u->known);
	free(u->pid);
	free(u->bytes.data);
	free(u);
}
