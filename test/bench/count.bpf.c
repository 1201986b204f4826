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

char _license[] SEC("license") = "GPL";
