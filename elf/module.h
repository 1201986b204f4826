/* SPDX-License-Identifier: MIT */
#ifndef SB_MODULE_H
#define SB_MODULE_H

#include "image-priv.h"
#include "resolve.h"

/*
 * The ELF files that a process has mapped to execute, each at each place: dlmopen() maps one file
 * several times. In the order of the map.
 */
struct module {
	const struct map_entry *map; /* one of its mappings */
	struct image *img;	     /* counted */
	uint64_t bias;
};

struct module_list {
	struct module *module;
	size_t count, cap;
};

struct module_space {
	pid_t pid;
	const struct maps *maps;
	struct resolve_cache *cache; /* of these maps; NULL: none */
};

/*
 * Modules that the MODULE pattern names ("": the main executable, NULL: every one). 0 also where it
 * names none. An unreadable file is an error only if the pattern names it and no other module is
 * found.
 */
int module_find(const struct module_space *space, const char *pattern, struct module_list *list,
		struct sb_err *err);

/* The module whose mapping holds addr, opened; false if addr is in no ELF file. */
bool module_at(const struct module_space *space, uint64_t addr, struct module *m,
	       struct sb_err *err);
void module_list_free(struct module_list *list);

/* The last part of a path. */
const char *module_file_name(const char *path);

/* A name of the code that the kernel maps by itself (the vDSO). */
bool module_is_vdso(const char *module);

#endif
