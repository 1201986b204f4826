/* SPDX-License-Identifier: MIT */
/* The loader of net.bpf.c. */
#include "net.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/must.h"

extern const char sb_evidence_net_image[], sb_evidence_net_image_end[];

enum program {
	ON_STATE,
	ON_LENGTH_SENT,
	ON_LENGTH_RECEIVED,
	TRACEPOINTS,
	ON_SEND = TRACEPOINTS, /* from here on: not where there are tracepoints for it */
	ON_RECEIVE,
	ON_UDP_SEND,
	ON_UDP6_SEND,
	ON_UDP_RECEIVE,
	ON_UDP6_RECEIVE,
	PROGRAMS,
};

/* parameters: how many the function must have, or at least. */
static const struct {
	const char *name, *at;
	unsigned int least, most;
} programs[PROGRAMS] = {
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

struct evidence_net {
	struct bpf_object *obj;
	struct bpf_link *link[PROGRAMS];
	char why[PROGRAMS][128]; /* "": it is attached */
};

/* ---- what the kernel has ---- */

static const struct btf_type *function_of(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

	return t ? btf__type_by_id(btf, t->type) : NULL;
}

static void __attribute__((format(printf, 3, 4)))
miss(struct evidence_net *n, enum program i, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n->why[i], sizeof(n->why[i]), fmt, ap);
	va_end(ap);
}

static bool has_tracepoint(const struct btf *btf, const char *name)
{
	char type[64];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
}

static void probe(struct evidence_net *n, const struct btf *btf, enum program i)
{
	const struct btf_type *t;

	if (i < TRACEPOINTS) {
		if (!has_tracepoint(btf, programs[i].at))
			miss(n, i, "the kernel has no tracepoint %s", programs[i].at);
		return;
	}
	t = function_of(btf, programs[i].at);
	if (!t)
		miss(n, i, "the kernel does not describe %s()", programs[i].at);
	else if (btf_vlen(t) < programs[i].least || btf_vlen(t) > programs[i].most)
		miss(n, i, "%s() has other parameters in this kernel", programs[i].at);
	else if (!n->why[ON_LENGTH_SENT][0] && !n->why[ON_LENGTH_RECEIVED][0])
		miss(n, i, "tracepoints are used");
}

static struct bpf_program *program_of(const struct evidence_net *n, enum program i)
{
	return bpf_object__find_program_by_name(n->obj, programs[i].name);
}

static bool share(const struct evidence_net *n, const struct bpf_object *main, const char *name)
{
	struct bpf_map *from = bpf_object__find_map_by_name(main, name),
		       *to = bpf_object__find_map_by_name(n->obj, name);

	return from && to && bpf_map__reuse_fd(to, bpf_map__fd(from)) == 0;
}

static void probe_all(struct evidence_net *n)
{
	struct btf *btf = btf__load_vmlinux_btf();

	for (enum program i = 0; i < PROGRAMS; i++) {
		if (btf)
			probe(n, btf, i);
		else
			miss(n, i, "the kernel does not describe its types (BTF)");
	}
	btf__free(btf);
	/* One alone would count one direction twice. */
	for (enum program i = ON_LENGTH_SENT; i <= ON_LENGTH_RECEIVED; i++)
		if (!n->why[i][0] && n->why[ON_LENGTH_SENT + ON_LENGTH_RECEIVED - i][0])
			miss(n, i, "the kernel has only one of two tracepoints");
}

static bool load(struct evidence_net *n, const struct bpf_object *main)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one file */
	size_t size = (size_t)(sb_evidence_net_image_end - sb_evidence_net_image);

	n->obj = bpf_object__open_mem(sb_evidence_net_image, size, NULL);
	for (enum program i = 0; i < PROGRAMS && n->obj; i++)
		bpf_program__set_autoload(program_of(n, i), !n->why[i][0]);
	return n->obj && share(n, main, "tasks") && share(n, main, "rows") &&
	       bpf_object__load(n->obj) == 0;
}

static void give_up(struct evidence_net *n, enum program from, const char *what)
{
	int why = errno;

	for (enum program i = from; i < PROGRAMS; i++)
		if (!n->why[i][0])
			miss(n, i, "%s: %s", what, strerror(why));
	bpf_object__close(n->obj);
	n->obj = NULL;
}

static void attach(struct evidence_net *n, enum program i)
{
	n->link[i] = bpf_program__attach(program_of(n, i));
	if (!n->link[i])
		miss(n, i, "the kernel attaches no program to %s: %s", programs[i].at,
		     strerror(errno));
}

/* A kernel may permit tracepoints and not its functions: then without these. */
struct evidence_net *evidence_net_open(const struct bpf_object *main)
{
	struct evidence_net *n = must_calloc(1, sizeof(*n));

	probe_all(n);
	if (!load(n, main)) {
		give_up(n, TRACEPOINTS, "the kernel loads no program for its functions");
		if (!load(n, main))
			give_up(n, 0, "the kernel does not load the program for sockets");
	}
	for (enum program i = 0; i < PROGRAMS && n->obj; i++)
		if (!n->why[i][0])
			attach(n, i);
	return n;
}

void evidence_net_close(struct evidence_net *n)
{
	if (!n)
		return;
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(n->link[i]);
	bpf_object__close(n->obj);
	free(n);
}

/* ---- what is known ---- */

static bool has(const struct evidence_net *n, enum program i)
{
	return n->link[i] != NULL;
}

/* By a tracepoint, or by functions. Where there is no IPv6, its function does not matter: six. */
static const char *missing(const struct evidence_net *n, enum program tracepoint, enum program i,
			   enum program six)
{
	bool needs_six = six != i && access("/proc/net/if_inet6", F_OK) == 0;

	if (has(n, tracepoint) || (has(n, i) && (!needs_six || has(n, six))))
		return NULL;
	return has(n, i) ? n->why[six] : n->why[i];
}

const char *evidence_net_unknown(const struct evidence_net *n, enum evidence_counter counter)
{
	const char *state = has(n, ON_STATE) ? NULL : n->why[ON_STATE],
		   *sent = missing(n, ON_LENGTH_SENT, ON_SEND, ON_SEND),
		   *received = missing(n, ON_LENGTH_RECEIVED, ON_RECEIVE, ON_RECEIVE);

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
		return missing(n, ON_LENGTH_SENT, ON_UDP_SEND, ON_UDP6_SEND);
	case EVIDENCE_UDP_BYTES_RECEIVED:
	case EVIDENCE_UDP_PACKETS_RECEIVED:
		return missing(n, ON_LENGTH_RECEIVED, ON_UDP_RECEIVE, ON_UDP6_RECEIVE);
	default: /* of the connection, at each call: accepts, segments */
		if (sent || received)
			return sent ? sent : received;
		return state;
	}
}
