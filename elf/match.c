/* SPDX-License-Identifier: MIT */
#include "match.h"
#include "demangle.h"
#include "symbol.h"

#include <stdlib.h>

enum { NAMES_PAY = 16 };

struct matcher {
	struct image *img;
	struct match_list *list;
	const char *name; /* or pattern */
	size_t len;
	const struct match_version *version;
	char *bracketed; /* the pattern with each '[' escaped, NULL if it has none */
	bool glob, versions;
	bool mangled, demangled; /* which forms of a name are compared */
};

void match_list_free(struct match_list *list)
{
	free(list->match);
	*list = (struct match_list){ 0 };
}

static void list_add(struct match_list *list, const struct match *m)
{
	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		struct match *more = realloc(list->match, cap * sizeof(*more));

		if (!more) {
			list->failed = true;
			return;
		}
		list->match = more;
		list->cap = cap;
	}
	list->match[list->count++] = *m;
}

/* Splits NAME@VERSION and NAME@@VERSION, as in .symtab; .dynsym keeps versions separately. */
static void describe(const struct symtab *tab, uint32_t i, const Elf64_Sym *sym, struct match *m)
{
	const char *name = symtab_name(tab, sym), *at = strchr(name, '@');

	*m = (struct match){
		.vaddr = sym->st_value,
		.size = sym->st_size,
		.name = name,
		.name_len = (uint32_t)(at ? (size_t)(at - name) : strlen(name)),
		.local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
		.ifunc = ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC,
		.version = "",
	};
	if (at) {
		m->hidden = at[1] != '@';
		m->version = at + 1 + !m->hidden;
	} else if (tab->dynamic) {
		m->version = symtab_version(tab, i, &m->hidden);
	}
}

static bool version_fits(const struct match_version *want, const struct match *m)
{
	if (!want || !want->name)
		return true;
	if (want->only_default && m->hidden)
		return false;
	return strcmp(want->name, m->version) == 0 || glob_match(want->name, m->version);
}

static void scan_tables(struct matcher *m, const char *required, symtab_fn *fn,
			enum image_table first, enum image_table last)
{
	for (enum image_table t = first; t <= last && !m->list->failed; t++) {
		const struct symtab *tab = image_table(m->img, t);
		struct strset set;
		int ret;

		if (!tab)
			continue;
		if (!required) {
			symtab_scan(tab, NULL, fn, m);
			continue;
		}
		ret = m->mangled || m->demangled ? strset_containing(&set, tab, required) :
						   strset_exact(&set, tab, required);
		if (ret) {
			m->list->failed = true;
			return;
		}
		symtab_scan(tab, &set, fn, m);
		strset_free(&set);
	}
}

/* ---- exact ---- */

static bool take_exact(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct matcher *m = ctx;
	struct match found;

	if (sym->st_shndx == SHN_UNDEF)
		return true;
	describe(tab, i, sym, &found);
	if (found.name_len != m->len || memcmp(found.name, m->name, m->len) != 0 ||
	    !version_fits(m->version, &found))
		return true;
	if (image_is_function(m->img, sym, true))
		list_add(m->list, &found);
	else
		m->list->saw_data = true;
	return !m->list->failed;
}

/* The table's names, once the number of exact queries makes them worthwhile; else NULL. */
static const struct names *names_of(struct image *img, enum image_table t, const struct symtab *tab)
{
	struct names *names = &img->names[t];

	if (img->exact_asked < NAMES_PAY)
		return NULL;
	return names->entry || names_build(names, tab) ? names : NULL;
}

static void find_exact(struct matcher *m, enum image_table t)
{
	const struct symtab *tab = image_table(m->img, t);
	const struct names *names = tab ? names_of(m->img, t, tab) : NULL;

	if (names)
		names_each(names, tab, m->name, take_exact, m);
	else if (tab)
		scan_tables(m, m->name, take_exact, t, t);
}

void match_exact(struct image *img, const char *name, const struct match_version *version,
		 enum image_table last, struct match_list *list)
{
	struct matcher m = {
		.img = img, .list = list, .name = name, .len = strlen(name), .version = version
	};

	if (!m.len)
		return;
	img->exact_asked++;
	for (enum image_table t = 0; t <= last && !list->count && !list->failed; t++)
		find_exact(&m, t);
}

/* ---- demangled and globs ---- */

/* True if one of the suffixes that compilers append with a dot is this one: f.cold, f.cold.0. */
static bool has_suffix(const char *name, size_t len, const char *suffix)
{
	size_t want = strlen(suffix);
	const char *at = name, *end = name + len;

	while ((at = memmem(at, (size_t)(end - at), suffix, want))) {
		at += want;
		if (at == end || *at == '.')
			return true;
	}
	return false;
}

/* A fragment that the compiler moved away: code jumps into it, so hooking it counts no calls. */
static bool is_fragment(const char *name, size_t len)
{
	return memchr(name, '.', len) &&
	       (has_suffix(name, len, ".cold") || has_suffix(name, len, ".warm"));
}

/* The rest of a function after its inlined beginning, which is called from the function. */
static bool is_part(const char *name, size_t len)
{
	return has_suffix(name, len, ".part");
}

static bool is_equal(const struct matcher *m, const char *text)
{
	if (m->versions)
		return symbol_is_version(m->name, text);
	if (!m->glob)
		return strcmp(m->name, text) == 0;
	return glob_match(m->name, text) || (m->bracketed && glob_match(m->bracketed, text));
}

static bool demangles_to(const struct matcher *m, const char *mangled, enum demangle_form form)
{
	char *text = demangle_name(mangled, form);
	bool equal = false;

	if (text) {
		equal = is_equal(m, text);
		if (!equal) {
			demangle_cut_parameters(text);
			equal = is_equal(m, text);
		}
	}
	free(text);
	return equal;
}

/* The return type is compared only where the pattern has a place for one: a blank or a star. */
static bool is_demangled_match(const struct matcher *m, const char *mangled)
{
	return demangles_to(m, mangled, DEMANGLE_NO_RETURN) ||
	       (strchr(m->name, ' ') && demangles_to(m, mangled, DEMANGLE_FULL));
}

static bool is_mangled_match(const struct matcher *m, const struct match *found)
{
	char name[1024];
	bool equal;
	char *copy;

	if (!found->name[found->name_len])
		return is_equal(m, found->name);
	if (found->name_len < sizeof(name)) {
		memcpy(name, found->name, found->name_len);
		name[found->name_len] = '\0';
		return is_equal(m, name);
	}
	copy = strndup(found->name, found->name_len);
	equal = copy && is_equal(m, copy);
	free(copy);
	return equal;
}

/* Demangling comes last: it costs more than everything before it. */
static bool is_match(const struct matcher *m, const struct match *found)
{
	if (m->mangled && is_mangled_match(m, found))
		return true;
	return m->demangled && demangle_is_mangled(found->name) &&
	       is_demangled_match(m, found->name);
}

static bool take_similar(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct matcher *m = ctx;
	struct match found;

	if (!image_is_function(m->img, sym, false))
		return true;
	describe(tab, i, sym, &found);
	if (!is_fragment(found.name, found.name_len) && version_fits(m->version, &found) &&
	    is_match(m, &found))
		list_add(m->list, &found);
	return !m->list->failed;
}

void match_demangled(struct image *img, const char *name, struct match_list *list)
{
	struct matcher m = { .img = img, .list = list, .name = name, .demangled = true };
	struct glob_literal required;
	size_t kept = 0;

	demangle_required(name, false, &required);
	scan_tables(&m, required.len ? required.text : NULL, take_similar, 0, TABLE_COUNT - 1);
	for (size_t i = 0; i < list->count; i++)
		if (!is_part(list->match[i].name, list->match[i].name_len))
			list->match[kept++] = list->match[i];
	list->count = kept;
}

static char *escape_brackets(const char *pattern)
{
	char *out, *to;

	if (!strchr(pattern, '['))
		return NULL;
	out = to = malloc(2 * strlen(pattern) + 1);
	for (; out && *pattern; pattern++) {
		if (*pattern == '\\' && pattern[1])
			*to++ = *pattern++;
		else if (*pattern == '[')
			*to++ = '\\';
		*to++ = *pattern;
	}
	if (out)
		*to = '\0';
	return out;
}

static void scan_for(struct matcher *m, const struct glob_literal *literal, bool mangled,
		     bool demangled)
{
	m->mangled = mangled;
	m->demangled = demangled;
	scan_tables(m, literal->len ? literal->text : NULL, take_similar, 0, TABLE_COUNT - 1);
}

void match_glob(struct image *img, const char *pattern, const struct match_version *version,
		struct match_list *list)
{
	struct matcher m = {
		.img = img, .list = list, .name = pattern, .version = version, .glob = true
	};
	struct glob_literal literal, word;

	m.bracketed = escape_brackets(pattern);
	glob_longest_literal(pattern, &literal);
	demangle_required(pattern, true, &word);
	if (strstr(pattern, "::")) {
		scan_for(&m, &word, false, true);
	} else if (!word.len || strcmp(word.text, literal.text) == 0) {
		scan_for(&m, &word, true, true);
	} else {
		scan_for(&m, &literal, true, false);
		scan_for(&m, &word, false, true);
	}
	free(m.bracketed);
}

void match_versions(struct image *img, const char *function, struct match_list *list)
{
	struct matcher m = { .img = img, .list = list, .name = function, .versions = true };
	struct glob_literal literal;

	glob_longest_literal(function, &literal);
	scan_for(&m, &literal, true, false);
}

/* ---- imports ---- */

struct import_query {
	const char *name, *version;
};

static bool take_import(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym)
{
	struct import_query *q = ctx;
	bool hidden;

	if (sym->st_shndx == SHN_UNDEF && strcmp(symtab_name(tab, sym), q->name) == 0)
		q->version = symtab_version(tab, i, &hidden);
	return !q->version;
}

const char *match_import(struct image *img, const char *name)
{
	const struct symtab *tab = image_table(img, TABLE_DYNSYM);
	struct import_query q = { .name = name };
	struct strset set;

	if (!tab || strset_exact(&set, tab, name))
		return NULL;
	symtab_scan(tab, &set, take_import, &q);
	strset_free(&set);
	return q.version;
}

/* ---- order ---- */

static int compare_names(const struct match *a, const struct match *b)
{
	if (a->local != b->local)
		return a->local ? 1 : -1;
	if (a->name_len != b->name_len)
		return a->name_len < b->name_len ? -1 : 1;
	return memcmp(a->name, b->name, a->name_len);
}

static int compare(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return compare_names(a, b);
}

void match_sort(struct match_list *list)
{
	size_t n = 0;

	if (!list->count)
		return;
	qsort(list->match, list->count, sizeof(*list->match), compare);
	for (size_t i = 0; i < list->count; i++) {
		struct match *last = n ? &list->match[n - 1] : NULL;

		if (!last || last->vaddr != list->match[i].vaddr) {
			list->match[n++] = list->match[i];
			continue;
		}
		last->size = last->size > list->match[i].size ? last->size : list->match[i].size;
		last->ifunc |= list->match[i].ifunc;
	}
	list->count = n;
}
