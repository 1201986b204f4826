/* SPDX-License-Identifier: MIT */
/*
 * The cost of a hit of a uprobe beyond the time that its program measures: the trap, the way to the
 * program, and the instruction that the breakpoint replaced, which the kernel emulates where it can
 * and else runs out of line, at ten times the price. Measured on functions of sbinject, in a file
 * that no other process maps, in rounds with and without; this cost is subtracted from each delay.
 * A quiet round is used: a disturbance by other load is no cost of a hit.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "uprobe-priv.h"
#include "inject/arch/arch.h"
#include "inject/clock.h"
#include "src/base/log.h"

enum { ROUNDS = 12, CALLS = 150, QUIET = ROUNDS / 4, PAGE = 4096 };

#define OWN_ROOT (1ull << 63)

typedef void sample_fn(void);

struct sample {
	sample_fn *fn;
	int fd;
};

static bool sample_open(struct sample *s, unsigned int kind)
{
	uint8_t page[PAGE] = { 0 };
	size_t len;
	const uint8_t *code = arch_probe_sample(kind, &len);
	void *at;

	memcpy(page, code, len);
	s->fd = memfd_create("sbinject-sample", MFD_CLOEXEC);
	if (s->fd < 0 || write(s->fd, page, PAGE) != PAGE)
		return false;
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, s->fd, 0);
	s->fn = at == MAP_FAILED ? NULL : (sample_fn *)at;
	return s->fn != NULL;
}

static void sample_close(const struct sample *s)
{
	if (s->fn)
		munmap((void *)s->fn, PAGE);
	if (s->fd >= 0)
		close(s->fd);
}

static double call_ns(const struct sample *s)
{
	uint64_t start = clock_ns();

	for (int i = 0; i < CALLS; i++)
		s->fn();
	return (double)(clock_ns() - start) / CALLS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* One round: the time of a call beyond what was measured inside it; NAN: not a full round. */
static double round_ns(struct uprobes *u, const struct sample *s, uint32_t row, double bare)
{
	uint32_t target = u->n_targets - 1;
	struct uprobe_sum before, after;
	double ns;

	uprobes_read(u, row, target, &before);
	ns = call_ns(s) - bare;
	if (!uprobes_read(u, row, target, &after) || after.all.hits - before.all.hits != CALLS)
		return NAN;
	return ns - (double)(after.all.injected_ns + after.all.overrun_ns - before.all.injected_ns -
			     before.all.overrun_ns) /
			    CALLS;
}

static double measure(struct uprobes *u, const struct sample *s, uint32_t row)
{
	double bare[ROUNDS], more[ROUNDS];
	char path[64];
	size_t id;

	for (int i = 0; i < ROUNDS; i++)
		bare[i] = call_ns(s);
	qsort(bare, ROUNDS, sizeof(*bare), by_value);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	/* No class: nothing is subtracted or added. */
	if (uprobes_place(u, u->on_hit, path, 0,
			  (u->n_targets - 1) | (uint64_t)UPROBE_NO_CLASS << UPROBE_COOKIE_BITS,
			  &id))
		return NAN;
	call_ns(s);
	for (int i = 0; i < ROUNDS; i++)
		more[i] = round_ns(u, s, row, bare[QUIET]);
	uprobes_disarm(u, id);
	qsort(more, ROUNDS, sizeof(*more), by_value);
	return more[QUIET];
}

/* All traces of a hit in an address space stay in a child's. */
static double measure_here(struct uprobes *u, unsigned int kind)
{
	struct uprobe_target *t = &u->targets[u->n_targets - 1];
	struct sample s = { .fd = -1 };
	struct sb_err err = { 0 };
	double cost = NAN;
	uint32_t row;

	t->delay_ns = 0;
	t->every = 1;
	t->need = OWN_ROOT;
	if (sample_open(&s, kind) && uprobes_watch(u, getpid(), OWN_ROOT, 0, &row, &err) == 0) {
		__atomic_store_n(&t->state, UPROBE_DELAY, __ATOMIC_RELEASE);
		cost = measure(u, &s, row);
		__atomic_store_n(&t->state, UPROBE_OFF, __ATOMIC_RELEASE);
		uprobes_forget(u, row, u->n_targets - 1);
		uprobes_unwatch(u, getpid());
	}
	sample_close(&s);
	return cost;
}

void probe_cost(struct uprobes *u, unsigned int kind, uint64_t *ns)
{
	double cost = NAN;
	int fds[2];
	pid_t pid;

	*ns = 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		cost = measure_here(u, kind);
		_exit(write(fds[1], &cost, sizeof(cost)) != sizeof(cost));
	}
	close(fds[1]);
	if (pid > 0 && read(fds[0], &cost, sizeof(cost)) == sizeof(cost) && cost > 0)
		*ns = (uint64_t)(cost + 0.5);
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	log_debug("uprobe: a hit of kind %u costs %.0f ns beyond its delay", kind, cost);
}
