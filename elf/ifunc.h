/* SPDX-License-Identifier: MIT */
#ifndef SB_IFUNC_H
#define SB_IFUNC_H

#include "module.h"

/*
 * An IFUNC's symbol is the address of a resolver, which the dynamic linker calls once to learn
 * which implementation suits this machine. What it answered stands in the relocated slots of
 * the process: that is read here, nothing is run.
 *
 * IRELATIVE slots of the module itself name the resolver by its address; slots of any module
 * may name the symbol. A slot that is not relocated yet holds the resolver's address, an
 * offset, or a PLT entry of the module that it is in (lazy binding).
 */
struct ifunc_reader {
	const struct module_space *space;
	resolve_read_fn *read;
	void *ctx;
};

/*
 * The run-time address of the implementation of the IFUNC whose resolver is at vaddr of m.
 * False if no slot shows it yet.
 */
bool ifunc_find(const struct ifunc_reader *r, const struct module *m, uint64_t vaddr,
		uint64_t *addr);

#endif
