/* SPDX-License-Identifier: MIT */
/* Opening and sharing. describe.c reads the headers. */
#include "image-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "soname.h"
#include "src/base/caps.h"
#include "src/base/inroot.h"

static struct image *images;

/* ---- open and share ---- */

void images_abandon(void)
{
	images = NULL;
}

static bool is_same_file(const struct image *img, const struct stat *st)
{
	return img->ino == st->st_ino && img->dev == st->st_dev &&
	       img->view.size == (size_t)st->st_size && img->mtime.tv_sec == st->st_mtim.tv_sec &&
	       img->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

const char *image_flaw(const struct image *img)
{
	if (img->map.torn || img->debug.map.torn)
		return "it was truncated while it was read";
	if (img->flaw)
		return img->flaw;
	return img->budget.over ? "reading it takes longer than 10 s" : NULL;
}

int image_refuse(const struct image *img, struct sb_err *err)
{
	if (err)
		*err = (struct sb_err){ 0 };
	return err_set(err, SB_ENOELF, "%s: %s", img->name, image_flaw(img));
}

static struct image *find_open(const struct stat *st)
{
	for (struct image *img = images; img; img = img->next)
		if (is_same_file(img, st) && !image_flaw(img))
			return img;
	return NULL;
}

static void image_free(struct image *img)
{
	image_func_free(img);
	free(img->kept_rules);
	free(img->inlined);
	for (int t = 0; t < TABLE_COUNT; t++)
		names_free(&img->names[t]);
	debugfile_close(&img->debug);
	gotab_free(&img->gotab);
	mapping_close(&img->map);
	if (img->fd >= 0)
		close(img->fd);
	if (img->debug_fd >= 0)
		close(img->debug_fd);
	free(img->load);
	free(img->root);
	free(img->name);
	free(img);
}

struct image *image_ref(struct image *img)
{
	img->refs++;
	return img;
}

void image_put(struct image *img)
{
	if (!img || --img->refs)
		return;
	for (struct image **at = &images; *at; at = &(*at)->next) {
		if (*at == img) {
			*at = img->next;
			break;
		}
	}
	image_free(img);
}

static int damaged(const struct image *img, struct sb_err *err)
{
	return err_set(err, SB_ENOELF, "%s: damaged program headers", img->name);
}

/* One PT_LOAD: inside the file, and above the one before it, as the kernel requires. */
static int take_load(struct image *img, const Elf64_Phdr *ph, struct sb_err *err)
{
	struct image_load *prev = img->load_count ? &img->load[img->load_count - 1] : NULL;

	if (!view_slice(&img->view, ph->p_offset, ph->p_filesz).bytes)
		return err_set(err, SB_ENOELF, "%s: truncated: a segment is not all there",
			       img->name);
	if (ph->p_filesz > ph->p_memsz || ph->p_vaddr > UINT64_MAX - ph->p_memsz ||
	    ph->p_vaddr + ph->p_memsz > 1ull << 56 ||
	    (prev && ph->p_vaddr < prev->vaddr + prev->filesz))
		return damaged(img, err);
	img->loaded += ph->p_filesz;
	img->executed += ph->p_flags & PF_X ? ph->p_filesz : 0;
	if (img->loaded > BUDGET_LOAD || img->executed > BUDGET_TEXT)
		return err_set(err, SB_ENOELF,
			       "%s: it is larger than sbinject reads (%llu MB, %llu MB of code)",
			       img->name, BUDGET_LOAD >> 20, BUDGET_TEXT >> 20);
	if (!img->load) /* allocated for all headers by the caller */
		return damaged(img, err);
	img->load[img->load_count++] = (struct image_load){
		.vaddr = ph->p_vaddr,
		.offset = ph->p_offset,
		.filesz = ph->p_filesz,
		.memsz = ph->p_memsz,
		.flags = ph->p_flags,
	};
	return 0;
}

static int read_loads(struct image *img, struct sb_err *err)
{
	Elf64_Phdr ph;
	int ret = 0;

	if (img->view.type != ET_DYN && img->view.type != ET_EXEC)
		return err_set(err, SB_ENOELF, "%s: neither a program nor a shared library",
			       img->name);
	img->load = calloc(img->view.phnum ? img->view.phnum : 1, sizeof(*img->load));
	if (!img->load)
		return err_set(err, SB_ENOMEM, "%s: no memory", img->name);
	for (uint32_t i = 0; !ret && view_phdr(&img->view, i, &ph); i++)
		if (ph.p_type == PT_LOAD)
			ret = take_load(img, &ph, err);
	if (!ret && !img->load_count)
		ret = err_set(err, SB_ENOELF, "%s: has no segments to load", img->name);
	return ret;
}

/* Maps fd's file into img. */
static int map_file(struct image *img, int fd, const struct stat *st, struct sb_err *err)
{
	if (!S_ISREG(st->st_mode) || st->st_size < (off_t)sizeof(Elf64_Ehdr))
		return err_set(err, SB_ENOELF, "%s: not an ELF file", img->name);
	if (!mapping_open(&img->map, fd, (size_t)st->st_size))
		return err_sys(err, SB_EFILE, "%s: cannot map it", img->name);
	img->dev = st->st_dev;
	img->ino = st->st_ino;
	img->uid = st->st_uid;
	img->mtime = st->st_mtim;
	return view_open(&img->view, img->map.base, img->map.size, img->name, err);
}

static int image_new(int fd, const struct stat *st, const char *name, const char *root,
		     struct image **out, struct sb_err *err)
{
	struct image *img = calloc(1, sizeof(*img));
	int ret;

	if (!img)
		return err_set(err, SB_ENOMEM, "%s: no memory", name);
	img->refs = 1;
	img->debug_fd = -1;
	img->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	img->name = strdup(name);
	img->root = strdup(root);
	ret = img->name && img->root ? map_file(img, fd, st, err) :
				       err_set(err, SB_ENOMEM, "%s: no memory", name);
	if (!ret)
		ret = read_loads(img, err);
	if (!ret)
		ret = image_describe(img, err);
	if (image_flaw(img))
		ret = image_refuse(img, err);
	if (ret) {
		image_free(img);
		return ret;
	}
	soname_keep(st, img->soname);
	img->next = images;
	images = img;
	*out = img;
	return 0;
}

int image_get_open(int fd, const char *name, const char *root, struct image **out,
		   struct sb_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, SB_EFILE, "%s", name);
	*out = find_open(&st);
	if (!*out)
		return image_new(fd, &st, name, root, out, err);
	(*out)->refs++;
	return 0;
}

static int take_open(int fd, const char *name, const char *root, struct image **out,
		     struct sb_err *err)
{
	int ret;

	*out = NULL;
	if (fd < 0 && errno == ENOEXEC)
		return err_set(err, SB_ENOELF, "%s: not a regular file", name);
	if (fd < 0)
		return err_sys(err, SB_EFILE, "%s", name);
	ret = image_get_open(fd, name, root, out, err);
	close(fd);
	return ret;
}

int image_get(const char *open_path, const char *name, struct image **out, struct sb_err *err)
{
	return take_open(inroot_open("", open_path), name, "", out, err);
}

int image_of_exe(pid_t pid, struct image **out, struct sb_err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", maps_face(pid));
	return take_open(inroot_open(INROOT_PROC, path), path, "", out, err);
}

/* Always the mapped file itself, but only for CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
static const char *map_file_path(pid_t pid, const struct map_entry *map, char *path, size_t size)
{
	snprintf(path, size, "/proc/%d/map_files/%lx-%lx", pid, (unsigned long)map->start,
		 (unsigned long)map->end);
	return path;
}

/*
 * Overlay and btrfs show other numbers in maps than in stat(): there only the path identifies it.
 */
static bool is_mapped_inode(int fd, const struct map_entry *map)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_ino == map->inode || !map->deleted);
}

static int open_by_path(pid_t pid, const char *root, const struct map_entry *map, int *fd,
			struct sb_err *err)
{
	if (map->path[0] != '/')
		return err_set(err, SB_EFILE, "%s: not a file", map->path);
	*fd = inroot_open(root, map->path);
	if (*fd < 0 && errno != ENOENT)
		return 0;
	if (is_mapped_inode(*fd, map))
		return 0;
	if (*fd >= 0)
		close(*fd);
	err_set(err, SB_EFILE, "%s was deleted or replaced since it was loaded", map->path);
	if (err && err->code == SB_EFILE)
		err_hint(err, "root can still read it through /proc/%d/map_files", pid);
	return -SB_EFILE;
}

int image_of_map(pid_t pid, const struct map_entry *map, struct image **out, struct sb_err *err)
{
	char root[32], path[64];
	int fd, ret = 0;

	*out = NULL;
	pid = maps_face(pid);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	fd = inroot_open(INROOT_PROC, map_file_path(pid, map, path, sizeof(path)));
	if (fd < 0 && errno != ENOEXEC)
		ret = open_by_path(pid, root, map, &fd, err);
	return ret < 0 ? ret : take_open(fd, map->path, root, out, err);
}

int image_of_ended(const struct map_entry *map, struct image **out, struct sb_err *err)
{
	struct stat st;
	int fd = inroot_open("", map->path);

	*out = NULL;
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != map->inode ||
			(major(st.st_dev) << 20 | minor(st.st_dev)) != map->dev)) {
		close(fd);
		return err_set(err, SB_EFILE, "%s is not the file that was loaded", map->path);
	}
	return take_open(fd, map->path, "", out, err);
}

const char *image_soname_of_map(pid_t pid, const struct map_entry *map)
{
	char root[32], path[64];
	struct stat st;
	int fd;
	bool ok;

	pid = maps_face(pid);
	if (CAPS(stat(map_file_path(pid, map, path, sizeof(path)), &st)) == 0)
		return soname_known(&st);
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	fd = map->path[0] == '/' ? inroot_find(root, map->path) : -1;
	ok = is_mapped_inode(fd, map) && fstat(fd, &st) == 0;
	if (fd >= 0)
		close(fd);
	return ok ? soname_known(&st) : NULL;
}

/* ---- the file itself ---- */

bool image_own_path(const struct image *img, char *buf, size_t size)
{
	char self[32];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	if (img->fd < 0 || n <= 0)
		return false;
	self[n] = '\0';
	return (size_t)snprintf(buf, size, "/proc/%s/fd/%d", self, img->fd) < size;
}

/*
 * Overlay and btrfs show other numbers there than stat() does: sbinject's own mapping of it is
 * used.
 */
bool image_mapped_as(struct image *img, uint32_t *dev, uint64_t *inode)
{
	const struct map_entry *e;
	struct maps maps;

	if (!img->map_ino && maps_read(getpid(), &maps, NULL) == 0) {
		e = maps_find(&maps, (uint64_t)(uintptr_t)img->view.base);
		img->map_dev = e ? e->dev : 0;
		img->map_ino = e ? e->inode : 0;
		maps_free(&maps);
	}
	*dev = img->map_dev;
	*inode = img->map_ino;
	return img->map_ino;
}

void image_done_reading(struct image *img)
{
	view_forget(img->view.base, img->view.base + img->view.size);
}

/* ---- properties ---- */

const char *image_name(const struct image *img)
{
	return img->name;
}

const char *image_soname(const struct image *img)
{
	return img->soname;
}

const char *image_build_id(const struct image *img)
{
	return img->build_id;
}

const char *image_interp(const struct image *img)
{
	return img->interp;
}

bool image_has_textrel(const struct image *img)
{
	return img->textrel;
}

bool image_is_pic(const struct image *img)
{
	return img->view.type == ET_DYN;
}

bool image_is_go(const struct image *img)
{
	return img->go;
}

uint64_t image_entry(const struct image *img)
{
	return img->view.entry;
}
