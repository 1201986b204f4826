/* SPDX-License-Identifier: MIT */
/*
 * A program that knows which of its reads the page cache has: pages [-g GATE] [-f FILE] [PAGES].
 * Once GATE exists, one thread after the other reads FILE of PAGES pages. Before each call a thread
 * asks the kernel how many of the pages are there (cachestat(2), Linux 6.5). At the end, a line for
 * each:
 *	pages NAME READS MISSES ADDS	pages: read, not there before (-1: not known), brought
 * With "over 0" FILE cannot be removed from the page cache (tmpfs, overlay).
 */
#include "victim.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

enum { PAGE = 4096, BLOCK = 16 * PAGE };

struct range {
	uint64_t off, len;
};
struct state {
	uint64_t cache, dirty, writeback, evicted, recently_evicted;
};

static const char *gate, *path = "pages.data";
static int pages = 256, file;
static int turn = -1;
static char block[BLOCK * 4];
static bool wrong, drops = true;

struct part {
	const char *name;
	void (*work)(struct part *p);
	long reads, misses, adds;
	bool blind; /* the kernel does not say what is there */
};

static void check(bool ok)
{
	if (!ok) {
		wrong = true;
		perror("pages");
	}
}

static long there(uint64_t page, long n)
{
	struct range range = { page * PAGE, (uint64_t)n * PAGE };
	struct state state = { 0 };

	return syscall(SYS_cachestat, file, &range, &state, 0) == 0 ? (long)state.cache : -1;
}

static void expect(struct part *p, uint64_t from, size_t size)
{
	uint64_t first = from / PAGE, end = (from + size + PAGE - 1) / PAGE;
	long n, had;

	end = end < (uint64_t)pages ? end : (uint64_t)pages;
	n = (long)(end - first);
	had = there(first, n);
	p->blind |= had < 0;
	p->reads += n;
	p->misses += n - had;
}

static void take(struct part *p, uint64_t from, size_t size)
{
	expect(p, from, size);
	check(pread(file, block, size, (off_t)from) > 0);
}

static void drop(int advice)
{
	check(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
	      posix_fadvise(file, 0, 0, advice) == 0);
	drops &= there(0, pages) <= 0;
}

/* Each page alone, with none read ahead. */
static void cold(struct part *p)
{
	drop(POSIX_FADV_RANDOM);
	for (int i = 0; i < pages; i++)
		take(p, (uint64_t)(i * 7 % pages) * PAGE, PAGE);
	p->adds = p->reads;
}

/* All are there; parts of pages, and past the end. */
static void warm(struct part *p)
{
	for (int i = 0; i < pages; i++)
		take(p, (uint64_t)i * PAGE + 100, BLOCK);
	for (int i = 0; i < pages; i++)
		take(p, (uint64_t)i * PAGE + 100, 10);
}

static void stream(struct part *p)
{
	drop(POSIX_FADV_NORMAL);
	for (uint64_t at = 0; at < (uint64_t)pages * PAGE; at += BLOCK / 2)
		take(p, at, BLOCK / 2);
	p->adds = pages;
}

/* Every other page is there, when a call reads many. */
static void holes(struct part *p)
{
	drop(POSIX_FADV_RANDOM);
	for (int i = 0; i < pages; i += 2)
		take(p, (uint64_t)i * PAGE, PAGE);
	for (uint64_t at = PAGE; at < (uint64_t)pages * PAGE; at += sizeof(block))
		take(p, at, sizeof(block));
	p->adds = pages;
}

/* What the thread has written is there, and was never read. */
static void written(struct part *p)
{
	int own = open(path, O_RDWR | O_CLOEXEC), was = file;

	check(own >= 0 && ftruncate(own, 0) == 0);
	file = own;
	for (int i = 0; i < pages; i++) {
		check(pwrite(own, block, PAGE, (off_t)i * PAGE) == PAGE);
		take(p, (uint64_t)i * PAGE, PAGE);
	}
	p->adds = pages;
	file = was;
	close(own);
}

static void advised(struct part *p)
{
	drop(POSIX_FADV_NORMAL);
	for (int i = 0; i < pages; i += 32) {
		check(posix_fadvise(file, (off_t)i * PAGE, 32 * PAGE, POSIX_FADV_WILLNEED) == 0);
		take(p, (uint64_t)i * PAGE, 32 * PAGE);
	}
	p->adds = pages;
}

static void sent(struct part *p)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	off_t at = 0;

	for (int i = 0; i < pages; i += 16) {
		expect(p, (uint64_t)at, BLOCK);
		check(sendfile(null, file, &at, BLOCK) == BLOCK);
	}
	close(null);
}

static struct part parts[] = {
	{ "v-cold", cold, 0, 0, 0, false },	  { "v-warm", warm, 0, 0, 0, false },
	{ "v-stream", stream, 0, 0, 0, false },	  { "v-holes", holes, 0, 0, 0, false },
	{ "v-written", written, 0, 0, 0, false }, { "v-advised", advised, 0, 0, 0, false },
	{ "v-sent", sent, 0, 0, 0, false },
};
enum { PARTS = sizeof(parts) / sizeof(*parts) };

/* A thread that ends is in no list of threads. */
static void *run(void *arg)
{
	struct part *p = arg;
	int mine = (int)(p - parts);

	prctl(PR_SET_NAME, p->name);
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine && !victim_stop)
		victim_sleep_ns(1000000);
	if (!victim_stop)
		p->work(p);
	__atomic_store_n(&turn, mine + 1, __ATOMIC_RELEASE);
	while (!victim_stop)
		victim_sleep_ns(20000000);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[PARTS];

	victim_catch_term();
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-g") && i + 1 < argc)
			gate = argv[++i];
		else if (!strcmp(argv[i], "-f") && i + 1 < argc)
			path = argv[++i];
		else
			pages = atoi(argv[i]);
	}
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (int i = 0; i < pages; i++)
		check(write(file, block, PAGE) == PAGE);
	for (int i = 0; i < PARTS; i++)
		pthread_create(&thread[i], NULL, run, &parts[i]);
	victim_ready();
	victim_gate(gate);
	turn = 0;
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != PARTS && !victim_stop)
		victim_sleep_ns(1000000);
	printf("over %d\n", drops);
	for (int i = 0; i < PARTS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < PARTS; i++)
		printf("pages %s %ld %ld %ld\n", parts[i].name, parts[i].reads,
		       parts[i].blind ? -1 : parts[i].misses, parts[i].adds);
	return victim_done(!wrong);
}
