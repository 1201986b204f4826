/* SPDX-License-Identifier: MIT */
/* Built without libbpf. */
#include <stdio.h>
#include "btf.h"

struct kernel_btf *kernel_btf_open(void)
{
	return NULL;
}

void kernel_btf_close(struct kernel_btf *b)
{
	(void)b;
}

void kernel_btf_functions(struct kernel_btf *b, const char *module, kernel_btf_fn *fn, void *ctx)
{
	(void)b;
	(void)module;
	(void)fn;
	(void)ctx;
}

void kernel_btf_tracepoints(struct kernel_btf *b, kernel_btf_fn *fn, void *ctx)
{
	(void)b;
	(void)fn;
	(void)ctx;
}

bool kernel_fentry_works(char *why, size_t size)
{
	snprintf(why, size, "this sbinject was built without BPF");
	return false;
}
