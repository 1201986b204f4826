/* SPDX-License-Identifier: MIT */
/*
 * Which thread may run Python for sbinject, or queue a call: see mailbox-step.c.
 *
 * With a GIL, a thread without it is outside the interpreter, and having it identifies a thread
 * that is inside. A free-threaded interpreter has many small locks instead (PyMutex), each with a
 * queue of threads that sleep in a semaphore on their own stack (Python/parking_lot.c). Such a
 * thread has detached from the interpreter, and looks as if it slept deliberately. But the thread
 * that unlocks hands the lock to one that has waited for a millisecond, whether that one runs or
 * not. A remote call on the waiter at that moment holds the lock unknowingly, and waits for itself
 * as soon as the command needs that lock: above all the one under which all threads are stopped,
 * which every change of sys.monitoring takes, and under which functions are given their
 * instrumentation. So a waiting thread is used only if it waits for something of the program: a
 * lock of threading, another thread's end.
 */
#include "mailbox-thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "src/base/caps.h"

enum { STACK_ROOM = 256 << 10 };

/*
 * Of an object of a free-threaded interpreter: its type is the last word of its head; of a type:
 * its name follows the head and a size.
 */
enum { TYPE_NAME = 40 };

/* /proc/PID/task/TID/syscall: "nr arg1 .. arg6 sp pc", "running", or "-1 sp pc". */
static bool blocked_in(pid_t pid, pid_t tid, long *nr, uint64_t arg[6], uint64_t *sp)
{
	char path[64], line[256];
	unsigned long long a[6], stack;
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, sizeof(line), f) &&
	     sscanf(line, "%ld %llx %llx %llx %llx %llx %llx %llx", nr, &a[0], &a[1], &a[2], &a[3],
		    &a[4], &a[5], &stack) == 8 &&
	     *nr >= 0;
	fclose(f);
	for (int i = 0; ok && i < 6; i++)
		arg[i] = a[i];
	*sp = ok ? stack : 0;
	return ok;
}

bool mailbox_thread_waits(pid_t tid)
{
	uint64_t arg[6], sp;
	long nr;

	return CAPS(blocked_in(tid, tid, &nr, arg, &sp));
}

static bool in_runtime(const struct mailbox *mailbox, uint64_t addr)
{
	return addr - mailbox->runtime < mailbox->runtime_size;
}

/* ---- the interpreter's queues of sleeping threads ---- */

static uint64_t word_at(const struct mailbox *mailbox, uint64_t addr)
{
	uint64_t word = 0;

	memory_peek(&mailbox->space->mem, addr, &word, sizeof(word));
	return word;
}

/* A mutex in a lock of threading (3.14): first in the object, behind its head. */
static bool is_lock_object(const struct mailbox *mailbox, uint64_t mutex)
{
	uint64_t name_at = word_at(mailbox, word_at(mailbox, mutex - 8) + TYPE_NAME);
	char name[16] = "";

	memory_peek(&mailbox->space->mem, name_at, name, sizeof(name) - 1);
	return !strcmp(name, "_thread.lock") || !strcmp(name, "_thread.RLock");
}

/*
 * The address that a thread in such a queue waits for is directly before its semaphore, and before
 * that a pointer to the place for the answer: for a mutex a time and whether it was handed over,
 * for a queue.SimpleQueue the item, for an event, such as another thread's end, NULL. The
 * interpreter's lock that also has NULL there lies in its runtime.
 */
static bool waits_for_program(const struct mailbox *mailbox, uint64_t semaphore)
{
	uint64_t answer_at = word_at(mailbox, semaphore - 16),
		 what = word_at(mailbox, semaphore - 8);

	if (answer_at)
		return !word_at(mailbox, answer_at) || is_lock_object(mailbox, what);
	return what && mailbox->runtime && !in_runtime(mailbox, what);
}

static bool on_stack_of(const struct mailbox *mailbox, uint64_t sp, uint64_t addr)
{
	const struct map_entry *m;
	struct maps_look look;
	bool on;

	if (addr < sp)
		return false;
	maps_look_open(&look, mailbox->pid);
	m = maps_look_at(&look, sp);
	on = look.failed /* unknown */ || (m && addr < m->end);
	maps_look_close(&look);
	return on;
}

/* ---- sleeping threads ---- */

/*
 * A futex of a condition or a semaphore, not of a lock. libc's own locks (malloc, the dynamic
 * linker) wait by FUTEX_WAIT for the value 2; the interpreter's GIL lies in _PyRuntime.
 */
static bool futex_is_willing(const struct mailbox *mailbox, const uint64_t arg[6], uint64_t sp)
{
	uint64_t op = arg[1] & 0x7f;

	if (mailbox->runtime && in_runtime(mailbox, arg[0]))
		return false;
	if (op != 9 /* FUTEX_WAIT_BITSET */ && (op != 0 || (uint32_t)arg[2] == 2))
		return false;
	return !mailbox->eval || mailbox->gil || !on_stack_of(mailbox, sp, arg[0]) ||
	       waits_for_program(mailbox, arg[0]);
}

/*
 * A call that went on after a stop of the thread shows another number, and its own arguments: a
 * sleep, a poll, or a futex with a timeout, which libc's own locks have not. Without a GIL they do
 * not tell what it waits for.
 */
static bool resumed_is_willing(const struct mailbox *mailbox, const uint64_t arg[6])
{
	return (!mailbox->eval || mailbox->gil) &&
	       !(mailbox->runtime && in_runtime(mailbox, arg[0]));
}

static bool sleeps_willingly(const struct mailbox *mailbox, pid_t tid, uint64_t *sp)
{
	static const long willing[] = {
		SYS_clock_nanosleep, SYS_nanosleep,	  SYS_poll,	     SYS_ppoll,
		SYS_select,	     SYS_pselect6,	  SYS_epoll_wait,    SYS_epoll_pwait,
		SYS_wait4,	     SYS_waitid,	  SYS_read,	     SYS_readv,
		SYS_recvfrom,	     SYS_recvmsg,	  SYS_accept,	     SYS_accept4,
		SYS_pause,	     SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_write,
		SYS_sendto,	     SYS_sendmsg,	  SYS_connect,	     SYS_flock,
	};
	uint64_t arg[6];
	long nr = 0;

	if (!CAPS(blocked_in(mailbox->pid, tid, &nr, arg, sp)))
		return false;
	if (nr == SYS_futex)
		return futex_is_willing(mailbox, arg, *sp);
	if (nr == SYS_restart_syscall)
		return resumed_is_willing(mailbox, arg);
	for (size_t i = 0; i < sizeof(willing) / sizeof(*willing); i++)
		if (willing[i] == nr)
			return true;
	return false;
}

/* Loading a library takes more stack than a remote system call. */
bool mailbox_stack_at(struct maps_look *look, uint64_t sp)
{
	const struct map_entry *m = maps_look_at(look, sp);

	return m && m->w && (!strcmp(m->path, "[stack]") || sp - m->start > STACK_ROOM);
}

static bool is_unfit(const struct mailbox *mailbox, pid_t tid)
{
	for (size_t i = 0; i < mailbox->n_unfit; i++)
		if (mailbox->unfit[i] == tid)
			return true;
	return false;
}

void mailbox_thread_unfit(struct mailbox *mailbox, pid_t tid)
{
	if (mailbox->n_unfit < sizeof(mailbox->unfit) / sizeof(*mailbox->unfit))
		mailbox->unfit[mailbox->n_unfit++] = tid;
}

bool mailbox_thread_fit(const struct mailbox *mailbox, pid_t tid, struct maps_look *look)
{
	uint64_t sp;

	return !is_unfit(mailbox, tid) && sleeps_willingly(mailbox, tid, &sp) &&
	       mailbox_stack_at(look, sp);
}

pid_t mailbox_any_fit(const struct mailbox *mailbox, struct tree *tree)
{
	struct maps_look look;
	struct thread *t;
	pid_t tid = 0, fit = 0;

	maps_look_open(&look, mailbox->pid);
	while (!fit && (t = tree_next_thread(tree, mailbox->space, tid))) {
		tid = t->tid;
		if (mailbox_thread_fit(mailbox, tid, &look))
			fit = tid;
	}
	maps_look_close(&look);
	return fit;
}

/* ---- threads that hold no lock ---- */

/*
 * Code of the program itself: neither the interpreter's, nor that which its locks are made of. The
 * agent's delays count as such.
 */
static bool is_foreign(const struct map_entry *m, const char *interpreter)
{
	static const char *const system[] = { "libc.", "libc-", "ld-", "ld.so", "libpthread" };
	const char *name = m ? strrchr(m->path, '/') : NULL;

	if (!name || !*interpreter || !strcmp(m->path, interpreter))
		return false;
	for (size_t i = 0; i < sizeof(system) / sizeof(*system); i++)
		if (!strncmp(name + 1, system[i], strlen(system[i])))
			return false;
	return strncmp(name, "/memfd:", 7) != 0 || strstr(name, ROOM_AGENT_NAME) != NULL;
}

static bool runs_foreign(const struct mailbox *mailbox, uint64_t pc)
{
	char interpreter[sizeof(((struct maps_look *)0)->path)];
	const struct map_entry *m;
	struct maps_look look;
	bool foreign;

	if (space_region_at(mailbox->space, pc))
		return false;
	maps_look_open(&look, mailbox->pid);
	m = maps_look_at(&look, mailbox->eval);
	snprintf(interpreter, sizeof(interpreter), "%s", m ? m->path : "");
	foreign = is_foreign(maps_look_at(&look, pc), interpreter);
	maps_look_close(&look);
	return foreign;
}

/*
 * The function that runs Python holds no lock of the interpreter itself meanwhile, since the code
 * that it runs may take any. A thread under a lock is further down in the interpreter, or in libc.
 */
bool mailbox_thread_holds_none(const struct mailbox *mailbox, pid_t tid, uint64_t pc)
{
	uint64_t sp;

	if (mailbox_thread_waits(tid))
		return sleeps_willingly(mailbox, tid, &sp);
	return pc - mailbox->eval < mailbox->eval_size || runs_foreign(mailbox, pc);
}
