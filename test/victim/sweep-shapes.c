/* SPDX-License-Identifier: MIT */
/*
 * sweep-shapes SHAPE [NAME=VALUE]...: programs whose sensitivity is known; see victim-sweep.h.
 *
 *	serial [item=200 n=0 publish=0 rest=0]	crit() in every item: kappa 1; ends after n;
 *			publish: its items are in a file, brought up to date each so many ms
 *	never				the same; never() is not called
 *	drift [item=200 drift=0.03 over=20 ar=0.02]	the same, getting slower, with AR(1) noise
 *	mixed [item=100 each=50 most=7 swing=250]	as many calls of token() as its tokens cost,
 *			whose number changes for all items each `swing` ms
 *	hidden [item=1000 slack=400 rest=0]	hid() runs beside the item and ends `slack`
 *			before it
 *	partial [item=300 every=4]	part() holds up each `every`th item, else runs aside
 *	convoy [workers=2 item=200]	processes that take turns at one lock: kappa = workers
 *	ranks [workers=2 item=1000]	processes side by side: kappa 1
 *	threads [workers=2 item=1000 timer=0]	the same with threads; timer: they wait in read()
 *	lock [workers=8 item=500]	threads that take turns at a lock: kappa 1
 *	successive [item=200 life=60]	processes one after another: kappa 1
 *	cache [life=500 keys=1667 base=20 fill=560]	looks up keys that live for `life` ms;
 *	batch [step=4000 fixed=800 each=20]	sizes its batches by the time left of a step
 *	pipeline [a=300 b=600 c=300]	three stages; b sets the pace
 *	queue [make=200 take=1000 room=4 rest=0]	a producer that waits for room, a
 *			consumer; rest=2: both rest
 *	open [service=300 every=1000]	requests come at a rate of their own
 *	often [item=1800 calls=25000]	busy() so many times an item; idle() as often beside it
 *	slow-few [each=20 slow=1500 fast=250]	one of `each` requests is slow and passes part()
 *
 * rest=1: what takes most of the time sleeps instead of computing. It wakes less punctually, and
 * leaves the processor to others.
 */
#include <sys/resource.h>
#include <sys/timerfd.h>
#include "victim-sweep.h"

struct sweep_shared *sweep_shared;
static char **words;

static struct {
	uint64_t crit, hid, part, token, a, b, c;
} count;

/* Bodies that the compiler keeps apart, and that jump can take. */
#define HOOKED(name, counter)                                            \
	VICTIM_HOOKED void name(void)                                    \
	{                                                                \
		__atomic_fetch_add(&count.counter, 1, __ATOMIC_RELAXED); \
	}
HOOKED(crit, crit)
HOOKED(hid, hid)
HOOKED(part, part)
HOOKED(token, token)
HOOKED(stage_a, a)
HOOKED(stage_b, b)
HOOKED(stage_c, c)

VICTIM_HOOKED void never(void)
{
	count.crit += 1000;
}

VICTIM_HOOKED void item(void)
{
	__atomic_fetch_add(&sweep_shared->items, 1, __ATOMIC_RELAXED);
}

void item_done(void)
{
	item();
}

double sweep_param(const char *name, double otherwise)
{
	size_t len = strlen(name);

	for (char **w = words; *w; w++)
		if (!strncmp(*w, name, len) && (*w)[len] == '=')
			return atof(*w + len + 1);
	return otherwise;
}

void sweep_spin(double us)
{
	uint64_t until = victim_now_ns() + (uint64_t)(us * 1e3);

	while (victim_now_ns() < until)
		;
}

void sweep_sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR && !victim_stop)
		;
}

void sweep_sleep(double us)
{
	if (us > 0)
		sweep_sleep_until(victim_now_ns() + (uint64_t)(us * 1e3));
}

sweep_work sweep_how(void)
{
	if (sweep_param("rest", 0) <= 0)
		return sweep_spin;
	prctl(PR_SET_TIMERSLACK, 1);
	return sweep_sleep;
}

void sweep_truth(const char *function, double kappa, double slack_ns)
{
	printf("truth %s %.4f %.0f\n", function, kappa, slack_ns);
}

void sweep_until_stopped(void)
{
	while (!victim_stop)
		victim_sleep_ns(20000000);
}

/* Those that work at the same time are on processors of their own, so that one's delay does not
 * take another's time. */
void sweep_pin(int nth)
{
	static cpu_set_t all;
	cpu_set_t one;
	int n;

	if (!CPU_COUNT(&all))
		sched_getaffinity(0, sizeof(all), &all);
	n = nth % CPU_COUNT(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
}

static void spawn(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		exit(2);
	pthread_detach(thread);
}

/* ---- one thread ---- */

static int shape_serial(void)
{
	double us = sweep_param("item", 200), n = sweep_param("n", 0);
	sweep_work work = sweep_how();

	sweep_truth("crit", 1, 0);
	if (sweep_param("publish", 0) > 0)
		sweep_publish(sweep_param("publish", 0));
	victim_ready();
	while (!victim_stop) {
		work(us);
		crit();
		item();
		if (n > 0 && --n == 0) { /* a whole run */
			printf("items done: %llu\n", (unsigned long long)sweep_shared->items);
			break;
		}
	}
	return 0;
}

static double noise(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static int shape_drift(void)
{
	double us = sweep_param("item", 200), drift = sweep_param("drift", 0.03);
	double over = sweep_param("over", 20), ar = sweep_param("ar", 0.02), level = 0;
	uint64_t from = victim_now_ns(), next = from;

	sweep_truth("crit", 1, 0);
	victim_ready();
	while (!victim_stop) {
		uint64_t now = victim_now_ns();

		if (now >= next) { /* a step of the noise each 20 ms */
			level = 0.95 * level + 0.31 * 3.46 * ar * noise();
			next = now + 20000000;
		}
		sweep_spin(us * (1 + drift * (double)(now - from) / 1e9 / over + level));
		crit();
		item();
	}
	return 0;
}

/*
 * Of n keys, looked up at random, each lives for a while after its fill. A look-up finds none with
 * the chance of T n / (T n + life), and so slower look-ups find fewer: not at once, but over a
 * life.
 */
static int shape_cache(void)
{
	double life = sweep_param("life", 500) * 1e3, base = sweep_param("base", 20);
	double fill = sweep_param("fill", 560), t = base + fill, away;
	size_t n = (size_t)sweep_param("keys", 1667);
	uint64_t *until = calloc(n, sizeof(*until)), now = victim_now_ns();

	for (int i = 0; i < 1000; i++)
		t = base + fill * t * (double)n / (t * (double)n + life);
	away = t * (double)n + life;
	sweep_truth("crit", 1 / (1 - fill * (double)n * life / away / away), 0);
	for (size_t i = 0; i < n; i++)
		until[i] = now + (uint64_t)((noise() + life / away - 0.5) * away * 1e3);
	victim_ready();
	while (!victim_stop) {
		uint64_t *key = &until[(size_t)((noise() + 0.5) * (double)n) % n];

		sweep_spin(base);
		crit();
		if (victim_now_ns() >= *key) {
			sweep_spin(fill);
			*key = victim_now_ns() + (uint64_t)(life * 1e3);
		}
		item();
	}
	free(until);
	return 0;
}

/* Items of different sizes, which come in spells; what is known of them is token()'s hits. */
static int shape_mixed(void)
{
	double us = sweep_param("item", 100), each = sweep_param("each", 50), level = 0;
	uint64_t swing = (uint64_t)(sweep_param("swing", 250) * 1e6), next = 0;
	double most = sweep_param("most", 7);

	sweep_truth("crit", 1, 0);
	victim_ready();
	while (!victim_stop) {
		uint64_t now = victim_now_ns();

		if (now >= next) {
			level = (noise() + 0.5) * most;
			next = now + swing;
		}
		sweep_spin(us);
		for (double left = level + noise() + 0.5; left >= 1; left--) {
			sweep_spin(each);
			token();
		}
		crit();
		item();
	}
	return 0;
}

/* As many as a step of `step` us has room for after its fixed part: slower is smaller batches. */
static int shape_batch(void)
{
	double step = sweep_param("step", 4000), fixed = sweep_param("fixed", 800);
	double each = sweep_param("each", 20);

	sweep_truth("crit", step / (step - fixed), 0);
	victim_ready();
	while (!victim_stop) {
		uint64_t from = victim_now_ns();
		double carry, room;
		static double left;

		sweep_spin(fixed);
		crit();
		room = step - (double)(victim_now_ns() - from) / 1e3;
		carry = room / each + left;
		for (left = carry; left >= 1; left--) {
			sweep_spin(each);
			item();
		}
	}
	return 0;
}

/* ---- a helper beside ---- */

static sem_t begin, end;
static double hidden_us;

static void *helper(void *arg)
{
	(void)arg;
	sweep_pin(1);
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		while (sem_wait(&begin))
			;
		sweep_sleep(hidden_us);
		hid();
		sem_post(&end);
	}
	return NULL;
}

/* crit() is on the way of every item, hid() beside it. */
static int shape_hidden(void)
{
	double us = sweep_param("item", 1000), slack = sweep_param("slack", 400);
	sweep_work work = sweep_how();

	hidden_us = us - slack;
	sem_init(&begin, 0, 0);
	sem_init(&end, 0, 0);
	spawn(helper, NULL);
	sweep_truth("hid", 0, slack * 1e3);
	sweep_truth("crit", 1, 0);
	victim_ready();
	while (!victim_stop) {
		sem_post(&begin);
		work(us);
		while (sem_wait(&end))
			;
		crit();
		item();
	}
	return 0;
}

static void *aside(void *arg)
{
	(void)arg;
	sweep_pin(1);
	for (;;) {
		while (sem_wait(&begin))
			;
		part();
	}
	return NULL;
}

static int shape_partial(void)
{
	double us = sweep_param("item", 300);
	int every = (int)sweep_param("every", 4);

	sem_init(&begin, 0, 0);
	spawn(aside, NULL);
	sweep_truth("part", 1.0 / every, 0);
	victim_ready();
	for (int i = 0; !victim_stop; i++) {
		sweep_spin(us);
		if (i % every == 0)
			part();
		else
			sem_post(&begin);
		item();
	}
	return 0;
}

/* ---- several processes or threads ---- */

static double worker_us;

static void ready_and_go(void)
{
	sem_post(&sweep_shared->ready);
	while (sem_wait(&sweep_shared->go))
		;
}

static int worker, n_workers;

/*
 * A lock that is always waited for, handed on in turn. A waiting thread does not sleep: a processor
 * that is idle for longer wakes later, and the wait would be more than twice the delay. So no
 * processor is left, and it does not go first: an attach took half a minute where it did.
 */
static void convoy_worker(void)
{
	while (!victim_stop) {
		while (__atomic_load_n(&sweep_shared->turn, __ATOMIC_ACQUIRE) != worker)
			; /* the load is atomic */
		sweep_spin(worker_us);
		crit();
		item();
		__atomic_store_n(&sweep_shared->turn, (worker + 1) % n_workers, __ATOMIC_RELEASE);
	}
}

/* Sleeps for its work: more of them than processors do not matter. */
static void rank_worker(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
	while (!victim_stop) {
		sweep_sleep(worker_us);
		crit();
		item();
	}
}

static int workers(void (*run)(void), int n)
{
	pid_t pid[SWEEP_WORKERS];

	if (n < 1 || n > SWEEP_WORKERS)
		return 2;
	n_workers = n;
	for (int i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sweep_pin(i);
			worker = i;
			ready_and_go();
			run();
			_exit(0);
		}
	}
	for (int i = 0; i < n; i++)
		sem_wait(&sweep_shared->ready);
	victim_ready();
	for (int i = 0; i < n; i++)
		sem_post(&sweep_shared->go);
	sweep_until_stopped();
	for (int i = 0; i < n; i++)
		kill(pid[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int shape_convoy(void)
{
	int n = (int)sweep_param("workers", 2);

	worker_us = sweep_param("item", 200);
	sweep_truth("crit", n, 0);
	return workers(convoy_worker, n);
}

static int shape_ranks(void)
{
	worker_us = sweep_param("item", 1000);
	sweep_truth("crit", 1, 0);
	return workers(rank_worker, (int)sweep_param("workers", 2));
}

static void *rank_thread(void *arg)
{
	sweep_pin((int)(intptr_t)arg);
	rank_worker();
	return arg;
}

static void *timer_thread(void *arg)
{
	struct itimerspec at = { { 0, 0 }, { 0, (long)(worker_us * 1e3) } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n;

	sweep_pin((int)(intptr_t)arg);
	while (!victim_stop) {
		timerfd_settime(fd, 0, &at, NULL);
		while (read(fd, &n, sizeof(n)) < 0)
			;
		crit();
		item();
	}
	return arg;
}

static int shape_threads(void)
{
	int n = (int)sweep_param("workers", 2);

	worker_us = sweep_param("item", 1000);
	sweep_truth("crit", 1, 0);
	for (int i = 0; i < n; i++)
		spawn(sweep_param("timer", 0) > 0 ? timer_thread : rank_thread,
		      (void *)(intptr_t)i);
	victim_ready();
	sweep_until_stopped();
	return 0;
}

static void *lock_thread(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!victim_stop) {
		pthread_mutex_lock(&lock);
		sweep_sleep(worker_us);
		crit();
		item();
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
	return arg;
}

static int shape_lock(void)
{
	worker_us = sweep_param("item", 500);
	sweep_truth("crit", 1, 0);
	for (int n = (int)sweep_param("workers", 8); n > 0; n--)
		spawn(lock_thread, NULL);
	victim_ready();
	sweep_until_stopped();
	return 0;
}

/* As a shell's loop: one process at a time. */
static int shape_successive(void)
{
	uint64_t life_ns = (uint64_t)(sweep_param("life", 60) * 1e6);
	double us = sweep_param("item", 200);
	pid_t pid;

	sweep_truth("crit", 1, 0);
	victim_ready();
	while (!victim_stop) {
		pid = fork();
		if (pid == 0) {
			uint64_t until = victim_now_ns() + life_ns;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (victim_now_ns() < until) {
				sweep_spin(us);
				crit();
				item();
			}
			_exit(0);
		}
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return 0;
}

/* ---- which ---- */

/* Where it may: what else runs on the machine is noise. Priorities count within a session where
 * those are scheduled as groups. */
static void set_priority(const char *group, int nice)
{
	FILE *f = fopen("/proc/self/autogroup", "w");

	if (f) {
		fputs(group, f);
		fclose(f);
	}
	setpriority(PRIO_PROCESS, 0, nice);
}

static void *shared_memory(void)
{
	struct sweep_shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (sh == MAP_FAILED)
		exit(2);
	sem_init(&sh->ready, 1, 0);
	sem_init(&sh->go, 1, 0);
	return sh;
}

static const struct {
	const char *name;
	int (*run)(void);
} shapes[] = {
	{ "mixed", shape_mixed },     { "serial", shape_serial },
	{ "never", shape_serial },    { "drift", shape_drift },
	{ "hidden", shape_hidden },   { "partial", shape_partial },
	{ "convoy", shape_convoy },   { "ranks", shape_ranks },
	{ "threads", shape_threads }, { "cache", shape_cache },
	{ "batch", shape_batch },     { "pipeline", sweep_pipeline },
	{ "open", sweep_open_loop },  { "slow-few", sweep_slow_few },
	{ "lock", shape_lock },	      { "successive", shape_successive },
	{ "queue", sweep_queue },     { "often", sweep_often },
};

int main(int argc, char **argv)
{
	victim_catch_term();
	signal(SIGPIPE, SIG_IGN);
	words = argv;
	sweep_pin(0);
	setsid();
	if (argc < 2 || strcmp(argv[1], "convoy"))
		set_priority("-19", -15);
	sweep_shared = shared_memory();
	for (size_t i = 0; argc > 1 && i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shapes[i].name, argv[1])) {
			int status = shapes[i].run();

			victim_calls("item", sweep_shared->items);
			victim_calls("crit", count.crit);
			return status ? status : victim_done(true);
		}
	fprintf(stderr, "sweep-shapes SHAPE [NAME=VALUE]...\n");
	return 2;
}
