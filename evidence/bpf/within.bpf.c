/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What watched threads do within the kernel: how long they wait for its locks, what they ask of
 * devices, which files they open. A program of its own: a kernel without one of these places lacks
 * a part of this and nothing else.
 *
 * All places are on ways that are slow already: a lock that is not free, a request to a device, an
 * open(2).
 */
#include "rows.bpf.h"
#include "contention.h"
#include <bpf/bpf_core_read.h>

#define OP_MASK	   0xff /* of bi_opf */
#define OP_READ	   0
#define OP_WRITE   1
#define REQUESTS   16384 /* in flight, of watched threads */
#define MERGED	   256	 /* parts of one request, at most */
#define LAST_ERRNO 4095

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bvec_iter {
	unsigned int bi_size;
};
struct bio {
	struct bio *bi_next;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
};
struct request {
	struct bio *bio;
};
#pragma clang attribute pop

/* What is in flight: whose it is, and since when. */
struct asked {
	__u64 began, at;
	__u32 row, field;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQUESTS);
	__type(key, __u64);
	__type(value, struct asked);
} requests SEC(".maps");

/* ---- locks ---- */

static __always_inline __u64 weight_of_wait(void)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);

	return c && c->sample > 1 ? c->sample : 1;
}

/* (lock, flags) */
SEC("tp_btf/contention_begin")
int on_contention(__u64 *ctx)
{
	struct evidence_row *r = row_of_caller();
	struct evidence_lock *begun = r ? contention_begin(r->lock, ctx[0], (__u32)ctx[1]) : 0;

	if (begun)
		begun->since = weight_of_event() ? bpf_ktime_get_ns() : 0;
	return 0;
}

/* (lock, result) */
SEC("tp_btf/contention_end")
int on_contention_end(__u64 *ctx)
{
	struct evidence_row *r = row_of_caller();
	__u64 weight = weight_of_wait();
	__u32 kind;

	if (!r)
		return 0;
	kind = contention_end(r->lock, ctx[0]);
	if (kind >= EVIDENCE_LOCKS || !r->lock[kind].since)
		return 0;
	r->within[EVIDENCE_WITHIN_LOCKS + 2 * kind] += weight;
	r->within[EVIDENCE_WITHIN_LOCKS + 2 * kind + 1] +=
		(bpf_ktime_get_ns() - r->lock[kind].since) * weight;
	return 0;
}

/* ---- requests to devices ---- */

/* (bio): in the thread that asks for it */
SEC("tp_btf/block_bio_queue")
int on_request(__u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];
	struct asked asked = { .row = row_number() };
	struct evidence_row *r = asked.row ? bpf_map_lookup_elem(&rows, &asked.row) : 0;
	__u64 key = ctx[0];
	__u32 op;

	if (!r)
		return 0;
	op = bio->bi_opf & OP_MASK;
	if (op != OP_READ && op != OP_WRITE)
		return 0;
	asked.field = op == OP_READ ? EVIDENCE_WITHIN_READS : EVIDENCE_WITHIN_WRITES;
	asked.began = r->began;
	asked.at = bpf_ktime_get_ns();
	bpf_map_update_elem(&requests, &key, &asked, BPF_ANY);
	return 0;
}

/* Often in an interrupt. The row may be another thread's by now, or its thread has ended.
 *
 * Global, hence not static: the verifier checks it once, and not again for each of the parts of a
 * request, which was most of its work on all of the programs. The argument is a
 * pointer, since the verifier does not permit to pass the address of a bio as a number. */
__attribute__((noinline)) int done(const __u64 *key)
{
	__u64 at = key ? *key : 0; /* Linux 6.1 takes a key from the stack only */
	struct asked *asked = bpf_map_lookup_elem(&requests, &at);
	struct evidence_row *r;
	__u32 field, row;
	__u64 took;

	if (!asked)
		return 0;
	took = bpf_ktime_get_ns() - asked->at;
	field = asked->field;
	row = asked->row;
	r = bpf_map_lookup_elem(&rows, &row);
	if (!r || !r->tid || r->began != asked->began)
		r = bpf_map_lookup_elem(&rows, &first);
	bpf_map_delete_elem(&requests, &at);
	if (!r)
		return 0;
	if (field == EVIDENCE_WITHIN_READS) {
		__sync_fetch_and_add(&r->within[EVIDENCE_WITHIN_READS], 1);
		__sync_fetch_and_add(&r->within[EVIDENCE_WITHIN_READ_NS], took);
	} else {
		__sync_fetch_and_add(&r->within[EVIDENCE_WITHIN_WRITES], 1);
		__sync_fetch_and_add(&r->within[EVIDENCE_WITHIN_WRITE_NS], took);
	}
	return 0;
}

/* (queue, bio): of devices that take no requests (RAM, a device that lies on others) */
SEC("tp_btf/block_bio_complete")
int on_bio_done(__u64 *ctx)
{
	__u64 key = ctx[1];

	done(&key);
	return 0;
}

/* (request, error, bytes): what was merged into it ends with it, as far as the bytes go. */
SEC("tp_btf/block_rq_complete")
int on_request_done(__u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct bio *bio = request->bio;
	__u32 left = (__u32)ctx[2], size;
	__u64 key;

	for (int i = 0; i < MERGED && bio; i++) {
		size = bio->bi_iter.bi_size;
		if (size > left)
			break;
		left -= size;
		key = (__u64)bio;
		done(&key);
		bio = bio->bi_next;
	}
	return 0;
}

/* ---- files ---- */

SEC("fexit/do_filp_open")
int on_open(__u64 *ctx)
{
	struct evidence_row *r = row_of_caller();
	__u64 file = 0;

	if (!r || bpf_get_func_ret(ctx, &file) || file >= (__u64)-LAST_ERRNO)
		return 0;
	r->within[EVIDENCE_WITHIN_OPENS]++;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
