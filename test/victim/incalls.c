// SPDX-License-Identifier: MIT
/*
 * incalls [-d] N: calls of the kernel that are known. Two threads, and a child that each of them
 * forks, sleep N times for i microseconds and write N times a part of a shared mapping; with -d
 * they also call /dev/nvidiactl. Prints how many calls there were, and their arguments added up.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "victim.h"

enum { PAGE = 4096, PAGES = 64 };

struct sums {
	uint64_t sleeps, sleep_ns, msyncs, msync_ends, ioctls, numbers, failed;
};

static struct sums *shared;
static char *map;
static int count, device = -1;

static void sleep_for(long ns)
{
	struct timespec ts = { 0, ns };

	nanosleep(&ts, NULL);
	__atomic_fetch_add(&shared->sleeps, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->sleep_ns, (uint64_t)ns, __ATOMIC_RELAXED);
}

/* The kernel's function gets the last byte in the file. */
static void sync_part(int i)
{
	size_t at = (size_t)(i % PAGES) * PAGE;

	if (msync(map + at, PAGE, MS_SYNC) < 0)
		abort();
	__atomic_fetch_add(&shared->msyncs, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->msync_ends, at + PAGE - 1, __ATOMIC_RELAXED);
}

static void ask_device(int i)
{
	unsigned int number = 200 + (unsigned int)i % 20;
	int ret = ioctl(device, _IOC(_IOC_READ | _IOC_WRITE, 'F', number, 32), map);

	__atomic_fetch_add(&shared->ioctls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->numbers, number - 200 + 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&shared->failed, ret < 0, __ATOMIC_RELAXED);
}

static void work(void)
{
	for (int i = 0; i < count; i++) {
		sleep_for(1000 + i * 1000L);
		sync_part(i);
		if (device >= 0)
			ask_device(i);
	}
}

static void *worker(void *arg)
{
	pid_t child = fork();

	(void)arg;
	work();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = memfd_create("mapped", 0);
	bool ask = argc > 2 && !strcmp(argv[1], "-d");
	pthread_t thread[2];

	count = argc > 1 ? atoi(argv[argc - 1]) : 10;
	if (ask && (device = open("/dev/nvidiactl", O_RDWR)) < 0)
		return 1;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE) < 0 || shared == MAP_FAILED)
		return 1;
	map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, worker, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("sleeps %lu\nsleep_ns %lu\nmsyncs %lu\nmsync_ends %lu\nioctls %lu\nnumbers %lu\n"
	       "failed %lu\nself-check ok\n",
	       shared->sleeps, shared->sleep_ns, shared->msyncs, shared->msync_ends, shared->ioctls,
	       shared->numbers, shared->failed);
	return 0;
}
