/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The sockets of watched threads, in the thread's own calls: what it sends and receives, and, as
 * of that call, what TCP counts of the connection. A program of its own: a kernel without one of
 * these functions lacks a part of this and nothing else.
 *
 * Nothing runs for a packet. TCP counts segments and retransmissions by itself; the growth since
 * the last call is the caller's. (So these need not be scaled where only some calls are counted.)
 */
#include "rows.bpf.h"
#include <bpf/bpf_core_read.h>

#define AF_INET	    2
#define AF_INET6    10
#define UDP	    17
#define MSG_PEEK    2
#define ESTABLISHED 1
#define SYN_SENT    2
#define SYN_RECV    3
#define FIN_WAIT1   4
#define LAST_ACK    9

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock_common {
	unsigned short skc_family;
};
struct sock {
	struct sock_common __sk_common;
	unsigned short sk_protocol;
};
struct tcp_sock {
	__u32 segs_in, segs_out, srtt_us, total_retrans;
};
#pragma clang attribute pop

/* What TCP had counted of a connection at the last call. */
enum { UNKNOWN, KNOWN, CAME_IN };

struct last {
	__u32 how, in, out, retrans;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last);
} connections SEC(".maps");

/* A connection from its begin: all that TCP counts of it is the caller's. */
static __always_inline void begin(struct sock *sk, __u32 how)
{
	struct last *last = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (last)
		last->how = how;
}

/* Of one that was there before, what comes after the first call. */
static __always_inline void take(struct evidence_row *r, struct sock *sk,
				 const struct tcp_sock *tcp)
{
	struct last *last = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct last now = { KNOWN, tcp->segs_in, tcp->segs_out, tcp->total_retrans };

	if (!last)
		return;
	if (last->how == CAME_IN) /* the first call on it */
		r->net[EVIDENCE_NET_ACCEPTS]++;
	if (last->how != UNKNOWN) {
		r->net[EVIDENCE_NET_SEGMENTS_RECEIVED] += now.in - last->in;
		r->net[EVIDENCE_NET_SEGMENTS_SENT] += now.out - last->out;
		r->net[EVIDENCE_NET_RETRANSMISSIONS] += now.retrans - last->retrans;
	}
	*last = now;
}

static __always_inline void take_state(struct evidence_row *r, struct sock *sk, int state)
{
	struct tcp_sock *tcp = (void *)bpf_skc_to_tcp_sock(sk);

	if (!tcp)
		return;
	if (state == SYN_SENT) {
		r->net[EVIDENCE_NET_CONNECTS]++;
		begin(sk, KNOWN);
	} else {
		take(r, sk, tcp);
	}
}

/*
 * (socket, old state, new state). To SYN_SENT in connect(2), or in sendto(2) that opens fast; to
 * FIN_WAIT1 and LAST_ACK in close(2) and shutdown(2). One that comes in is established by an
 * interrupt, with no caller.
 */
SEC("tp_btf/inet_sock_set_state")
int on_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int old = (int)ctx[1], state = (int)ctx[2];
	struct evidence_row *r;

	if (old == SYN_RECV && state == ESTABLISHED && bpf_skc_to_tcp_sock(sk))
		begin(sk, CAME_IN);
	if (state != SYN_SENT && state != FIN_WAIT1 && state != LAST_ACK)
		return 0;
	r = row_of_caller();
	if (r)
		take_state(r, sk, state);
	return 0;
}

static __always_inline void tcp_sent(struct evidence_row *r, struct sock *sk,
				     const struct tcp_sock *tcp, int n, __u64 weight)
{
	if (n > 0)
		r->net[EVIDENCE_NET_SENT] += (__u32)n * weight;
	take(r, sk, tcp);
}

static __always_inline void tcp_received(struct evidence_row *r, struct sock *sk,
					 const struct tcp_sock *tcp, int n, __u64 weight)
{
	take(r, sk, tcp);
	if (n <= 0)
		return;
	r->net[EVIDENCE_NET_RECEIVED] += (__u32)n * weight;
	if (tcp->srtt_us) {
		r->net[EVIDENCE_NET_RTT] += ((__u64)tcp->srtt_us * 1000 >> 3) * weight;
		r->net[EVIDENCE_NET_RTT_SAMPLES] += weight;
	}
}

static __always_inline void udp_sent(struct evidence_row *r, int n, __u64 weight)
{
	if (n < 0)
		return;
	r->net[EVIDENCE_NET_UDP_SENT] += (__u32)n * weight;
	r->net[EVIDENCE_NET_UDP_PACKETS_SENT] += weight;
}

static __always_inline void udp_received(struct evidence_row *r, int n, __u64 weight)
{
	if (n < 0)
		return;
	r->net[EVIDENCE_NET_UDP_RECEIVED] += (__u32)n * weight;
	r->net[EVIDENCE_NET_UDP_PACKETS_RECEIVED] += weight;
}

static __always_inline int is_udp(const struct sock *sk)
{
	unsigned short family = sk->__sk_common.skc_family;

	return sk->sk_protocol == UDP && (family == AF_INET || family == AF_INET6);
}

/* ---- by tracepoints, Linux 6.3 and later: (socket, result, flags) ---- */

SEC("tp_btf/sock_send_length")
int on_length_sent(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tcp;

	if (!r)
		return 0;
	tcp = (void *)bpf_skc_to_tcp_sock(sk);
	if (tcp)
		tcp_sent(r, sk, tcp, (int)ctx[1], weight);
	else if (is_udp(sk))
		udp_sent(r, (int)ctx[1], weight);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int on_length_received(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tcp;

	if (!r || ((int)ctx[2] & MSG_PEEK))
		return 0;
	tcp = (void *)bpf_skc_to_tcp_sock(sk);
	if (tcp)
		tcp_received(r, sk, tcp, (int)ctx[1], weight);
	else if (is_udp(sk))
		udp_received(r, (int)ctx[1], weight);
	return 0;
}

/* ---- by the functions themselves ---- */

SEC("fexit/tcp_sendmsg")
int on_send(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tcp = r ? (void *)bpf_skc_to_tcp_sock(sk) : 0;

	if (tcp)
		tcp_sent(r, sk, tcp, (int)ctx[3], weight);
	return 0;
}

/* (socket, message, size, flags, ...) */
SEC("fexit/tcp_recvmsg")
int on_receive(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tcp = r ? (void *)bpf_skc_to_tcp_sock(sk) : 0;
	__u64 ret = 0;

	if (!tcp || ((int)ctx[3] & MSG_PEEK))
		return 0;
	bpf_get_func_ret(ctx, &ret);
	tcp_received(r, sk, tcp, (int)ret, weight);
	return 0;
}

static __always_inline int leave_udp_send(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;

	if (r)
		udp_sent(r, (int)ctx[3], weight);
	return 0;
}

static __always_inline int leave_udp_receive(__u64 *ctx)
{
	__u64 weight = weight_of_event();
	struct evidence_row *r = weight ? row_of_caller() : 0;
	__u64 ret = 0;

	if (!r || ((int)ctx[3] & MSG_PEEK))
		return 0;
	bpf_get_func_ret(ctx, &ret);
	udp_received(r, (int)ret, weight);
	return 0;
}

/* udpv6_sendmsg() calls it, too, for an address of version 4. */
SEC("fexit/udp_sendmsg")
int on_udp_send(__u64 *ctx)
{
	const struct sock *sk = (void *)ctx[0];

	return sk->__sk_common.skc_family == AF_INET ? leave_udp_send(ctx) : 0;
}

SEC("fexit/udpv6_sendmsg")
int on_udp6_send(__u64 *ctx)
{
	return leave_udp_send(ctx);
}

SEC("fexit/udp_recvmsg")
int on_udp_receive(__u64 *ctx)
{
	return leave_udp_receive(ctx);
}

SEC("fexit/udpv6_recvmsg")
int on_udp6_receive(__u64 *ctx)
{
	return leave_udp_receive(ctx);
}

char _license[] SEC("license") = "Dual MIT/GPL";
