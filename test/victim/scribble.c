/* SPDX-License-Identifier: MIT */
/*
 * scribble WHAT: calls scribbled_fn() on two threads, while a third overwrites what sbinject shares
 * with it, as soon as there is any, without an end:
 *
 *	numbers		all that sbinject reads from the page and that the stubs can bear
 *	all		everything in page and record, so that the stubs may kill this process
 *	header		what of the first pages can be written, one time, when SIGUSR1 comes;
 *			"scribbled" is printed
 *
 * Through /proc/self/mem, so that the page may be taken away at any time. It knows the layout.
 */
#include <errno.h>
#include <fcntl.h>
#include "../../inject/page-abi.h"
#include "victim.h"

enum { THREADS = 2, CHUNK = 1 << 16, FIRST_BLOCKS = 4 << 20 };

uint64_t scribbled_fn(uint64_t x);

static uint64_t calls[THREADS], errors;
static volatile sig_atomic_t asked;
static int mem;

VICTIM_HOOKED uint64_t scribbled_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 5 + 9;
	VICTIM_OPAQUE(x);
	return x;
}

static void *caller(void *arg)
{
	uint64_t *n = arg;

	for (; !victim_stop; (*n)++) {
		if (scribbled_fn(*n) != *n * 5 + 9)
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		if (*n % 64 == 0)
			victim_sleep_ns(100000);
	}
	return NULL;
}

static uint64_t random64(void)
{
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* The map stays open: a test compares descriptors. */
static uint64_t rear; /* where what can be written begins; before that sbinject says */

static bool find_page(uint64_t *start, uint64_t *end)
{
	static FILE *maps;
	char line[512];
	bool found = false;

	if (!maps)
		maps = fopen("/proc/self/maps", "re");
	if (maps)
		rewind(maps);
	while (maps && fgets(line, sizeof(line), maps)) {
		char *rest;
		uint64_t at = strtoull(line, &rest, 16);

		if (strstr(line, "/memfd:sbinject ")) {
			*start = at;
			*end = strtoull(rest + 1, NULL, 16);
		} else if (*end == at && strstr(line, "/memfd:sbinject-counts ")) {
			rear = at;
			*end = strtoull(rest + 1, NULL, 16);
			found = true;
		}
	}
	return found;
}

static void write_random(uint64_t at, size_t len)
{
	static uint64_t noise[CHUNK / 8];
	uint64_t kind = random64() % 3;

	for (size_t i = 0; i < len / 8; i++)
		noise[i] = kind == 0 ? random64() : kind == 1 ? ~0ull : random64() % 3;
	if (pwrite(mem, noise, len, (off_t)at) < 0 && errno != EIO && errno != EFAULT)
		perror("scribble");
}

/* While sbinject sets it up the mapping is two pages long, and may lie right before others. */
static uint64_t blocks_end(uint64_t end)
{
	return end - rear < FIRST_BLOCKS ? end : rear + FIRST_BLOCKS;
}

static void scribble_numbers(uint64_t end)
{
	write_random(rear, 4096);
	for (uint64_t at = rear + 4096; at < blocks_end(end); at += 4096)
		if (random64() % 8 == 0)
			write_random(at + 1024 + 8, 48);
}

/* The settings cannot be written; all else, and the record behind it. */
static void scribble_all(uint64_t start, uint64_t end)
{
	write_random(start, 4096);
	for (uint64_t at = rear; at < blocks_end(end); at += CHUNK)
		write_random(at, at + CHUNK < end ? CHUNK : end - at);
	if (end - rear >= FIRST_BLOCKS) /* the record is there by then */
		write_random(end, 4096);
}

/* One that says that its session is over, and anything. */
static void scribble_header(uint64_t start)
{
	write_random(start, 4096);
	write_random(rear, 4096);
}

static void scribble(const char *what, uint64_t start, uint64_t end)
{
	if (!strcmp(what, "numbers"))
		scribble_numbers(end);
	else if (!strcmp(what, "all"))
		scribble_all(start, end);
	else
		scribble_header(start);
}

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint64_t start, end;

	if (argc != 2)
		return 2;
	victim_catch_term();
	signal(SIGUSR1, on_usr1);
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, caller, &calls[i]);
	find_page(&start, &end);
	victim_ready();
	while (!victim_stop) {
		bool once = !strcmp(argv[1], "header");

		if ((!once || asked) && find_page(&start, &end)) {
			scribble(argv[1], start, end);
			if (once)
				puts("scribbled");
			asked = 0;
		}
		victim_sleep_ns(300000);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	victim_calls("scribbled_fn", calls[0] + calls[1]);
	return victim_done(errors == 0);
}
