/* SPDX-License-Identifier: MIT */
#include "ask.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "runtime.h"

enum { ANSWER_MAX = 64 << 20, TIMEOUT_S = 5 };

json_t *control_ask(pid_t session, const char *request)
{
	struct timeval limit = { .tv_sec = TIMEOUT_S };
	char dir[256], path[300], *in = NULL;
	size_t len = 0, cap = 0;
	json_t *answer = NULL;
	int fd = runtime_connect(
		runtime_socket(runtime_dir(dir, sizeof(dir)), session, path, sizeof(path)));
	ssize_t n = 0;

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		goto out;
	do {
		if (cap - len < 65536) {
			cap += 262144;
			in = realloc(in, cap);
			if (!in)
				abort();
		}
		n = recv(fd, in + len, cap - len, 0);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && in[len - 1] != '\n' && len < ANSWER_MAX);
	if (n > 0)
		answer = json_loadb(in, len, 0, NULL);
out:
	close(fd);
	free(in);
	return answer;
}
