/* SPDX-License-Identifier: MIT */
#include "open.h"

#include <stdlib.h>
#include "idmap.h"
#include "src/base/must.h"

enum {
	DEPTH_MAX = 1024,     /* of a thread */
	SLICES_MAX = 1 << 20, /* of all */
	KEPT = 64,	      /* of a thread where none is open */
	ALIASES_MAX = 1 << 19,
};

struct slice {
	struct trace_span span;
	bool pair; /* began by B: its duration is not known */
};

struct stack {
	struct slice *slice;
	size_t n, room;
};

struct open_slices {
	struct reader *r;
	struct idmap alias;  /* threads by pid and tid */
	struct stack *stack; /* by thread */
	size_t n_stacks, n_slices;
};

struct open_slices *open_new(struct reader *r)
{
	struct open_slices *open = must_calloc(1, sizeof(*open));

	open->r = r;
	return open;
}

void open_free(struct open_slices *open)
{
	for (size_t i = 0; i < open->n_stacks; i++)
		free(open->stack[i].slice);
	free(open->stack);
	idmap_free(&open->alias);
	free(open);
}

/* ---- names of threads ---- */

uint32_t open_thread(const struct open_slices *open, int32_t pid, int32_t tid)
{
	return idmap_get(&open->alias, idmap_pair(pid, tid));
}

int open_alias(struct open_slices *open, int32_t pid, int32_t tid, uint32_t id)
{
	if (open->alias.n == ALIASES_MAX)
		return err_set(open->r->err, SB_EFILE, "'%s': more than %d names of threads",
			       open->r->name, ALIASES_MAX);
	idmap_put(&open->alias, idmap_pair(pid, tid), id);
	return 0;
}

/* ---- slices ---- */

static struct stack *stack_of(struct open_slices *open, uint32_t thread)
{
	size_t n = open->n_stacks;

	if (thread >= n) {
		open->n_stacks = (size_t)thread * 2 + 16;
		open->stack = must_realloc(open->stack, open->n_stacks * sizeof(*open->stack));
		memset(open->stack + n, 0, (open->n_stacks - n) * sizeof(*open->stack));
	}
	return &open->stack[thread];
}

/* Hands the innermost slice on. A B without its E is counted. */
static int leave(struct open_slices *open, struct stack *stack)
{
	struct slice top = stack->slice[--stack->n];

	open->n_slices--;
	if (!stack->n && stack->room > KEPT) {
		free(stack->slice);
		*stack = (struct stack){ 0 };
	}
	if (!top.pair)
		return decl_span(open->r, &top.span);
	open->r->reading->open++;
	return 0;
}

static int enter(struct open_slices *open, struct stack *stack, const struct trace_span *span,
		 bool pair)
{
	if (stack->n == DEPTH_MAX || open->n_slices == SLICES_MAX) {
		if (!pair)
			return decl_span(open->r, span);
		open->r->reading->skipped++;
		return 0;
	}
	if (stack->n == stack->room) {
		stack->room = stack->room ? stack->room * 2 : 8;
		stack->slice = must_realloc(stack->slice, stack->room * sizeof(*stack->slice));
	}
	stack->slice[stack->n++] = (struct slice){ *span, pair };
	open->n_slices++;
	return 0;
}

static uint64_t end_of(const struct trace_span *span)
{
	return span->start_ns + span->dur_ns;
}

/* Can a span that comes now be a call made in the complete slice? */
static bool may_hold(const struct trace_span *outer, const struct trace_span *span)
{
	if (outer->start_ns == span->start_ns)
		return end_of(outer) > end_of(span);
	return outer->start_ns < span->start_ns && end_of(outer) > span->start_ns;
}

static int leave_finished(struct open_slices *open, struct stack *stack,
			  const struct trace_span *span)
{
	int ret = 0;

	while (ret == 0 && stack->n && !stack->slice[stack->n - 1].pair &&
	       !may_hold(&stack->slice[stack->n - 1].span, span))
		ret = leave(open, stack);
	return ret;
}

int open_complete(struct open_slices *open, const struct trace_span *span)
{
	struct stack *stack = stack_of(open, span->thread);
	int ret = leave_finished(open, stack, span);

	return ret == 0 ? enter(open, stack, span, false) : ret;
}

int open_begin(struct open_slices *open, const struct trace_span *span)
{
	struct stack *stack = stack_of(open, span->thread);
	int ret = leave_finished(open, stack, span);

	return ret == 0 ? enter(open, stack, span, true) : ret;
}

int open_end(struct open_slices *open, const struct trace_span *span)
{
	struct stack *stack = stack_of(open, span->thread);
	int ret = 0;

	while (ret == 0 && stack->n && !stack->slice[stack->n - 1].pair)
		ret = leave(open, stack);
	if (ret < 0)
		return ret;
	if (!stack->n || stack->slice[stack->n - 1].span.start_ns > span->start_ns) {
		open->r->reading->skipped++;
		return 0;
	}
	stack->slice[stack->n - 1].span.dur_ns = span->start_ns -
						 stack->slice[stack->n - 1].span.start_ns;
	stack->slice[stack->n - 1].pair = false;
	return leave(open, stack);
}

int open_rest(struct open_slices *open)
{
	int ret = 0;

	for (size_t i = 0; i < open->n_stacks; i++)
		while (ret == 0 && open->stack[i].n)
			ret = leave(open, &open->stack[i]);
	return ret;
}
