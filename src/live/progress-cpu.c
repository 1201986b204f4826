/* SPDX-License-Identifier: MIT */
/* cpu:PID: the time that a process has run, all of its threads, which the kernel's clock of the
 * process has to the ns. */
#include "progress-priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cpu {
	clockid_t clock;
	int pidfd;   /* so that another process of this number is not taken for it */
	double last; /* s */
};

static int cpu_open(struct progress *p, struct sb_err *err)
{
	char *end;
	long pid = strtol(p->rest, &end, 10);
	struct cpu *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	p->own = c;
	c->pidfd = -1;
	if (*end || pid <= 0 || pid != (pid_t)pid) {
		err_set(err, SB_EUSAGE, "cpu:%s: no process", p->rest);
		err_hint(err, "cpu:PID is the time that a process has run");
		return -SB_EUSAGE;
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	errno = c->pidfd < 0 ? errno : clock_getcpuclockid((pid_t)pid, &c->clock);
	if (c->pidfd < 0 || errno)
		return err_sys(err, SB_EFILE, "cpu:%ld", pid);
	return 0;
}

/* Of a process that ends, what it had at the last look. */
static int cpu_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	struct cpu *c = p->own;
	struct pollfd ended = { c->pidfd, POLLIN, 0 };
	struct timespec ts;

	(void)err;
	if (clock_gettime(c->clock, &ts) == 0 && poll(&ended, 1, 0) == 0)
		c->last = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	value->count = c->last;
	return 0;
}

static void cpu_close(struct progress *p)
{
	struct cpu *c = p->own;

	if (c && c->pidfd >= 0)
		close(c->pidfd);
	free(c);
}

const struct progress_ops progress_cpu = { cpu_open, cpu_read, cpu_close, 2000000 };
