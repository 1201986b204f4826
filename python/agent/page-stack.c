/* SPDX-License-Identifier: MIT */
/* The callers of a recorded call: what stub-code.S does for native functions, without a copy of the
 * stack. See struct sb_page_stacks. */
#include "inject/pyframes.h"
#include "page.h"

/* Takes a free place; false: there is none. */
static bool take(const struct page *page, uint64_t *number)
{
	const struct sb_page_stacks *list = (const void *)(page->base + page->stack_list_off);
	uint64_t *taken = &((struct sb_page_stacks_taken *)(page->base + page->stacks_off))->taken;
	uint64_t at = __atomic_load_n(taken, __ATOMIC_RELAXED);

	do
		if (at >= __atomic_load_n(&list->offered, __ATOMIC_ACQUIRE))
			return false;
	while (!__atomic_compare_exchange_n(taken, &at, at + 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
	*number = list->slot[at & (page->stacks - 1)] & (page->stacks - 1);
	return true;
}

void page_stack(const struct page *page, uint64_t owner, uint64_t calls_off, uint64_t own,
		uint64_t start, struct sb_page_more *to)
{
	struct sb_page_stack *stack;
	uint64_t number;

	if (take(page, &number)) {
		stack = (void *)(page->base + page->stacks_off +
				 sizeof(struct sb_page_stacks_taken) + number * page->stack_size);
		stack->owner = owner;
		stack->calls_off = calls_off;
		stack->start = start;
		stack->size = 0;
		stack->end = SB_STACK_WHOLE;
		stack->sp = 0;
		to->value[1] = start +
			       pyframes_copy(&page->record->python, ~owner, own,
					     (char *)stack + page->stack_size - SB_PAGE_FRAMES,
					     stack);
		to->value[0] = number + 1;
	}
	__atomic_store_n(&to->mark, SB_EVENT_MORE, __ATOMIC_RELEASE);
}
