/* SPDX-License-Identifier: MIT */
/* What the evidence costs at a context switch: two processes on one processor that wake each other.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"
#include "evidence/evidence.h"
#include "src/run/events.h"

enum { TURNS = 20000, TURNS_QUICK = 5000 };
#define GOAL_NS 350

struct pair {
	pid_t pid[2];
	int ask, answer; /* a byte asks for a measurement; a double is the answer */
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void pong(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

static void ping(int ask, int answer, int from, int to)
{
	int turns = bench.quick ? TURNS_QUICK : TURNS;
	char byte;

	while (read(ask, &byte, 1) == 1) {
		double start = now_ms(), ns;

		for (int i = 0; i < turns; i++)
			if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
				_exit(1);
		ns = (now_ms() - start) * 1e6 / (2.0 * turns); /* two switches in a turn */
		if (write(answer, &ns, sizeof(ns)) != sizeof(ns))
			_exit(1);
	}
	_exit(0);
}

/* ---- the same by a futex ---- */

static void futex(uint32_t *at, int op, uint32_t value)
{
	syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

/* Whose turn it is: 0 or 1. */
static void await_turn(uint32_t *turn, uint32_t mine)
{
	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != mine)
		futex(turn, FUTEX_WAIT, !mine);
}

static void pass_turn(uint32_t *turn, uint32_t mine)
{
	__atomic_store_n(turn, !mine, __ATOMIC_RELEASE);
	futex(turn, FUTEX_WAKE, 1);
}

static void futex_pong(uint32_t *turn)
{
	for (;;) {
		await_turn(turn, 1);
		pass_turn(turn, 1);
	}
}

static void futex_ping(uint32_t *turn, int ask, int answer)
{
	int turns = bench.quick ? TURNS_QUICK : TURNS;
	char byte;

	while (read(ask, &byte, 1) == 1) {
		double start = now_ms(), ns;

		for (int i = 0; i < turns; i++) {
			pass_turn(turn, 0);
			await_turn(turn, 0);
		}
		ns = (now_ms() - start) * 1e6 / (2.0 * turns);
		if (write(answer, &ns, sizeof(ns)) != sizeof(ns))
			_exit(1);
	}
	_exit(0);
}

static int futex_pair_start(struct pair *p)
{
	uint32_t *turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ask[2], answer[2];

	if (turn == MAP_FAILED || pipe(ask) || pipe(answer))
		return -1;
	p->pid[0] = fork();
	if (!p->pid[0]) {
		pin(0);
		close(ask[1]);
		futex_pong(turn);
	}
	p->pid[1] = fork();
	if (!p->pid[1]) {
		pin(0);
		close(ask[1]);
		futex_ping(turn, ask[0], answer[1]);
	}
	munmap(turn, sizeof(*turn));
	close(ask[0]);
	close(answer[1]);
	p->ask = ask[1];
	p->answer = answer[0];
	return p->pid[0] > 0 && p->pid[1] > 0 ? 0 : -1;
}

static int pair_start(struct pair *p)
{
	int there[2], back[2], ask[2], answer[2];

	if (pipe(there) || pipe(back) || pipe(ask) || pipe(answer))
		return -1;
	p->pid[0] = fork();
	if (!p->pid[0]) {
		pin(0);
		close(there[1]);
		close(ask[1]);
		close(ask[0]);
		close(back[0]);
		pong(there[0], back[1]);
	}
	p->pid[1] = fork();
	if (!p->pid[1]) {
		pin(0);
		close(there[0]);
		close(back[1]);
		close(ask[1]);
		ping(ask[0], answer[1], back[0], there[1]);
	}
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
	close(ask[0]);
	close(answer[1]);
	p->ask = ask[1];
	p->answer = answer[0];
	return p->pid[0] > 0 && p->pid[1] > 0 ? 0 : -1;
}

static void pair_stop(struct pair *p)
{
	close(p->ask);
	for (int i = 1; i >= 0; i--) {
		kill(p->pid[i], SIGKILL);
		waitpid(p->pid[i], NULL, 0);
	}
	close(p->answer);
}

static double switch_ns(const struct pair *p)
{
	double ns;

	if (write(p->ask, "x", 1) != 1 || read(p->answer, &ns, sizeof(ns)) != sizeof(ns))
		return NAN;
	return ns;
}

static double own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* As the tracer does it: a thread takes the waits and writes lines. *line_ns: of a processor, for
 * one of them. */
static double streamed_ns(const struct pair *p, struct evidence *e, double *line_ns)
{
	struct events *ev = events_open(open("/dev/null", O_WRONLY | O_CLOEXEC));
	struct evidence_reading r;
	struct result_stream of;
	double ns, cpu;

	events_waits(ev, e);
	cpu = own_cpu_ns();
	ns = switch_ns(p);
	cpu = own_cpu_ns() - cpu;
	events_waits_end(ev, &r, &of);
	*line_ns = of.waits ? cpu / (double)of.waits : NAN;
	evidence_reading_free(&r);
	events_close(ev);
	return of.agrees ? ns : NAN;
}

/* line_ns: NULL: waits are counted, and not recorded one by one. */
static double watched_ns(const struct pair *p, double *line_ns)
{
	const struct evidence_config cfg = { .groups = EVIDENCE_ALL, .pauses = line_ns };
	struct evidence *e = evidence_open(&cfg);
	double ns;

	evidence_add(e, p->pid[0]);
	evidence_add(e, p->pid[1]);
	ns = evidence_limit(e) ? NAN : line_ns ? streamed_ns(p, e, line_ns) : switch_ns(p);
	evidence_close(e);
	return ns;
}

struct figures {
	struct samples bare, counted, recorded, line;
};

static void take_figures(struct pair *p, struct figures *f)
{
	double line_ns = NAN;

	switch_ns(p);
	for (int i = 0; i < 4 * bench.rounds && i < MAX_SAMPLES; i++) {
		double ns = switch_ns(p);

		samples_add(&f->bare, ns);
		samples_add(&f->counted, watched_ns(p, NULL) - ns);
		samples_add(&f->recorded, watched_ns(p, &line_ns) - ns);
		samples_add(&f->line, line_ns);
	}
}

static void measure(int (*start)(struct pair *p), const char *plain, const char *const what[3])
{
	static struct figures f;
	struct pair p;
	double value;

	f = (struct figures){ 0 };
	if (start(&p) == 0) {
		take_figures(&p, &f);
		pair_stop(&p);
	}
	row_add("evidence", plain, samples_median(&f.bare), "ns", NULL, -1);
	value = samples_median(&f.counted);
	row_add("evidence", what[0], value, "ns", "< 350", met_below(value, GOAL_NS));
	row_add("evidence", what[1], samples_median(&f.recorded), "ns", NULL, -1);
	row_add("evidence", what[2], samples_median(&f.line), "ns", NULL, -1);
}

void bench_evidence(void)
{
	static const char *const pipes[] = {
		"a context switch, more with the evidence by BPF",
		"... with each wait written to --events",
		"... of a processor, for the line of a wait",
	}, *const futexes[] = {
		"the same by a futex, more with the evidence by BPF",
		"... with each wait written to --events",
		"... of a processor, for the line of a wait",
	};
	struct sb_err err = { 0 };

	if (evidence_probe(&err) < 0) {
		row_missing("evidence", pipes[0], "< 350", "%s", err.what);
		row_missing("evidence", futexes[0], "< 350", "%s", err.what);
		return;
	}
	measure(pair_start, "a context switch, a pair of processes on a pipe", pipes);
	measure(futex_pair_start, "a context switch, a pair of processes on a futex", futexes);
}
