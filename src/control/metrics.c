/* SPDX-License-Identifier: MIT */
#include "metrics.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "metrics-page.h"
#include "microhttpd.h"
#include "report.h"
#include "runtime.h"
#include "src/base/caps.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/out/out.h"

#define OPENMETRICS "application/openmetrics-text"
#define CLASSIC	    "text/plain; version=0.0.4; charset=utf-8"

enum { OPEN_LIMIT = 32, OPEN_MOST = 16 };

struct metrics {
	struct metrics_config cfg;
	struct MHD_Daemon *http;
	struct steady *steady;
	pthread_t writer;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool writing, stop;
	int open[OPEN_LIMIT]; /* connections, the oldest first; for the server's thread only */
	size_t n_open;
};

/* ---- the text ---- */

/* A label's value, escaped as the format requires. */
static void put_label(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '\\' || *s == '"')
			fprintf(f, "\\%c", *s);
		else if (*s == '\n')
			fputs("\\n", f);
		else
			fputc(*s, f);
	}
}

/* Above this share of what was shown, a smaller value is a better reading of the clock. */
#define SAME 0.999

/* The labels of a target. One that is limited to a process tree has the tree, too: two may have one
 * name. */
static void put_target(FILE *f, const char *name, const json_t *t)
{
	const char *spec = json_string_value(json_object_get(t, "target"));
	const json_t *tree = json_object_get(t, "pid");

	fprintf(f, "%s{target=\"", name);
	put_label(f, spec ? spec : "");
	fputc('"', f);
	if (tree)
		fprintf(f, ",tree=\"%lld\"", (long long)json_integer_value(tree));
}

static void row(FILE *f, const char *name, const json_t *t, pid_t pid, double value)
{
	put_target(f, name, t);
	if (pid)
		fprintf(f, ",pid=\"%d\"", pid);
	fprintf(f, "} %.17g\n", value);
}

/* A counter of a target: `more` tells apart those of one name. See steady.h for reset. */
static double steady(const struct page *p, const char *name, const json_t *t, long long more,
		     double value, double reset)
{
	char key[128];

	snprintf(key, sizeof(key), "%s %lld %lld", name,
		 (long long)json_integer_value(json_object_get(t, "index")), more);
	return steady_value(p->steady, key, value, reset);
}

static const struct counter {
	const char *name, *key, *unit, *help;
	double scale;
	int lane; /* its column in a lane; 0: not by process */
} counters[] = {
	{ "sbinject_hits", "hits", NULL, "Calls counted.", 1, 3 },
	{ "sbinject_delayed", "delayed", NULL, "Calls delayed.", 1, 0 },
	{ "sbinject_injected_seconds", "injected_ns", "seconds", "Measured delay given.", 1e-9, 4 },
	{ "sbinject_overrun_seconds", "overrun_ns", "seconds",
	  "Time in which delays were interrupted: preemption.", 1e-9, 5 },
};

enum { COUNTERS = sizeof(counters) / sizeof(*counters) };

/* Lanes are by thread: adds up those of one process and target. */
static void rows_by_pid(const struct page *p, const struct counter *c, const json_t *targets,
			const json_t *lanes)
{
	size_t i, k, j;
	json_t *t, *lane, *other;
	char name[80];

	snprintf(name, sizeof(name), "%s_total", c->name);
	json_array_foreach((json_t *)targets, i, t)
	{
		json_int_t index = json_integer_value(json_object_get(t, "index"));

		json_array_foreach((json_t *)lanes, k, lane)
		{
			json_int_t pid = json_integer_value(json_array_get(lane, 1));
			double sum = 0;
			bool first = true;

			if (json_integer_value(json_array_get(lane, 0)) != index)
				continue;
			json_array_foreach((json_t *)lanes, j, other)
			{
				if (json_integer_value(json_array_get(other, 0)) != index ||
				    json_integer_value(json_array_get(other, 1)) != pid)
					continue;
				first &= j >= k;
				sum += (double)json_integer_value(
					json_array_get(other, (size_t)c->lane));
			}
			if (first)
				row(p->f, name, t, (pid_t)pid,
				    steady(p, name, t, (long long)pid, sum * c->scale, SAME));
		}
	}
}

static void put_counters(const struct page *p, const json_t *targets, const json_t *lanes)
{
	FILE *f = p->f;
	char name[80];
	json_t *t;
	size_t i;

	for (int c = 0; c < COUNTERS; c++) {
		page_head(p, counters[c].name, "counter", counters[c].unit, counters[c].help);
		snprintf(name, sizeof(name), "%s_total", counters[c].name);
		if (lanes && counters[c].lane) {
			rows_by_pid(p, &counters[c], targets, lanes);
			continue;
		}
		json_array_foreach((json_t *)targets, i, t)
			row(f, name, t, 0,
			    steady(p, name, t, 0,
				   (double)json_integer_value(json_object_get(t, counters[c].key)) *
					   counters[c].scale,
				   SAME));
	}
}

static void put_gauges(const struct page *p, const json_t *targets, const json_t *status)
{
	static const char *const states[] = { "on", "off", "pending" };
	FILE *f = p->f;
	json_t *t;
	size_t i;

	page_head(p, "sbinject_delay_seconds", "gauge", "seconds", "Delay asked for a call.");
	json_array_foreach((json_t *)targets, i, t)
		row(f, "sbinject_delay_seconds", t, 0,
		    (double)json_integer_value(json_object_get(t, "delay_ns")) * 1e-9);
	page_head(p, "sbinject_target_state", "stateset", NULL, "What a target is doing.");
	json_array_foreach((json_t *)targets, i, t)
	{
		const char *is = json_string_value(json_object_get(t, "state"));

		for (int s = 0; s < 3; s++) {
			put_target(f, "sbinject_target_state", t);
			fprintf(f, ",sbinject_target_state=\"%s\"} %d\n", states[s],
				is && !strcmp(is, states[s]));
		}
	}
	page_head(p, "sbinject_enabled", "gauge", NULL, "1 while targets count and delay.");
	fprintf(f, "sbinject_enabled %d\n", json_is_true(json_object_get(status, "enabled")));
	page_head(p, "sbinject_processes", "gauge", NULL, "Processes in the session.");
	fprintf(f, "sbinject_processes %zu\n", json_array_size(json_object_get(status, "pids")));
}

/* ---- how long calls took ---- */

#define BOUND_LEAST 64u /* ns; each bound is twice the one before */
enum { BOUNDS = 31 };	/* up to 68.7 s */

static uint64_t number(const json_t *value)
{
	const char *digits = json_string_value(value); /* above 2^63 - 1 */

	return digits ? strtoull(digits, NULL, 10) : (uint64_t)json_integer_value(value);
}

/* The calls of a bucket that straddles a bound count above it: each was at most that long. */
static void count_calls(const json_t *histogram, uint64_t count[BOUNDS + 1])
{
	json_t *bucket;
	size_t i;

	json_array_foreach((json_t *)histogram, i, bucket)
	{
		uint64_t to_ns = number(json_array_get(bucket, 1));
		int k = 0;

		while (k < BOUNDS && to_ns > (uint64_t)BOUND_LEAST << k)
			k++;
		count[k] += number(json_array_get(bucket, 2));
	}
}

/* The number of calls is that of the buckets: a call that returns meanwhile is in both or none. */
static void put_durations(const struct page *p, const json_t *t, const json_t *spans)
{
	static const char sum_name[] = "sbinject_call_duration_seconds_sum";
	uint64_t count[BOUNDS + 1] = { 0 };
	double calls = 0, shown = 0;

	count_calls(json_object_get(spans, "histogram"), count);
	for (int k = 0; k <= BOUNDS; k++) {
		char bound[32] = "+Inf";

		if (k < BOUNDS)
			snprintf(bound, sizeof(bound), "%.12g",
				 (double)((uint64_t)BOUND_LEAST << k) * 1e-9);
		calls += (double)count[k];
		/* No bound has fewer calls than the one below it. */
		shown = fmax(shown, steady(p, "bucket", t, k, calls, 0));
		put_target(p->f, "sbinject_call_duration_seconds_bucket", t);
		fprintf(p->f, ",le=\"%s\"} %.17g\n", bound, shown);
	}
	row(p->f, sum_name, t, 0,
	    steady(p, sum_name, t, 0, (double)number(json_object_get(spans, "inclusive_ns")) * 1e-9,
		   0));
	row(p->f, "sbinject_call_duration_seconds_count", t, 0, shown);
}

static void put_sum(const struct page *p, const json_t *t, const json_t *value, size_t which)
{
	static const char name[] = "sbinject_value_total";
	const json_t *sum = json_object_get(value, "sum");
	double now;

	if (!sum || json_is_null(sum))
		return;
	now = steady(p, name, t, (long long)which, (double)number(sum), 0);
	put_target(p->f, name, t);
	fprintf(p->f, ",value=\"%s\"} %.17g\n", json_string_value(json_object_get(value, "name")),
		now);
}

/* What is added up of calls (sum=): the unit is that of the program's own values. */
static void put_sums(const struct page *p, const json_t *targets)
{
	bool any = false;
	json_t *t, *value;
	size_t i, k;

	json_array_foreach((json_t *)targets, i, t)
	{
		json_array_foreach(json_object_get(json_object_get(t, "spans"), "values"), k, value)
		{
			if (!any && json_object_get(value, "sum"))
				page_head(p, "sbinject_value", "counter", NULL,
					  "Arguments or results of the calls, added up (sum=).");
			any |= json_object_get(value, "sum") != NULL;
			put_sum(p, t, value, k);
		}
	}
}

/* Only of timed targets: a series of zeros would say that calls are measured. */
static void put_times(const struct page *p, const json_t *targets)
{
	const json_t *spans = NULL;
	json_t *t;
	size_t i;

	json_array_foreach((json_t *)targets, i, t) if (!spans) spans = json_object_get(t, "spans");
	if (!spans)
		return;
	page_head(p, "sbinject_call_duration_seconds", "histogram", "seconds",
		  "How long calls of timed targets took, without the delays given to them.");
	json_array_foreach((json_t *)targets, i, t)
	{
		spans = json_object_get(t, "spans");
		if (spans)
			put_durations(p, t, spans);
	}
	page_head(p, "sbinject_calls_missed", "gauge", NULL,
		  "Calls that began and of which no return was seen: in progress, or left "
		  "otherwise.");
	json_array_foreach((json_t *)targets, i, t)
	{
		spans = json_object_get(t, "spans");
		if (spans)
			row(p->f, "sbinject_calls_missed", t, 0,
			    (double)number(json_object_get(spans, "missed")));
	}
}

/* The whole text; NULL: the session does not answer. The caller frees. */
static char *render(const struct metrics *m, bool openmetrics, size_t *len)
{
	struct page p = { .openmetrics = openmetrics, .steady = m->steady };
	json_t *list = control_ask(m->cfg.session, "{\"op\":\"list\",\"histogram\":true}\n");
	json_t *status = list ? control_ask(m->cfg.session, "{\"op\":\"status\"}\n") : NULL;
	json_t *lanes = status && m->cfg.by_pid ?
				control_ask(m->cfg.session, "{\"op\":\"lanes\"}\n") :
				NULL;
	json_t *evidence = status ? control_ask(m->cfg.session, "{\"op\":\"evidence\"}\n") : NULL;
	char *text = NULL;

	if (status) {
		p.f = open_memstream(&text, len);
		if (!p.f)
			abort();
		put_counters(&p, json_object_get(list, "targets"), json_object_get(lanes, "lanes"));
		put_times(&p, json_object_get(list, "targets"));
		put_sums(&p, json_object_get(list, "targets"));
		put_gauges(&p, json_object_get(list, "targets"), status);
		page_evidence(&p, json_object_get(evidence, "counters"));
		page_rows(&p, evidence);
		page_sample(&p, json_object_get(evidence, "sample"));
		fputs("# EOF\n", p.f);
		fclose(p.f);
	}
	json_decref(list);
	json_decref(status);
	json_decref(lanes);
	json_decref(evidence);
	return text;
}

/* ---- HTTP ---- */

/* type NULL: plain text. */
static enum MHD_Result reply(struct MHD_Connection *conn, unsigned int status, const char *type,
			     char *text, size_t len, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = microhttpd.create_response_from_buffer(len, text, mode);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	microhttpd.add_response_header(r, "Content-Type", type ? type : "text/plain");
	ret = microhttpd.queue_response(conn, status, r);
	microhttpd.destroy_response(r);
	return ret;
}

/*
 * OpenMetrics for clients that name it, as Prometheus does. All others get the older format, which
 * every reader of metrics knows.
 */
static bool reads_openmetrics(struct MHD_Connection *conn)
{
	const char *accept = microhttpd.lookup_connection_value(conn, MHD_HEADER_KIND, "Accept");
	const char *at = accept ? strcasestr(accept, OPENMETRICS) : NULL, *end, *q;

	if (!at)
		return false;
	end = at + strcspn(at, ",");
	q = strcasestr(at, ";q=");
	return !q || q > end || strtod(q + 3, NULL) > 0;
}

static enum MHD_Result serve(void *ctx, struct MHD_Connection *conn, const char *url,
			     const char *method, const char *version, const char *upload,
			     size_t *upload_size, void **state)
{
	static char nothing[] = "metrics are at /metrics, the run so far at /report\n";
	static char gone[] = "the session is busy\n";
	const struct metrics *m = ctx;
	bool openmetrics, report = strcmp(url, "/report") == 0;
	const char *type;
	size_t len = 0;
	char *text;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return reply(conn, 405, NULL, nothing, strlen(nothing), MHD_RESPMEM_PERSISTENT);
	if (!report && strcmp(url, "/metrics") != 0)
		return reply(conn, 404, NULL, nothing, strlen(nothing), MHD_RESPMEM_PERSISTENT);
	openmetrics = reads_openmetrics(conn);
	text = report ? report_text(m->cfg.session, &len) : render(m, openmetrics, &len);
	if (!text)
		return reply(conn, 503, NULL, gone, strlen(gone), MHD_RESPMEM_PERSISTENT);
	type = report	   ? "application/json" :
	       openmetrics ? OPENMETRICS "; version=1.0.0; charset=utf-8" :
			     CLASSIC;
	return reply(conn, 200, type, text, len, MHD_RESPMEM_MUST_FREE);
}

static int parse_listen(const char *text, struct sockaddr_storage *addr, socklen_t *len)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	struct sockaddr_in *v4 = (void *)addr;
	struct sockaddr_in6 *v6 = (void *)addr;
	char host[64] = "127.0.0.1", *end;
	long number = strtol(port, &end, 10);

	if (!isdigit((unsigned char)*port) || *end || number < 1 || number > 65535)
		return -1;
	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)number);
		*len = sizeof(*v4);
		return 0;
	}
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1)
			return -1;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)number);
		*len = sizeof(*v6);
		return 0;
	}
	return -1;
}

/*
 * A scrape takes a moment. A client that opens connections and sends nothing, or a byte now and
 * then, would block all others until each of its connections times out. So some connections are
 * always kept spare, and a new one ends the oldest. Called by the server's only thread.
 */
static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct metrics *m = ctx;

	(void)socket;
	info = microhttpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info)
		return;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		for (size_t i = 0; i + OPEN_MOST <= m->n_open; i++)
			shutdown(m->open[i], SHUT_RDWR);
		if (m->n_open < OPEN_LIMIT)
			m->open[m->n_open++] = info->connect_fd;
		return;
	}
	for (size_t i = 0; i < m->n_open; i++) {
		if (m->open[i] != info->connect_fd)
			continue;
		memmove(&m->open[i], &m->open[i + 1], (m->n_open - i - 1) * sizeof(*m->open));
		m->n_open--;
		return;
	}
}

static int listen_at(const struct sockaddr_storage *addr, socklen_t len)
{
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (addr->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)addr, len) == 0 && listen(fd, OPEN_LIMIT) == 0)
		return fd;
	on = errno;
	close(fd);
	errno = on;
	return -1;
}

struct starting {
	struct metrics *m;
	int fd;
};

/* The server's thread inherits what this one has: nothing. */
static void *start_without_rights(void *arg)
{
	struct starting *s = arg;

	caps_forsake();
	s->m->http = microhttpd.start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, serve, s->m,
		MHD_OPTION_LISTEN_SOCKET, s->fd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s->m,
		MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)OPEN_LIMIT, MHD_OPTION_END);
	return NULL;
}

static int start_http(struct metrics *m, struct sb_err *err)
{
	struct sockaddr_storage addr;
	struct starting s = { .m = m };
	pthread_t thread;
	socklen_t len;

	if (parse_listen(m->cfg.listen, &addr, &len) < 0) {
		err_set(err, SB_EUSAGE, "--metrics '%s': no address and port", m->cfg.listen);
		err_hint(err, "--metrics 9100, 0.0.0.0:9100 or [::1]:9100");
		return -SB_EUSAGE;
	}
	if (microhttpd_load(err) < 0)
		return -(int)err->code;
	s.fd = listen_at(&addr, len);
	if (s.fd < 0)
		return err_sys(err, SB_EFILE, "--metrics %s", m->cfg.listen);
	errno = 0;
	if (pthread_create(&thread, NULL, start_without_rights, &s) == 0)
		pthread_join(thread, NULL);
	if (m->http)
		return 0;
	close(s.fd);
	return err_sys(err, SB_EFILE, "--metrics %s", m->cfg.listen);
}

/* ---- the file ---- */

/* In one step: a reader sees the old file or the new one. out_document() adds a newline. */
static void write_text(const char *path, char *text)
{
	struct sb_err err = { 0 };

	if (text && out_document(path, text, &err) < 0)
		log_debug("%s", err.what);
	free(text);
}

static void write_files(const struct metrics *m)
{
	size_t len = 0;
	char *text = m->cfg.file ? render(m, false, &len) : NULL;

	if (text)
		text[len - 1] = '\0';
	write_text(m->cfg.file, text);
	if (m->cfg.report)
		write_text(m->cfg.report, report_text(m->cfg.session, &len));
}

static void *writer_main(void *arg)
{
	struct metrics *m = arg;
	struct timespec until;

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		pthread_mutex_unlock(&m->lock);
		write_files(m);
		pthread_mutex_lock(&m->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (time_t)(m->cfg.interval_ns / 1000000000);
		until.tv_nsec += (long)(m->cfg.interval_ns % 1000000000);
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		if (!m->stop)
			pthread_cond_timedwait(&m->wake, &m->lock, &until);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static int start_writer(struct metrics *m, struct sb_err *err)
{
	pthread_condattr_t attr;

	if (m->cfg.file && out_check(m->cfg.file, err) < 0)
		return -SB_EFILE;
	if (m->cfg.report && out_check(m->cfg.report, err) < 0)
		return -SB_EFILE;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&m->lock, NULL);
	if (pthread_create(&m->writer, NULL, writer_main, m))
		return err_set(err, SB_ESYS, "no thread could be started");
	m->writing = true;
	return 0;
}

int metrics_open(const struct metrics_config *cfg, struct metrics **out, struct sb_err *err)
{
	struct metrics *m = calloc(1, sizeof(*m));
	sigset_t all, old;
	int ret = 0;

	if (!m)
		abort();
	m->cfg = *cfg;
	m->steady = steady_new();
	if (!m->cfg.interval_ns)
		m->cfg.interval_ns = 5000000000ull;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old); /* the main thread handles signals */
	if (cfg->listen)
		ret = start_http(m, err);
	if (ret == 0 && (cfg->file || cfg->report))
		ret = start_writer(m, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret == 0) {
		*out = m;
		return 0;
	}
	metrics_close(m, NULL);
	return ret;
}

void metrics_close(struct metrics *m, const struct result *result)
{
	size_t len;

	if (!m)
		return;
	if (m->http)
		microhttpd.stop_daemon(m->http);
	if (m->writing) {
		pthread_mutex_lock(&m->lock);
		m->stop = true;
		pthread_cond_signal(&m->wake);
		pthread_mutex_unlock(&m->lock);
		pthread_join(m->writer, NULL);
	}
	if (result && m->writing && m->cfg.report)
		write_text(m->cfg.report, report_ended(result, m->cfg.session, &len));
	steady_free(m->steady);
	free(m);
}
