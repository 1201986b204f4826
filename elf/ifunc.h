/* SPDX-License-Identifier: MIT */
#ifndef SB_IFUNC_H
#define SB_IFUNC_H

#include "module.h"

/*
 * An IFUNC's symbol is the address of a resolver, which the dynamic linker calls once to select the
 * implementation for this machine. The result is in the relocated slots of the process, and is read
 * there. A resolver is called again only where no slot shows its result.
 *
 * IRELATIVE slots of the module itself contain the resolver's address; slots of any module may name
 * the symbol. A slot that is not relocated yet holds the resolver's address, an offset, or a PLT
 * entry of its own module (lazy binding).
 */
struct ifunc_reader {
	const struct module_space *space;
	const struct resolve_access *access;
};

enum ifunc_state {
	IFUNC_FOUND,
	IFUNC_PENDING, /* the module has not been relocated yet */
	IFUNC_UNKNOWN, /* no slot shows it and its resolver cannot be called: err has the reason */
};

/* The run-time address of the implementation of the IFUNC whose resolver is at vaddr of m. */
enum ifunc_state ifunc_find(const struct ifunc_reader *r, const struct module *m, uint64_t vaddr,
			    uint64_t *addr, struct sb_err *err);

#endif
