/* SPDX-License-Identifier: MIT */
#include "room.h"

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

static uint64_t find_hole(const struct room *room, uint64_t size)
{
	uint64_t hole = 0;
	struct maps maps;

	if (maps_read(room->pid, &maps, NULL) < 0)
		return 0;
	hole = maps_find_gap(&maps, room->space->page_addr, 0, 1ull << 47, size);
	maps_free(&maps);
	return hole;
}

static uint64_t whole_size(const struct room_setup *setup)
{
	return PAGE + ROOM_SIZE + ((setup->agent_size + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

/* at: where there was a hole before the thread was stopped; to find one takes longer than to map.
 */
static int map_hole(struct room *room, struct remote *r, uint64_t at, uint64_t size, long *addr,
		    struct sb_err *err)
{
	int code = 0;

	*addr = -EEXIST;
	for (int i = 0; i < MAP_TRIES && code == 0 && *addr == -EEXIST; i++) {
		if (i)
			at = find_hole(room, size);
		if (!at)
			return err_set(err, SB_ETARGET, "process %d: no room in its memory",
				       room->pid);
		space_announce_room(room->space, at + PAGE, size);
		code = remote_syscall(r, addr, err, SYS_mmap, at, size,
				      (uint64_t)(PROT_READ | PROT_WRITE),
				      (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
						 MAP_FIXED_NOREPLACE),
				      (uint64_t)-1, 0ul);
	}
	return code;
}

/* The code page is never writable: it is written through /proc/PID/mem. */
static int map_room(struct room *room, struct remote *r, uint64_t at,
		    const struct room_setup *setup, struct sb_err *err)
{
	uint64_t size = whole_size(setup);
	long addr = -1, code = -1;

	if (code_size() > PAGE)
		return err_set(err, SB_EINTERNAL, "the entry code does not fit into its page");
	if (map_hole(room, r, at, size, &addr, err) < 0)
		return -SB_ETARGET;
	if (addr <= 0)
		return remote_failed(r, "mmap", addr, err);
	space_announce_room(room->space, (uint64_t)addr + PAGE, size);
	room->space->room_addr = (uint64_t)addr;
	room->space->room_size = size;
	if (fault_point("room-map", room->pid) ||
	    remote_syscall(r, &code, err, SYS_mprotect, (uint64_t)addr, (uint64_t)PAGE,
			   (uint64_t)(PROT_READ | PROT_EXEC), 0ul, 0ul, 0ul) < 0)
		return err_set(err, SB_ETARGET, "fault: room-map");
	if (code < 0)
		return remote_failed(r, "mprotect", code, err);
	room->code = (uint64_t)addr;
	room->addr = (uint64_t)addr + PAGE;
	room->size = size - PAGE;
	return 0;
}

/* The header last: a mailbox that can be found is complete. */
static int write_room(struct room *room, const struct room_setup *setup, struct sb_err *err)
{
	struct sb_room head = {
		.magic = SB_ROOM_MAGIC,
		.version = SB_PAGE_VERSION,
		.size = (uint32_t)room->size,
		.page_addr = room->space->page_addr,
		.record_addr = room->space->record_addr,
		.page = page_layout_of(&room->space->control->page),
		.targets_off = sizeof(head),
		.eval = setup->eval,
		.eval_size = setup->eval_size,
		.gil = setup->gil,
		.slice_ticks = room->space->control->page.lay.tsc_hz / SLICES_A_SECOND,
		.image_off = ROOM_SIZE,
		.image_size = (uint32_t)setup->agent_size,
		.image_name = ROOM_AGENT_NAME,
		.reason = "no file in memory can be made, or it is closed at once", /* until then */
	};
	const struct memory *mem = &room->space->mem;
	int ret = memory_write(mem, room->code, __start_sb_entry, code_size(), err);

	memcpy(head.function, setup->function, sizeof(setup->function));
	head.function[ENTRY_PENDING] = room->code + code_offset((const void *)entry_pending);
	/* Through the descriptor, under a name that no library loaded earlier can have. */
	head.path_len = (uint32_t)snprintf(
		head.path, sizeof(head.path), "/proc/self/fd/%s",
		&"././././././././././././././././"[2 * (room->space->session % 16)]);
	if (ret == 0)
		ret = memory_write(mem, room->addr + ROOM_SIZE, setup->agent, setup->agent_size,
				   err);
	return ret < 0 ? ret : memory_write(mem, room->addr, &head, sizeof(head), err);
}

static void unmap_room(struct room *room, struct remote *r)
{
	long ret;

	if (room->space->room_addr)
		remote_syscall(r, &ret, NULL, SYS_munmap, room->space->room_addr,
			       room->space->room_size, 0ul, 0ul, 0ul, 0ul);
	room->space->room_addr = room->space->room_size = 0;
	space_announce_room(room->space, 0, 0);
}

static int open_borrowed(struct room *room, struct remote *r, uint64_t at,
			 const struct room_setup *setup, struct sb_err *err)
{
	int ret = map_room(room, r, at, setup, err);

	if (ret == 0)
		ret = write_room(room, setup, err);
	if (ret == 0)
		return 0;
	unmap_room(room, r);
	return ret;
}

static struct room *room_new(struct space *space, pid_t pid)
{
	struct room *room = calloc(1, sizeof(*room));

	if (!room)
		abort();
	room->space = space_get(space);
	room->pid = pid;
	room->run_ns = task_run_ns(pid);
	return room;
}

void room_free(struct room *room)
{
	if (!room)
		return;
	space_put(room->space);
	free(room->remote.stack);
	free(room);
}

int room_open(struct room **out, struct space *space, struct tree *tree, pid_t pid,
	      const struct room_setup *setup, struct sb_err *err)
{
	struct room *room = room_new(space, pid);
	uint64_t at = find_hole(room, whole_size(setup));
	struct remote r;
	int ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);

	if (ret == 0) {
		ret = open_borrowed(room, &r, at, setup, err);
		remote_end(&r);
	}
	if (ret < 0) {
		room_free(room);
		return ret;
	}
	room->runtime = setup->runtime;
	room->runtime_size = setup->runtime_size;
	room->eval = setup->eval;
	room->eval_size = setup->eval_size;
	room->gil = setup->gil;
	room->main_only = !setup->function[ENTRY_ADD_ANY];
	page_proc(&space->control->page, space->proc)->room = room->addr;
	*out = room;
	return 0;
}

/* ---- copies ---- */

static int write_word(const struct room *room, size_t offset, uint32_t value)
{
	return memory_write(&room->space->mem, room->addr + offset, &value, sizeof(value), NULL);
}

static bool read_head(const struct room *room, struct sb_room *head)
{
	return memory_peek(&room->space->mem, room->addr, head, sizeof(*head)) == sizeof(*head) &&
	       head->magic == SB_ROOM_MAGIC && head->version == SB_PAGE_VERSION;
}

/*
 * The child may have been copied before the list or the command was written: it receives what its
 * parent has by now. Whether it has carried that out is a separate question.
 */
static void tell_child(struct room *room, const struct room *parent)
{
	const struct memory *mem = &room->space->mem;
	struct sb_room head, own;
	char *list;

	room->under_way = true;
	if (!read_head(parent, &head) || !read_head(room, &own))
		return;
	room->under_way = parent->under_way || own.done != parent->asked;
	list = own.list != head.list ? malloc(ROOM_SIZE) : NULL;
	if (list && memory_peek(&parent->space->mem, parent->addr, list, ROOM_SIZE) == ROOM_SIZE) {
		memory_write(mem, room->addr + sizeof(head), list + sizeof(head),
			     ROOM_SIZE - sizeof(head), NULL);
		write_word(room, offsetof(struct sb_room, n_targets), head.n_targets);
		write_word(room, offsetof(struct sb_room, list), head.list);
	}
	free(list);
	if (own.asked == parent->asked)
		return;
	write_word(room, offsetof(struct sb_room, command), head.command);
	write_word(room, offsetof(struct sb_room, asked), parent->asked);
}

static const uint64_t nobody[sizeof(((struct sb_room *)0)->inside) / sizeof(uint64_t)];

struct room *room_fork(const struct room *parent, struct space *space, pid_t child)
{
	struct room *room = room_new(space, child);

	room->code = parent->code;
	room->addr = parent->addr;
	room->size = parent->size;
	room->runtime = parent->runtime;
	room->runtime_size = parent->runtime_size;
	room->eval = parent->eval;
	room->eval_size = parent->eval_size;
	room->gil = parent->gil;
	room->main_only = parent->main_only;
	room->asked = parent->asked;
	tell_child(room, parent);
	/* The threads at work in the parent do not exist in the child. */
	write_word(room, offsetof(struct sb_room, busy), 0);
	write_word(room, offsetof(struct sb_room, parked), 0);
	memory_write(&space->mem, room->addr + offsetof(struct sb_room, inside), nobody,
		     sizeof(nobody), NULL);
	return room;
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
static void end_turn(struct room *room, struct tree *tree)
{
	struct sb_room head;

	if (!read_head(room, &head))
		return;
	room->turn = ((head.parked >> ENTRY_TURN_SHIFT) + 1) & ENTRY_TURNS;
	write_word(room, offsetof(struct sb_room, parked),
		   room->turn << ENTRY_TURN_SHIFT | ENTRY_LEFT);
	if (!read_head(room, &head))
		return;
	for (size_t i = 0; i < sizeof(head.inside) / sizeof(*head.inside); i++)
		if (head.inside[i] && !has_thread(tree, room->space, head.inside[i]))
			memory_write(&room->space->mem,
				     room->addr + offsetof(struct sb_room, inside[i]), nobody,
				     sizeof(*nobody), NULL);
}

struct room *room_load(struct space *space, struct tree *tree, pid_t pid)
{
	struct room *room;
	struct sb_room head;

	if (!space->room_addr)
		return NULL;
	room = room_new(space, pid);
	room->code = space->room_addr;
	room->addr = space->room_addr + PAGE;
	room->size = space->room_size - PAGE;
	if (!read_head(room, &head)) {
		room_free(room);
		return NULL;
	}
	room->asked = head.asked;
	room->eval = head.eval;
	room->eval_size = head.eval_size;
	room->gil = head.gil;
	room->main_only = !head.function[ENTRY_ADD_ANY];
	end_turn(room, tree);
	return room;
}

/* ---- messages through it ---- */

struct list_writer {
	struct sb_room_target *target;
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

int room_targets(struct room *room, const struct room_target *target, size_t n, struct sb_err *err)
{
	size_t table = n * sizeof(struct sb_room_target), body = ROOM_SIZE - sizeof(struct sb_room);
	char *bytes = calloc(1, body);
	struct list_writer w;
	struct sb_room head;
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
	if (!read_head(room, &head) ||
	    memory_write(&room->space->mem, room->addr + sizeof(head), bytes, table + w.used, err) <
		    0 ||
	    write_word(room, offsetof(struct sb_room, n_targets), (uint32_t)n) < 0 ||
	    write_word(room, offsetof(struct sb_room, list), head.list + 1) < 0)
		goto out;
	ret = 0;
out:
	free(bytes);
	if (ret < 0 && err && !err->code)
		err_set(err, (enum sb_code) - ret, "process %d: the list of Python targets %s",
			room->pid,
			ret == -SB_ENOMEM ? "is too long (64 KiB)" : "could not be written");
	return ret;
}

void room_ask(struct room *room, enum sb_agent_command command)
{
	room->asked++;
	room->under_way = true;
	room->asked_ns = room->queued_ns = 0;
	room->queue_from = room->queuer = 0;
	room->n_unfit = 0;
	room->queued_any = false;
	room->waits_for = NULL;
	room->not_ready = false;
	write_word(room, offsetof(struct sb_room, command), command);
	write_word(room, offsetof(struct sb_room, asked), room->asked);
}

bool room_asked(const struct room *room)
{
	return room->under_way;
}

void room_answer(const struct room *room, struct room_answer *out)
{
	struct sb_room head;

	memset(out, 0, sizeof(*out));
	if (!read_head(room, &head)) {
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

bool room_ended(struct room *room)
{
	uint32_t flags = 0;
	bool ended;

	memory_peek(&room->space->mem, room->addr + offsetof(struct sb_room, flags), &flags,
		    sizeof(flags));
	ended = flags & SB_ROOM_ENDED && !room->ended;
	room->ended = flags & SB_ROOM_ENDED;
	return ended;
}

static uint64_t word_at(const struct room *room, uint64_t addr)
{
	uint64_t word = 0;

	memory_peek(&room->space->mem, addr, &word, sizeof(word));
	return word;
}

bool room_dropped(const struct room *room)
{
	uint64_t at = word_at(room, room->addr + offsetof(struct sb_room, eval_at)), now;

	if (!at)
		return false;
	now = word_at(room, at);
	return now == word_at(room, room->addr + offsetof(struct sb_room, eval_gone)) ||
	       now == word_at(room, room->addr + offsetof(struct sb_room, eval_next));
}

bool room_busy(const struct room *room)
{
	struct sb_room head;

	return room->remote.lent || (read_head(room, &head) && head.busy);
}

bool room_is_quiet(const struct room *room)
{
	struct sb_room head;

	return !room->remote.lent && read_head(room, &head) && !head.busy && !head.queued &&
	       !head.agent && !memcmp(head.inside, nobody, sizeof(nobody));
}
