/* SPDX-License-Identifier: MIT */
/*
 * ioctls [-n ROUNDS] [-g GATE] FOLDER: requests to devices in FOLDER, as a driver of NVIDIA's gets
 * them, from two threads and a child that each of them forks. Prints for each name and status how
 * many there were ("ioctl N NAME DETAIL STATUS") and their whole number, without those to what is
 * no such device.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "victim.h"

/* As the headers of the open driver have them. */
struct control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t size, status;
};

struct alloc {
	uint32_t root, parent, new, class;
	uint64_t params, rights;
	uint32_t size, flags, status, unused;
};

struct transfer {
	uint32_t number, size;
	uint64_t at;
};

static int control, uvm, other, file, rounds = 20;
static const char *gate;

static int ask(int fd, unsigned long cmd, const void *memory)
{
	return ioctl(fd, cmd, memory) == 0 || errno != ENOTTY;
}

#define REQUEST(NUMBER, SIZE) _IOC(_IOC_READ | _IOC_WRITE, 'F', NUMBER, SIZE)

static int one_round(void)
{
	struct control c = { .cmd = 0x20801303, .status = 7 };
	struct alloc a = { .class = 0xc86f, .size = 55, .status = 31 };
	struct transfer wrapped = { 0x2a, sizeof(c), (uintptr_t)&c };
	uint32_t freed[4] = { 1, 2, 3, 54 };
	int bad = 0;

	bad |= ask(control, REQUEST(0x2a, 32), &c);
	bad |= ask(control, REQUEST(0x2b, 48), &a);
	a.flags = 99; /* where the short one ends is the size of the long one's parameters */
	bad |= ask(control, REQUEST(0x2b, 32), &a);
	bad |= ask(control, REQUEST(211, sizeof(wrapped)), &wrapped);
	bad |= ask(control, REQUEST(0x29, 16), freed);
	bad |= ask(control, REQUEST(0x2a, 32), NULL);
	bad |= ask(control, REQUEST(0x2a, 40), &c); /* of another driver: nothing is read */
	bad |= ask(control, REQUEST(200, 8), &c);
	bad |= ask(uvm, 37, &c);
	bad |= ask(uvm, 0x30000001, &c);
	bad |= ask(control, _IO('x', 5), NULL);
	/* None of these. */
	bad |= ask(other, REQUEST(0x2a, 32), &c);
	bad |= ask(file, REQUEST(0x2a, 32), &c);
	return bad | (ioctl(-1, REQUEST(0x2a, 32), &c) != -1 || errno != EBADF);
}

static void *work(void *arg)
{
	pid_t child;
	intptr_t bad = 0;
	int status;

	victim_gate(gate);
	child = fork();
	for (int i = 0; i < rounds; i++)
		bad |= one_round();
	if (!child)
		_exit(bad != 0);
	waitpid(child, &status, 0);
	(void)arg;
	return (void *)(bad | status);
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags, 0600);
	if (fd >= 0)
		return fd;
	perror(path);
	exit(2);
}

static void say(const char *name, int n)
{
	printf("ioctl %d %s\n", n * rounds * 4, name);
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	bool ok = true;

	for (int c; (c = getopt(argc, argv, "n:g:")) >= 0;) {
		if (c == 'n')
			rounds = atoi(optarg);
		else
			gate = optarg;
	}
	if (optind != argc - 1)
		return 2;
	victim_catch_term();
	control = open_in(argv[optind], "nvidiactl", O_RDWR);
	uvm = open_in(argv[optind], "nvidia-uvm", O_RDWR);
	other = open_in(argv[optind], "nvidium", O_RDWR);
	file = open_in(argv[optind], "nvidia-file", O_RDWR | O_CREAT);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	victim_ready();
	for (int i = 0; i < 2; i++) {
		void *bad;

		pthread_join(thread[i], &bad);
		ok &= !bad;
	}
	say("NV_ESC_RM_CONTROL 0x20801303 7", 2);
	say("NV_ESC_RM_CONTROL - -", 2);
	say("NV_ESC_RM_ALLOC 0xc86f 31", 1);
	say("NV_ESC_RM_ALLOC 0xc86f 0", 1);
	say("NV_ESC_RM_FREE - 54", 1);
	say("NV_ESC_CARD_INFO - -", 1);
	say("UVM_REGISTER_GPU - -", 1);
	say("UVM_INITIALIZE - -", 1);
	say("ioctl 0x7805 - -", 1);
	printf("ioctls %d\n", 11 * rounds * 4);
	return victim_done(ok);
}
