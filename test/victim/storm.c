/* SPDX-License-Identifier: MIT */
/*
 * storm [-n CHILDREN] [-d] DEVICE: forks so many children as fast as it can, from two threads. Each
 * calls storm_ask(), which makes one ioctl() on DEVICE, and ends: at once, or with -d after all of
 * them are there. Prints how many there were.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include "victim.h"

static int device, begin[2], children = 2000;
static bool together;

int storm_ask(int fd);

VICTIM_HOOKED int storm_ask(int fd)
{
	return ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32), NULL);
}

static void child(void)
{
	char c;

	close(begin[1]);
	if (together && read(begin[0], &c, 1) != 0)
		_exit(1);
	storm_ask(device);
	_exit(0);
}

static void *work(void *arg)
{
	intptr_t forked = 0;
	pid_t pid;

	for (int i = 0; i < children / 2; i++) {
		while ((pid = fork()) < 0)
			victim_sleep_ns(1000000);
		if (!pid)
			child();
		forked++;
	}
	(void)arg;
	return (void *)forked;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	intptr_t forked = 0, ended = 0;
	int status;

	for (int c; (c = getopt(argc, argv, "n:d")) >= 0;) {
		if (c == 'n')
			children = atoi(optarg);
		else
			together = true;
	}
	if (optind != argc - 1 || pipe(begin) < 0)
		return 2;
	device = open(argv[optind], O_RDWR | O_CLOEXEC);
	if (device < 0) {
		perror(argv[optind]);
		return 2;
	}
	victim_ready();
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++) {
		void *n;

		pthread_join(thread[i], &n);
		forked += (intptr_t)n;
	}
	close(begin[1]);
	while (wait(&status) > 0)
		ended += status == 0;
	printf("children %ld\n", (long)ended);
	return victim_done(ended == forked);
}
