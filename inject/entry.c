/* SPDX-License-Identifier: MIT */
/*
 * In-target code: no libc, no data of its own, no calls out of this section except through the
 * mailbox. It is compiled without sanitizers, stack protector and jump tables (see the Makefile),
 * and the build fails if the section has a relocation.
 */
#include "entry.h"
#include "entry-arch.h"

#define ENTRY_SECTION __attribute__((section("sb_entry"), used, noinline))
#define ENTRY_INLINE  static inline __attribute__((always_inline))

typedef void *dlopen_fn(const char *path, int flags);
typedef void *dlsym_fn(void *handle, const char *name);
typedef int dlclose_fn(void *handle);
typedef char *dlerror_fn(void);
typedef int agent_fn(struct sb_mailbox *mailbox);
typedef int add_pending_fn(int (*function)(void *), void *arg);
typedef int add_any_fn(void *interpreter, int (*function)(void *), void *arg, int flags);
typedef void *state_fn(void);
typedef int int_fn(void);
typedef void release_fn(int state);

enum { LOAD_TRIES = 8, LOAD_NAP_NS = 300000 };

#define CALL(mailbox, type, which) ((type *)(uintptr_t)(mailbox)->function[which])

#pragma GCC poison memcpy memset strlen malloc free printf dlopen dlsym

ENTRY_INLINE void explain(struct sb_mailbox *mailbox)
{
	const char *why = CALL(mailbox, dlerror_fn, ENTRY_DLERROR)();
	unsigned int i = 0;

	for (; why && why[i] && i < sizeof(mailbox->reason) - 1; i++)
		((volatile char *)mailbox->reason)[i] = why[i];
	mailbox->reason[i] = '\0';
}

/* The program may have closed the descriptor and opened another file under its number. */
ENTRY_INLINE int is_image(long fd, const uint64_t id[2])
{
	uint64_t now[2];

	return !entry_file(fd, now) && now[0] == id[0] && now[1] == id[1];
}

ENTRY_INLINE void close_image(long fd, const uint64_t id[2])
{
	if (is_image(fd, id))
		entry_call(SYS_close, (uint64_t)fd, 0, 0);
}

/* Makes a file in memory with the agent in it; returns its descriptor, or less than 0. */
ENTRY_INLINE long make_image(struct sb_mailbox *mailbox, uint64_t id[2])
{
	uint64_t from = (uintptr_t)mailbox + mailbox->image_off,
		 name = (uintptr_t)mailbox->image_name;
	uint32_t done = 0;
	long fd, n;

	fd = entry_call(SYS_memfd_create, name, 1 | 8 /* MFD_CLOEXEC | MFD_NOEXEC_SEAL */, 0);
	if (fd < 0) /* before 6.3 */
		fd = entry_call(SYS_memfd_create, name, 1, 0);
	if (fd < 0 || entry_file(fd, id))
		return -1;
	while (done < mailbox->image_size) {
		n = -1;
		if (is_image(fd, id))
			n = entry_call(SYS_write, (uint64_t)fd, from + done,
				       mailbox->image_size - done);
		if (n <= 0) {
			close_image(fd, id);
			return -1;
		}
		done += (uint32_t)n;
	}
	return fd;
}

ENTRY_INLINE void write_number(volatile char *at, long number)
{
	long unit = 1;

	while (number / unit >= 10)
		unit *= 10;
	for (; unit; unit /= 10)
		*at++ = (char)('0' + number / unit % 10);
	*at = '\0';
}

/* 0: no thread loads or unloads the agent. */
ENTRY_INLINE void set_loader(const struct sb_mailbox *mailbox, uint64_t thread)
{
	struct sb_page_record *record = (struct sb_page_record *)mailbox->record_addr;

	__atomic_store_n(&record->loader, thread, __ATOMIC_SEQ_CST);
}

ENTRY_INLINE void open_image(struct sb_mailbox *mailbox)
{
	volatile uint64_t name[2];
	uint64_t id[2];
	long fd = make_image(mailbox, id);

	if (fd < 0)
		return;
	/* "sb_agent", without a string constant, which would lie outside this section. */
	name[0] = 0x746e6567615f6273;
	name[1] = 0;
	write_number(mailbox->path + mailbox->path_len, fd);
	set_loader(mailbox, entry_thread());
	mailbox->handle = (uintptr_t)CALL(mailbox, dlopen_fn, ENTRY_DLOPEN)(mailbox->path,
									    2 /* RTLD_NOW */);
	set_loader(mailbox, 0);
	if (mailbox->handle)
		mailbox->agent = (uintptr_t)CALL(mailbox, dlsym_fn, ENTRY_DLSYM)(
			(void *)(uintptr_t)mailbox->handle, (const char *)(uintptr_t)name);
	if (!mailbox->agent)
		explain(mailbox);
	close_image(fd, id);
}

/*
 * A thread that closes unknown descriptors may close this one, or one of the dynamic linker's. A
 * Python thread finishes that soon, and does not start again while the GIL is held. Not inlined:
 * all of the code must fit into a page.
 */
ENTRY_SECTION static void load(struct sb_mailbox *mailbox)
{
	volatile int64_t nap[2];

	for (int i = 0; i < LOAD_TRIES && !mailbox->agent; i++) {
		if (i) {
			nap[0] = 0;
			nap[1] = LOAD_NAP_NS;
			entry_sleep((int64_t *)nap);
		}
		open_image(mailbox);
	}
}

ENTRY_INLINE int32_t carry_out(struct sb_mailbox *mailbox)
{
	int32_t status;

	if (!mailbox->agent && mailbox->command == SB_AGENT_STOP)
		return SB_AGENT_OK;
	if (!mailbox->agent) {
		load(mailbox);
		return mailbox->agent ? SB_AGENT_AGAIN : SB_AGENT_LOAD;
	}
	status = SB_AGENT_OK;
	if (mailbox->command != SB_AGENT_STOP || !(mailbox->flags & SB_MAILBOX_ENDED))
		status = ((agent_fn *)(uintptr_t)mailbox->agent)(mailbox);
	if (mailbox->command == SB_AGENT_STOP && status == SB_AGENT_OK) {
		set_loader(mailbox, entry_thread());
		CALL(mailbox, dlclose_fn, ENTRY_DLCLOSE)((void *)(uintptr_t)mailbox->handle);
		set_loader(mailbox, 0);
		mailbox->agent = mailbox->handle = 0;
	}
	return status;
}

ENTRY_INLINE void note_hold(struct sb_mailbox *mailbox, uint64_t since)
{
	uint64_t *held = &mailbox->held_ticks[mailbox->command == SB_AGENT_STOP], ticks;

	ticks = entry_clock() - since;
	if ((int64_t)ticks > 0 && ticks > *held)
		*held = ticks;
}

/* Two calls that were queued at once would do two pieces at once. */
ENTRY_INLINE int too_early(const struct sb_mailbox *mailbox, uint64_t now)
{
	return mailbox->status == SB_AGENT_AGAIN && now - mailbox->paused_at < mailbox->slice_ticks;
}

/*
 * The GIL is held, or (free-threaded) the thread is attached to the interpreter. Whole: the command
 * is not done in pieces.
 */
ENTRY_INLINE void run(struct sb_mailbox *mailbox, int whole)
{
	uint32_t asked = __atomic_load_n(&mailbox->asked, __ATOMIC_ACQUIRE);
	uint64_t since = entry_clock();
	int32_t status;

	if (__atomic_exchange_n(&mailbox->busy, 1, __ATOMIC_ACQ_REL))
		return;
	if (asked != mailbox->done && (whole || !too_early(mailbox, since))) {
		do
			status = carry_out(mailbox);
		while (whole && status == SB_AGENT_AGAIN);
		note_hold(mailbox, since);
		mailbox->status = status;
		if (status == SB_AGENT_AGAIN) {
			mailbox->paused_at = entry_clock();
			__atomic_store_n(&mailbox->pieces, mailbox->pieces + 1, __ATOMIC_RELEASE);
		} else if (status != SB_AGENT_ELSEWHERE) {
			__atomic_store_n(&mailbox->done, asked, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&mailbox->busy, 0, __ATOMIC_RELEASE);
}

ENTRY_SECTION int entry_pending(void *arg)
{
	struct sb_mailbox *mailbox = arg;

	run(mailbox, 0);
	__atomic_sub_fetch(&mailbox->queued, 1, __ATOMIC_ACQ_REL);
	return 0;
}

ENTRY_INLINE int add_pending(struct sb_mailbox *mailbox)
{
	int (*pending)(void *) = (int (*)(void *))(uintptr_t)mailbox->function[ENTRY_PENDING];
	void *interpreter;

	if (mailbox->async_op == ENTRY_QUEUE)
		return CALL(mailbox, add_pending_fn, ENTRY_ADD_PENDING)(pending, mailbox);
	interpreter = CALL(mailbox, state_fn, ENTRY_MAIN_INTERPRETER)();
	return CALL(mailbox, add_any_fn, ENTRY_ADD_ANY)(interpreter, pending, mailbox, 0);
}

ENTRY_INLINE int32_t queue(struct sb_mailbox *mailbox)
{
	__atomic_add_fetch(&mailbox->queued, 1, __ATOMIC_ACQ_REL);
	if (add_pending(mailbox) == 0)
		return ENTRY_OK;
	__atomic_sub_fetch(&mailbox->queued, 1, __ATOMIC_ACQ_REL);
	return ENTRY_FULL;
}

/* An interpreter that has ended holds nothing of the agent any more: no call of it is needed. */
ENTRY_INLINE int32_t without_interpreter(struct sb_mailbox *mailbox)
{
	if (mailbox->command != SB_AGENT_STOP ||
	    (mailbox->agent && !(mailbox->flags & SB_MAILBOX_ENDED)))
		return ENTRY_NOT_READY;
	run(mailbox, 1);
	return ENTRY_OK;
}

ENTRY_INLINE int32_t async(struct sb_mailbox *mailbox)
{
	void *mine, *current;
	int state;

	if (mailbox->async_op == ENTRY_PLAIN) {
		run(mailbox, 1);
		return ENTRY_OK;
	}
	if (!CALL(mailbox, int_fn, ENTRY_IS_INITIALIZED)())
		return mailbox->async_op == ENTRY_ENSURE ? without_interpreter(mailbox) :
							   ENTRY_NOT_READY;
	if (mailbox->async_op == ENTRY_QUEUE || mailbox->async_op == ENTRY_QUEUE_ANY)
		return queue(mailbox);
	mine = CALL(mailbox, state_fn, ENTRY_THIS_STATE)();
	current = CALL(mailbox, state_fn, ENTRY_CURRENT_STATE)();
	if (mailbox->async_op == ENTRY_HERE) {
		if (!mine || mine != current)
			return ENTRY_NOT_READY;
		run(mailbox, 1);
		return ENTRY_OK;
	}
	if (!mine)
		return ENTRY_NO_STATE;
	if (mine == current)
		return ENTRY_HOLDS_GIL;
	state = CALL(mailbox, int_fn, ENTRY_ENSURE_GIL)();
	/*
	 * Calls that are queued already would otherwise stay queued while the main thread sleeps.
	 */
	if (__atomic_load_n(&mailbox->queued, __ATOMIC_ACQUIRE))
		CALL(mailbox, int_fn, ENTRY_MAKE_PENDING)();
	run(mailbox, 0);
	CALL(mailbox, release_fn, ENTRY_RELEASE_GIL)(state);
	if (__atomic_load_n(&mailbox->done, __ATOMIC_ACQUIRE) !=
		    __atomic_load_n(&mailbox->asked, __ATOMIC_ACQUIRE) &&
	    mailbox->status == SB_AGENT_ELSEWHERE)
		return ENTRY_ELSEWHERE;
	return ENTRY_OK;
}

/*
 * First records the thread in `inside`, then checks whether the turn is over. A tracer that ends a
 * turn first and then reads `inside` thus misses no thread: one that has not begun does nothing.
 */
ENTRY_INLINE int32_t async_in_turn(struct sb_mailbox *mailbox, uint32_t at_work)
{
	const unsigned int places = sizeof(mailbox->inside) / sizeof(*mailbox->inside);
	int32_t status = ENTRY_NOT_READY;
	uint64_t self = entry_thread(), none;
	unsigned int i = 0;

	for (none = 0;
	     i < places && !__atomic_compare_exchange_n(&mailbox->inside[i], &none, self, 0,
							__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	     none = 0)
		i++;
	if (i == places)
		return status;
	if (__atomic_load_n(&mailbox->parked, __ATOMIC_SEQ_CST) == at_work)
		status = async(mailbox);
	__atomic_store_n(&mailbox->inside[i], 0, __ATOMIC_SEQ_CST);
	return status;
}

/*
 * Wakes sbinject, as a doorbell does: the thread is to return to the program at once, and not when
 * sbinject looks again.
 */
ENTRY_INLINE void report(const struct sb_mailbox *mailbox)
{
	uint32_t *doorbell =
		&((struct sb_page_notice *)(mailbox->page_addr + mailbox->page.counters_off))
			 ->doorbell;

	__atomic_add_fetch(doorbell, 1, __ATOMIC_ACQ_REL);
	entry_call(SYS_futex, (uint64_t)(uintptr_t)doorbell, 1 /* FUTEX_WAKE */, 0x7fffffff);
}

/* In a mailbox that another sbinject has taken over, a thread that was left behind just leaves. */
ENTRY_SECTION void entry_async(uintptr_t arg)
{
	struct sb_mailbox *mailbox = (struct sb_mailbox *)(arg & ~(uintptr_t)ENTRY_TURNS);
	uint32_t turn = (uint32_t)(arg & ENTRY_TURNS) << ENTRY_TURN_SHIFT;
	uint32_t at_work = turn | ENTRY_AT_WORK, parked = turn | ENTRY_PARKED;
	int32_t status = async_in_turn(mailbox, at_work);
	volatile int64_t nap[2];

	if (__atomic_load_n(&mailbox->parked, __ATOMIC_ACQUIRE) != at_work)
		return;
	mailbox->async_status = status;
	if (!__atomic_compare_exchange_n(&mailbox->parked, &at_work, parked, 0, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	if (!mailbox->confined)
		report(mailbox);
	while (__atomic_load_n(&mailbox->parked, __ATOMIC_ACQUIRE) == parked &&
	       (int64_t)(entry_clock() - __atomic_load_n(&mailbox->async_until, __ATOMIC_ACQUIRE)) <
		       0) {
		if (mailbox->confined) /* suspended while sbinject lives, which may be over */
			continue;
		nap[0] = 0;
		nap[1] = 10000000;
		entry_sleep((int64_t *)nap);
	}
	/*
	 * No tracer has ended its call. From here on a tracer that stops this thread leaves it
	 * alone.
	 */
	__atomic_compare_exchange_n(&mailbox->parked, &parked, turn | ENTRY_LEFT, 0,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
