/* SPDX-License-Identifier: MIT */
/*
 * Does all that stops a program under ptrace, round after round: starts a thread, forks, makes a
 * vfork child, gets a signal. Prints its longest round since it was last asked (SIGUSR1), in us, as
 * "longest N".
 */
#include <errno.h>
#include <sys/wait.h>
#include "victim.h"

static volatile sig_atomic_t asked, signals;

VICTIM_HOOKED int served_fn(int x);

int served_fn(int x)
{
	VICTIM_OPAQUE(x);
	return x + 1;
}

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		asked = 1;
	else
		signals++;
}

static void *thread(void *arg)
{
	served_fn(1);
	return arg;
}

static bool child_ends(pid_t pid)
{
	int status;
	pid_t got;

	do
		got = pid > 0 ? waitpid(pid, &status, 0) : -1;
	while (got < 0 && errno == EINTR);
	return got > 0 && status == 0;
}

static bool round_of(int n)
{
	int had = signals;
	pthread_t t;
	pid_t pid;

	if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
		return false;
	kill(getpid(), SIGUSR2);
	if (signals == had)
		return false;
	pid = fork();
	if (pid == 0)
		_exit(served_fn(n) != n + 1);
	if (!child_ends(pid))
		return false;
	pid = vfork();
	if (pid == 0)
		_exit(0);
	return child_ends(pid);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint64_t longest = 0;
	bool ok = true;

	victim_catch_term();
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	victim_ready();
	for (int n = 0; !victim_stop && ok; n++) {
		uint64_t began = victim_now_ns(), took;

		ok = round_of(n);
		took = victim_now_ns() - began;
		longest = took > longest ? took : longest;
		if (asked) {
			asked = 0;
			printf("longest %llu\n", (unsigned long long)longest / 1000);
			longest = 0;
		}
		victim_sleep_ns(1000000);
	}
	if (ok)
		puts("self-check ok");
	return !ok;
}
