/* SPDX-License-Identifier: MIT */
/*
 * dropped HOW: calls dropped_fn() and dropped_other() on two threads, and prints its rate: calls a
 * second, and calls in a second of processor time. On SIGUSR1 it forks a worker. The worker takes
 * the user and group id 65534, and overwrites the memory that it shares with its parent until it is
 * killed:
 *
 *	noise		all of it with random bytes
 *	tables		every cell asks for a thread filter, whose tables lie anywhere, or have no
 *			end
 *	delays		every cell asks for years of delay, every slot owes some
 *	settings	looks for a way to write the settings, as root first and then as nobody:
 *			prints "open NAME" for each that there is
 *	own		calls dropped_fn() while it becomes nobody and until it has counters of its
 *			own; says "worker PID calls N", and is silent then
 *	own-noise	the same, and then writes anything into its counters and what else it can
 *
 * The last two begin at once, and the parent ends when the worker is through; "shared": after two
 * seconds the worker had no counters of its own.
 *
 * The worker prints "scribbled" after the first time. Nothing of this may reach the parent, which
 * checks what its functions return. It knows the layout.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "../../inject/page-abi.h"
#include "victim.h"

enum { THREADS = 2, NOBODY = 65534, PROCS = 4, CELLS = 2, CHUNK = 1 << 16 };

uint64_t dropped_fn(uint64_t x), dropped_other(uint64_t x);

static uint64_t calls[THREADS], errors;
static volatile sig_atomic_t asked;

VICTIM_HOOKED uint64_t dropped_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 5 + 9;
	VICTIM_OPAQUE(x);
	return x;
}

VICTIM_HOOKED uint64_t dropped_other(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 7 + 3;
	VICTIM_OPAQUE(x);
	return x;
}

static void *caller(void *arg)
{
	uint64_t *n = arg;

	for (; !victim_stop; __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED)) {
		if (dropped_fn(*n) != *n * 5 + 9 || dropped_other(*n) != *n * 7 + 3)
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		if (*n % 16 == 0)
			victim_sleep_ns(100000);
	}
	return NULL;
}

/* ---- the worker ---- */

static struct sb_page_header first; /* before it was overwritten */

static uint64_t random64(void)
{
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* The page may be taken away at any time; a process of other ids may not open /proc/self/mem. */
static void put(uint64_t at, const void *bytes, size_t len)
{
	struct iovec from = { (void *)(uintptr_t)bytes, len }, to = { (void *)(uintptr_t)at, len };

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0 && errno != EFAULT)
		_exit(3);
}

/* From where the settings begin to where the counts end. */
static bool find_page(uint64_t *start, uint64_t *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps)) {
		char *rest;
		uint64_t at = strtoull(line, &rest, 16);

		if (strstr(line, "/memfd:sbinject ")) {
			*start = at;
			*end = strtoull(rest + 1, NULL, 16);
			found = true;
		} else if (found && at == *end && strstr(line, "/memfd:sbinject-counts ")) {
			*end = strtoull(rest + 1, NULL, 16);
		}
	}
	if (maps)
		fclose(maps);
	return found;
}

static void noise(uint64_t at, size_t len)
{
	static uint64_t bytes[CHUNK / 8];
	uint64_t kind = random64() % 3;

	for (size_t i = 0; i < len / 8; i++)
		bytes[i] = kind == 0 ? random64() : kind == 1 ? ~0ull : random64() % 3;
	put(at, bytes, len);
}

static void noise_half(uint64_t half)
{
	noise(half, 4096);
	noise(half + first.procs_off, PROCS * sizeof(struct sb_page_proc));
	for (uint64_t p = 0; p < PROCS; p++)
		for (uint64_t at = 0; at < CELLS * (uint64_t)first.cell_size; at += 4096)
			noise(half + first.blocks_off + p * first.block_size + at, 4096);
}

static void noise_all(uint64_t page)
{
	uint64_t lease = 1ull << 62;

	noise_half(page);
	put(page + __builtin_offsetof(struct sb_page_header, lease_until), &lease, 8);
	noise(page + first.threads_off, CHUNK);
	noise_half(page + first.counters_off);
	noise(page + first.notes_off, 4096);
}

static void write_cells(uint64_t page, const struct sb_page_cell *cell, int64_t owed)
{
	for (uint64_t p = 0; p < PROCS; p++)
		for (uint64_t c = 0; c < CELLS; c++) {
			uint64_t at = page + first.blocks_off + p * first.block_size +
				      c * first.cell_size;

			put(at, cell, sizeof(*cell));
			at += first.counters_off;
			for (uint64_t s = 1; owed && s <= first.slots; s++)
				put(at + s * 1024 + 32, &owed, 8);
		}
}

static void write_lease(uint64_t page)
{
	uint64_t lease = 1ull << 62;

	put(page + __builtin_offsetof(struct sb_page_header, lease_until), &lease, 8);
}

static void tables(uint64_t page)
{
	struct sb_page_cell cell = { .state = SB_STATE_SLOW, .flags = SB_CELL_THREADS };
	static uint64_t full[CHUNK / 8];

	cell.threads = random64() % 4 ? random64() >> random64() % 64 : first.threads_off;
	write_cells(page, &cell, 0);
	if (!full[0])
		memset(full, 1, sizeof(full));
	for (uint64_t at = first.threads_off; at + CHUNK <= first.counters_off; at += CHUNK)
		put(page + at, full, CHUNK);
}

static void delays(uint64_t page)
{
	struct sb_page_cell cell = { .state = SB_STATE_SLOW,
				     .flags = SB_CELL_DELAY,
				     .delay_ticks = 1ull << 60,
				     .residual_max = 1ull << 60,
				     .overrun_limit = 1ull << 60 };

	write_lease(page);
	write_cells(page, &cell, -(1ll << 60));
}

static const char *as; /* "root", "nobody" */

static void open_if(bool is, const char *name)
{
	if (is)
		printf("open %s as %s\n", name, as);
}

/* A change that succeeds leaves the byte as it is. */
static void try_file(uint64_t page, const char *path, const char *name)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte = *(const char *)(uintptr_t)page;

	if (fd < 0)
		return;
	open_if(pwrite(fd, &byte, 1, 0) == 1, name);
	open_if(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED, name);
	open_if(ftruncate(fd, 4096) == 0, name);
	open_if(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 4096) == 0,
		name);
	close(fd);
}

static void settings(uint64_t page)
{
	const uint64_t len = first.counters_off;
	struct iovec from = { &first, 8 }, to = { (void *)(uintptr_t)page, 8 };
	void *at = (void *)(uintptr_t)page, *copy;
	char path[96];
	int mem;

	as = getuid() ? "nobody" : "root";
	open_if(process_vm_writev(getpid(), &from, 1, &to, 1, 0) == 8, "process_vm_writev");
	open_if(mprotect(at, len, PROT_READ | PROT_WRITE) == 0, "mprotect");
	open_if(madvise(at, 4096, MADV_REMOVE) == 0, "MADV_REMOVE");
	copy = mremap(at, 0, len, MREMAP_MAYMOVE);
	if (copy != MAP_FAILED) {
		open_if(mprotect(copy, len, PROT_READ | PROT_WRITE) == 0, "mremap");
		munmap(copy, len);
	}
	mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	open_if(mem >= 0 && pwrite(mem, &first, 8, (off_t)page) == 8, "/proc/self/mem");
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", (unsigned long long)page,
		 (unsigned long long)(page + len));
	try_file(page, path, "/proc/self/map_files");
	for (int fd = 3; fd < 64; fd++) {
		char link[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		if (strstr(link, "memfd:sbinject "))
			try_file(page, path, "/proc/self/fd");
	}
}

/* Of the file that its counters are in. */
static uint64_t counters_inode(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long inode = 0;
	char line[512];

	while (maps && !inode && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:sbinject-counts "))
			sscanf(line, "%*s %*s %*s %*s %llu", &inode);
	if (maps)
		fclose(maps);
	return inode;
}

static int through[2]; /* a pipe: a byte when the worker is */

static void own(const char *how, uint64_t page)
{
	uint64_t n = 0, was = counters_inode();
	struct timespec now, from;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		for (int i = 0; i < 1000; i++)
			dropped_fn(n++);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (counters_inode() == was && now.tv_sec - from.tv_sec < 3);
	if (counters_inode() == was)
		puts("shared");
	for (int i = 0; i < 1000; i++)
		dropped_fn(n++);
	printf("worker %d calls %llu\n", (int)getpid(), (unsigned long long)n);
	for (int i = 0; i < 20 && !strcmp(how, "own-noise"); i++)
		noise_all(page);
	if (write(through[1], "", 1) != 1)
		_exit(5);
	for (;;)
		pause();
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		_exit(4);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void worker(const char *how)
{
	uint64_t page, end;
	bool said = false;

	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (find_page(&page, &end) && end - page < (4 << 20))
		victim_sleep_ns(1000000);
	memcpy(&first, (const void *)(uintptr_t)page, sizeof(first));
	if (!strcmp(how, "settings"))
		settings(page);
	become_nobody();
	if (!strncmp(how, "own", 3))
		own(how, page);
	for (;;) {
		if (find_page(&page, &end)) {
			!strcmp(how, "noise")	 ? noise_all(page) :
			!strcmp(how, "tables")	 ? tables(page) :
			!strcmp(how, "settings") ? settings(page) :
						   delays(page);
			if (!said)
				puts("scribbled");
			said = true;
		}
		victim_sleep_ns(2000000);
	}
}

/* ---- the parent ---- */

static void on_usr1(int sig)
{
	(void)sig;
	asked = 1;
}

static uint64_t all_calls(void)
{
	uint64_t n = 0;

	for (int i = 0; i < THREADS; i++)
		n += __atomic_load_n(&calls[i], __ATOMIC_RELAXED);
	return n;
}

static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The second number depends on what a call costs, and not on what else runs on the machine. */
static void say_rate(void)
{
	static uint64_t calls_before, ns_before;
	uint64_t n = all_calls(), ns = processor_ns();

	printf("rate %llu\n", (unsigned long long)(n - calls_before) * 10);
	if (ns > ns_before)
		printf("a processor's second %.0f\n",
		       (double)(n - calls_before) * 1e9 / (double)(ns - ns_before));
	calls_before = n;
	ns_before = ns;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	pid_t child = 0;
	int status = 0;

	if (argc != 2)
		return 2;
	victim_catch_term();
	signal(SIGUSR1, on_usr1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, caller, &calls[i]);
	victim_ready();
	asked = !strncmp(argv[1], "own", 3);
	if (pipe2(through, O_CLOEXEC | O_NONBLOCK) < 0)
		return 2;
	while (!victim_stop) {
		char byte;

		if (read(through[0], &byte, 1) == 1)
			victim_stop = 1;
		if (asked && !child) {
			child = fork();
			if (!child)
				worker(argv[1]);
		}
		victim_sleep_ns(100000000);
		say_rate();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	victim_calls("dropped_fn", all_calls());
	return victim_done(errors == 0 && (!child || WIFSIGNALED(status)));
}
