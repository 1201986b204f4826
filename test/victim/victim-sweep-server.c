/* SPDX-License-Identifier: MIT */
/* The shapes of sweep-shapes.c that hand things on: a pipeline, and a server with requests that
 * come whether or not it is ready, with its latencies served in Prometheus's text format. */
#include <fcntl.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "victim-sweep.h"

/* ---- a queue of times ---- */

enum { QUEUE = 64 };

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t at[QUEUE];
	unsigned int from, to, bound;
};

#define QUEUE_OF(n)                                                                 \
	{                                                                           \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { 0 }, 0, 0, n \
	}

/* False: full, and not wanted to wait. */
static bool queue_put(struct queue *q, uint64_t at, bool wait)
{
	bool room;

	pthread_mutex_lock(&q->lock);
	while (wait && q->to - q->from == q->bound)
		pthread_cond_wait(&q->changed, &q->lock);
	room = q->to - q->from < q->bound;
	if (room)
		q->at[q->to++ % QUEUE] = at;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return room;
}

static uint64_t queue_take(struct queue *q)
{
	uint64_t at;

	pthread_mutex_lock(&q->lock);
	while (q->to == q->from)
		pthread_cond_wait(&q->changed, &q->lock);
	at = q->at[q->from++ % QUEUE];
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	return at;
}

/* ---- three stages ---- */

static struct queue first = QUEUE_OF(4), second = QUEUE_OF(4);
static double us_a, us_b, us_c;

static void *run_a(void *arg)
{
	sweep_pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		sweep_sleep(us_a);
		stage_a();
		queue_put(&first, 1, true);
	}
	return arg;
}

static void *run_b(void *arg)
{
	for (;;) {
		queue_take(&first);
		sweep_spin(us_b);
		stage_b();
		queue_put(&second, 1, true);
	}
	return arg;
}

static void *run_c(void *arg)
{
	sweep_pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		queue_take(&second);
		sweep_sleep(us_c);
		stage_c();
		item_done();
	}
	return arg;
}

static void spawn(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		exit(2);
	pthread_detach(thread);
}

int sweep_pipeline(void)
{
	us_a = sweep_param("a", 300);
	us_b = sweep_param("b", 600);
	us_c = sweep_param("c", 300);
	sweep_truth("stage_a", 0, (us_b - us_a) * 1e3);
	sweep_truth("stage_b", 1, 0);
	sweep_truth("stage_c", 0, (us_b - us_c) * 1e3);
	spawn(run_a);
	spawn(run_b);
	spawn(run_c);
	victim_ready();
	sweep_until_stopped();
	return 0;
}

/* ---- latencies over HTTP ---- */

static const double bound_s[] = { 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1 };

enum { BOUNDS = sizeof(bound_s) / sizeof(*bound_s) };

static struct {
	pthread_mutex_t lock;
	double sum;
	uint64_t n, below[BOUNDS];
} latency = { .lock = PTHREAD_MUTEX_INITIALIZER };

void sweep_latency(double seconds)
{
	pthread_mutex_lock(&latency.lock);
	latency.sum += seconds;
	latency.n++;
	for (int i = 0; i < BOUNDS; i++)
		latency.below[i] += seconds <= bound_s[i];
	pthread_mutex_unlock(&latency.lock);
}

static int print_metrics(char *buf, size_t size)
{
	int n;

	pthread_mutex_lock(&latency.lock);
	n = snprintf(buf, size, "# TYPE latency_seconds histogram\n");
	for (int i = 0; i < BOUNDS; i++)
		n += snprintf(buf + n, size - (size_t)n, "latency_seconds_bucket{le=\"%g\"} %llu\n",
			      bound_s[i], (unsigned long long)latency.below[i]);
	n += snprintf(buf + n, size - (size_t)n,
		      "latency_seconds_bucket{le=\"+Inf\"} %llu\nlatency_seconds_sum %.9f\n"
		      "latency_seconds_count %llu\n# TYPE app:items_total counter\n"
		      "app:items_total{kind=\"good\"} %llu\napp:items_total{kind=\"bad\"} 0\n",
		      (unsigned long long)latency.n, latency.sum, (unsigned long long)latency.n,
		      (unsigned long long)__atomic_load_n(&sweep_shared->items, __ATOMIC_RELAXED));
	pthread_mutex_unlock(&latency.lock);
	return n;
}

static void answer(int fd)
{
	static char body[8192], head[8400];
	struct timeval limit = { 1, 0 };
	char request[2048];
	int n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (read(fd, request, sizeof(request)) > 0) {
		n = print_metrics(body, sizeof(body));
		n = snprintf(head, sizeof(head),
			     "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n"
			     "Content-Length: %d\r\n\r\n%s",
			     n, body);
		if (write(fd, head, (size_t)n) < 0)
			perror("write");
	}
	close(fd);
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0)
			answer(client);
	}
	return NULL;
}

void sweep_serve(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		exit(2);
	printf("port %d\n", ntohs(at.sin_port));
	if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
		exit(2);
	pthread_detach(thread);
}

/* ---- arrivals at a rate of their own ---- */

static struct queue requests = QUEUE_OF(8);

static void *arrive(void *arg)
{
	uint64_t every = (uint64_t)(sweep_param("every", 1000) * 1e3), at = victim_now_ns();

	sweep_pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		at += every;
		sweep_sleep_until(at);
		queue_put(&requests, at, false); /* what finds no room is turned away */
	}
	return arg;
}

static void *work(void *arg)
{
	double us = sweep_param("service", 300);

	for (;;) {
		uint64_t at = queue_take(&requests);

		sweep_spin(us);
		crit();
		sweep_latency((double)(victim_now_ns() - at) / 1e9);
		item_done();
	}
	return arg;
}

/* ---- a few requests that are slow ---- */

/*
 * Of `each` requests one takes `slow` us and passes part(), the others take `fast` us. All pass
 * crit(). A delay of part() is felt by p99 in full and by the mean in that share; p50 does not feel
 * it.
 */
void request(bool is_slow);

VICTIM_HOOKED void request(bool is_slow)
{
	uint64_t from = victim_now_ns();

	sweep_sleep(sweep_param(is_slow ? "slow" : "fast", is_slow ? 1500 : 250));
	crit();
	if (is_slow)
		part();
	sweep_latency((double)(victim_now_ns() - from) / 1e9);
}

static void *run_requests(void *arg)
{
	unsigned int each = (unsigned int)sweep_param("each", 20);

	prctl(PR_SET_TIMERSLACK, 1);
	for (unsigned int n = 0;; n++) {
		request(n % each == 0);
		item_done();
	}
	return arg;
}

int sweep_slow_few(void)
{
	sweep_serve();
	spawn(run_requests);
	victim_ready();
	sweep_until_stopped();
	return 0;
}

/* Below saturation a delay of crit() is seen in the latency only; above it, in throughput too. */
int sweep_open_loop(void)
{
	sweep_truth("crit", 1, 0);
	sweep_serve();
	spawn(arrive);
	spawn(work);
	victim_ready();
	sweep_until_stopped();
	return 0;
}

/* ---- a counter in a file ---- */

static void *publisher(void *arg)
{
	uint64_t period = (uint64_t)(*(double *)arg * 1e6), next = victim_now_ns();
	int fd = open("published", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char line[32];

	for (;; sweep_sleep_until(next += period)) {
		int len = snprintf(line, sizeof(line), "%020llu\n",
				   (unsigned long long)__atomic_load_n(&sweep_shared->items,
								       __ATOMIC_RELAXED));

		if (pwrite(fd, line, (size_t)len, 0) != len)
			exit(2);
	}
	return NULL;
}

void sweep_publish(double ms)
{
	static double period;
	pthread_t thread;

	period = ms;
	if (pthread_create(&thread, NULL, publisher, &period))
		exit(2);
	pthread_detach(thread);
}
