/* SPDX-License-Identifier: MIT */
#ifndef SB_REMOTE_H
#define SB_REMOTE_H

#include "memory.h"
#include "tree.h"

/*
 * Remote system calls: a thread of the target makes calls for sbinject, for memory and descriptors
 * that only the target itself can make.
 *
 * The hazard is that the tracer dies in the middle and leaves the thread with the registers of the
 * remote call. So before anything else the thread's whole state is stored on its own stack, below
 * the red zone, as the signal frame that the kernel would build. The call runs at a `syscall; ret`
 * found in the target, and the ret leads to rt_sigreturn. A thread without a tracer thus returns by
 * itself from any point. While the tracer lives it restores the registers itself, in a stop from
 * which the kernel restarts what the stop had interrupted, so that no call notices (rt_sigreturn
 * alone would turn a nanosleep's rest into EINTR).
 *
 * All signals are blocked meanwhile (SIGKILL still ends the target). The bytes of stack that were
 * used are restored.
 *
 * remote_begin() chooses a thread: not in a restartable sequence, not deep in the kernel, with
 * enough space under its stack pointer, and if possible one on the stack that it was born with
 * (stack.h). Where all run on stacks of their own making they are all held. On entry no thread need
 * be stopped; between begin and end one thread is. Where more threads are runnable than there are
 * processors, all are stopped: each call has two stops, and at each of them the thread would wait
 * for its turn behind the others.
 */
struct remote {
	struct tree *tree;
	struct thread *thread;
	const struct memory *mem;
	const struct arch_gadgets *gadgets;
	struct arch_regs saved, work;
	uint64_t sigmask;
	uint64_t sp; /* of the frame */
	size_t frame_len;
	uint8_t *stack;	    /* the bytes that were there */
	char locks;	    /* the process locks memory: 'y', 'n', 0: not checked yet */
	bool seccomp;	    /* suspended */
	bool called;	    /* the thread has left its stop */
	bool in_call;	    /* ... and is in a call, not in a stop from which it may be restored */
	bool at_entry;	    /* it is at the entry of a system call */
	bool sigstop;	    /* a SIGSTOP arrived meanwhile */
	bool dispatched;    /* a thread was unfit because its system calls are sent back to it */
	bool was_stopped;   /* by the caller: it stays stopped at the end */
	struct space *held; /* its other threads are held while the remote call lasts */
	pid_t only;	    /* the one thread allowed; 0: any */
	pid_t async;	    /* it runs by itself; see remote_async() */
};

/* Bytes that remote_scratch() gives, below the frame. */
enum { REMOTE_SCRATCH = 64 };

/* Searches the target's code; complete or SB_ETARGET. No thread is stopped. */
struct maps;
/*
 * Is the stopped thread with these registers in a remote call whose tracer is gone? Left alone, it
 * returns from it in microseconds.
 */
bool remote_under_way(const struct memory *mem, const struct arch_gadgets *gadgets,
		      const struct arch_regs *regs);

int remote_find_gadgets(const struct memory *mem, const struct maps *maps, struct arch_gadgets *out,
			struct sb_err *err);

/*
 * Begins a remote call on a thread of any process in this space. Errors: SB_ETARGET (no thread is
 * fit), SB_ECONFINED (seccomp).
 */
struct space;
int remote_begin(struct remote *r, struct tree *tree, struct space *space, const struct memory *mem,
		 const struct arch_gadgets *gadgets, struct sb_err *err);

/* The same with one given thread and no other. */
int remote_begin_on(struct remote *r, pid_t tid, struct tree *tree, struct space *space,
		    const struct memory *mem, const struct arch_gadgets *gadgets,
		    struct sb_err *err);

/* *result: as the kernel returns it (negative errno). SB_ETARGET: the thread was lost. */
int remote_syscall(struct remote *r, long *result, struct sb_err *err, long nr, ...);

enum { REMOTE_MAP_FIRST = 8192 };

/*
 * mmap(2) of len bytes, len / 4096 being at least 2; flags as there. A target that has called
 * mlockall(MCL_FUTURE) would lock them, and so fill a mapping that is to stay sparse, or be refused
 * by its RLIMIT_MEMLOCK. So two pages are mapped, unlocked and then grown to len, with
 * MAP_FIXED_NOREPLACE at addr. SB_ENOMEM: no space at addr. When the thread was lost in the last
 * step, the mapping may exist nevertheless.
 */
int remote_map(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
	       uint64_t *at, struct sb_err *err);

/*
 * The same in two steps, for two remote calls: the first two pages of a file, wherever the kernel
 * has space; later they grow to len, or grow and move to `to`, over what is mapped there. *at:
 * their address; 0 where an answer was lost, in which case the effect may have taken place.
 */
int remote_map_first(struct remote *r, int prot, int flags, long fd, uint64_t *at,
		     struct sb_err *err);
int remote_grow(struct remote *r, uint64_t *at, uint64_t len, struct sb_err *err);
int remote_grow_over(struct remote *r, uint64_t *at, uint64_t to, uint64_t len, struct sb_err *err);

/* Does the process lock what it maps? Known once something is mapped. */
bool remote_locks(struct remote *r);
int remote_unlock_first(struct remote *r, uint64_t at, struct sb_err *err);

/*
 * remote_map() over an existing mapping at addr; len is more than REMOTE_MAP_FIRST. On failure the
 * first two pages may remain where the kernel chose.
 */
int remote_map_over(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
		    uint64_t offset, struct sb_err *err);

/*
 * Puts up to 64 bytes where the target can read them until remote_end(). Returns their address, or
 * 0.
 */
uint64_t remote_scratch(struct remote *r, const void *bytes, size_t len);

/*
 * For functions that take long or make system calls: the tracer lets the thread go, and it runs
 * function(arg) by itself, all signals blocked, on its own stack, while the tracer continues its
 * work. When the function has reported its end, and waits, remote_async_end() restores what the
 * stop had interrupted. A function that returns by itself (the tracer is gone) returns through its
 * signal frame. On failure the thread is already restored. The tree must be the same throughout;
 * the thread may end meanwhile.
 */
int remote_async(struct remote *r, uint64_t function, uint64_t arg, struct sb_err *err);

/*
 * parked: is the thread, which is stopped now, still in its wait? A thread that has left the wait
 * by itself is left alone. True if the thread runs as before the remote call, or is gone; false: it
 * cannot be stopped within timeout_us.
 */
typedef bool remote_parked_fn(void *ctx);
bool remote_async_end(struct remote *r, unsigned int timeout_us, remote_parked_fn *parked,
		      void *ctx);

/* Restores the thread; it runs unless it was stopped before. Also after failures. */
void remote_end(struct remote *r);

#endif
