/* SPDX-License-Identifier: MIT */
/* bpfids: the number of every BPF program in the kernel, one a line. For checks that none stays. */
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	while (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) == 0) {
		printf("%u\n", attr.next_id);
		attr.start_id = attr.next_id;
	}
	return 0;
}
