/* SPDX-License-Identifier: MIT */
/* beside others */
/* HTTP by a process of its own: each answer is that of its question, also after one that came late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "src/live/fetch.h"

static pid_t server;
static char url[64];

/* Answers the nth request with n. */
static void serve(int listener)
{
	for (int n = 1;; n++) {
		int fd = accept(listener, NULL, NULL);
		char request[4096], reply[128];

		if (fd < 0 || read(fd, request, sizeof(request)) <= 0)
			_exit(1);
		snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%d", n);
		if (write(fd, reply, strlen(reply)) < 0)
			_exit(1);
		close(fd);
	}
}

static int server_start(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return -1;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
	server = fork();
	if (server == 0)
		serve(listener);
	close(listener);
	return 0;
}

static int server_stop(void **state)
{
	(void)state;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return 0;
}

/* The child that is not the server. */
static pid_t fetcher(void)
{
	char path[64], list[256] = "", *at = list;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(list, sizeof(list), f));
	fclose(f);
	for (pid_t pid; (pid = (pid_t)strtol(at, &at, 10));)
		if (pid != server)
			return pid;
	return 0;
}

static void answers(struct fetch *f, const char *text)
{
	const char *got, *why;
	long status;

	why = fetch_text(f, &got, &status);
	assert_null(why);
	assert_int_equal(status, 200);
	assert_string_equal(got, text);
}

static void test_an_answer_that_comes_late_is_dropped(void **state)
{
	struct fetch *f = fetch_open(url, NULL);
	const char *got;
	long status;
	pid_t pid;

	(void)state;
	assert_non_null(f);
	answers(f, "1");
	pid = fetcher();
	kill(pid, SIGSTOP);
	assert_non_null(fetch_text(f, &got, &status));
	assert_string_equal(got, "");
	assert_int_equal(kill(pid, SIGCONT), -1); /* it is over */
	answers(f, "2");
	answers(f, "3");
	fetch_close(f);
}

static int count_descriptors(pid_t pid)
{
	char path[64];
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void test_it_has_no_descriptor_of_its_parent(void **state)
{
	int extra = open("/", O_PATH);
	struct fetch *f = fetch_open(url, NULL);

	(void)state;
	answers(f, "4");				/* it has begun */
	assert_true(count_descriptors(fetcher()) <= 6); /* 0 to 2, its socket, libcurl's own */
	for (int i = 0; i < 20; i++)
		assert_true(dup(extra) >= 0);
	fetch_close(f);
	f = fetch_open(url, NULL);
	answers(f, "5");
	assert_true(count_descriptors(fetcher()) <= 6);
	fetch_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_that_comes_late_is_dropped),
		cmocka_unit_test(test_it_has_no_descriptor_of_its_parent),
	};

	return cmocka_run_group_tests(tests, server_start, server_stop);
}
