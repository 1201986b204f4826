/* SPDX-License-Identifier: MIT */
/* hold TID MS: stops one thread, and no other of its process, for so long. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

int main(int argc, char **argv)
{
	int tid = argc == 3 ? atoi(argv[1]) : 0, ms = argc == 3 ? atoi(argv[2]) : 0, status;

	if (!tid || ptrace(PTRACE_SEIZE, tid, 0, 0) < 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) != tid) {
		perror("hold");
		return 1;
	}
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
	return ptrace(PTRACE_DETACH, tid, 0, 0) < 0;
}
