/* SPDX-License-Identifier: MIT */
#include "mailbox.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "tree-task.h"
#include "src/base/maps.h"

enum { PAGE = 4096, ROOM_SIZE = 64 << 10, MAP_TRIES = 8 };
enum { SLICES_A_SECOND = 1000 };

static size_t code_size(void)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one section */
	return (size_t)(__stop_sb_entry - __start_sb_entry);
}

static uint64_t code_offset(const void *function)
{
	return (uint64_t)((const char *)function - __start_sb_entry);
}

/* ---- making a mailbox ---- */

static int remote_failed(struct remote *r, const char *what, long result, struct sb_err *err)
{
	errno = (int)-result;
	return err_sys(err, SB_ETARGET, "process %d: %s failed in the target", r->mem->pid, what);
}

static uint64_t find_hole(const struct mailbox *mailbox, uint64_t size)
{
	uint64_t hole = 0;
	struct maps maps;

	if (maps_read(mailbox->pid, &maps, NULL) < 0)
		return 0;
	hole = maps_find_gap(&maps, mailbox->space->page_addr, 0, 1ull << 47, size);
	maps_free(&maps);
	return hole;
}

static uint64_t whole_size(const struct mailbox_setup *setup)
{
	return PAGE + ROOM_SIZE + ((setup->agent_size + PAGE - 1) & ~(uint64_t)(PAGE - 1)) +
	       setup->extra;
}

/* For recover. */
static void announce_hole(struct mailbox *mailbox, uint64_t at, uint64_t size)
{
	if (mailbox->plain)
		space_announce_room(mailbox->space, at, size, false);
	else
		space_announce_mailbox(mailbox->space, at + PAGE, size);
}

static void announce(struct mailbox *mailbox)
{
	if (mailbox->plain) {
		announce_hole(mailbox, mailbox->code, mailbox->size + PAGE);
		return;
	}
	space_announce_mailbox(mailbox->space, mailbox->addr, mailbox->size + PAGE);
	mailbox->space->mailbox_addr = mailbox->code;
	mailbox->space->mailbox_size = mailbox->size + PAGE;
}

/* at: where there was a hole before the thread was stopped; to find one takes longer than to map.
 */
static int map_hole(struct mailbox *mailbox, struct remote *r, uint64_t at, uint64_t size,
		    long *addr, struct sb_err *err)
{
	int code = 0;

	*addr = -EEXIST;
	for (int i = 0; i < MAP_TRIES && code == 0 && *addr == -EEXIST; i++) {
		if (i)
			at = find_hole(mailbox, size);
		if (!at)
			return err_set(err, SB_ETARGET, "process %d: no room in its memory",
				       mailbox->pid);
		announce_hole(mailbox, at, size);
		code = remote_syscall(r, addr, err, SYS_mmap, at, size,
				      (uint64_t)(PROT_READ | PROT_WRITE),
				      (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
						 MAP_FIXED_NOREPLACE),
				      (uint64_t)-1, 0ul);
	}
	return code;
}

/* The code page is never writable: it is written through /proc/PID/mem. */
static int map_mailbox(struct mailbox *mailbox, struct remote *r, uint64_t at,
		       const struct mailbox_setup *setup, struct sb_err *err)
{
	uint64_t size = whole_size(setup);
	long addr = -1, code = -1;

	if (code_size() > PAGE)
		return err_set(err, SB_EINTERNAL, "the entry code does not fit into its page");
	if (map_hole(mailbox, r, at, size, &addr, err) < 0)
		return -SB_ETARGET;
	if (addr <= 0)
		return remote_failed(r, "mmap", addr, err);
	mailbox->code = (uint64_t)addr;
	mailbox->addr = (uint64_t)addr + PAGE;
	mailbox->size = size - PAGE;
	announce(mailbox);
	if (fault_point("mailbox-map", mailbox->pid) ||
	    remote_syscall(r, &code, err, SYS_mprotect, (uint64_t)addr, (uint64_t)PAGE,
			   (uint64_t)(PROT_READ | PROT_EXEC), 0ul, 0ul, 0ul) < 0)
		return err_set(err, SB_ETARGET, "fault: mailbox-map");
	if (code < 0)
		return remote_failed(r, "mprotect", code, err);
	if (mailbox->plain && remote_syscall(r, &code, err, SYS_madvise, (uint64_t)addr, size,
					     (uint64_t)MADV_DONTFORK, 0ul, 0ul, 0ul) < 0)
		return -SB_ETARGET;
	return 0;
}

/* The header last: a mailbox that can be found is complete. */
static int write_mailbox(struct mailbox *mailbox, const struct mailbox_setup *setup,
			 struct sb_err *err)
{
	struct sb_mailbox head = {
		.magic = SB_MAILBOX_MAGIC,
		.version = SB_PAGE_VERSION,
		.size = (uint32_t)mailbox->size,
		.page_addr = mailbox->space->page_addr,
		.record_addr = mailbox->space->record_addr,
		.page = page_layout_of(&mailbox->space->control->page),
		.targets_off = sizeof(head),
		.eval = setup->eval,
		.eval_size = setup->eval_size,
		.gil = setup->gil,
		.slice_ticks = mailbox->space->control->page.lay.tsc_hz / SLICES_A_SECOND,
		.image_off = ROOM_SIZE,
		.image_size = (uint32_t)setup->agent_size,
		.agent = setup->loaded,
		.reason = "no file in memory can be made, or it is closed at once", /* until then */
	};
	const struct memory *mem = &mailbox->space->mem;
	int ret = memory_write(mem, mailbox->code, __start_sb_entry, code_size(), err);

	snprintf(head.image_name, sizeof(head.image_name), "%s",
		 setup->plain ? ROOM_DEVICE_NAME : ROOM_AGENT_NAME);
	memcpy(head.function, setup->function, sizeof(setup->function));
	head.function[ENTRY_PENDING] = mailbox->code + code_offset((const void *)entry_pending);
	/* Through the descriptor, under a name that no library loaded earlier can have. */
	head.path_len = (uint32_t)snprintf(
		head.path, sizeof(head.path), "/proc/self/fd/%s",
		&"././././././././././././././././"[2 * (mailbox->space->session % 16)]);
	if (ret == 0)
		ret = memory_write(mem, mailbox->addr + ROOM_SIZE, setup->agent, setup->agent_size,
				   err);
	return ret < 0 ? ret : memory_write(mem, mailbox->addr, &head, sizeof(head), err);
}

static void unmap_mailbox(struct mailbox *mailbox, struct remote *r)
{
	long ret;

	if (mailbox->code)
		remote_syscall(r, &ret, NULL, SYS_munmap, mailbox->code, mailbox->size + PAGE, 0ul,
			       0ul, 0ul, 0ul);
	if (mailbox->plain) {
		space_announce_room(mailbox->space, 0, 0, false);
		return;
	}
	mailbox->space->mailbox_addr = mailbox->space->mailbox_size = 0;
	space_announce_mailbox(mailbox->space, 0, 0);
}

static int open_in_call(struct mailbox *mailbox, struct remote *r, uint64_t at,
			const struct mailbox_setup *setup, struct sb_err *err)
{
	int ret = map_mailbox(mailbox, r, at, setup, err);

	if (ret == 0)
		ret = write_mailbox(mailbox, setup, err);
	if (ret < 0) {
		unmap_mailbox(mailbox, r);
		return ret;
	}
	if (mailbox->plain)
		space_announce_room(mailbox->space, mailbox->code, mailbox->size + PAGE, true);
	return 0;
}

static struct mailbox *mailbox_new(struct space *space, pid_t pid)
{
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));

	if (!mailbox)
		abort();
	mailbox->space = space_get(space);
	mailbox->pid = pid;
	mailbox->run_ns = task_run_ns(pid);
	return mailbox;
}

void mailbox_free(struct mailbox *mailbox)
{
	if (!mailbox)
		return;
	space_put(mailbox->space);
	free(mailbox->remote.stack);
	free(mailbox);
}

int mailbox_open(struct mailbox **out, struct space *space, struct tree *tree, pid_t pid,
		 const struct mailbox_setup *setup, struct sb_err *err)
{
	struct mailbox *mailbox = mailbox_new(space, pid);
	uint64_t at = find_hole(mailbox, whole_size(setup));
	struct remote r;
	int ret;

	mailbox->plain = setup->plain;
	ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);

	if (ret == 0) {
		ret = open_in_call(mailbox, &r, at, setup, err);
		remote_end(&r);
	}
	if (ret < 0) {
		mailbox_free(mailbox);
		return ret;
	}
	mailbox->runtime = setup->runtime;
	mailbox->runtime_size = setup->runtime_size;
	mailbox->eval = setup->eval;
	mailbox->eval_size = setup->eval_size;
	mailbox->gil = setup->gil;
	mailbox->main_only = !setup->function[ENTRY_ADD_ANY];
	if (!mailbox->plain)
		page_proc(&space->control->page, space->proc)->mailbox = mailbox->addr;
	*out = mailbox;
	return 0;
}

int mailbox_unmap(struct mailbox *mailbox, struct tree *tree, struct sb_err *err)
{
	struct space *space = mailbox->space;
	struct remote r;
	int ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);

	if (ret < 0)
		return ret;
	unmap_mailbox(mailbox, &r);
	remote_end(&r);
	return 0;
}

/* ---- copies ---- */

static int write_word(const struct mailbox *mailbox, size_t offset, uint32_t value)
{
	return memory_write(&mailbox->space->mem, mailbox->addr + offset, &value, sizeof(value),
			    NULL);
}

static bool read_head(const struct mailbox *mailbox, struct sb_mailbox *head)
{
	return memory_peek(&mailbox->space->mem, mailbox->addr, head, sizeof(*head)) ==
		       sizeof(*head) &&
	       head->magic == SB_MAILBOX_MAGIC && head->version == SB_PAGE_VERSION;
}

/*
 * The child may have been copied before the list or the command was written: it receives what its
 * parent has by now. Whether it has carried that out is a separate question.
 */
static void tell_child(struct mailbox *mailbox, const struct mailbox *parent)
{
	const struct memory *mem = &mailbox->space->mem;
	struct sb_mailbox head, own;
	char *list;

	mailbox->under_way = true;
	if (!read_head(parent, &head) || !read_head(mailbox, &own))
		return;
	mailbox->under_way = parent->under_way || own.done != parent->asked;
	list = own.list != head.list ? malloc(ROOM_SIZE) : NULL;
	if (list && memory_peek(&parent->space->mem, parent->addr, list, ROOM_SIZE) == ROOM_SIZE) {
		memory_write(mem, mailbox->addr + sizeof(head), list + sizeof(head),
			     ROOM_SIZE - sizeof(head), NULL);
		write_word(mailbox, offsetof(struct sb_mailbox, n_targets), head.n_targets);
		write_word(mailbox, offsetof(struct sb_mailbox, list), head.list);
	}
	free(list);
	if (own.asked == parent->asked)
		return;
	write_word(mailbox, offsetof(struct sb_mailbox, command), head.command);
	write_word(mailbox, offsetof(struct sb_mailbox, asked), parent->asked);
}

static const uint64_t no_threads[sizeof(((struct sb_mailbox *)0)->inside) / sizeof(uint64_t)];

struct mailbox *mailbox_fork(const struct mailbox *parent, struct space *space, pid_t child)
{
	struct mailbox *mailbox = mailbox_new(space, child);

	mailbox->code = parent->code;
	mailbox->addr = parent->addr;
	mailbox->size = parent->size;
	mailbox->runtime = parent->runtime;
	mailbox->runtime_size = parent->runtime_size;
	mailbox->eval = parent->eval;
	mailbox->eval_size = parent->eval_size;
	mailbox->gil = parent->gil;
	mailbox->main_only = parent->main_only;
	mailbox->asked = parent->asked;
	tell_child(mailbox, parent);
	/* The threads at work in the parent do not exist in the child. */
	write_word(mailbox, offsetof(struct sb_mailbox, busy), 0);
	write_word(mailbox, offsetof(struct sb_mailbox, parked), 0);
	memory_write(&space->mem, mailbox->addr + offsetof(struct sb_mailbox, inside), no_threads,
		     sizeof(no_threads), NULL);
	return mailbox;
}

static bool has_thread(struct tree *tree, const struct space *space, uint64_t pointer)
{
	struct arch_regs regs;
	struct thread *t;
	pid_t tid = 0;

	while ((t = tree_next_thread(tree, space, tid))) {
		bool it;

		tid = t->tid;
		if (!tree_stop_thread(tree, t, 10000))
			return true; /* unknown */
		it = t->state == THREAD_STOPPED && pt_get_regs(tid, &regs) == 0 &&
		     arch->thread_pointer(&regs) == pointer;
		tree_resume_thread(tree, t);
		if (it)
			return true;
	}
	return false;
}

/*
 * A remote call that has not begun its work does nothing any more; threads inside are waited for.
 * In a fork that the tracer has not seen, its parent's threads are not.
 */
static void end_turn(struct mailbox *mailbox, struct tree *tree)
{
	struct sb_mailbox head;

	if (!read_head(mailbox, &head))
		return;
	mailbox->turn = ((head.parked >> ENTRY_TURN_SHIFT) + 1) & ENTRY_TURNS;
	write_word(mailbox, offsetof(struct sb_mailbox, parked),
		   mailbox->turn << ENTRY_TURN_SHIFT | ENTRY_LEFT);
	if (!read_head(mailbox, &head))
		return;
	for (size_t i = 0; i < sizeof(head.inside) / sizeof(*head.inside); i++)
		if (head.inside[i] && !has_thread(tree, mailbox->space, head.inside[i]))
			memory_write(&mailbox->space->mem,
				     mailbox->addr + offsetof(struct sb_mailbox, inside[i]),
				     no_threads, sizeof(*no_threads), NULL);
}

static struct mailbox *load_at(struct space *space, struct tree *tree, pid_t pid, uint64_t code,
			       uint64_t size)
{
	struct mailbox *mailbox = mailbox_new(space, pid);
	struct sb_mailbox head;

	mailbox->code = code;
	mailbox->addr = code + PAGE;
	mailbox->size = size - PAGE;
	if (!read_head(mailbox, &head)) {
		mailbox_free(mailbox);
		return NULL;
	}
	mailbox->asked = head.asked;
	mailbox->eval = head.eval;
	mailbox->eval_size = head.eval_size;
	mailbox->gil = head.gil;
	mailbox->main_only = !head.function[ENTRY_ADD_ANY];
	end_turn(mailbox, tree);
	return mailbox;
}

struct mailbox *mailbox_load(struct space *space, struct tree *tree, pid_t pid)
{
	if (!space->mailbox_addr)
		return NULL;
	return load_at(space, tree, pid, space->mailbox_addr, space->mailbox_size);
}

struct mailbox *mailbox_load_room(struct space *space, struct tree *tree, pid_t pid)
{
	struct mailbox *mailbox = NULL;

	if (space->room_size && space->room_begun)
		mailbox = load_at(space, tree, pid, space->room_addr, space->room_size);
	if (mailbox)
		mailbox->plain = true;
	return mailbox;
}

/* ---- messages through it ---- */

struct list_writer {
	struct sb_mailbox_target *target;
	char *text;
	size_t used, room;
	uint32_t base;
};

static int put_text(struct list_writer *w, const char *text, uint32_t *offset)
{
	size_t len = strlen(text) + 1;

	if (len > w->room - w->used)
		return -1;
	memcpy(w->text + w->used, text, len);
	*offset = w->base + (uint32_t)w->used;
	w->used += len;
	return 0;
}

int mailbox_targets(struct mailbox *mailbox, const struct mailbox_target *target, size_t n,
		    struct sb_err *err)
{
	size_t table = n * sizeof(struct sb_mailbox_target),
	       body = ROOM_SIZE - sizeof(struct sb_mailbox);
	char *bytes = calloc(1, body);
	struct list_writer w;
	struct sb_mailbox head;
	int ret = -SB_ENOMEM;

	if (!bytes)
		abort();
	if (table > body)
		goto out;
	w = (struct list_writer){ (void *)bytes, bytes + table, 0, body - table,
				  (uint32_t)(sizeof(head) + table) };
	for (size_t i = 0; i < n; i++) {
		w.target[i].cell = target[i].cell;
		w.target[i].flags = target[i].flags;
		if (put_text(&w, target[i].module, &w.target[i].module) < 0 ||
		    put_text(&w, target[i].name, &w.target[i].name) < 0)
			goto out;
	}
	ret = -SB_ETARGET;
	if (!read_head(mailbox, &head) ||
	    memory_write(&mailbox->space->mem, mailbox->addr + sizeof(head), bytes, table + w.used,
			 err) < 0 ||
	    write_word(mailbox, offsetof(struct sb_mailbox, n_targets), (uint32_t)n) < 0 ||
	    write_word(mailbox, offsetof(struct sb_mailbox, list), head.list + 1) < 0)
		goto out;
	ret = 0;
out:
	free(bytes);
	if (ret < 0 && err && !err->code)
		err_set(err, (enum sb_code) - ret, "process %d: the list of Python targets %s",
			mailbox->pid,
			ret == -SB_ENOMEM ? "is too long (64 KiB)" : "could not be written");
	return ret;
}

void mailbox_ask(struct mailbox *mailbox, enum sb_agent_command command)
{
	mailbox->asked++;
	mailbox->under_way = true;
	mailbox->asked_ns = mailbox->queued_ns = 0;
	mailbox->queue_from = mailbox->queuer = 0;
	mailbox->n_unfit = 0;
	mailbox->queued_any = false;
	mailbox->waits_for = NULL;
	mailbox->not_ready = false;
	write_word(mailbox, offsetof(struct sb_mailbox, command), command);
	write_word(mailbox, offsetof(struct sb_mailbox, asked), mailbox->asked);
}

bool mailbox_asked(const struct mailbox *mailbox)
{
	return mailbox->under_way;
}

void mailbox_answer(const struct mailbox *mailbox, struct mailbox_answer *out)
{
	struct sb_mailbox head;

	memset(out, 0, sizeof(*out));
	if (!read_head(mailbox, &head)) {
		out->status = SB_AGENT_DAMAGED;
		snprintf(out->reason, sizeof(out->reason), "the mailbox cannot be read");
		return;
	}
	out->status = head.status;
	out->flags = head.flags;
	out->python = head.python;
	out->matched = head.matched;
	out->cost_ticks = head.cost_ticks;
	memcpy(out->held_ticks, head.held_ticks, sizeof(out->held_ticks));
	out->loaded = head.agent != 0;
	head.reason[sizeof(head.reason) - 1] = '\0';
	for (size_t i = 0; head.reason[i]; i++)
		out->reason[i] = isprint((unsigned char)head.reason[i]) ? head.reason[i] : '?';
}

bool mailbox_ended(struct mailbox *mailbox)
{
	uint32_t flags = 0;
	bool ended;

	memory_peek(&mailbox->space->mem, mailbox->addr + offsetof(struct sb_mailbox, flags),
		    &flags, sizeof(flags));
	ended = flags & SB_MAILBOX_ENDED && !mailbox->ended;
	mailbox->ended = flags & SB_MAILBOX_ENDED;
	return ended;
}

static uint64_t word_at(const struct mailbox *mailbox, uint64_t addr)
{
	uint64_t word = 0;

	memory_peek(&mailbox->space->mem, addr, &word, sizeof(word));
	return word;
}

bool mailbox_dropped(const struct mailbox *mailbox)
{
	uint64_t at = word_at(mailbox, mailbox->addr + offsetof(struct sb_mailbox, eval_at)), now;

	if (!at)
		return false;
	now = word_at(mailbox, at);
	return now == word_at(mailbox, mailbox->addr + offsetof(struct sb_mailbox, eval_gone)) ||
	       now == word_at(mailbox, mailbox->addr + offsetof(struct sb_mailbox, eval_next));
}

bool mailbox_busy(const struct mailbox *mailbox)
{
	struct sb_mailbox head;

	return mailbox->remote.async || (read_head(mailbox, &head) && head.busy);
}

bool mailbox_entered(const struct mailbox *mailbox)
{
	struct sb_mailbox head;

	return mailbox->remote.async ||
	       (read_head(mailbox, &head) &&
		(head.busy || memcmp(head.inside, no_threads, sizeof(no_threads)) != 0));
}

bool mailbox_applied(const struct mailbox *mailbox)
{
	struct sb_mailbox head;

	return read_head(mailbox, &head) && head.agent && head.done && head.done == head.asked &&
	       head.status == SB_AGENT_OK;
}

bool mailbox_is_quiet(const struct mailbox *mailbox)
{
	struct sb_mailbox head;

	return !mailbox->remote.async && read_head(mailbox, &head) && !head.busy && !head.queued &&
	       !head.agent && !memcmp(head.inside, no_threads, sizeof(no_threads));
}
