/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the kernel's symbols, from /proc/kallsyms. libbpf can look up what a program
 * declares as __ksym, but it scans each of the 100000 lines by fscanf(3): a third of the processor
 * time that a session with evidence took in user space.
 */
#ifndef SB_EVIDENCE_BPF_SYMBOLS_H
#define SB_EVIDENCE_BPF_SYMBOLS_H

#include <linux/types.h>
#include <stddef.h>

/* address[i]: of name[i]; 0: there is no such symbol, or the kernel hides its addresses. */
void symbols_find(const char *const name[], __u64 address[], size_t n);

#endif
