/* SPDX-License-Identifier: MIT */
/* What is at an address of a process, by its maps: names of places in code, and of data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "callers-priv.h"
#include "elf/demangle.h"
#include "elf/module.h"
#include "src/base/must.h"

struct space *callers_space(struct callers *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_spaces; i++)
		if (c->space[i].pid == pid)
			return &c->space[i];
	return NULL;
}

void callers_find(const struct callers *c, const struct space *s, const struct unwind_regs *regs,
		  struct at *at)
{
	*at = (struct at){ .map = maps_find(&s->maps, regs->reg[UNWIND_PC] - regs->called) };
	if (!at->map)
		return;
	at->file = s->file[at->map - s->maps.entry];
	if (!at->file)
		return;
	at->bias = at->map->start - at->map->offset;
	at->img = c->file[at->file - 1].img;
	if (at->img && !image_bias(at->img, at->map, &at->bias))
		at->img = NULL;
}

/* ---- names ---- */

void callers_forget_names(struct callers *c)
{
	for (size_t i = 0; i < NAMES_MOST && c->n_names; i++) {
		c->n_names -= c->name[i].text != NULL;
		free(c->name[i].text);
		c->name[i] = (struct name){ 0 };
	}
}

void callers_bound_names(struct callers *c)
{
	if (c->n_names >= NAMES_MOST / 2)
		callers_forget_names(c);
}

static struct name *name_slot(struct callers *c, uint32_t file, uint64_t vaddr, bool called)
{
	uint64_t i = ((vaddr * 2 + called) ^ (uint64_t)file << 48) * 0x9e3779b97f4a7c15ull >> 32;

	for (;; i++) {
		struct name *n = &c->name[i % NAMES_MOST];

		if (!n->text || (n->file == file && n->vaddr == vaddr && n->called == called))
			return n;
	}
}

/* The function around a place, to be freed; NULL: it is in none that is known. */
static char *function_name(struct image *img, uint64_t vaddr, uint64_t *start)
{
	char *name, *shown;
	uint64_t end;

	if (image_flaw(img) || !image_function_at(img, vaddr, start, &end) || image_flaw(img))
		return NULL;
	name = symbol_holder(img, *start);
	if (!name || strncmp(name, "0x", 2) == 0) {
		free(name);
		return NULL;
	}
	shown = symbol_shown(name);
	free(name);
	if (shown)
		demangle_cut_parameters(shown);
	return shown;
}

static char *make_name(struct image *img, const char *path, uint64_t vaddr, bool called)
{
	const char *module = module_file_name(path);
	char *name = NULL, *text = NULL;
	uint64_t start = 0;
	int n;

	if (img)
		name = function_name(img, vaddr - called, &start);
	n = name ? asprintf(&text, "%s:%s+0x%llx", module, name,
			    (unsigned long long)(vaddr - start)) :
		   asprintf(&text, "%s+0x%llx", module, (unsigned long long)vaddr);
	free(name);
	return n < 0 ? must_strdup("?") : text;
}

const char *callers_name(struct callers *c, uint32_t file, const char *path, uint64_t vaddr,
			 bool called)
{
	struct name *n;

	n = name_slot(c, file, vaddr, called);
	if (!n->text) {
		*n = (struct name){ file, called, vaddr, NULL };
		n->text = make_name(c->file[file - 1].img, path, vaddr, called);
		c->n_names++;
	}
	return n->text;
}

/* What begins there by the file's symbols. Bounds alone, as the unwinder's table has them, and the
 * middle of a function name nothing. */
static char *symbol_at(struct image *img, uint64_t vaddr)
{
	char *name = must_calloc(1, SYMBOL_NAME_MOST), *shown = NULL;

	if (symbol_name_at(img, vaddr, name, SYMBOL_NAME_MOST) && *name && !strstr(name, "+0x") &&
	    strlen(name) < SYMBOL_NAME_MOST - 1)
		shown = symbol_shown(name);
	free(name);
	return shown;
}

char *callers_function(struct callers *c, int32_t pid, uint64_t address)
{
	const struct space *s = callers_space(c, pid);
	const struct map_entry *map = s ? maps_find(&s->maps, address) : NULL;
	uint32_t file = map ? s->file[map - s->maps.entry] : 0;
	struct image *img = file ? c->file[file - 1].img : NULL;
	uint64_t bias;

	if (!img || image_flaw(img) || !image_bias(img, map, &bias))
		return NULL;
	return symbol_at(img, address - bias);
}

const char *callers_place(struct callers *c, int32_t pid, uint64_t address)
{
	const struct unwind_regs regs = { .reg[UNWIND_PC] = address, .called = true };
	const struct space *s = callers_space(c, pid);
	struct at at = { 0 };

	callers_bound_names(c);
	if (s)
		callers_find(c, s, &regs, &at);
	if (at.file)
		return callers_name(c, at.file, at.map->path, address - at.bias, true);
	snprintf(c->place, sizeof(c->place), "[0x%llx]", (unsigned long long)address);
	return c->place;
}

/* An empty text: there is no object. Addresses of code and data are never the same. */
static const char *object_in(struct callers *c, uint32_t file, const char *path, uint64_t vaddr)
{
	struct name *n = name_slot(c, file, vaddr, false);
	char *name, *text = NULL;

	if (n->text)
		return n->text;
	*n = (struct name){ file, false, vaddr, NULL };
	name = image_flaw(c->file[file - 1].img) ? NULL :
						   symbol_object(c->file[file - 1].img, vaddr);
	if (name && asprintf(&text, "%s:%s", module_file_name(path), name) < 0)
		text = NULL;
	n->text = text ? text : must_strdup("");
	c->n_names++;
	free(name);
	return n->text;
}

const char *callers_object(struct callers *c, int32_t pid, uint64_t address)
{
	const struct space *s = callers_space(c, pid);

	callers_bound_names(c);
	for (size_t i = 0; s && i < s->maps.count; i++) {
		const struct map_entry *map = &s->maps.entry[i];
		struct image *img = s->file[i] ? c->file[s->file[i] - 1].img : NULL;
		const char *text;
		uint64_t bias;

		if (!img || !image_bias(img, map, &bias) || !image_holds(img, address - bias))
			continue;
		text = object_in(c, s->file[i], map->path, address - bias);
		return *text ? text : NULL;
	}
	return NULL;
}
