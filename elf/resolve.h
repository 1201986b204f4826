/* SPDX-License-Identifier: MIT */
#ifndef SB_RESOLVE_H
#define SB_RESOLVE_H

#include "symbol.h"

/*
 * A target's MODULE and SYMBOL to addresses in one address space. Reads files and, for IFUNCs only,
 * the target's memory through a callback, so that this folder needs no ptrace.
 *
 * MODULE: absolute path, file name, soname, or a glob over any of these; empty: the main
 * executable. A path is compared as the target sees it, and by device and inode, so that /lib/x and
 * /usr/lib/x are one. libpython* falls back on an executable that holds the interpreter. An
 * imported symbol (/bin/sleep:nanosleep) resolves to the module that defines it (in the map's
 * order, the dynamic linker's usual choice) and sets `via_import`.
 */
enum resolve_kind {
	RESOLVE_SYMBOL, /* symbol pattern, see symbol.h */
	RESOLVE_LITERAL,
	RESOLVE_LINE, /* symbol is the file, line the line */
};

struct resolve_request {
	enum resolve_kind kind;
	const char *module;
	const char *symbol;
	unsigned int line;
	bool inlined;  /* a symbol's inlined copies as well, each a site in mid-function */
	bool versions; /* RESOLVE_SYMBOL: the symbol's versions too: SYMBOL_VERSIONS */
};

struct resolve_site {
	struct image *img; /* counted reference */
	uint64_t bias;
	uint64_t addr;	 /* run-time address to hook: vaddr + offset + bias */
	uint64_t func;	 /* run-time start of the function that holds addr */
	uint64_t size;	 /* of the function, 0 unknown */
	bool via_import; /* found in another module than the one named */
	bool elsewhere;	 /* an IFUNC, implemented in another file than the one that names it */
	char *name;	 /* symbol, with +0xOFF where given */
};

struct resolve_result {
	struct resolve_site *site;
	size_t count;
	size_t modules;	      /* mapped modules that MODULE matched */
	size_t ifunc_pending; /* IFUNCs whose implementation is still unknown (before relocation) */
	/* Functions that the process passes once the implementation is known, before it is used. */
	struct resolve_site *settle;
	size_t n_settle;
	char note[256]; /* e.g. "nanosleep is defined in libc.so.6"; "" if none */
};

/* Callbacks for a live process. */
struct resolve_access {
	/* Reads len bytes of its memory; 0 or negative. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	/*
	 * The result of the function (an IFUNC's resolver) at addr, or the reason why it is
	 * unavailable; NULL: never available.
	 */
	int (*call)(void *ctx, uint64_t addr, uint64_t *result, struct sb_err *err);
	void *ctx;
	struct resolve_cache *cache; /* NULL: none */
};

/*
 * Keeps the files that a process has mapped open while many targets are searched in the same maps.
 * NULL without memory, which means no cache.
 */
struct resolve_cache *resolve_cache_new(const struct maps *maps);
void resolve_cache_free(struct resolve_cache *cache);

/*
 * pid is used to open files (map_files, root) and for the executable's path. 0 with count 0 and
 * modules 0: no mapped module matches (the caller keeps the target pending; hint in err is set to
 * modules with near names or to another mapped module that has the symbol, code 0). Errors:
 * SB_ENOSYMBOL and friends where a module matched and has no such function (hint: near names, and
 * other mapped modules that do have it), SB_ENOELF, SB_EFILE. SB_EREFUSED: an IFUNC that ends in
 * the vDSO, or whose resolver cannot be called. The hints read every mapped module's symbols; with
 * err NULL they are not searched, so that retrying a pending target is cheap. Sites are sorted by
 * address, without duplicates.
 *
 * An IFUNC resolves to the implementation in use, read from the relocated slots (IRELATIVE with the
 * resolver's address, GLOB_DAT and JUMP_SLOT of any mapped module that names it) of this process;
 * slots that still hold the resolver or a PLT entry do not count. Where no module has such a slot
 * (dlsym() finds it all the same) the resolver is called through access->call. Both results come
 * from the target: an address is accepted only where a function begins by the tables of a mapped
 * file, else it is SB_EREFUSED; `elsewhere` is set where that file is not the given one.
 */
int resolve_target(pid_t pid, const struct maps *maps, const struct resolve_request *req,
		   const struct resolve_access *access, struct resolve_result *out,
		   struct sb_err *err);
void resolve_free(struct resolve_result *res);

/* True if MODULE (path, name, soname, glob) names this mapped file; img may be NULL. */
bool resolve_module_matches(const char *module, const char *path, struct image *img);

#endif
