/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The page cache, in the reads of watched threads: pages that they take from it, and those that
 * were not there when the read began. A program of its own: a kernel without one of these places
 * lacks this and nothing else.
 *
 * The kernel has no event of a read, but of each batch of pages that a read takes, with the last
 * page that it asked for; and of each page that comes into the cache. The pages of the first batch
 * come before its event: they are kept, and counted if that event is of the same call.
 * A batch that ends at a page that is still on its way has no event: so the arguments of the system
 * call tell where the read began.
 */
#include "rows.bpf.h"
#include "call.bpf.h"
#include <bpf/bpf_core_read.h>

enum pageflags { PG_head = 6 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_io_accounting {
	__u64 syscr, syscw;
};
struct address_space;
struct file {
	struct address_space *f_mapping;
	long long f_pos;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct task_struct {
	struct files_struct *files;
	struct task_io_accounting ioac;
};
struct inode {
	unsigned short i_mode;
	long long i_size;
};
struct address_space {
	struct inode *host;
};
struct folio {
	unsigned long flags;
	struct address_space *mapping;
	unsigned long index, _flags_1;
	unsigned char _folio_order; /* before Linux 6.6 */
};
struct flags {
	unsigned long f;
};
struct folio___wrapped { /* Linux 6.18 and later */
	struct flags flags;
};
#pragma clang attribute pop

#define ORDER	     0xff /* of _flags_1 */
#define FILE_TYPE    0170000
#define BLOCK_DEVICE 0060000
#define WORDS	     16 /* of 64 pages: more than the kernel reads at one time before a batch */

/* Pages that came since the last read began: of one file, in one call. */
struct came {
	__u64 file, call;  /* its mapping */
	long number;	   /* of the system call */
	__u64 base;	   /* the page of the first bit */
	__u64 word[WORDS]; /* a bit for each page */
};

/* A file system reads blocks of its device while it reads a file. */
struct came_in {
	struct came file, device;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct came_in);
} arrivals SEC(".maps");

/* Another number: another call. The kernel counts a call that reads or writes at its end. (A fault
 * is in no call: its number is negative.) */
static __always_inline __u64 call_now(const struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.syscr) ? task->ioac.syscr + task->ioac.syscw + 1 :
							 1;
}

static __always_inline __u64 shared(__u64 from, __u64 to, __u64 from2, __u64 to2)
{
	__u64 a = from > from2 ? from : from2, b = to < to2 ? to : to2;

	return a <= b ? b - a + 1 : 0;
}

/* ---- pages come ---- */

static __always_inline __u64 pages_of(const struct folio *folio)
{
	const struct folio___wrapped *wrapped = (const void *)folio;
	unsigned long flags = 0, head = bpf_core_enum_value(enum pageflags, PG_head);

	if (bpf_core_field_exists(wrapped->flags.f))
		flags = wrapped->flags.f;
	else if (bpf_core_field_exists(folio->flags))
		flags = folio->flags;
	if (!(flags >> (head & 63) & 1))
		return 1;
	if (bpf_core_field_exists(folio->_folio_order))
		return 1ull << (folio->_folio_order & 31);
	return 1ull << (folio->_flags_1 & ORDER & 31);
}

/* Of 64 pages from `word` on, those from `from` to `to`. Global, hence not static: the verifier
 * checks it once, and not in each round of the loops. */
__attribute__((noinline)) __u64 bits_of(__u64 word, __u64 from, __u64 to)
{
	__u64 n = shared(word, word + 63, from, to), at = from > word ? from - word : 0;

	return n ? ~0ull >> ((64 - n) & 63) << (at & 63) : 0;
}

static __always_inline struct came *came_of(struct task_struct *task,
					    const struct address_space *mapping, __u64 how)
{
	struct came_in *in = bpf_task_storage_get(&arrivals, task, 0, how);

	if (!in)
		return 0;
	return (mapping->host->i_mode & FILE_TYPE) == BLOCK_DEVICE ? &in->device : &in->file;
}

static __always_inline void keep(struct task_struct *task, const struct address_space *mapping,
				 __u64 from, __u64 to)
{
	struct came *c = came_of(task, mapping, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 file = (__u64)mapping;
	__u64 call = call_now(task);
	long number = call_of(task).number;

	if (!c)
		return;
	if (c->file != file || c->call != call || c->number != number || from < c->base) {
		__builtin_memset(c, 0, sizeof(*c));
		c->file = file;
		c->call = call;
		c->number = number;
		c->base = from;
	}
	for (__u64 i = 0; i < WORDS; i++)
		c->word[i] |= bits_of(c->base + 64 * i, from, to);
}

/* (folio): in the thread that wants it, or wants another one near it */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int on_page(__u64 *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct folio *folio = (const void *)ctx[0];
	struct evidence_row *r = row_of_caller();
	const struct address_space *mapping;
	__u64 from, n;

	if (!r)
		return 0;
	mapping = folio->mapping;
	from = folio->index;
	n = pages_of(folio);
	r->cache[EVIDENCE_CACHE_ADDED] += n;
	if (r->read.call == call_now(task) && r->read.file == (__u64)mapping)
		r->cache[EVIDENCE_CACHE_MISSED] +=
			r->read.weight * shared(from, from + n - 1, r->read.from, r->read.to);
	else
		keep(task, mapping, from, from + n - 1);
	return 0;
}

/* ---- a read takes pages ---- */

/* Those of a read that came just before its first batch. */
static __always_inline __u64 came_for(struct task_struct *task, const struct address_space *mapping,
				      const struct evidence_read *read)
{
	struct came *c = came_of(task, mapping, 0);
	__u64 n = 0;

	if (!c || c->file != read->file || c->call != read->call ||
	    c->number != call_of(task).number)
		return 0;
	for (__u64 i = 0; i < WORDS; i++)
		n += (__u64)__builtin_popcountll(c->word[i] &
						 bits_of(c->base + 64 * i, read->from, read->to));
	c->file = 0;
	return n;
}

/* The last page that the file has. */
static __always_inline __u64 end_of(const struct address_space *mapping,
				    const struct evidence_control *c)
{
	long long size = mapping->host->i_size;

	return size > 0 ? (__u64)(size - 1) >> (c->page_shift & 63) : 0;
}

/* The position of an open file, if it is that one. */
static __always_inline __u64 position_of(struct task_struct *task, __u64 fd, __u64 mapping)
{
	struct fdtable *fdt = task->files ? task->files->fdt : 0;
	struct file *file = 0;
	__u64 own = 0, at = 0;

	if (!fdt || fd >= fdt->max_fds)
		return ~0ull;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	if (!file || bpf_core_read(&own, sizeof(own), &file->f_mapping) || own != mapping ||
	    bpf_core_read(&at, sizeof(at), &file->f_pos))
		return ~0ull;
	return at;
}

/* The first page of a read, at its first event; `last`: the read before. */
static __always_inline __u64 start_of(struct task_struct *task, const struct evidence_control *c,
				      const struct evidence_read *read,
				      const struct evidence_read *last)
{
	struct call call = call_of(task);
	__u32 number = (__u32)call.number;
	__u64 at = ~0ull;

	if (number == c->call.pread || number == c->call.preadv)
		at = call.fourth;
	else if (number == c->call.read || number == c->call.readv)
		at = position_of(task, call.arg, read->file);
	else if (number == c->call.sendfile && last->call == read->call && last->file == read->file)
		at = (last->to + 1) << (c->page_shift & 63);
	at >>= c->page_shift & 63;
	return at < read->from ? at : read->from;
}

/* (mapping, first page of the batch, last page of the read): of one read the last page is the same,
 * and the first one grows. */
SEC("tp_btf/mm_filemap_get_pages")
int on_batch(__u64 *ctx)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct evidence_row *r = row_of_caller();
	const struct address_space *mapping = (const void *)ctx[0];
	struct evidence_read read = { .file = ctx[0], .from = ctx[1], .to = ctx[2] };
	__u64 end;

	if (!r || !c)
		return 0;
	read.call = call_now(task);
	end = end_of(mapping, c);
	read.to = read.to < end ? read.to : end;
	if (read.to < read.from)
		return 0;
	if (read.file == r->read.file && read.call == r->read.call && read.to == r->read.to &&
	    read.from > r->read.from) {
		r->read.from = read.from;
		return 0;
	}
	read.weight = weight_of_event();
	if (read.weight) {
		read.from = start_of(task, c, &read, &r->read);
		r->cache[EVIDENCE_CACHE_READ] += (read.to - read.from + 1) * read.weight;
		r->cache[EVIDENCE_CACHE_MISSED] += came_for(task, mapping, &read) * read.weight;
	}
	r->read = read;
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
