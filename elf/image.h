/* SPDX-License-Identifier: MIT */
#ifndef SB_IMAGE_H
#define SB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/base/err.h"
#include "src/base/maps.h"

/*
 * An ELF file, opened read-only and mapped; every number in it is data from outside and is
 * bounds-checked before use. Addresses here are the file's virtual addresses ("vaddr"); a loaded
 * copy lies at vaddr + bias.
 *
 * Images are shared and counted: image_get() on the same file (device, inode, size, mtime) returns
 * the same object, so that 200 processes with one libc open it once. An image is immutable after it
 * was opened, apart from lazily built indexes; not thread-safe.
 *
 * Only pages that are touched cost memory: a 1 GB library costs what its symbol table and its text
 * need, and image_done_reading() gives the text pages back (MADV_DONTNEED).
 */
struct image;

struct image_segment {
	uint64_t vaddr, size; /* of the file-backed part, bytes */
	uint64_t offset;      /* in the file */
	const uint8_t *bytes; /* size bytes; valid as long as the image */
};

/*
 * open_path: the file to open (e.g. "/proc/PID/map_files/a-b", "/proc/PID/root/lib/x.so", or
 * "/proc/PID/mem"-free copies); name: the path to show, as the target sees it. Errors: SB_EFILE,
 * SB_ENOELF (not ELF, 32-bit, another machine, truncated, damaged tables).
 */
int image_get(const char *open_path, const char *name, struct image **out, struct sb_err *err);
int image_of_exe(pid_t pid, struct image **out, struct sb_err *err); /* what a process runs */
struct image *image_ref(struct image *img);			     /* one more holder */
void image_put(struct image *img);				     /* NULL is harmless */

/*
 * The image behind a mapped file of a process, deleted or replaced files included
 * (/proc/PID/map_files first, then /proc/PID/root + path with inode checked).
 */
int image_of_map(pid_t pid, const struct map_entry *map, struct image **out, struct sb_err *err);

/* The same of a process that has ended: the file at that path of this program's own root, if it is
 * the mapped one by device and number. */
int image_of_ended(const struct map_entry *map, struct image **out, struct sb_err *err);

/* Its DT_SONAME, "" if it has none, where it was opened before; NULL: not known without that. */
const char *image_soname_of_map(pid_t pid, const struct map_entry *map);

/*
 * A path that leads to the very file that was parsed, as long as the image is held: its descriptor,
 * by the number that /proc gives this process. The path under which the file was found may lead
 * elsewhere by now; its owner can change it. False: no descriptor was left.
 */
bool image_own_path(const struct image *img, char *buf, size_t size);

/* The device and the inode that /proc/PID/maps shows for that file; false: /proc cannot be read. */
bool image_mapped_as(struct image *img, uint32_t *dev, uint64_t *inode);

/*
 * Why nothing that was read of this image may be used; NULL: it may. The owner of a file can change
 * it at any time, so check this after reading, and before any action. image_get() does not return
 * such an image; one that is held may become one. image_refuse(): SB_ENOELF, with the name.
 */
const char *image_flaw(const struct image *img);
int image_refuse(const struct image *img, struct sb_err *err);

const char *image_name(const struct image *img);     /* path as given */
const char *image_soname(const struct image *img);   /* DT_SONAME or "" */
const char *image_build_id(const struct image *img); /* lower-case hex or "" */
const char *image_interp(const struct image *img);   /* PT_INTERP or "" */
bool image_has_textrel(const struct image *img);     /* relocations write into the text */
bool image_is_pic(const struct image *img);	     /* ET_DYN */
bool image_is_go(const struct image *img);	     /* has Go's own section or note */

/* The kind of the function at vaddr, by Go's own table. */
enum image_go {
	GO_UNKNOWN, /* there is no table, or one of an unsupported Go */
	GO_NOT,	    /* C of a program that has both, or no function's start */
	GO_COMPILED,
	GO_ASSEMBLY,
};
enum image_go image_go_function(struct image *img, uint64_t vaddr);
uint64_t image_entry(const struct image *img);

/* Executable PT_LOAD segments, in order; returns how many there are, fills at most cap. */
size_t image_text(const struct image *img, struct image_segment *seg, size_t cap);

/*
 * Load bias of an image from one of its file mappings: the address of vaddr 0. False where the
 * mapping's offset belongs to no PT_LOAD.
 */
bool image_bias(const struct image *img, const struct map_entry *map, uint64_t *bias);

/* Is vaddr within a PT_LOAD, also behind its part of the file? */
bool image_holds(const struct image *img, uint64_t vaddr);

/*
 * The bytes of the file at vaddr, with the number that follow in the same segment; NULL outside
 * every file-backed PT_LOAD.
 */
const uint8_t *image_bytes(const struct image *img, uint64_t vaddr, size_t *avail);

/*
 * Is `from` inside a copy of an inlined function that begins at entry? Of the copies that
 * symbol_find_everywhere() has found.
 */
bool image_inlined_from(const struct image *img, uint64_t entry, uint64_t from);
/* Of these: does the copy begin at other places, too, or is its begin unknown? */
bool image_inlined_again(const struct image *img, uint64_t entry);

/* Releases the text pages that were read to the kernel; pointers stay valid. */
void image_done_reading(struct image *img);

/*
 * The function around vaddr, from the symbol tables, else from the .eh_frame_hdr table (which
 * stripped files keep; its end is then the next table entry). False if neither contains it. The
 * first call builds and sorts the index; a call costs a binary search.
 */
bool image_function_at(struct image *img, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * Does a function begin at vaddr, by the tables of the file itself: its symbols (including those in
 * .gnu_debugdata) and the unwinder's? A separate debug file does not count: other users may be able
 * to change that one.
 */
bool image_is_entry(struct image *img, uint64_t vaddr);

/*
 * Does a table give the length of the function that begins at vaddr? If not, image_function_at()
 * lets it end where the next one begins.
 */
bool image_is_bounded(struct image *img, uint64_t vaddr);

/*
 * Is the code that begins at vaddr a part of a function whose beginning lies elsewhere (`f.cold`)?
 * By the unwinder's table, so also in a file without symbols; true only where that is certain.
 */
bool image_is_part(const struct image *img, uint64_t vaddr);

/*
 * Where the code before and after a function ends and starts: *prev_end is the end of the last
 * function or FDE that ends at or below `start`, *next the start of the first one that starts above
 * `start` (the segment's ends where there is none). Bytes between are padding candidates only: the
 * caller checks that they are no-ops.
 */
void image_function_room(struct image *img, uint64_t start, uint64_t end, uint64_t *prev_end,
			 uint64_t *next);

/*
 * The end of the bytes from vaddr on that no section holds: the linker's fill between two sections,
 * which no code runs or reads. vaddr itself where a section holds it, where none follows, or where
 * the file has no section headers.
 */
uint64_t image_fill_end(struct image *img, uint64_t vaddr);

#endif
