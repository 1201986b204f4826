/* SPDX-License-Identifier: MIT */
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "src/base/caps.h"
#include "src/base/inroot.h"

/* What to search for. */
struct wanted {
	const struct module_space *space;
	const char *pattern; /* NULL: every module */
	bool by_path;	     /* the pattern contains a '/' */
	char exe[4096];	     /* the main executable's path, "" unknown */
	struct stat file;    /* of the main executable, or of the path in the pattern */
	bool has_file;
};

const char *module_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* stat() of a path as the target sees it. */
static bool stat_in_root(pid_t pid, const char *path, struct stat *st)
{
	char root[32];
	int fd;
	bool ok;

	snprintf(root, sizeof(root), "/proc/%d/root", maps_face(pid));
	fd = inroot_find(root, path);
	if (fd < 0)
		return false;
	ok = fstat(fd, st) == 0;
	close(fd);
	return ok;
}

static bool is_mapping_of(const struct map_entry *e, const struct stat *st)
{
	return e->inode == st->st_ino &&
	       e->dev == (uint32_t)(major(st->st_dev) << 20 | minor(st->st_dev));
}

/* Overlay and btrfs show a device in maps that stat() does not: then a second stat() decides. */
static bool is_same_file(const struct wanted *w, const struct map_entry *e)
{
	struct stat st;

	if (is_mapping_of(e, &w->file))
		return true;
	return e->inode == w->file.st_ino && !e->deleted &&
	       stat_in_root(w->space->pid, e->path, &st) && st.st_ino == w->file.st_ino &&
	       st.st_dev == w->file.st_dev;
}

static void wanted_exe(struct wanted *w)
{
	static const char gone[] = " (deleted)";
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", maps_face(w->space->pid));
	n = CAPS(readlink(link, w->exe, sizeof(w->exe) - 1));
	w->exe[n > 0 ? n : 0] = '\0';
	if (n > (ssize_t)sizeof(gone) && !strcmp(w->exe + n - (sizeof(gone) - 1), gone))
		w->exe[n - (ssize_t)(sizeof(gone) - 1)] = '\0';
	w->has_file = CAPS(stat(link, &w->file)) == 0;
}

static void wanted_init(struct wanted *w, const struct module_space *space, const char *pattern)
{
	*w = (struct wanted){ .space = space, .pattern = pattern };
	if (!pattern)
		return;
	w->by_path = strchr(pattern, '/');
	if (!*pattern)
		wanted_exe(w);
	else if (*pattern == '/')
		w->has_file = stat_in_root(space->pid, pattern, &w->file);
}

static bool is_soname(const char *module, const char *soname)
{
	return *soname && (strcmp(module, soname) == 0 || glob_match(module, soname));
}

bool resolve_module_matches(const char *module, const char *path, struct image *img)
{
	const char *name = module_file_name(path), *soname = img ? image_soname(img) : "";

	if (!*module)
		return false;
	if (strchr(module, '/'))
		return strcmp(module, path) == 0 || glob_match(module, path);
	return strcmp(module, name) == 0 || glob_match(module, name) || is_soname(module, soname);
}

static bool is_wanted(const struct wanted *w, const struct map_entry *e)
{
	if (!w->pattern)
		return true;
	if (w->has_file && is_same_file(w, e))
		return true;
	if (!*w->pattern)
		return strcmp(w->exe, e->path) == 0;
	return resolve_module_matches(w->pattern, e->path, NULL);
}

/* ---- the list ---- */

void module_list_free(struct module_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		image_put(list->module[i].img);
	free(list->module);
	*list = (struct module_list){ 0 };
}

static bool is_listed(const struct module_list *list, const struct image *img, uint64_t bias)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->module[i].img == img && list->module[i].bias == bias)
			return true;
	return false;
}

/* Takes over the reference to img, also where it fails. */
static int list_add(struct module_list *list, const struct map_entry *e, struct image *img,
		    struct sb_err *err)
{
	uint64_t bias;

	if (!image_bias(img, e, &bias) || is_listed(list, img, bias)) {
		image_put(img);
		return 0;
	}
	if (list->count == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		struct module *more = realloc(list->module, cap * sizeof(*more));

		if (!more) {
			image_put(img);
			return err_set(err, SB_ENOMEM, "no memory for the modules");
		}
		list->module = more;
		list->cap = cap;
	}
	list->module[list->count++] = (struct module){ e, img, bias };
	return 0;
}

/*
 * Programs that put their text on huge pages replace its mapping by anonymous memory; the file's
 * other mappings still show where it is. Only the next few mappings are searched.
 */
static bool lost_its_text(const struct maps *maps, const struct map_entry *e)
{
	const struct map_entry *last = maps->entry + maps->count;

	if (e->offset != 0 || e->x)
		return false;
	for (const struct map_entry *next = e + 1; next < last && next - e < 8; next++)
		if (next->x && next->inode == 0 && !*next->path)
			return true;
	return false;
}

static bool is_code_of_file(const struct maps *maps, const struct map_entry *e)
{
	return e->path[0] == '/' && e->inode && (e->x || lost_its_text(maps, e));
}

static bool is_text_mapped(const struct maps *maps, const struct image *img, uint64_t bias)
{
	struct image_segment text;
	const struct map_entry *e;

	if (!image_text(img, &text, 1))
		return false;
	e = maps_find(maps, text.vaddr + bias);
	return e && e->x;
}

struct resolve_cache {
	const struct maps *maps;
	struct image **img; /* by entry of the maps, counted; NULL: not opened yet */
};

struct resolve_cache *resolve_cache_new(const struct maps *maps)
{
	struct resolve_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->maps = maps;
	cache->img = calloc(maps->count + 1, sizeof(struct image *));
	if (cache->img)
		return cache;
	free(cache);
	return NULL;
}

void resolve_cache_free(struct resolve_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->maps->count; i++)
		image_put(cache->img[i]);
	free(cache->img);
	free(cache);
}

static int open_mapped(const struct module_space *space, const struct map_entry *e,
		       struct image **out, struct sb_err *err)
{
	struct image **kept = NULL;
	int ret;

	if (space->cache && space->cache->maps == space->maps)
		kept = &space->cache->img[e - space->maps->entry];
	if (kept && *kept) {
		*out = image_ref(*kept);
		return 0;
	}
	ret = image_of_map(space->pid, e, out, err);
	if (ret == 0 && kept)
		*kept = image_ref(*out);
	return ret;
}

/* A file of another name that was opened before, and whose soname is another one, too. */
static bool is_known_otherwise(const struct wanted *w, const struct map_entry *e)
{
	const char *soname = image_soname_of_map(w->space->pid, e);

	return soname && !is_soname(w->pattern, soname);
}

/* Examines one mapping; an error only where it was named and cannot be opened. */
static int consider(const struct wanted *w, const struct map_entry *e, struct module_list *list,
		    struct sb_err *err)
{
	bool named = is_wanted(w, e);
	struct sb_err why = { 0 };
	struct image *img;
	uint64_t bias;
	int ret;

	if (!named && (w->by_path || !*w->pattern || is_known_otherwise(w, e)))
		return 0;
	ret = open_mapped(w->space, e, &img, &why);
	if (ret) {
		if (!named || !w->pattern)
			return 0;
		if (err && !err->code)
			*err = why;
		return ret;
	}
	if (!named)
		named = resolve_module_matches(w->pattern, e->path, img);
	/* A mapping only for reading (a debugger's view of a file) has no text in place. */
	if (named && !e->x)
		named = image_bias(img, e, &bias) && is_text_mapped(w->space->maps, img, bias);
	if (named)
		return list_add(list, e, img, err);
	image_put(img);
	return 0;
}

int module_find(const struct module_space *space, const char *pattern, struct module_list *list,
		struct sb_err *err)
{
	struct sb_err first = { 0 };
	struct wanted w;
	int ret = 0;

	*list = (struct module_list){ 0 };
	wanted_init(&w, space, pattern);
	for (size_t i = 0; i < space->maps->count; i++) {
		const struct map_entry *e = &space->maps->entry[i];
		int failed;

		if (!is_code_of_file(space->maps, e))
			continue;
		failed = consider(&w, e, list, &first);
		ret = ret ? ret : failed;
		if (failed == -SB_ENOMEM)
			break;
	}
	if (ret && (!list->count || ret == -SB_ENOMEM)) {
		module_list_free(list);
		if (err && !err->code)
			*err = first;
		return ret;
	}
	return 0;
}

bool module_at(const struct module_space *space, uint64_t addr, struct module *m,
	       struct sb_err *err)
{
	const struct map_entry *e = maps_find(space->maps, addr);

	if (!e || e->path[0] != '/' || open_mapped(space, e, &m->img, err))
		return false;
	m->map = e;
	if (image_bias(m->img, e, &m->bias))
		return true;
	image_put(m->img);
	return false;
}

bool module_is_vdso(const char *module)
{
	return strcmp(module, "[vdso]") == 0 || strncmp(module, "linux-vdso.so", 13) == 0;
}
