/* SPDX-License-Identifier: MIT */
/*
 * A program that knows what it does on sockets: sockets [-g GATE] [CONNECTIONS] [MESSAGES]. Once
 * GATE exists, v-client connects CONNECTIONS times to v-server over loopback, sends on each
 * MESSAGES requests of 100 bytes and gets an answer of 3000 bytes for each; then it sends as many
 * packets of UDP, of 40 bytes, which v-server answers with 80 bytes. At the end, a line for each:
 *	sockets NAME CONNECTS ACCEPTS SENT RECEIVED SEGMENTS_SENT SEGMENTS_RECEIVED RETRANSMISSIONS
 *		UDP_SENT UDP_RECEIVED PACKETS
 * by its own counts, the three of segments by the kernel's (TCP_INFO before each close).
 */
#include "victim.h"
#include <linux/tcp.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { ASK = 100, ANSWER = 3000, UDP_ASK = 40, UDP_ANSWER = 80 };

struct side {
	const char *name;
	uint64_t connects, accepts, sent, received, segments_out, segments_in, again;
	uint64_t udp_sent, udp_received, packets;
};

static const char *gate;
static int connections = 20, messages = 50;
static int listener, udp[2];
static struct sockaddr_in at;
static bool wrong;

static void check(bool ok)
{
	if (!ok) {
		wrong = true;
		perror("sockets");
	}
}

static void close_counted(struct side *s, int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	check(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	s->segments_out += info.tcpi_segs_out;
	s->segments_in += info.tcpi_segs_in;
	s->again += info.tcpi_total_retrans;
	close(fd);
}

static void give(struct side *s, int fd, size_t size)
{
	static const char bytes[ANSWER];
	size_t done = 0;

	while (done < size && !wrong) {
		ssize_t n = send(fd, bytes + done, size - done, 0);

		check(n > 0);
		done += n > 0 ? (size_t)n : 0;
	}
	s->sent += done;
}

/* By recv(2) and read(2) in turn, with a look (MSG_PEEK) that takes nothing. */
static void get(struct side *s, int fd, size_t size)
{
	char bytes[ANSWER];
	size_t done = 0;

	check(recv(fd, bytes, 1, MSG_PEEK) == 1);
	for (int i = 0; done < size && !wrong; i++) {
		ssize_t n = i % 2 ? read(fd, bytes, size - done) : recv(fd, bytes, size - done, 0);

		check(n > 0);
		done += n > 0 ? (size_t)n : 0;
	}
	s->received += done;
}

static void exchange(struct side *s, int fd, size_t ask, size_t answer)
{
	char bytes[UDP_ANSWER] = { 0 };

	for (int i = 0; i < connections * messages; i++) {
		if (answer) {
			check(send(fd, bytes, ask, 0) == (ssize_t)ask);
			check(recv(fd, bytes, sizeof(bytes), 0) == (ssize_t)answer);
		} else {
			check(recv(fd, bytes, sizeof(bytes), 0) == UDP_ASK);
			check(send(fd, bytes, ask, 0) == (ssize_t)ask);
		}
		s->udp_sent += ask;
		s->udp_received += answer ? answer : UDP_ASK;
		s->packets++;
	}
}

static void *serve(void *arg)
{
	struct side *s = arg;

	prctl(PR_SET_NAME, s->name);
	for (int i = 0; i < connections && !wrong; i++) {
		int fd = accept(listener, NULL, NULL);

		check(fd >= 0);
		s->accepts++;
		for (int k = 0; k < messages && !wrong; k++) {
			get(s, fd, ASK);
			give(s, fd, ANSWER);
		}
		close_counted(s, fd);
	}
	exchange(s, udp[0], UDP_ANSWER, 0);
	while (!victim_stop)
		victim_sleep_ns(20000000);
	return NULL;
}

static void *use(void *arg)
{
	struct side *s = arg;

	prctl(PR_SET_NAME, s->name);
	victim_gate(gate);
	for (int i = 0; i < connections && !wrong; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		check(connect(fd, (void *)&at, sizeof(at)) == 0);
		s->connects++;
		for (int k = 0; k < messages && !wrong; k++) {
			give(s, fd, ASK);
			get(s, fd, ANSWER);
		}
		close_counted(s, fd);
	}
	exchange(s, udp[1], UDP_ASK, UDP_ANSWER);
	puts("over");
	while (!victim_stop)
		victim_sleep_ns(20000000);
	return NULL;
}

static void open_all(void)
{
	struct sockaddr_in here[2];
	socklen_t len = sizeof(at);

	at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	listener = socket(AF_INET, SOCK_STREAM, 0);
	check(bind(listener, (void *)&at, len) == 0 && listen(listener, 5) == 0);
	for (int i = 0; i < 2; i++) {
		here[i] = at;
		udp[i] = socket(AF_INET, SOCK_DGRAM, 0);
		check(bind(udp[i], (void *)&here[i], len) == 0);
		getsockname(udp[i], (void *)&here[i], &len);
	}
	for (int i = 0; i < 2; i++)
		check(connect(udp[i], (void *)&here[!i], len) == 0);
	getsockname(listener, (void *)&at, &len);
}

int main(int argc, char **argv)
{
	struct side side[2] = { { .name = "v-server" }, { .name = "v-client" } };
	pthread_t thread[2];

	victim_catch_term();
	for (int i = 1, n = 0; i < argc; i++) {
		if (!strcmp(argv[i], "-g") && i + 1 < argc)
			gate = argv[++i];
		else
			*(n++ ? &messages : &connections) = atoi(argv[i]);
	}
	open_all();
	victim_ready();
	pthread_create(&thread[0], NULL, serve, &side[0]);
	pthread_create(&thread[1], NULL, use, &side[1]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		const struct side *s = &side[i];

		printf("sockets %s %lu %lu %lu %lu %lu %lu %lu %lu %lu %lu\n", s->name, s->connects,
		       s->accepts, s->sent, s->received, s->segments_out, s->segments_in, s->again,
		       s->udp_sent, s->udp_received, s->packets);
	}
	return victim_done(!wrong);
}
