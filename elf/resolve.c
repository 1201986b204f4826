/* SPDX-License-Identifier: MIT */
#include "resolve.h"
#include "ifunc.h"
#include "match.h"
#include "recall.h"
#include "suggest.h"

#include <stdio.h>
#include <stdlib.h>

enum { INLINE_LOOKS = 4 }; /* modules whose DWARF is read for a hint */
struct resolver {
	struct module_space space;
	struct ifunc_reader ifunc;
	const struct resolve_request *req;
	struct module_list named; /* what MODULE matched */
	struct resolve_result *out;
	size_t cap;
	struct sb_err beyond; /* an IFUNC whose implementation is in no file, or unknown */
	struct sb_err why;    /* the most informative failure of a module */
	bool hints;	      /* the failure will be shown: search near names */
};

void resolve_free(struct resolve_result *res)
{
	for (size_t i = 0; i < res->count; i++) {
		image_put(res->site[i].img);
		free(res->site[i].name);
	}
	for (size_t i = 0; i < res->n_settle; i++) {
		image_put(res->settle[i].img);
		free(res->settle[i].name);
	}
	free(res->site);
	free(res->settle);
	*res = (struct resolve_result){ 0 };
}

/* ---- sites ---- */

static int no_memory(struct sb_err *err)
{
	return err_set(err, SB_ENOMEM, "no memory for the sites");
}

static char *site_name(const char *name, uint32_t offset)
{
	char *text;

	if (!offset)
		return strdup(name);
	return asprintf(&text, "%s+0x%x", name, offset) < 0 ? NULL : text;
}

static int add_site(struct resolver *r, const struct resolve_site *site, const char *name,
		    uint32_t offset, struct sb_err *err)
{
	struct resolve_result *out = r->out;
	struct resolve_site *s;

	if (out->count == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 8;
		struct resolve_site *more = realloc(out->site, cap * sizeof(*more));

		if (!more)
			return no_memory(err);
		out->site = more;
		r->cap = cap;
	}
	s = &out->site[out->count];
	*s = *site;
	s->name = site_name(name, offset);
	if (!s->name)
		return no_memory(err);
	image_ref(s->img);
	out->count++;
	return 0;
}

static bool is_code_mapped(const struct resolver *r, uint64_t addr)
{
	const struct map_entry *e = maps_find(r->space.maps, addr);

	return e && e->x;
}

/* An ordinary function at one of the module's places. */
static int add_function(struct resolver *r, const struct module *m, const struct symbol *sym,
			bool via_import, struct sb_err *err)
{
	struct resolve_site site = {
		.img = m->img, .bias = m->bias, .size = sym->size, .via_import = via_import
	};
	uint64_t start, end;

	site.func = sym->vaddr + m->bias;
	site.addr = site.func + sym->offset;
	if (!is_code_mapped(r, site.addr))
		return 0;
	if (!site.size && image_function_at(m->img, sym->vaddr, &start, &end))
		site.size = end - sym->vaddr;
	return add_site(r, &site, sym->name, sym->offset, err);
}

static int add_settle(struct resolver *r, const struct module *m, uint64_t vaddr, const char *name,
		      struct sb_err *err)
{
	struct resolve_result *out = r->out;
	struct resolve_site site = { .img = m->img, .bias = m->bias }, *more;
	uint64_t start, end;

	site.addr = site.func = vaddr + m->bias;
	for (size_t i = 0; i < out->n_settle; i++)
		if (out->settle[i].addr == site.addr)
			return 0;
	if (image_function_at(m->img, vaddr, &start, &end))
		site.size = end - vaddr;
	more = reallocarray(out->settle, out->n_settle + 1, sizeof(*more));
	if (!more)
		return no_memory(err);
	out->settle = more;
	site.name = strdup(name);
	if (!site.name)
		return no_memory(err);
	image_ref(m->img);
	more[out->n_settle++] = site;
	return 0;
}

/*
 * A place that the process passes as soon as a module's IFUNCs are settled: its initializer, which
 * the dynamic linker calls after relocation; in a static program the set-up of thread-local storage
 * is next, and the initializer is later.
 */
static int add_pending(struct resolver *r, const struct module *m, struct sb_err *err)
{
	static const char *const statics[] = { "__libc_setup_tls", "_init" };
	uint64_t vaddr;
	int ret = 0;

	r->out->ifunc_pending++;
	if (image_dynamic(m->img, DT_INIT, &vaddr))
		return add_settle(r, m, vaddr, "_init", err);
	for (size_t i = 0; i < 2 && !ret && !m->img->dynamic.bytes; i++) {
		struct match_list list = { 0 };

		match_exact(m->img, statics[i], NULL, TABLE_SYMTAB, &list);
		if (list.count)
			ret = add_settle(r, m, list.match[0].vaddr, statics[i], err);
		match_list_free(&list);
	}
	return ret;
}

/* The implementation of an IFUNC, which may be in another module than its name. */
static int add_implementation(struct resolver *r, const struct module *m, const struct symbol *sym,
			      bool via_import, struct sb_err *err)
{
	struct resolve_site site = { .via_import = via_import };
	struct module in;
	uint64_t addr, start, end;
	struct sb_err why = { 0 };
	char name[512];
	int ret;

	switch (ifunc_find(&r->ifunc, m, sym->vaddr, &addr, &why)) {
	case IFUNC_PENDING:
		return add_pending(r, m, err);
	case IFUNC_UNKNOWN:
		err_set(&r->beyond, SB_EREFUSED,
			"which implementation of %s is used cannot be "
			"known: %s",
			sym->name, why.what);
		return 0;
	case IFUNC_FOUND:
		break;
	}
	if (!module_at(&r->space, addr, &in, NULL)) {
		err_set(&r->beyond, SB_EREFUSED,
			"%s is implemented outside of every file (in the vDSO)", sym->name);
		return 0;
	}
	if (!image_is_entry(in.img, addr - in.bias)) {
		err_set(&r->beyond, SB_EREFUSED,
			"the process implements %s at 0x%llx, where no function of %s begins",
			sym->name, (unsigned long long)addr, image_name(in.img));
		image_put(in.img);
		return 0;
	}
	site.img = in.img;
	site.bias = in.bias;
	site.elsewhere = in.img != m->img;
	site.func = addr;
	site.addr = addr + sym->offset;
	if (image_function_at(in.img, addr - in.bias, &start, &end))
		site.size = end - (addr - in.bias);
	if (site.size && sym->offset >= site.size) {
		ret = err_set(err, SB_ENOSYMBOL,
			      "the implementation of '%s' of %s is shorter than 0x%x bytes",
			      sym->name, image_name(m->img), sym->offset);
		image_put(in.img);
		return ret;
	}
	if (!symbol_name_at(in.img, addr - in.bias, name, sizeof(name)) || strchr(name, '+'))
		snprintf(name, sizeof(name), "%s", sym->name);
	ret = add_site(r, &site, name, sym->offset, err);
	image_put(in.img);
	return ret;
}

static int add_symbols(struct resolver *r, const struct module *m, const struct symbol_list *list,
		       bool via_import, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < list->count; i++)
		ret = (list->sym[i].ifunc ? add_implementation : add_function)(r, m, &list->sym[i],
									       via_import, err);
	return ret;
}

static int compare_sites(const void *pa, const void *pb)
{
	const struct resolve_site *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->via_import - b->via_import;
}

static void sort_sites(struct resolve_result *out)
{
	size_t n = 0;

	if (!out->count)
		return;
	qsort(out->site, out->count, sizeof(*out->site), compare_sites);
	for (size_t i = 0; i < out->count; i++) {
		if (!n || out->site[n - 1].addr != out->site[i].addr) {
			out->site[n++] = out->site[i];
			continue;
		}
		image_put(out->site[i].img);
		free(out->site[i].name);
	}
	out->count = n;
}

/* ---- one module ---- */

/* Of several modules' failures the most informative one is shown. */
static int how_telling(enum sb_code code)
{
	static const int rank[SB_CODE_COUNT] = {
		[SB_ENOSYMBOL] = 1, [SB_ENOTFUNC] = 2, [SB_EAMBIGUOUS] = 3,
		[SB_ENOMEM] = 4,    [SB_ESPEC] = 4,
	};

	return rank[code];
}

/*
 * Near names are searched only once: with a module glob hundreds of files may lack the symbol, and
 * each search for near names reads a whole table.
 */
static int find_telling(struct resolver *r, struct image *img, struct symbol_list *list)
{
	bool first = r->hints && !r->why.code;
	struct sb_err err = { 0 };
	int ret = recall_find(img, r->req, list, first ? &err : NULL);

	if (!ret || how_telling((enum sb_code) - ret) <= how_telling(r->why.code))
		return ret;
	if (!err.code && r->hints)
		recall_find(img, r->req, list, &err);
	r->why = err;
	r->why.code = (enum sb_code) - ret;
	return ret;
}

static bool is_image_seen(const struct module_list *list, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (list->module[j].img == list->module[i].img)
			return true;
	return false;
}

/* Every place of one image gets the sites: dlmopen() maps a library several times. */
static int add_everywhere(struct resolver *r, const struct module_list *modules,
			  const struct symbol_list *list, bool via_import, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < modules->count; i++)
		if (modules->module[i].img == list->img)
			ret = add_symbols(r, &modules->module[i], list, via_import, err);
	return ret;
}

static int search_named(struct resolver *r, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < r->named.count; i++) {
		struct symbol_list list;

		if (is_image_seen(&r->named, i) || find_telling(r, r->named.module[i].img, &list))
			continue;
		ret = add_everywhere(r, &r->named, &list, false, err);
		symbol_list_free(&list);
	}
	return ret;
}

/* ---- imports ---- */

/* SYMBOL without its version and offset, for queries of one exact name. */
static void base_name(const struct resolve_request *req, char *name, size_t size)
{
	size_t len = strcspn(req->symbol, "@");
	const char *plus = memrchr(req->symbol, '+', len);

	if (plus && plus != req->symbol && strncmp(plus, "+0x", 3) == 0)
		len = (size_t)(plus - req->symbol);
	snprintf(name, size, "%.*s", (int)(len < size ? len : size - 1), req->symbol);
}

/* The definition that an import refers to: of its version, unless the user named one. */
static int find_definition(const struct resolver *r, struct image *img, const char *name,
			   const char *version, struct symbol_list *list)
{
	const char *rest = r->req->symbol + strlen(name);
	char pattern[600];

	if (*rest != '@' && *version) {
		snprintf(pattern, sizeof(pattern), "%s@%s%s", name, version, rest);
		if (symbol_find(img, pattern, SYMBOL_LITERAL, list, NULL) == 0)
			return 0;
	}
	return symbol_find(img, r->req->symbol, SYMBOL_LITERAL, list, NULL);
}

static const char *show_name(const struct image *img)
{
	const char *soname = image_soname(img);

	return *soname ? soname : module_file_name(image_name(img));
}

static int search_definer(struct resolver *r, const struct image *importer, const char *name,
			  const char *version, struct sb_err *err)
{
	struct module_list all;
	int ret = module_find(&r->space, NULL, &all, err);

	for (size_t i = 0; !ret && i < all.count; i++) {
		struct image *img = all.module[i].img;
		struct symbol_list list;

		if (img == importer || is_image_seen(&all, i) || !symbol_is_defined(img, name) ||
		    find_definition(r, img, name, version, &list))
			continue;
		ret = add_everywhere(r, &all, &list, true, err);
		symbol_list_free(&list);
		snprintf(r->out->note, sizeof(r->out->note), "%.100s is defined in %.120s", name,
			 show_name(img));
		break;
	}
	module_list_free(&all);
	return ret;
}

static int search_imports(struct resolver *r, struct sb_err *err)
{
	char name[512];
	int ret = 0;

	if (r->req->kind == RESOLVE_LINE)
		return 0;
	base_name(r->req, name, sizeof(name));
	for (size_t i = 0; !ret && i < r->named.count && !r->out->count && !r->out->ifunc_pending;
	     i++) {
		struct image *img = r->named.module[i].img;
		const char *version = match_import(img, name);

		if (version)
			ret = search_definer(r, img, name, version, err);
	}
	return ret;
}

/* ---- hints ---- */

static bool is_named(const struct resolver *r, const struct image *img)
{
	for (size_t i = 0; i < r->named.count; i++)
		if (r->named.module[i].img == img)
			return true;
	return false;
}

/* A pattern for several modules: the failure applies to all of them. */
static void none_has(struct resolver *r, struct sb_err *err)
{
	struct image **img = calloc(r->named.count, sizeof(*img));
	char near[256] = "";
	size_t n = 0;

	for (size_t i = 0; img && i < r->named.count; i++)
		if (!is_image_seen(&r->named, i))
			img[n++] = r->named.module[i].img;
	if (n > 1 && err) {
		*err = (struct sb_err){ 0 };
		err_set(err, SB_ENOSYMBOL,
			"none of the %zu modules that match '%s' has a function '%s'", n,
			r->req->module, r->req->symbol);
		symbol_suggest(img, n, r->req->symbol, near, sizeof(near));
		if (*near)
			err_hint(err, "%s", near);
	}
	free(img);
}

/* "'x' is defined in a, b" of other modules that are mapped; false if there is none. */
static bool hint_definers(struct resolver *r, const struct module_list *all, struct sb_err *err)
{
	char name[512], text[200] = "";
	size_t used = 0, found = 0;

	if (r->req->kind == RESOLVE_LINE)
		return false;
	base_name(r->req, name, sizeof(name));
	for (size_t i = 0; i < all->count && found < 3 && used < sizeof(text); i++) {
		struct image *img = all->module[i].img;

		if (is_image_seen(all, i) || is_named(r, img) || !symbol_is_defined(img, name))
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 found++ ? ", " : "", show_name(img));
	}
	if (found)
		err_hint(err, "'%.100s' is defined in %s", name, text);
	return found;
}

static void hint_modules(struct resolver *r, const struct module_list *all, struct sb_err *err)
{
	const char *want = module_file_name(r->req->module);
	struct suggester near;
	char text[256];

	if (!suggest_init(&near, want, strcspn(want, "*?")))
		return;
	for (size_t i = 0; i < all->count; i++) {
		const char *name = module_file_name(all->module[i].map->path);

		suggest_offer(&near, name, strlen(name));
	}
	suggest_print(&near, text, sizeof(text));
	if (*text)
		err_hint(err, "%s", text);
}

/* A function that the compiler has inlined everywhere is no symbol of any module. */
static bool hint_inlined(struct resolver *r, struct sb_err *err)
{
	size_t n = 0;

	if (!err || r->req->kind == RESOLVE_LINE || r->req->inlined ||
	    glob_is_pattern(r->req->symbol))
		return false;
	for (size_t i = 0; i < r->named.count && i < INLINE_LOOKS; i++)
		if (!is_image_seen(&r->named, i))
			n += symbol_count_inlined(r->named.module[i].img, r->req->symbol);
	if (n)
		symbol_hint_inlined(n, err);
	return n;
}

/* Where the symbol is instead, or a similarly named module. Reads every module. */
static void hint(struct resolver *r, bool about_module, struct sb_err *err)
{
	struct module_list all;

	if (!err || module_find(&r->space, NULL, &all, NULL))
		return;
	if (!hint_definers(r, &all, err) && about_module)
		hint_modules(r, &all, err);
	module_list_free(&all);
}

/* ---- the whole ---- */

/* An interpreter may be linked into the executable: then libpython* names the executable. */
static int find_python_executable(struct resolver *r, struct sb_err *err)
{
	struct image *img;
	int ret;

	if (strncmp(module_file_name(r->req->module), "libpython", 9) != 0)
		return 0;
	ret = module_find(&r->space, "", &r->named, err);
	if (ret || !r->named.count)
		return ret;
	img = r->named.module[0].img;
	if (!symbol_is_defined(img, "Py_BytesMain") &&
	    !symbol_is_defined(img, "_PyEval_EvalFrameDefault"))
		module_list_free(&r->named);
	return 0;
}

static int fail(struct resolver *r, struct sb_err *err)
{
	if (r->beyond.code) {
		if (err && !err->code)
			*err = r->beyond;
		return -(int)r->beyond.code;
	}
	if (!r->why.code)
		return err_set(err, SB_ENOSYMBOL, "'%s' of %s is not mapped as code",
			       r->req->symbol, image_name(r->named.module[0].img));
	if (err && !err->code)
		*err = r->why;
	if (r->why.code == SB_ENOSYMBOL && r->req->kind != RESOLVE_LINE)
		none_has(r, err);
	if (r->why.code == SB_ENOSYMBOL && !hint_inlined(r, err))
		hint(r, false, err);
	return -(int)r->why.code;
}

static int search(struct resolver *r, struct sb_err *err)
{
	struct resolve_result *out = r->out;
	int ret = search_named(r, err);

	if (!ret && !out->count && !out->ifunc_pending && !r->beyond.code)
		ret = search_imports(r, err);
	if (ret)
		return ret;
	if (!out->count && !out->ifunc_pending)
		return fail(r, err);
	sort_sites(out);
	return 0;
}

/* Data of a file that changed while it was read is discarded. */
static int check_flaws(const struct resolver *r, struct sb_err *err)
{
	for (size_t i = 0; i < r->named.count; i++)
		if (image_flaw(r->named.module[i].img))
			return image_refuse(r->named.module[i].img, err);
	for (size_t i = 0; i < r->out->count; i++)
		if (image_flaw(r->out->site[i].img))
			return image_refuse(r->out->site[i].img, err);
	return 0;
}

int resolve_target(pid_t pid, const struct maps *maps, const struct resolve_request *req,
		   const struct resolve_access *access, struct resolve_result *out,
		   struct sb_err *err)
{
	struct resolver r = { .space = { pid, maps, access ? access->cache : NULL },
			      .req = req,
			      .out = out,
			      .hints = err };
	size_t modules;
	int ret, flawed;

	*out = (struct resolve_result){ 0 };
	r.ifunc = (struct ifunc_reader){ &r.space, access };
	ret = module_find(&r.space, req->module, &r.named, err);
	if (!ret && !r.named.count)
		ret = find_python_executable(&r, err);
	if (!ret && !r.named.count && module_is_vdso(req->module))
		ret = err_set(err, SB_EREFUSED,
			      "the vDSO is the kernel's, not a file's, and cannot be hooked");
	out->modules = modules = r.named.count;
	if (!ret && r.named.count)
		ret = search(&r, err);
	else if (!ret)
		hint(&r, true, err);
	flawed = check_flaws(&r, err);
	ret = flawed ? flawed : ret;
	module_list_free(&r.named);
	if (ret)
		resolve_free(out);
	out->modules = modules;
	return ret;
}
