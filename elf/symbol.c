/* SPDX-License-Identifier: MIT */
#include "symbol.h"
#include "demangle.h"
#include "here.h"
#include "match.h"

#include <stdio.h>
#include <stdlib.h>

/* A parsed pattern: NAME[@[@]VERSION][+0xOFF]. */
struct request {
	char *name;
	char *version_text;
	struct match_version version;
	uint64_t offset;
	bool literal, versions;
};

void symbol_list_free(struct symbol_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->sym[i].name);
	free(list->sym);
	image_put(list->img);
	*list = (struct symbol_list){ 0 };
}

static int no_memory(struct sb_err *err)
{
	return err_set(err, SB_ENOMEM, "no memory for the symbols");
}

/* ---- the pattern ---- */

/* "0x" and 1 to 16 hexadecimal digits, and nothing else. */
static bool parse_hex(const char *s, uint64_t *value)
{
	size_t digits;

	if (s[0] != '0' || s[1] != 'x')
		return false;
	digits = strspn(s + 2, "0123456789abcdefABCDEF");
	if (!digits || digits > 16 || s[2 + digits])
		return false;
	*value = strtoull(s + 2, NULL, 16);
	return true;
}

static void request_free(struct request *r)
{
	free(r->name);
	free(r->version_text);
}

static int request_parse(struct request *r, const char *pattern, unsigned int flags,
			 struct sb_err *err)
{
	char *plus, *at;

	*r = (struct request){ .literal = flags & SYMBOL_LITERAL,
			       .versions = flags & SYMBOL_VERSIONS };
	r->name = strdup(pattern);
	if (!r->name)
		return no_memory(err);
	if (r->versions)
		return 0;
	plus = strrchr(r->name, '+');
	if (plus && plus != r->name && parse_hex(plus + 1, &r->offset))
		*plus = '\0';
	at = strchr(r->name, '@');
	if (!at || at == r->name)
		return 0;
	r->version.only_default = at[1] == '@';
	r->version_text = strdup(at + 1 + r->version.only_default);
	*at = '\0';
	r->version.name = r->version_text;
	return r->version_text ? 0 : no_memory(err);
}

/* ---- choosing among what was found ---- */

static void keep(struct match_list *list, bool (*fits)(const struct match *, const void *),
		 const void *arg)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++)
		if (fits(&list->match[i], arg))
			list->match[n++] = list->match[i];
	list->count = n;
}

static bool is_default(const struct match *m, const void *unused)
{
	(void)unused;
	return !m->hidden;
}

static bool is_global(const struct match *m, const void *unused)
{
	(void)unused;
	return !m->local;
}

static bool is_of_version(const struct match *m, const void *version)
{
	return strcmp(m->version, version) == 0;
}

static bool any(const struct match_list *list, bool (*fits)(const struct match *, const void *))
{
	for (size_t i = 0; i < list->count; i++)
		if (fits(&list->match[i], NULL))
			return true;
	return false;
}

/* The newest version where all are hidden: the one that a program linked last would have got. */
static const char *newest_version(const struct match_list *list)
{
	const char *newest = list->match[0].version;

	for (size_t i = 1; i < list->count; i++)
		if (strverscmp(list->match[i].version, newest) > 0)
			newest = list->match[i].version;
	return newest;
}

static int ambiguous(const struct image *img, const char *name, const struct match_list *list,
		     struct sb_err *err)
{
	char text[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < list->count && used < sizeof(text) - 24; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s0x%llx",
					 i ? ", " : "", (unsigned long long)list->match[i].vaddr);
	err_set(err, SB_EAMBIGUOUS, "%s has %zu local functions named '%s'", image_name(img),
		list->count, name);
	err_hint(err, "name one of them by its address: %s", text);
	return -SB_EAMBIGUOUS;
}

static int choose_exact(const struct image *img, const struct request *r, struct match_list *list,
			struct sb_err *err)
{
	if (!r->version.name) {
		if (any(list, is_default))
			keep(list, is_default, NULL);
		else
			keep(list, is_of_version, newest_version(list));
	}
	if (any(list, is_global))
		keep(list, is_global, NULL);
	match_sort(list);
	if (list->count > 1 && !any(list, is_global))
		return ambiguous(img, r->name, list, err);
	return 0;
}

/* ---- results ---- */

static char *result_name(const struct request *r, const struct match *m)
{
	char *name = NULL;

	if (!r->version.name)
		return strndup(m->name, m->name_len);
	if (asprintf(&name, "%.*s%s%s", (int)m->name_len, m->name, m->hidden ? "@" : "@@",
		     m->version) < 0)
		return NULL;
	return name;
}

static bool offset_fits(struct image *img, const struct match *m, uint64_t offset)
{
	uint64_t start, end;

	/* An IFUNC's offset is into an implementation that is unknown here. */
	if (!offset || m->ifunc)
		return true;
	if (m->size)
		return offset < m->size;
	if (image_function_at(img, m->vaddr, &start, &end))
		return offset < end - m->vaddr;
	return image_in_text(img, m->vaddr + offset);
}

static int list_init(struct symbol_list *out, struct image *img, size_t count, struct sb_err *err)
{
	*out = (struct symbol_list){ 0 };
	out->sym = calloc(count, sizeof(*out->sym));
	if (!out->sym)
		return no_memory(err);
	out->img = image_ref(img);
	return 0;
}

static int to_symbols(struct image *img, const struct request *r, const struct match_list *list,
		      struct symbol_list *out, struct sb_err *err)
{
	int ret = list_init(out, img, list->count, err);

	for (size_t i = 0; !ret && i < list->count; i++) {
		const struct match *m = &list->match[i];
		struct symbol *s = &out->sym[out->count];

		if (!offset_fits(img, m, r->offset))
			continue;
		*s = (struct symbol){ .vaddr = m->vaddr,
				      .size = m->size,
				      .ifunc = m->ifunc,
				      .offset = (uint32_t)r->offset };
		s->name = result_name(r, m);
		out->count++;
		if (!s->name)
			ret = no_memory(err);
	}
	if (!ret && !out->count)
		ret = err_set(err, SB_ENOSYMBOL, "'%s' of %s is shorter than 0x%llx bytes", r->name,
			      image_name(img), (unsigned long long)r->offset);
	if (ret)
		symbol_list_free(out);
	return ret;
}

/* ---- finding ---- */

/* "GLIBC_2.2.5, GLIBC_2.14": the versions that a name has; false if it is not there at all. */
static bool other_versions(struct image *img, const char *name, char *buf, size_t size)
{
	struct match_list list = { 0 };
	size_t used = 0;

	*buf = '\0';
	match_exact(img, name, NULL, TABLE_DYNSYM, &list);
	for (size_t i = 0; i < list.count && used < size; i++)
		if (*list.match[i].version && !strstr(buf, list.match[i].version))
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
						 list.match[i].version);
	match_list_free(&list);
	return used > 0 && used < size;
}

static int not_found(struct image *img, const struct request *r, bool saw_data, struct sb_err *err)
{
	struct suggester s;
	char near[256] = "";

	if (saw_data)
		return err_set(err, SB_ENOTFUNC, "'%s' of %s is data, not a function", r->name,
			       image_name(img));
	if (!err || err->code)
		return -SB_ENOSYMBOL;
	if (symbol_is_import(img, r->name))
		err_set(err, SB_ENOSYMBOL, "%s only imports '%s'", image_name(img), r->name);
	else
		err_set(err, SB_ENOSYMBOL, "%s has no function '%s%s%s'", image_name(img), r->name,
			r->version.name ? "@" : "", r->version.name ? r->version.name : "");
	if (r->version.name && other_versions(img, r->name, near, sizeof(near)))
		err_hint(err, "'%s' is there as version %s", r->name, near);
	else if (suggest_name(&s, r->name) &&
		 (here_suggest(img, &s), suggest_print(&s, near, sizeof(near)), *near))
		err_hint(err, "%s", near);
	else if (!image_table(img, TABLE_SYMTAB) && !image_table(img, TABLE_EXTRA))
		err_hint(err, "it is stripped, only what it exports has a name: install its debug "
			      "symbols, or give an address as 0xADDR");
	return -SB_ENOSYMBOL;
}

static int search(struct image *img, const struct request *r, struct match_list *list,
		  struct sb_err *err)
{
	bool glob = !r->literal && glob_is_pattern(r->name);
	int ret = 0;

	if (r->versions) {
		match_versions(img, r->name, list);
		match_sort(list);
		return list->failed ? no_memory(err) : 0;
	}
	match_exact(img, r->name, &r->version, TABLE_EXTRA, list);
	if (list->count) {
		ret = choose_exact(img, r, list, err);
	} else {
		if (!list->failed && !r->version.name && (!glob || demangle_may_be_name(r->name)))
			match_demangled(img, r->name, list);
		if (!list->failed && !list->count && glob)
			match_glob(img, r->name, &r->version, list);
		match_sort(list);
	}
	return list->failed ? no_memory(err) : ret;
}

static int find_by_name(struct image *img, const struct request *r, struct symbol_list *out,
			struct sb_err *err)
{
	struct match_list list = { 0 };
	int ret;

	if (r->offset > UINT32_MAX)
		return err_set(err, SB_ESPEC, "offset 0x%llx is too large",
			       (unsigned long long)r->offset);
	ret = search(img, r, &list, err);
	if (!ret)
		ret = list.count ? to_symbols(img, r, &list, out, err) :
				   not_found(img, r, list.saw_data, err);
	match_list_free(&list);
	return ret;
}

/* One address: inside a function where one is known, else by itself. */
static int find_by_address(struct image *img, uint64_t vaddr, struct symbol_list *out,
			   struct sb_err *err)
{
	uint64_t start = vaddr, end = vaddr;
	char name[512];
	int ret;

	if (!image_in_text(img, vaddr))
		return err_set(err, SB_ENOSYMBOL, "%s has no code at 0x%llx", image_name(img),
			       (unsigned long long)vaddr);
	image_function_at(img, vaddr, &start, &end);
	if (vaddr - start > UINT32_MAX)
		start = end = vaddr;
	if (!here_name_at(img, start, name, sizeof(name)))
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)start);
	ret = list_init(out, img, 1, err);
	if (ret)
		return ret;
	out->count = 1;
	out->sym[0] = (struct symbol){ .vaddr = start,
				       .size = end - start,
				       .offset = (uint32_t)(vaddr - start),
				       .name = strdup(name) };
	if (out->sym[0].name)
		return 0;
	symbol_list_free(out);
	return no_memory(err);
}

int here_find(struct image *img, const char *pattern, unsigned int flags, struct symbol_list *out,
	      struct sb_err *err)
{
	struct request r;
	uint64_t vaddr;
	int ret;

	*out = (struct symbol_list){ 0 };
	if (!*pattern)
		return err_set(err, SB_ESPEC, "an empty symbol name");
	if (!(flags & SYMBOL_VERSIONS) && parse_hex(pattern, &vaddr))
		return find_by_address(img, vaddr, out, err);
	ret = request_parse(&r, pattern, flags, err);
	if (!ret)
		ret = find_by_name(img, &r, out, err);
	request_free(&r);
	return ret;
}

/* ---- small queries ---- */

bool symbol_is_import(struct image *img, const char *name)
{
	return match_import(img, name) != NULL;
}

bool symbol_is_defined(struct image *img, const char *name)
{
	struct match_list list = { 0 };
	bool found;

	match_exact(img, name, NULL, TABLE_SYMTAB, &list);
	found = list.count > 0;
	match_list_free(&list);
	return found;
}

char *symbol_shown(const char *symbol)
{
	size_t len = strcspn(symbol, "+");
	char *base = strndup(symbol, len), *plain, *shown = NULL;

	plain = base ? demangle_name(base, DEMANGLE_NO_RETURN) : NULL;
	if (plain && asprintf(&shown, "%s%s", plain, symbol + len) < 0)
		shown = NULL;
	free(base);
	free(plain);
	return shown ? shown : strdup(symbol);
}

bool here_name_at(struct image *img, uint64_t vaddr, char *buf, size_t size)
{
	ptrdiff_t i = image_in_text(img, vaddr) ? image_func_around(img, vaddr) : -1;
	const struct symtab *tab;
	Elf64_Sym sym;
	const char *name;
	uint64_t offset;

	if (i < 0)
		return false;
	tab = &img->tab[img->func[i].sym & 3];
	symtab_get(tab, img->func[i].sym >> 2, &sym);
	name = symtab_name(tab, &sym);
	offset = vaddr - sym.st_value;
	if (offset)
		snprintf(buf, size, "%.*s+0x%llx", (int)strcspn(name, "@"), name,
			 (unsigned long long)offset);
	else
		snprintf(buf, size, "%.*s", (int)strcspn(name, "@"), name);
	return true;
}
