/* SPDX-License-Identifier: MIT */
/* Names of data. */
#include <stdio.h>
#include <stdlib.h>
#include "here.h"
#include "image-priv.h"

struct object_question {
	uint64_t vaddr, start;
	const char *name;
	bool global;
};

/* A name is better than none, a global one better than a local one, then the first. */
static bool is_around(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct object_question *q = ctx;
	unsigned char type = ELF64_ST_TYPE(sym->st_info);
	bool global = ELF64_ST_BIND(sym->st_info) != STB_LOCAL;

	(void)i;
	if (type != STT_OBJECT || sym->st_shndx == SHN_UNDEF || q->vaddr < sym->st_value ||
	    q->vaddr - sym->st_value >= sym->st_size || (q->name && (q->global || !global)))
		return true;
	q->name = symtab_name(tab, sym);
	q->start = sym->st_value;
	q->global = global;
	return true;
}

char *here_object(struct image *img, uint64_t vaddr)
{
	struct object_question q = { .vaddr = vaddr };
	char *text = NULL;
	int len;

	for (enum image_table t = TABLE_DYNSYM; t < TABLE_EXTRA; t++)
		if (image_table(img, t))
			symtab_scan(image_table(img, t), NULL, is_around, &q);
	if (!q.name || !*q.name)
		return NULL;
	len = (int)strcspn(q.name, "@");
	if ((vaddr == q.start ? asprintf(&text, "%.*s", len, q.name) :
				asprintf(&text, "%.*s+0x%llx", len, q.name,
					 (unsigned long long)(vaddr - q.start))) < 0)
		return NULL;
	return text;
}
