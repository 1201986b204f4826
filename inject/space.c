/* SPDX-License-Identifier: MIT */
#include "space-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "clock.h"
#include "fault.h"
#include "region.h"
#include "stack.h"
#include "tree-task.h"
#include "src/base/caps.h"
#include "src/base/log.h"
#include "src/base/maps.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { RECORD_SIZE = 4096 };

struct space *space_new(pid_t pid, struct sb_err *err)
{
	struct space *space = calloc(1, sizeof(*space));

	if (!space)
		abort();
	space->refs = 1;
	if (memory_open(&space->mem, pid, err) < 0) {
		free(space);
		return NULL;
	}
	return space;
}

struct space *space_get(struct space *space)
{
	space->refs++;
	return space;
}

void space_put_control(struct control *control)
{
	if (!control || --control->refs)
		return;
	if (control->gone)
		control->gone(control->ctx, &control->page);
	page_unmap(&control->page);
	space_put_control(control->before);
	free(control);
}

void space_put(struct space *space)
{
	if (!space || --space->refs)
		return;
	for (size_t i = 0; i < space->n_regions; i++)
		region_put(space->regions[i]);
	free(space->regions);
	free(space->stale);
	space_put_control(space->control);
	memory_close(&space->mem);
	free(space);
}

void space_add_region(struct space *space, struct region *region, bool stale)
{
	size_t n = space->n_regions + 1;

	space->regions = realloc(space->regions, n * sizeof(*space->regions));
	space->stale = realloc(space->stale, n * sizeof(*space->stale));
	if (!space->regions || !space->stale)
		abort();
	space->regions[n - 1] = region;
	space->stale[n - 1] = stale;
	space->n_regions = n;
}

int space_must(struct remote *r, const char *what, long result, struct sb_err *err)
{
	if (result >= 0 || result < -4095)
		return 0;
	errno = (int)-result;
	return err_sys(err, SB_ETARGET, "process %d: %s failed in the target", r->thread->proc->pid,
		       what);
}

static const char *const memfd_name[2] = { "sbinject", "sbinject-counts" };

/*
 * The target's descriptor, as one of sbinject's. Another thread of the target may have put another
 * file under that number meanwhile, which the target itself may not be allowed to write: so its
 * identity is checked before it is opened.
 */
static int open_memfd(const char *path, const char *name)
{
	char ours[64], link[64], want[64];
	struct stat st;
	int at = CAPS(open(path, O_PATH | O_CLOEXEC)), fd = -1;
	ssize_t n;

	if (at < 0)
		return -1;
	snprintf(ours, sizeof(ours), "/proc/self/fd/%d", at);
	snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);
	n = readlink(ours, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	if (fstat(at, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink || strcmp(link, want))
		errno = ESTALE;
	else
		fd = open(ours, O_RDWR | O_CLOEXEC);
	close(at);
	if (fd >= 0)
		fchmod(fd, 0600); /* no other process opens it, even if a descriptor is handed on */
	return fd;
}

static int open_theirs(pid_t pid, long fd, const char *name, int *ours, struct sb_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", maps_face(pid), fd);
	*ours = open_memfd(path, name);
	if (*ours >= 0)
		return 0;
	return err_sys(err, errno == EACCES || errno == EPERM ? SB_EPERM : SB_ETARGET, "open %s",
		       path);
}

static void know_inodes(struct control *control, struct page_files files,
			const struct space_want *want)
{
	struct stat front = { 0 }, rear = { 0 };

	if (fstat(files.settings, &front) == 0)
		control->inode = front.st_ino;
	if (fstat(files.counts, &rear) == 0)
		control->rear_inode = rear.st_ino;
	if (want->made)
		want->made(want->ctx, &control->ids,
			   (uint32_t)(major(front.st_dev) << 20 | minor(front.st_dev)),
			   control->inode);
}

/* Once per session: what SECURITY.md says of older kernels. */
static void say_unsealed(void)
{
	static bool said;

	if (!said)
		log_warn("this kernel (before Linux 5.1) cannot keep the target from changing the "
			 "settings of its delays: neither can it a fork that drops its privileges");
	said = true;
}

/* sbinject's descriptors of the memfds that the target made; it owns them from here on. */
static int map_ours(struct space *space, struct page_files files, const struct space_want *want,
		    const struct space_draft *draft, struct sb_err *err)
{
	struct control *control = calloc(1, sizeof(*control));
	struct sb_page_header layout = draft->layout;

	if (!control)
		abort();
	control->refs = 1;
	control->made_ns = clock_ns();
	control->ids = draft->ids;
	know_inodes(control, files, want);
	layout.session = want->session;
	layout.tracer_pid = (uint32_t)getpid();
	if (page_map(&control->page, files, &layout, err) < 0) {
		free(control);
		return -SB_ENOMEM;
	}
	if (!control->page.sealed)
		say_unsealed();
	space->control = control;
	space->session = want->session;
	space->page_size = layout.size;
	space->counters_off = layout.counters_off;
	return 0;
}

static bool is_file(const struct map_entry *m, uint64_t inode, const char *name)
{
	return m->inode == inode && !strncmp(m->path, "/memfd:", 7) && !strcmp(m->path + 7, name);
}

static bool is_ours(const struct maps *maps, uint64_t at, uint64_t inode, const char *name)
{
	const struct map_entry *m = maps_find(maps, at);

	return m && is_file(m, inode, name);
}

int space_check_map(const struct space *space, pid_t pid, uint64_t front, uint64_t rear,
		    struct sb_err *err)
{
	const struct control *control = space->control;
	struct maps maps;
	bool ours, gone;

	if (maps_read(pid, &maps, err) < 0)
		return -SB_ETARGET;
	gone = !maps.count || memory_gone(&space->mem);
	ours = (!front || is_ours(&maps, front, control->inode, memfd_name[0])) &&
	       (!rear || is_ours(&maps, rear, control->rear_inode, memfd_name[1]));
	maps_free(&maps);
	if (ours)
		return 0;
	if (gone)
		return memory_err_gone(pid, err);
	errno = ESTALE;
	return err_sys(err, SB_ETARGET, "process %d closed a descriptor that is not its own", pid);
}

static void keep_piece(struct space *space, uint64_t addr, uint64_t size)
{
	if (!space->unfinished_size)
		space->unfinished_addr = addr;
	if (addr == space->unfinished_addr + space->unfinished_size)
		space->unfinished_size += size;
}

/*
 * A front of two pages is not in its place yet. A rear that ends where the page does has the record
 * behind it.
 */
bool space_keep_pieces(struct space *space, const struct control *control, pid_t pid,
		       uint64_t page_size)
{
	struct maps maps;

	space->unfinished_size = space->half_addr = 0;
	if (maps_read(pid, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.count; i++) {
		const struct map_entry *m = &maps.entry[i];
		uint64_t size = m->end - m->start;

		if (is_file(m, control->inode, memfd_name[0])) {
			if (size == REMOTE_MAP_FIRST)
				space->half_addr = m->start;
			else
				keep_piece(space, m->start, size);
		} else if (is_file(m, control->rear_inode, memfd_name[1])) {
			size += m->offset + size == page_size ? RECORD_SIZE : 0;
			keep_piece(space, m->start, size);
		}
	}
	maps_free(&maps);
	return true;
}

/*
 * Where vm.memfd_noexec is 2 a memfd must have MFD_NOEXEC_SEAL; kernels from 6.3 to 6.6 log a memfd
 * with neither MFD_NOEXEC_SEAL nor MFD_EXEC, in the target's name; before 6.3 these flags do not
 * exist (EINVAL).
 */
int space_memfd(struct remote *r, const char *name, long *fd, struct sb_err *err)
{
	uint64_t at = remote_scratch(r, name, strlen(name) + 1);
	uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	if (!at || remote_syscall(r, fd, err, SYS_memfd_create, at, flags | MFD_NOEXEC_SEAL, 0ul,
				  0ul, 0ul, 0ul) < 0)
		return -SB_ETARGET;
	if (*fd == -EINVAL &&
	    remote_syscall(r, fd, err, SYS_memfd_create, at, flags, 0ul, 0ul, 0ul, 0ul) < 0)
		return -SB_ETARGET;
	return space_must(r, "memfd_create", *fd, err);
}

/* Where that cannot be seen it is taken for the target's, as it was made a moment ago. */
static bool is_their_memfd(pid_t pid, long fd, const char *name)
{
	char path[64], link[64], want[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", maps_face(pid), fd);
	snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);
	n = CAPS(readlink(path, link, sizeof(link) - 1));
	if (n < 0 && errno != ENOENT)
		return true;
	link[n > 0 ? n : 0] = '\0';
	return !strcmp(link, want);
}

/* The settings last: they are sealed before anything else happens in the target. */
int space_make_files(struct space *space, struct remote *r, const struct space_want *want,
		     const struct space_draft *draft, long fd[2], struct sb_err *err)
{
	pid_t pid = r->thread->proc->pid;
	struct page_files files = { -1, -1 };

	if (space_memfd(r, memfd_name[1], &fd[1], err) < 0 ||
	    open_theirs(pid, fd[1], memfd_name[1], &files.counts, err) < 0)
		return -SB_ETARGET;
	if (fault_point("setup-files", pid) || space_memfd(r, memfd_name[0], &fd[0], err) < 0 ||
	    open_theirs(pid, fd[0], memfd_name[0], &files.settings, err) < 0) {
		close(files.counts);
		return -SB_ETARGET;
	}
	return map_ours(space, files, want, draft, err);
}

bool space_close_files(struct remote *r, const long fd[2], bool *closed)
{
	pid_t pid = r->thread->proc->pid;
	bool ok = true, theirs[2];
	long ret;

	for (int i = 0; i < 2; i++) {
		theirs[i] = fd[i] >= 0 && is_their_memfd(pid, fd[i], memfd_name[i]);
		*closed |= fd[i] >= 0 && !theirs[i];
	}
	/* As a rule they are neighbours: one call. Linux 5.9. */
	if (theirs[0] && theirs[1] && fd[0] == fd[1] + 1 &&
	    remote_syscall(r, &ret, NULL, SYS_close_range, (uint64_t)fd[1], (uint64_t)fd[0], 0ul,
			   0ul, 0ul, 0ul) == 0 &&
	    ret == 0)
		return true;
	for (int i = 0; i < 2; i++) {
		if (theirs[i] && remote_syscall(r, &ret, NULL, SYS_close, (uint64_t)fd[i], 0ul, 0ul,
						0ul, 0ul, 0ul) < 0)
			ok = false;
	}
	return ok;
}

int space_register(struct space *space, pid_t pid, struct sb_err *err)
{
	struct sb_page_record record;
	struct page *page;

	if (!space->control)
		return err_set(err, SB_EINTERNAL, "no control page to register process %d in", pid);
	page = &space->control->page;
	space->proc = page_proc_new(page, pid);
	if (!space->proc) {
		log_warn("more than %u processes: process %d is counted with the unregistered ones",
			 page->lay.procs_max - 1, pid);
		return 0;
	}
	record = page_record(page, space->proc);
	space->most_shift = record.most_shift;
	space->stack_word = record.stack_word;
	if (fault_point("register", pid))
		return err_set(err, SB_ETARGET, "fault: register");
	return memory_write(&space->mem, space->record_addr, &record, sizeof(record), err);
}

int space_allow(struct space *space, uint8_t most_shift)
{
	struct page *page = &space->control->page;
	const uint64_t at = space->record_addr + offsetof(struct sb_page_record, most_shift);

	if (page->record.most_shift < most_shift)
		page->record.most_shift = most_shift;
	if (!space->proc || space->most_shift >= most_shift)
		return 0;
	space->most_shift = most_shift;
	return memory_write(&space->mem, at, &most_shift, sizeof(most_shift), NULL);
}

/* From `field` on, the size after the address. */
static void write_range(const struct space *space, size_t field, uint64_t addr, uint64_t size)
{
	const uint64_t range[2] = { addr, size };

	if (space->proc)
		memory_write(&space->mem, space->record_addr + field, range, sizeof(range), NULL);
}

void space_stack(struct space *space, const struct arch_regs *regs)
{
	const uint64_t at = space->record_addr + offsetof(struct sb_page_record, stack_word);
	uint16_t word;

	if (!space->control || !space->proc || space->stack_word)
		return;
	word = stack_bounds_at(&space->mem, regs);
	if (word && memory_write(&space->mem, at, &word, sizeof(word), NULL) >= 0)
		space->stack_word = space->control->page.record.stack_word = word;
}

void space_python(struct space *space, const struct sb_page_python *python)
{
	const uint64_t at = space->record_addr + offsetof(struct sb_page_record, python);
	const size_t version = sizeof(python->version);
	struct page *page;

	if (!space->control || !space->proc || space->control->page.record.python.version)
		return;
	page = &space->control->page;
	/* The version last: the rest is valid then. */
	if (memory_write(&space->mem, at + version, (const char *)python + version,
			 sizeof(*python) - version, NULL) >= 0 &&
	    memory_write(&space->mem, at, &python->version, version, NULL) >= 0)
		page->record.python = *python;
}

void space_announce_region(struct space *space, uint64_t addr, uint64_t size)
{
	struct page *page = &space->control->page;

	write_range(space, offsetof(struct sb_page_record, region_addr), addr, size);
	page->record.region_addr = page->hdr->region_addr = addr;
	page->record.region_size = page->hdr->region_size = size;
}

void space_announce_mailbox(struct space *space, uint64_t addr, uint64_t size)
{
	struct page *page = &space->control->page;

	write_range(space, offsetof(struct sb_page_record, mailbox_addr), addr, size);
	page->record.mailbox_addr = page->hdr->mailbox_addr = addr;
	page->record.mailbox_size = page->hdr->mailbox_size = size;
}

void space_announce_room(struct space *space, uint64_t addr, uint64_t size, bool begun)
{
	uint64_t unfinished = size && !begun ? SB_ROOM_UNFINISHED : 0;

	write_range(space, offsetof(struct sb_page_record, room_addr), addr, size | unfinished);
	space->room_addr = addr;
	space->room_size = size;
	space->room_begun = begun;
}

struct region *space_region_at(const struct space *space, uint64_t addr)
{
	for (size_t i = 0; i < space->n_regions; i++)
		if (addr - space->regions[i]->addr < space->regions[i]->size)
			return space->regions[i];
	return NULL;
}

uint64_t space_trap_stub(const struct space *space, uint64_t addr)
{
	/* The newest first: a hook that was removed may have been set again, for another target. */
	for (size_t i = space->n_regions; i-- > 0;) {
		const struct region *region = space->regions[i];
		const struct journal_site *site = region_site_at(region, addr);

		if (site && site->shape == PLAN_INT3)
			return region->addr + site->stub + site->entry;
	}
	return 0;
}
