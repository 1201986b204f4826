/* SPDX-License-Identifier: MIT */
/*
 * A program that knows what it waits for within the kernel: within [-g GATE] [-f FILE] [ROUNDS].
 * Once GATE exists, in each round v-holder writes a page that is not there (userfaultfd), so that
 * it holds a lock of the kernel until main serves the page. v-waiter writes to the same place
 * meanwhile and waits for that lock: of a file (a semaphore), then of a pipe (a mutex). main serves
 * the page 4 ms after v-waiter has begun. Then v-files opens ROUNDS files, and as many that do not
 * exist, and reads ROUNDS blocks of FILE past the page cache. At the end, a line for each:
 *	within v-waiter SEMAPHORE_NS MUTEX_NS	ns of its waits, by its own clock, at most
 *	within v-files OPENS READS READ_NS ALL_NS	READS 0: FILE is on no block device; ALL_NS:
 *		also what its other calls take, in which the file system may read blocks of its own
 */
#include "victim.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

enum { PAGE = 4096, HOLD_NS = 4000000 };

static const char *gate, *path = "within.data";
static int rounds = 50, faults;
static int place[2], drain; /* a file, a pipe, and the other end of the pipe */
static char *missing;	    /* 2 * rounds pages that are not there */
static int turn = -1;	    /* the round in which the lock is held */
static int writing = -1;    /* the round in which v-waiter is about to write */
static uint64_t waited[2], opens, reads, read_ns, all_ns;
static bool wrong;

static void check(bool ok)
{
	if (!ok) {
		wrong = true;
		perror("within");
	}
}

/* A thread that ends is in no list of threads. */
static void *rest(void)
{
	while (!victim_stop)
		victim_sleep_ns(20000000);
	return NULL;
}

/* A file's position has a lock of its own, which pwrite(2) does without. */
static bool put(int which, const char *bytes, size_t size)
{
	ssize_t n = which ? write(place[1], bytes, size) : pwrite(place[0], bytes, size, 0);

	return n == (ssize_t)size;
}

static void make_missing(void)
{
	size_t size = 2 * (size_t)rounds * PAGE;
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	missing = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uint64_t)missing;
	reg.range.len = size;
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	check(faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 &&
	      ioctl(faults, UFFDIO_REGISTER, &reg) == 0);
}

static void *hold(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "v-holder");
	victim_gate(gate);
	for (int i = 0; i < 2 * rounds && !wrong; i++) {
		char bytes[PAGE];

		check(put(i / rounds, missing + (size_t)i * PAGE, PAGE));
		while (i >= rounds && read(drain, bytes, PAGE) > 0)
			;
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != ~i && !wrong)
			victim_sleep_ns(100000); /* until v-waiter has written, too */
	}
	return rest();
}

static void *await(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "v-waiter");
	for (int i = 0; i < 2 * rounds && !wrong; i++) {
		uint64_t t;

		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i && !wrong)
			victim_sleep_ns(50000);
		__atomic_store_n(&writing, i, __ATOMIC_RELEASE);
		t = victim_now_ns();
		check(put(i / rounds, "x", 1));
		waited[i / rounds] += victim_now_ns() - t;
		__atomic_store_n(&turn, ~i, __ATOMIC_RELEASE);
	}
	return rest();
}

/* In main: the page of each round. */
static void serve(void)
{
	for (int i = 0; i < 2 * rounds && !wrong; i++) {
		struct uffd_msg msg;
		struct uffdio_zeropage zero = { .range = { .len = PAGE } };

		check(read(faults, &msg, sizeof(msg)) == sizeof(msg));
		zero.range.start = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE) != i && !wrong)
			victim_sleep_ns(50000);
		victim_sleep_ns(HOLD_NS);
		check(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0);
	}
}

static void open_files(void)
{
	for (int i = 0; i < rounds; i++) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		check(fd >= 0 && open("/no/such/file", O_RDONLY) < 0);
		opens++;
		close(fd);
	}
}

static void read_blocks(char *block)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), direct;
	struct stat st;

	opens++;
	for (int i = 0; i < rounds; i++)
		check(write(fd, block, PAGE) == PAGE);
	check(fsync(fd) == 0);
	direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	opens += direct >= 0;
	if (direct >= 0 && (fstat(direct, &st) < 0 || !major(st.st_dev))) { /* no device below it */
		close(direct);
		direct = -1;
	}
	for (int i = 0; i < rounds && direct >= 0; i++) {
		uint64_t t = victim_now_ns();

		check(pread(direct, block, PAGE, (off_t)i * PAGE) == PAGE);
		read_ns += victim_now_ns() - t;
		reads++;
	}
	close(direct);
	close(fd);
}

static void *use_files(void *arg)
{
	static char block[PAGE] __attribute__((aligned(PAGE)));

	(void)arg;
	prctl(PR_SET_NAME, "v-files");
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != ~(2 * rounds - 1) && !wrong)
		victim_sleep_ns(1000000);
	all_ns = victim_now_ns();
	open_files();
	read_blocks(block);
	all_ns = victim_now_ns() - all_ns;
	puts("over");
	return rest();
}

int main(int argc, char **argv)
{
	void *(*const work[3])(void *) = { hold, await, use_files };
	pthread_t thread[3];
	int ends[2];

	victim_catch_term();
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-g") && i + 1 < argc)
			gate = argv[++i];
		else if (!strcmp(argv[i], "-f") && i + 1 < argc)
			path = argv[++i];
		else
			rounds = atoi(argv[i]);
	}
	make_missing();
	place[0] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(place[0] >= 0 && pipe2(ends, O_CLOEXEC) == 0);
	place[1] = ends[1];
	drain = ends[0];
	check(fcntl(drain, F_SETFL, O_NONBLOCK) == 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, work[i], NULL);
	victim_ready();
	serve();
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	printf("within v-waiter %lu %lu\n", waited[0], waited[1]);
	printf("within v-files %lu %lu %lu %lu\n", opens, reads, read_ns, all_ns);
	return victim_done(!wrong);
}
