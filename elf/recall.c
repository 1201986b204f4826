/* SPDX-License-Identifier: MIT */
#include "recall.h"
#include "image-priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BUCKETS = 1024, MOST_ENTRIES = 1 << 16, MOST_SYMBOLS = 1 << 20 };

struct file_id {
	uint64_t dev, ino, size;
	int64_t mtime, mtime_ns, ctime, ctime_ns;
};

struct finding {
	struct finding *next;
	struct file_id file;
	enum resolve_kind kind;
	unsigned int line;
	bool versions;
	char *symbol;
	int ret;
	struct symbol *sym;
	size_t count;
};

static struct finding *bucket[BUCKETS];
static size_t entries, symbols;

static bool identify(const struct image *img, struct file_id *id)
{
	struct stat st;

	if (img->fd < 0 || fstat(img->fd, &st) < 0)
		return false;
	memset(id, 0, sizeof(*id));
	*id = (struct file_id){ .dev = st.st_dev,
				.ino = st.st_ino,
				.size = (uint64_t)st.st_size,
				.mtime = st.st_mtim.tv_sec,
				.mtime_ns = st.st_mtim.tv_nsec,
				.ctime = st.st_ctim.tv_sec,
				.ctime_ns = st.st_ctim.tv_nsec };
	/* The image may be older than a change. */
	return img->view.size == id->size && img->mtime.tv_sec == id->mtime &&
	       img->mtime.tv_nsec == id->mtime_ns;
}

static struct finding **bucket_of(const struct file_id *file, const struct resolve_request *req)
{
	uint32_t hash = 2166136261u ^ (uint32_t)file->ino;

	for (const char *c = req->symbol; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	return &bucket[hash % BUCKETS];
}

static struct finding *look_up(const struct file_id *file, const struct resolve_request *req)
{
	struct finding *f = *bucket_of(file, req);

	while (f && (memcmp(&f->file, file, sizeof(*file)) != 0 || f->kind != req->kind ||
		     f->line != req->line || f->versions != req->versions ||
		     strcmp(f->symbol, req->symbol) != 0))
		f = f->next;
	return f;
}

static void finding_free(struct finding *f)
{
	for (size_t i = 0; f->sym && i < f->count; i++)
		free(f->sym[i].name);
	free(f->sym);
	free(f->symbol);
	free(f);
}

static void forget_all(void)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (bucket[i]) {
			struct finding *f = bucket[i];

			bucket[i] = f->next;
			finding_free(f);
		}
	}
	entries = symbols = 0;
}

/* False: no memory. */
static bool copy_symbols(const struct symbol *from, size_t count, struct symbol **to)
{
	*to = calloc(count + 1, sizeof(**to));
	for (size_t i = 0; *to && i < count; i++) {
		(*to)[i] = from[i];
		(*to)[i].name = strdup(from[i].name);
		if ((*to)[i].name)
			continue;
		while (i--)
			free((*to)[i].name);
		free(*to);
		*to = NULL;
	}
	return *to != NULL;
}

static void remember(const struct file_id *file, const struct resolve_request *req, int ret,
		     const struct symbol_list *list)
{
	size_t count = ret ? 0 : list->count;
	struct finding *f, **at;

	if (count > MOST_SYMBOLS)
		return;
	if (entries >= MOST_ENTRIES || symbols + count > MOST_SYMBOLS)
		forget_all();
	f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->file = *file;
	f->kind = req->kind;
	f->line = req->line;
	f->versions = req->versions;
	f->ret = ret;
	f->symbol = strdup(req->symbol);
	if (!f->symbol || !copy_symbols(ret ? NULL : list->sym, count, &f->sym)) {
		finding_free(f);
		return;
	}
	f->count = count;
	at = bucket_of(file, req);
	f->next = *at;
	*at = f;
	entries++;
	symbols += count;
}

static int search(struct image *img, const struct resolve_request *req, struct symbol_list *list,
		  struct sb_err *err)
{
	unsigned int flags = (req->kind == RESOLVE_LITERAL ? SYMBOL_LITERAL : 0) |
			     (req->versions ? SYMBOL_VERSIONS : 0);

	if (req->kind == RESOLVE_LINE)
		return symbol_find_line(img, req->symbol, req->line, list, err);
	return (req->inlined ? symbol_find_everywhere : symbol_find)(img, req->symbol, flags, list,
								     err);
}

/* Results that do not depend on the file itself are not kept. */
static bool is_answer(const struct image *img, int ret)
{
	return !image_flaw(img) &&
	       (ret == 0 || ret == -SB_ENOSYMBOL || ret == -SB_ENOTFUNC || ret == -SB_EAMBIGUOUS);
}

int recall_find(struct image *img, const struct resolve_request *req, struct symbol_list *list,
		struct sb_err *err)
{
	struct file_id file;
	bool known = !req->inlined && identify(img, &file);
	const struct finding *f = known ? look_up(&file, req) : NULL;
	int ret;

	*list = (struct symbol_list){ 0 };
	if (f && f->ret && !err)
		return f->ret;
	if (f && !f->ret && copy_symbols(f->sym, f->count, &list->sym)) {
		list->count = f->count;
		list->img = image_ref(img);
		return 0;
	}
	ret = search(img, req, list, err);
	if (known && !f && is_answer(img, ret))
		remember(&file, req, ret, list);
	return ret;
}
