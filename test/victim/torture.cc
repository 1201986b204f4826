// SPDX-License-Identifier: MIT
/*
 * torture [-s SEED] [-d MS] [-t THREADS] [-r HZ] [-l SPIN] MODE...: short functions that are left
 * in every way that there is, each of which takes its own time, from its first instruction to its
 * last.
 *
 * Modes: plain (calls in calls), recurse, deep (deeper than any table), jump (longjmp), throw,
 * tail, fiber (left in mid-call and resumed by any thread), signal (handlers on a stack of their
 * own, HZ times a second and thread), torn (a handler that leaves by siglongjmp), fork, spawn
 * (vfork), exit (a thread that ends in mid-call).
 *
 * At its end a line of JSON: by function, how often it was called, how often it returned and how
 * long these calls took, in ticks, with the buckets of struct sb_page_span. Children add to the
 * same figures.
 */
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define HOOKED extern "C" __attribute__((noinline, noclone, used))
#define FUNCTIONS(X)                                                                         \
	X(leaf)                                                                              \
	X(outer) X(node) X(deep) X(jump) X(thrower) X(pass) X(tail) X(yield) X(hand) X(torn) \
		X(fork) X(spawn) X(exit)

enum function {
#define NUMBER(name) F_##name,
	FUNCTIONS(NUMBER) N_FUNCTIONS
};
static const char *const names[] = {
#define NAME(name) "t_" #name,
	FUNCTIONS(NAME)
};

enum {
	BUCKETS = 1216,
	FIBERS = 24,
	FIBER_STACK = 65536,
	THREAD_STACK = 16 << 20,
	MOST_THREADS = 32
};

struct stats {
	uint64_t began, calls, sum, min, max, hist[BUCKETS];
};

static struct shared {
	struct stats of[N_FUNCTIONS];
	uint64_t signals, in_stub, jumps, outermost;
} * shared; /* with the children */

static volatile sig_atomic_t stop, stays;
static unsigned int spin_most = 3000;
static uint64_t signal_hz, first_seed;
static uint64_t text_range[64][2];
static int text_ranges;
static thread_local uint64_t seed;
static thread_local int depth;
static thread_local sigjmp_buf *volatile out_of_handler;

static inline uint64_t now()
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static uint64_t now_ns()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A fiber is resumed by any thread: nothing of a thread's is kept over a call of these. */
static __attribute__((noinline)) unsigned int draw(unsigned int below)
{
	asm volatile("" : : : "memory");
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed >> 20) % below;
}

static __attribute__((noinline)) int *own_depth()
{
	asm volatile("" : : : "memory");
	return &depth;
}

static inline void spin(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		asm volatile("" : : : "memory");
}

static unsigned int bucket_of(uint64_t ticks)
{
	unsigned int e;

	if (ticks < 32)
		return (unsigned int)ticks;
	e = 63 - (unsigned int)__builtin_clzll(ticks);
	return e - 4 >= BUCKETS / 32 ? BUCKETS - 1 : (e - 4) * 32 + (ticks >> (e - 5) & 31);
}

static inline void add(uint64_t *to, uint64_t n)
{
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void begin(enum function f)
{
	add(&shared->of[f].began, 1);
	(*own_depth())++;
}

/* It has returned. */
static __attribute__((noinline)) void book(enum function f, uint64_t ticks)
{
	struct stats *s = &shared->of[f];
	uint64_t was = s->min;

	add(&s->calls, 1);
	add(&s->sum, ticks);
	add(&s->hist[bucket_of(ticks)], 1);
	while ((!was || ticks + 1 < was) &&
	       !__atomic_compare_exchange_n(&s->min, &was, ticks + 1, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
	was = s->max;
	while (ticks > was && !__atomic_compare_exchange_n(&s->max, &was, ticks, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (!--*own_depth())
		add(&shared->outermost, ticks);
}

#define CALL(f, ...)                             \
	do {                                     \
		begin(F_##f);                    \
		book(F_##f, t_##f(__VA_ARGS__)); \
	} while (0)

HOOKED uint64_t t_leaf(unsigned int n)
{
	uint64_t from = now();

	spin(n);
	return now() - from;
}

HOOKED uint64_t t_outer(unsigned int n)
{
	uint64_t from = now();

	spin(n);
	for (int i = 0; i < 3; i++)
		CALL(leaf, n);
	spin(n);
	return now() - from;
}

HOOKED uint64_t t_node(int below)
{
	uint64_t from = now();

	spin(draw(spin_most));
	for (unsigned int kids = below ? draw(3) : 0; kids; kids--)
		CALL(node, below - 1);
	return now() - from;
}

HOOKED uint64_t t_deep(int below)
{
	uint64_t from = now();

	if (below)
		CALL(deep, below - 1);
	spin(10);
	return now() - from;
}

HOOKED uint64_t t_jump(sigjmp_buf env, int below)
{
	uint64_t from = now();

	spin(draw(spin_most));
	if (below)
		CALL(jump, env, below - 1);
	if (draw(4) == 0)
		siglongjmp(env, 1);
	return now() - from;
}

HOOKED uint64_t t_thrower(unsigned int n)
{
	uint64_t from = now();

	spin(n);
	if (n & 1)
		throw std::runtime_error("odd");
	return now() - from;
}

struct guard {
	~guard()
	{
		CALL(leaf, 40);
	}
};

HOOKED uint64_t t_pass(int below)
{
	uint64_t from = now();
	guard at_the_end;

	if (below)
		CALL(pass, below - 1);
	else
		CALL(thrower, draw(spin_most));
	spin(20);
	return now() - from;
}

HOOKED uint64_t t_tail(unsigned int n, uint64_t *took)
{
	uint64_t from = now();

	spin(n);
	*took = now() - from;
	return t_leaf(n);
}

struct fiber {
	ucontext_t own, *volatile back;
	int taken;
};
static struct fiber fibers[FIBERS];

static __attribute__((noinline)) void leave(struct fiber *f)
{
	swapcontext(&f->own, f->back);
}

HOOKED uint64_t t_yield(struct fiber *f, int below)
{
	uint64_t from = now();

	spin(draw(spin_most));
	if (below)
		CALL(yield, f, below - 1);
	leave(f);
	spin(draw(spin_most));
	return now() - from;
}

HOOKED uint64_t t_hand(int below)
{
	uint64_t from = now();

	spin(100);
	if (below)
		CALL(hand, below - 1);
	return now() - from;
}

HOOKED uint64_t t_torn(unsigned int n)
{
	uint64_t from = now();

	spin(n);
	return now() - from;
}

HOOKED uint64_t t_fork(pid_t *child)
{
	uint64_t from = now();

	*child = fork();
	return now() - from;
}

HOOKED uint64_t t_spawn()
{
	uint64_t from = now();
	pid_t child = vfork();

	if (!child) {
		CALL(leaf, 100);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	spin(100);
	return now() - from;
}

HOOKED uint64_t t_exit(int below)
{
	uint64_t from = now();

	spin(100);
	if (below)
		CALL(exit, below - 1);
	else if (!stays)
		pthread_exit(NULL);
	return now() - from;
}

/* ---- what is done, by mode ---- */

static void do_plain()
{
	CALL(outer, draw(spin_most));
	CALL(leaf, draw(spin_most));
}

static void do_recurse()
{
	CALL(node, (int)draw(12));
}

static void do_deep()
{
	if (draw(200) == 0)
		CALL(deep, 12000);
}

static void do_jump()
{
	sigjmp_buf env;

	if (sigsetjmp(env, 0) == 0)
		CALL(jump, env, (int)draw(6));
	else
		*own_depth() = 0;
}

static void do_throw()
{
	try {
		CALL(pass, (int)draw(4));
	} catch (const std::runtime_error &) {
		*own_depth() = 0;
		CALL(leaf, draw(spin_most));
	}
}

static void do_tail()
{
	uint64_t took;

	for (int i = 0; i < 8; i++) {
		/* One after the other, on one frame. */
		begin(F_tail);
		begin(F_leaf);
		--*own_depth();
		book(F_leaf, t_tail(draw(spin_most), &took));
		++*own_depth();
		book(F_tail, took);
	}
}

static void fiber_main(int i)
{
	for (;;) {
		CALL(yield, &fibers[i], (int)draw(5));
		CALL(leaf, draw(spin_most));
	}
}

static void do_fiber()
{
	struct fiber *f = &fibers[draw(FIBERS)];
	ucontext_t back;
	int was = *own_depth();

	if (__atomic_exchange_n(&f->taken, 1, __ATOMIC_ACQUIRE))
		return;
	f->back = &back;
	*own_depth() = 1000; /* none of its calls is an outermost one */
	swapcontext(&back, &f->own);
	*own_depth() = was;
	__atomic_store_n(&f->taken, 0, __ATOMIC_RELEASE);
}

static void do_torn()
{
	static thread_local sigjmp_buf env;

	if (sigsetjmp(env, 1) == 0) {
		out_of_handler = &env;
		for (int i = 0; i < 30; i++)
			CALL(torn, draw(spin_most));
		out_of_handler = NULL;
	} else {
		*own_depth() = 0;
		add(&shared->jumps, 1);
	}
}

static void do_fork()
{
	pid_t child = -1;
	uint64_t took;

	if (draw(40))
		return;
	begin(F_fork);
	took = t_fork(&child);
	if (!child) {
		for (int i = 0; i < 5; i++)
			do_plain();
		_exit(0);
	}
	book(F_fork, took);
	waitpid(child, NULL, 0);
}

static void do_spawn()
{
	if (draw(40) == 0)
		CALL(spawn);
}

static void *ends_inside(void *arg)
{
	seed = (uint64_t)(uintptr_t)arg | 1;
	CALL(exit, 2);
	return NULL;
}

static void do_exit()
{
	pthread_t thread;
	void *number = (void *)(uintptr_t)draw(1u << 30);

	if (draw(40) == 0 && pthread_create(&thread, NULL, ends_inside, number) == 0)
		pthread_join(thread, NULL);
}

static void do_signal()
{
	CALL(leaf, draw(spin_most));
}

static const struct mode {
	const char *name;
	void (*once)();
} modes[] = {
	{ "plain", do_plain }, { "recurse", do_recurse }, { "deep", do_deep },
	{ "jump", do_jump },   { "throw", do_throw },	  { "tail", do_tail },
	{ "fiber", do_fiber }, { "torn", do_torn },	  { "fork", do_fork },
	{ "spawn", do_spawn }, { "exit", do_exit },	  { "signal", do_signal },
};
enum { MODES = sizeof(modes) / sizeof(*modes) };
static const struct mode *chosen[MODES];
static unsigned int n_chosen;

/* ---- signals ---- */

static bool in_own_text(uint64_t pc)
{
	for (int i = 0; i < text_ranges; i++)
		if (pc >= text_range[i][0] && pc < text_range[i][1])
			return true;
	return false;
}

/* The code of files: what else runs was put in by another. */
static void find_text()
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], what[8];

	while (maps && fgets(line, sizeof(line), maps) && text_ranges < 64)
		if (sscanf(line, "%lx-%lx %4s", &from, &to, what) == 3 && what[2] == 'x' &&
		    (strchr(line, '/') || strchr(line, '['))) {
			text_range[text_ranges][0] = from;
			text_range[text_ranges++][1] = to;
		}
	if (maps)
		fclose(maps);
}

static void on_signal(int, siginfo_t *, void *context)
{
#ifdef __x86_64__
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	uint64_t pc = 0;
#endif
	sigjmp_buf *out = out_of_handler;

	add(&shared->signals, 1);
	if (!in_own_text(pc))
		add(&shared->in_stub, 1);
	(*own_depth())++;
	CALL(hand, (int)draw(4));
	(*own_depth())--;
	if (out && draw(4) == 0) {
		out_of_handler = NULL;
		siglongjmp(*out, 1);
	}
}

static void start_signals(timer_t *timer, void *stack)
{
	struct sigevent event;
	struct itimerspec every = { { 0, 0 }, { 0, 0 } };
	stack_t on;

	memset(&on, 0, sizeof(on));
	on.ss_sp = stack;
	on.ss_size = FIBER_STACK;
	sigaltstack(&on, NULL);
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGRTMIN + 3;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, timer);
	every.it_value.tv_nsec = every.it_interval.tv_nsec = (long)(1000000000u / signal_hz);
	timer_settime(*timer, 0, &every, NULL);
}

/* ---- threads ---- */

static void *work(void *arg)
{
	static char stacks[MOST_THREADS][FIBER_STACK];
	uint64_t i = (uint64_t)(uintptr_t)arg;
	timer_t timer;
	char name[16];

	snprintf(name, sizeof(name), "torture-%u", (unsigned int)i);
	pthread_setname_np(pthread_self(), name);
	seed = ((i + 1) * 0x9e3779b97f4a7c15u ^ first_seed * 0x2545f4914f6cdd1du) | 1;
	if (signal_hz)
		start_signals(&timer, stacks[i]);
	while (!stop) {
		chosen[draw(n_chosen)]->once();
		spin(draw(20000));
		if (draw(500) == 0)
			usleep(200);
	}
	if (signal_hz)
		timer_delete(timer);
	return NULL;
}

static void make_fibers()
{
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i].own);
		fibers[i].own.uc_stack.ss_sp = mmap(NULL, FIBER_STACK, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		fibers[i].own.uc_stack.ss_size = FIBER_STACK;
		makecontext(&fibers[i].own, (void (*)())fiber_main, 1, i);
	}
}

static void report(uint64_t ticks, uint64_t ns)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("{\"ns_per_tick\":%.9f,\"elapsed_ns\":%llu,\"signals\":%llu,\"in_stub\":%llu,"
	       "\"jumps\":%llu,\"switches\":%ld,\"outermost\":%llu,\"functions\":{",
	       (double)ns / (double)ticks, (unsigned long long)ns,
	       (unsigned long long)shared->signals, (unsigned long long)shared->in_stub,
	       (unsigned long long)shared->jumps, usage.ru_nivcsw,
	       (unsigned long long)shared->outermost);
	for (int f = 0; f < N_FUNCTIONS; f++) {
		const struct stats *s = &shared->of[f];
		const char *between = "";

		printf("%s\"%s\":{\"began\":%llu,\"calls\":%llu,\"sum\":%llu,\"min\":%llu,"
		       "\"max\":%llu,\"histogram\":[",
		       f ? "," : "", names[f], (unsigned long long)s->began,
		       (unsigned long long)s->calls, (unsigned long long)s->sum,
		       (unsigned long long)(s->min ? s->min - 1 : 0), (unsigned long long)s->max);
		for (int i = 0; i < BUCKETS; i++) {
			if (!s->hist[i])
				continue;
			printf("%s[%d,%llu]", between, i, (unsigned long long)s->hist[i]);
			between = ",";
		}
		printf("]}");
	}
	printf("}}\n");
}

static void choose(const char *name)
{
	for (const struct mode &mode : modes)
		if (!strcmp(mode.name, name))
			chosen[n_chosen++] = &mode;
}

static void on_term(int)
{
	stop = 1;
}

static void run(unsigned int threads, uint64_t ms)
{
	uint64_t from_ns = now_ns(), from = now();
	pthread_t thread[MOST_THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	for (unsigned int i = 0; i < threads; i++)
		pthread_create(&thread[i], &attr, work, (void *)(uintptr_t)i);
	while (!stop && now_ns() - from_ns < ms * 1000000)
		usleep(5000);
	stop = 1;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	report(now() - from, now_ns() - from_ns);
}

int main(int argc, char **argv)
{
	unsigned int threads = 4;
	uint64_t ms = 500;
	struct sigaction sa;
	int c;

	while ((c = getopt(argc, argv, "s:d:t:r:l:")) != -1) {
		if (c == 's')
			first_seed = strtoull(optarg, NULL, 0);
		else if (c == 'd')
			ms = strtoull(optarg, NULL, 0);
		else if (c == 't')
			threads = (unsigned int)strtoul(optarg, NULL, 0) % (MOST_THREADS + 1);
		else if (c == 'r')
			signal_hz = strtoull(optarg, NULL, 0);
		else if (c == 'l')
			spin_most = (unsigned int)strtoul(optarg, NULL, 0) + 1;
		else
			return 2;
	}
	for (int i = optind; i < argc && n_chosen < MODES; i++)
		choose(argv[i]);
	if (!n_chosen)
		return 2;
	shared = (struct shared *)mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_signal;
	sa.sa_flags = SA_ONSTACK | SA_SIGINFO | SA_RESTART;
	sigaction(SIGRTMIN + 3, &sa, NULL);
	signal(SIGTERM, on_term);
	make_fibers();
	find_text();
	puts("ready");
	fflush(stdout);
	run(threads, ms);
	puts("self-check ok");
	return 0;
}
