/* SPDX-License-Identifier: MIT */
/*
 * A program whose threads know where their time goes: truth SHAPE [-g GATE] [-f FILE] [SECONDS].
 * Once GATE exists it works for SECONDS, then sleeps until SIGTERM. Before and after, every thread
 * sleeps (nanosleep), so a tool that watches all of it finds nothing but sleep to take off. Shapes:
 *
 *	queue	v-producer takes 3 ms for an item, v-consumer waits for it at a condition: futex
 *	convoy	four threads v-convoy hold one mutex for 1 ms each and want it again at once: futex
 *	disk	v-disk appends to FILE and calls fsync(): io
 *	net	v-net answers a client over TCP; the client asks 2 ms after each answer: network
 *	locks	v-hold-short and v-hold-long hold a mutex each, asleep, for 2 and 5 ms; v-wait-short
 *		waits for short_lock in wait_short(), v-wait-long for one in the heap in
 *		wait_long(): futex
 *	cpu	v-cpu computes: on_cpu, or run_queue where something takes its processor
 *
 * At the end, a line for each thread, from its own clocks and its own /proc:
 *	truth NAME WALL CPU QUEUE MORE_CPU MORE_QUEUE CALLS CALLS_WALL VOLUNTARY INVOLUNTARY MINOR
 * ns of the work, on a processor, in the run queue (schedstat); the latter two before and after the
 * work; calls that wait, and ns in them; switches and page faults.
 */
#include "victim.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

struct worker {
	const char *name;
	void (*step)(struct worker *);
	uint64_t wall, cpu, queue, more_cpu, more_queue, calls, calls_ns;
	uint64_t voluntary, involuntary, minor;
	bool sleeps; /* of its own, too: its waits are of two reasons */
};

static const char *gate, *file = "truth.data";
static volatile bool over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static unsigned int ready_items;
static int disk = -1, ends[2];
static uint64_t items;

VICTIM_HOOKED void item(void);
void item(void)
{
	__atomic_fetch_add(&items, 1, __ATOMIC_RELAXED);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;

	while (cpu_ns() < until && !over)
		;
}

static uint64_t queue_ns(void)
{
	unsigned long long run, queue = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (!f || fscanf(f, "%llu %llu", &run, &queue) != 2)
		abort();
	fclose(f);
	return queue;
}

/* ---- the shapes ---- */

static void in_call(struct worker *w, uint64_t since)
{
	w->calls++;
	w->calls_ns += victim_now_ns() - since;
}

static void produce(struct worker *w)
{
	(void)w;
	compute(3000000);
	pthread_mutex_lock(&lock);
	ready_items++;
	pthread_cond_signal(&bell);
	pthread_mutex_unlock(&lock);
}

static void consume(struct worker *w)
{
	pthread_mutex_lock(&lock);
	while (!ready_items && !over) {
		uint64_t since = victim_now_ns();

		pthread_cond_wait(&bell, &lock);
		in_call(w, since);
	}
	ready_items -= ready_items > 0;
	pthread_mutex_unlock(&lock);
	compute(200000);
	item();
}

static void queue_up(struct worker *w)
{
	uint64_t since = victim_now_ns();

	pthread_mutex_lock(&lock);
	in_call(w, since);
	compute(1000000);
	item();
	pthread_mutex_unlock(&lock);
}

static void flush_file(struct worker *w)
{
	char page[4096] = { 0 };
	uint64_t since = victim_now_ns();

	if (pwrite(disk, page, sizeof(page), (off_t)(w->calls % 1024) * 4096) != sizeof(page) ||
	    fsync(disk) != 0)
		abort();
	in_call(w, since);
	compute(50000);
	item();
}

static void serve(struct worker *w)
{
	uint64_t since = victim_now_ns();
	char byte;

	if (recv(ends[0], &byte, 1, 0) != 1)
		return;
	in_call(w, since);
	compute(200000);
	item();
	if (send(ends[0], &byte, 1, 0) != 1)
		abort();
}

static void ask(struct worker *w)
{
	char byte = 0;

	(void)w;
	victim_sleep_ns(2000000);
	if (send(ends[1], &byte, 1, 0) != 1 || recv(ends[1], &byte, 1, 0) != 1)
		abort();
}

/* ---- two locks ---- */

static pthread_mutex_t short_lock = PTHREAD_MUTEX_INITIALIZER, *long_lock;

static void open_locks(void)
{
	long_lock = malloc(sizeof(*long_lock));
	if (!long_lock || pthread_mutex_init(long_lock, NULL) != 0)
		abort();
}

static void hold(pthread_mutex_t *which, uint64_t ns)
{
	pthread_mutex_lock(which);
	victim_sleep_ns(ns);
	pthread_mutex_unlock(which);
	victim_sleep_ns(500000);
}

static void hold_short(struct worker *w)
{
	(void)w;
	hold(&short_lock, 2000000);
}

static void hold_long(struct worker *w)
{
	(void)w;
	hold(long_lock, 5000000);
}

/* Waits where it is called: not inlined, and no tail call. */
VICTIM_HOOKED void wait_short(struct worker *w);
void wait_short(struct worker *w)
{
	uint64_t since = victim_now_ns();

	if (pthread_mutex_trylock(&short_lock) != 0) {
		pthread_mutex_lock(&short_lock);
		in_call(w, since);
	}
	pthread_mutex_unlock(&short_lock);
	compute(100000);
	item();
}

VICTIM_HOOKED void wait_long(struct worker *w);
void wait_long(struct worker *w)
{
	uint64_t since = victim_now_ns();

	if (pthread_mutex_trylock(long_lock) != 0) {
		pthread_mutex_lock(long_lock);
		in_call(w, since);
	}
	pthread_mutex_unlock(long_lock);
	compute(100000);
	item();
}

static void calculate(struct worker *w)
{
	(void)w;
	compute(1000000);
	item();
}

/* ---- the workers ---- */

/* A look now and then: what it costs is not in the thread's own figures. */
static void await_gate(void)
{
	while (gate && !victim_stop && access(gate, F_OK) != 0)
		victim_sleep_ns(20000000);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	struct rusage before, after;
	uint64_t wall, cpu, queue;

	prctl(PR_SET_NAME, w->name);
	await_gate();
	getrusage(RUSAGE_THREAD, &before);
	queue = queue_ns();
	cpu = cpu_ns();
	wall = victim_now_ns();
	while (!over)
		w->step(w);
	w->wall = victim_now_ns() - wall;
	w->cpu = cpu_ns() - cpu;
	w->queue = queue_ns() - queue;
	getrusage(RUSAGE_THREAD, &after);
	w->voluntary = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
	w->involuntary = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw);
	w->minor = (uint64_t)(after.ru_minflt - before.ru_minflt);
	if (w->sleeps)
		shutdown(ends[1], SHUT_RDWR);
	while (!victim_stop)
		victim_sleep_ns(50000000);
	w->more_cpu = cpu_ns() - w->cpu;
	w->more_queue = queue_ns() - w->queue;
	return NULL;
}

static void open_connection(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&at, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &len) || connect(ends[1], (void *)&at, len))
		abort();
	ends[0] = accept(listener, NULL, NULL);
	close(listener);
}

static void open_file(void)
{
	disk = open(file, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	if (disk < 0)
		abort();
}

static const struct shape {
	const char *name;
	void (*open)(void);
	struct worker worker[4];
	int n;
} shapes[] = {
	{ "queue",
	  NULL,
	  { { .name = "v-producer", .step = produce }, { .name = "v-consumer", .step = consume } },
	  2 },
	{ "convoy",
	  NULL,
	  { { .name = "v-convoy-1", .step = queue_up },
	    { .name = "v-convoy-2", .step = queue_up },
	    { .name = "v-convoy-3", .step = queue_up },
	    { .name = "v-convoy-4", .step = queue_up } },
	  4 },
	{ "disk", open_file, { { .name = "v-disk", .step = flush_file } }, 1 },
	{ "net",
	  open_connection,
	  { { .name = "v-net", .step = serve },
	    { .name = "v-client", .step = ask, .sleeps = true } },
	  2 },
	{ "locks",
	  open_locks,
	  { { .name = "v-hold-short", .step = hold_short },
	    { .name = "v-wait-short", .step = wait_short },
	    { .name = "v-hold-long", .step = hold_long },
	    { .name = "v-wait-long", .step = wait_long } },
	  4 },
	{ "cpu", NULL, { { .name = "v-cpu", .step = calculate } }, 1 },
};

static const struct shape *shape_of(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	abort();
}

static void print(const struct worker *w)
{
	const uint64_t v[] = { w->wall,	 w->cpu,      w->queue,	    w->more_cpu,    w->more_queue,
			       w->calls, w->calls_ns, w->voluntary, w->involuntary, w->minor };

	printf("truth %s", w->name);
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		printf(" %llu", (unsigned long long)v[i]);
	putchar('\n');
}

static void work(struct shape *s, double seconds)
{
	pthread_t thread[4];

	if (s->open)
		s->open();
	for (int i = 0; i < s->n; i++)
		if (pthread_create(&thread[i], NULL, run, &s->worker[i]) != 0)
			abort();
	victim_ready();
	await_gate();
	for (uint64_t until = victim_now_ns() + (uint64_t)(seconds * 1e9);
	     victim_now_ns() < until && !victim_stop;)
		victim_sleep_ns(20000000);
	over = true;
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&bell);
	pthread_mutex_unlock(&lock);
	printf("over\n");
	for (int i = 0; i < s->n; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < s->n; i++)
		print(&s->worker[i]);
}

int main(int argc, char **argv)
{
	double seconds = 2;
	struct shape shape;

	victim_catch_term();
	if (argc < 2)
		return 2;
	shape = *shape_of(argv[1]);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "-g") && i + 1 < argc)
			gate = argv[++i];
		else if (!strcmp(argv[i], "-f") && i + 1 < argc)
			file = argv[++i];
		else
			seconds = atof(argv[i]);
	}
	work(&shape, seconds);
	victim_calls("item", items);
	return victim_done(true);
}
