/* SPDX-License-Identifier: MIT */
/*
 * Chunks of 64 kB at multiples of that, each divided into slots of one size. A larger block has a
 * mapping of its own, which begins with the same header. A chunk without a slot in use is unmapped,
 * except for one that stays for the next function.
 */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

#define CHUNK	((size_t)1 << 16)
#define STEP	((size_t)16) /* between the sizes of slots */
#define CLASSES (MEM_LARGE / STEP)
#define HEADER	((size_t)64)

struct chunk {
	struct chunk *next, **link; /* of those of this size that have a free slot */
	void *free;		    /* slots that were in use; each begins with the next */
	uint32_t age;
	uint32_t slot; /* size; 0: one block */
	size_t size;
	size_t fresh; /* offset of the first slot that never was in use */
	size_t used;  /* slots */
};

_Static_assert(sizeof(struct chunk) <= HEADER, "the first slot begins behind the header");

static struct {
	struct chunk *partial[CLASSES];
	struct chunk *spare;
	volatile bool busy; /* in the middle of a change: found at its begin, a fork cut it off */
	uint32_t age;	    /* of chunks whose state is known */
} mem;

static void change_begin(void)
{
	if (mem.busy) {
		memset(mem.partial, 0, sizeof(mem.partial));
		mem.spare = NULL;
		mem.age++;
	}
	mem.busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void change_end(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mem.busy = false;
}

/* At a multiple of CHUNK; size: whole pages. */
static struct chunk *map(size_t size)
{
	uintptr_t at = cpu_map(size + CHUNK), start, end;
	struct chunk *c;

	if (!at)
		return NULL;
	start = (at + CHUNK - 1) & ~(CHUNK - 1);
	end = at + size + CHUNK;
	if (start > at)
		cpu_unmap(at, start - at);
	if (end > start + size)
		cpu_unmap(start + size, end - start - size);
	c = (struct chunk *)start;
	c->age = mem.age;
	c->size = size;
	c->fresh = HEADER;
	return c;
}

static void unmap(struct chunk *c)
{
	cpu_unmap((uintptr_t)c, c->size);
}

static struct chunk **list_of(const struct chunk *c)
{
	return &mem.partial[c->slot / STEP - 1];
}

static void list_add(struct chunk *c)
{
	struct chunk **list = list_of(c);

	c->next = *list;
	c->link = list;
	if (c->next)
		c->next->link = &c->next;
	*list = c;
}

static void list_remove(struct chunk *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
}

static bool is_full(const struct chunk *c)
{
	return !c->free && c->fresh + c->slot > c->size;
}

static struct chunk *chunk_for(uint32_t slot)
{
	struct chunk *c = mem.partial[slot / STEP - 1];

	if (c)
		return c;
	c = mem.spare ? mem.spare : map(CHUNK);
	mem.spare = NULL;
	if (!c)
		return NULL;
	c->slot = slot;
	c->free = NULL;
	c->fresh = HEADER;
	list_add(c);
	return c;
}

static void *slot_new(uint32_t slot)
{
	struct chunk *c = chunk_for(slot);
	void *memory;

	if (!c)
		return NULL;
	memory = c->free;
	if (memory) {
		memcpy(&c->free, memory, sizeof(c->free));
	} else {
		memory = (char *)c + c->fresh;
		c->fresh += slot;
	}
	c->used++;
	if (is_full(c))
		list_remove(c);
	return memset(memory, 0, slot);
}

static void *large_new(size_t size)
{
	struct chunk *c = NULL;

	if (size < SIZE_MAX / 2)
		c = map((size + HEADER + CHUNK - 1) & ~(CHUNK - 1));
	return c ? (char *)c + HEADER : NULL;
}

void *mem_new(size_t size)
{
	void *memory;

	change_begin();
	if (size < MEM_LARGE)
		memory = slot_new((uint32_t)((size + !size + STEP - 1) & ~(STEP - 1)));
	else
		memory = large_new(size);
	change_end();
	return memory;
}

static void slot_free(struct chunk *c, void *memory)
{
	if (is_full(c))
		list_add(c);
	memcpy(memory, &c->free, sizeof(c->free));
	c->free = memory;
	if (--c->used)
		return;
	list_remove(c);
	if (mem.spare)
		unmap(c);
	else
		mem.spare = c;
}

void mem_free(void *memory)
{
	struct chunk *c = (struct chunk *)((uintptr_t)memory & ~(CHUNK - 1));

	if (!memory)
		return;
	change_begin();
	if (c->age == mem.age && c->slot)
		slot_free(c, memory);
	else if (!c->slot)
		unmap(c);
	change_end();
}

void mem_close(void)
{
	change_begin();
	if (mem.spare)
		unmap(mem.spare);
	mem.spare = NULL;
	change_end();
}
