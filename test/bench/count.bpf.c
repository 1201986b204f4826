/* SPDX-License-Identifier: GPL-2.0 */
/* Counts hits of a uprobe, on a counter of each processor's own: the cheapest that BPF can do. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

SEC("uprobe")
int count_hit(void *ctx)
{
	__u32 key = 0;
	__u64 *count = bpf_map_lookup_elem(&hits, &key);

	if (count)
		(*count)++;
	return 0;
}

/* How long calls take, by a pair of uprobe and uretprobe: a record of each call. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} calls SEC(".maps");

SEC("uprobe")
int call_begins(void *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&starts, &tid, &now, BPF_ANY);
	return 0;
}

SEC("uretprobe")
int call_ends(void *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 *start = bpf_map_lookup_elem(&starts, &tid);
	__u64 record[2] = { tid, start ? bpf_ktime_get_ns() - *start : 0 };

	bpf_ringbuf_output(&calls, record, sizeof(record), 0);
	return count_hit(ctx);
}

char _license[] SEC("license") = "GPL";
