/* SPDX-License-Identifier: MIT */
/* The loader of net.bpf.c. */
#include "net.h"

#include <unistd.h>
#include "part.h"

extern const char sb_evidence_net_image[], sb_evidence_net_image_end[];

enum program {
	ON_STATE,
	ON_LENGTH_SENT,
	ON_LENGTH_RECEIVED,
	FUNCTIONS, /* from here on: not where there are tracepoints for it */
	ON_SEND = FUNCTIONS,
	ON_RECEIVE,
	ON_UDP_SEND,
	ON_UDP6_SEND,
	ON_UDP_RECEIVE,
	ON_UDP6_RECEIVE,
	PROGRAMS,
};

static const struct part_program programs[PROGRAMS] = {
	[ON_STATE] = { "on_state", "inet_sock_set_state", 0, 0 },
	[ON_LENGTH_SENT] = { "on_length_sent", "sock_send_length", 0, 0 },
	[ON_LENGTH_RECEIVED] = { "on_length_received", "sock_recv_length", 0, 0 },
	[ON_SEND] = { "on_send", "tcp_sendmsg", 3, 3 },
	[ON_RECEIVE] = { "on_receive", "tcp_recvmsg", 4, 5 },
	[ON_UDP_SEND] = { "on_udp_send", "udp_sendmsg", 3, 3 },
	[ON_UDP6_SEND] = { "on_udp6_send", "udpv6_sendmsg", 3, 3 },
	[ON_UDP_RECEIVE] = { "on_udp_receive", "udp_recvmsg", 4, 5 },
	[ON_UDP6_RECEIVE] = { "on_udp6_receive", "udpv6_recvmsg", 4, 5 },
};

static const struct part_image image = { sb_evidence_net_image, sb_evidence_net_image_end, programs,
					 PROGRAMS };

/* By the tracepoints of both directions, or by functions: of one alone each would count twice. */
static void choose(struct evidence_part *p)
{
	bool both = !part_why(p, ON_LENGTH_SENT) && !part_why(p, ON_LENGTH_RECEIVED);

	if (both) {
		for (unsigned int i = FUNCTIONS; i < PROGRAMS; i++)
			part_leave(p, i, "tracepoints are used");
		return;
	}
	for (unsigned int i = ON_LENGTH_SENT; i <= ON_LENGTH_RECEIVED; i++)
		if (!part_why(p, i))
			part_leave(p, i, "the kernel has only one of two tracepoints");
}

struct evidence_part *evidence_net_open(const struct bpf_object *main)
{
	static const char *const shared[] = { "tasks", "rows", "control", NULL };
	struct evidence_part *p = part_open(&image);

	choose(p);
	part_attach(p, main, shared);
	return p;
}

/* By a tracepoint, or by functions. Where there is no IPv6, its function does not matter: six. */
static const char *missing(const struct evidence_part *p, enum program tracepoint, enum program i,
			   enum program six)
{
	bool needs_six = six != i && access("/proc/net/if_inet6", F_OK) == 0;

	if (!part_why(p, tracepoint) || (!part_why(p, i) && (!needs_six || !part_why(p, six))))
		return NULL;
	return part_why(p, i) ? part_why(p, i) : part_why(p, six);
}

const char *evidence_net_unknown(const struct evidence_part *p, enum evidence_counter counter)
{
	const char *state = part_why(p, ON_STATE),
		   *sent = missing(p, ON_LENGTH_SENT, ON_SEND, ON_SEND),
		   *received = missing(p, ON_LENGTH_RECEIVED, ON_RECEIVE, ON_RECEIVE);

	switch (counter) {
	case EVIDENCE_TCP_CONNECTS:
		return state;
	case EVIDENCE_TCP_BYTES_SENT:
		return sent;
	case EVIDENCE_TCP_BYTES_RECEIVED:
	case EVIDENCE_TCP_RTT:
	case EVIDENCE_TCP_RTT_SAMPLES:
		return received;
	case EVIDENCE_UDP_BYTES_SENT:
	case EVIDENCE_UDP_PACKETS_SENT:
		return missing(p, ON_LENGTH_SENT, ON_UDP_SEND, ON_UDP6_SEND);
	case EVIDENCE_UDP_BYTES_RECEIVED:
	case EVIDENCE_UDP_PACKETS_RECEIVED:
		return missing(p, ON_LENGTH_RECEIVED, ON_UDP_RECEIVE, ON_UDP6_RECEIVE);
	default: /* of the connection, at each call: accepts, segments */
		if (sent || received)
			return sent ? sent : received;
		return state;
	}
}
