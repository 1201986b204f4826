/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * The agent's memory: blocks are zeroed, aligned, apart from each other and keep what is in them;
 * all of it goes back to the kernel; a child of a fork in the middle of a change neither uses nor
 * frees what it cannot know to be whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "python/agent/memory.c"

enum { BLOCKS = 3000, ROUNDS = 40000 };

static struct block {
	unsigned char *at, mark;
	size_t size;
} block[BLOCKS];

static void make(struct block *b)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 64, 100, 160, 1023, 1024, 1025, 70000 };

	b->size = sizes[(size_t)rand() % (sizeof(sizes) / sizeof(*sizes))];
	b->mark = (unsigned char)rand();
	b->at = mem_new(b->size);
	assert_non_null(b->at);
	assert_int_equal((uintptr_t)b->at % (b->size < MEM_LARGE ? 16 : 64), 0);
	for (size_t i = 0; i < b->size; i++)
		assert_int_equal(b->at[i], 0);
	memset(b->at, b->mark, b->size);
}

static void drop(struct block *b)
{
	for (size_t i = 0; i < b->size; i++)
		assert_int_equal(b->at[i], b->mark);
	mem_free(b->at);
	b->at = NULL;
}

static size_t mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages;
}

static void all_comes_and_goes(void **state)
{
	size_t before;

	(void)state;
	srand(1);
	make(&block[0]);
	drop(&block[0]);
	mem_close();
	before = mapped();
	for (int i = 0; i < ROUNDS; i++) {
		struct block *b = &block[rand() % BLOCKS];

		if (b->at)
			drop(b);
		else
			make(b);
	}
	assert_true(mapped() > before);
	for (int i = 0; i < BLOCKS; i++)
		if (block[i].at)
			drop(&block[i]);
	mem_close();
	assert_int_equal(mapped(), before);
	mem_free(NULL);
}

static void emptied_chunks_go(void **state)
{
	size_t before = mapped(), most;
	void *memory[20000];

	(void)state;
	for (int i = 0; i < 20000; i++)
		memory[i] = mem_new(160);
	most = mapped();
	for (int i = 0; i < 20000; i++)
		mem_free(memory[i]);
	assert_true(most - before > 700);
	assert_true(mapped() - before <= CHUNK / 4096); /* one stays */
	mem_close();
	assert_int_equal(mapped(), before);
}

static void a_cut_off_change(void **state)
{
	void *kept = mem_new(100), *other = mem_new(100), *large = mem_new(5000), *fresh;
	struct chunk *c = (struct chunk *)((uintptr_t)kept & ~(CHUNK - 1));
	size_t used = c->used;

	(void)state;
	memset(kept, 7, 100);
	mem.busy = true;
	fresh = mem_new(100);
	assert_non_null(fresh);
	assert_true(((uintptr_t)fresh & ~(CHUNK - 1)) != (uintptr_t)c);
	mem_free(other);
	assert_int_equal(c->used, used);
	mem_free(kept);
	assert_int_equal(((unsigned char *)kept)[99], 7);
	mem_free(large);
	mem_free(fresh);
	mem_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_comes_and_goes),
		cmocka_unit_test(emptied_chunks_go),
		cmocka_unit_test(a_cut_off_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
