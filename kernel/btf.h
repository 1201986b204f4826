/* SPDX-License-Identifier: MIT */
#ifndef SB_KERNEL_BTF_H
#define SB_KERNEL_BTF_H

#include "names.h"

/* The kernel's own description of its types. Built without libbpf, it describes nothing. */
struct kernel_btf;

struct kernel_btf *kernel_btf_open(void); /* NULL: there is none */
void kernel_btf_close(struct kernel_btf *b);

/* Calls fn for each function of the kernel, or of a module, until it returns false. */
typedef bool kernel_btf_fn(void *ctx, const char *name, const struct kernel_proto *proto);
void kernel_btf_functions(struct kernel_btf *b, const char *module, kernel_btf_fn *fn, void *ctx);
/* Each tracepoint of the kernel and of all modules. */
void kernel_btf_tracepoints(struct kernel_btf *b, kernel_btf_fn *fn, void *ctx);

#endif
