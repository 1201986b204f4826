/* SPDX-License-Identifier: MIT */
#include "turn.h"

#include <unistd.h>

#include "cpu.h"
#include "memory.h"
#include "py.h"

/* Of the owner: a pid has 22 bits at most, an address 48; threads differ in steps of 64 bytes. */
#define PID_SHIFT    42
#define COUNT_BITS   32 /* of the threads inside */
#define RETIRED_MANY 256
#define NAP_NS	     50000

struct retired {
	struct retired *next;
	void *memory;
};

static struct {
	uint64_t owner; /* pid and thread; 0: none */
	uint32_t depth;
	uint64_t inside; /* pid and count */
	struct retired *retired;
	size_t n_retired;
} turn;

static uint64_t me(void)
{
	return (uint64_t)getpid() << PID_SHIFT | cpu_thread() >> 6;
}

static bool try_take(uint64_t self)
{
	uint64_t owner = __atomic_load_n(&turn.owner, __ATOMIC_RELAXED);

	if (owner && owner >> PID_SHIFT == self >> PID_SHIFT && !(py.finalizing && py.finalizing()))
		return false;
	return __atomic_compare_exchange_n(&turn.owner, &owner, self, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

bool turn_mine(void)
{
	return py.threads && __atomic_load_n(&turn.owner, __ATOMIC_RELAXED) == me();
}

bool turn_take(unsigned naps)
{
	uint64_t self;
	PyThreadState *state;
	bool mine;

	if (!py.threads)
		return true;
	self = me();
	if (__atomic_load_n(&turn.owner, __ATOMIC_RELAXED) == self) {
		turn.depth++;
		return true;
	}
	mine = try_take(self);
	if (!mine) {
		state = PyEval_SaveThread();
		for (; !mine && naps; naps--) {
			cpu_nap(NAP_NS);
			mine = try_take(self);
		}
		if (mine) /* first: a command may use this thread meanwhile */
			turn.depth = 1;
		PyEval_RestoreThread(state);
		return mine;
	}
	turn.depth = 1;
	return true;
}

void turn_give(void)
{
	if (py.threads && --turn.depth == 0)
		__atomic_store_n(&turn.owner, 0, __ATOMIC_RELEASE);
}

bool turn_nested(void)
{
	return turn.depth > 1;
}

void turn_rest(void)
{
	uint32_t depth = turn.depth;
	uint64_t self = me();
	PyThreadState *state;

	__atomic_store_n(&turn.owner, 0, __ATOMIC_RELEASE);
	state = PyEval_SaveThread();
	do
		cpu_nap(NAP_NS);
	while (!try_take(self));
	turn.depth = depth;
	PyEval_RestoreThread(state);
}

static void count_inside(int by)
{
	uint64_t was = __atomic_load_n(&turn.inside, __ATOMIC_RELAXED), pid, now;

	if (!py.threads)
		return;
	pid = (uint64_t)getpid() << COUNT_BITS;
	do /* a fork's child has none of its parent's */
		now = was >> COUNT_BITS == pid >> COUNT_BITS ? was + (uint64_t)by : pid + (by > 0);
	while (!__atomic_compare_exchange_n(&turn.inside, &was, now, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED));
}

void turn_enter(void)
{
	count_inside(1);
}

void turn_leave(void)
{
	count_inside(-1);
}

bool turn_anyone(void)
{
	uint64_t inside = __atomic_load_n(&turn.inside, __ATOMIC_ACQUIRE);

	return inside >> COUNT_BITS == (uint64_t)getpid() && (uint32_t)inside;
}

void retire(void *memory)
{
	struct retired *r;

	if (!py.threads) {
		mem_free(memory);
		return;
	}
	r = memory ? mem_new(sizeof(*r)) : NULL;
	if (!r) /* leaked, then: better than freed */
		return;
	*r = (struct retired){ .next = turn.retired, .memory = memory };
	turn.retired = r;
	turn.n_retired++;
}

bool retired_many(void)
{
	return turn.n_retired >= RETIRED_MANY && !turn_nested();
}

void retired_free(void)
{
	struct retired *next;

	for (struct retired *r = turn.retired; r; r = next) {
		next = r->next;
		mem_free(r->memory);
		mem_free(r);
	}
	turn.retired = NULL;
	turn.n_retired = 0;
}
