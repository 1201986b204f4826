/* SPDX-License-Identifier: MIT */
#ifndef SB_ARCH_H
#define SB_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>
#include "inject/plan.h"
#include "src/base/err.h"

/*
 * Everything that differs between processors, as one table of functions. `arch` points at the table
 * of the machine this binary was built for; a new architecture is a new folder that defines it,
 * with its own plan.c, landing.c and stub-code.S.
 *
 * No function here touches a process: registers and bytes are passed in and out as data.
 */
enum {
	ARCH_SITE_MAX = 512,	    /* bytes of one site's stub, at most */
	ARCH_FRAME_MAX = 24 * 1024, /* bytes of a signal frame with its vector state, at most */
	ARCH_XSTATE_MAX = 16 * 1024,
	ARCH_PARTS = 4,
	ARCH_BELL_BACK = 104, /* below a thread's stack pointer while it waits at a doorbell: the
			       * address where it continues */
};

/* The values of the control page that a region's code uses. Addresses are the target's. */
struct arch_env {
	uint64_t header;       /* control page */
	uint64_t record;       /* private record of the address space */
	uint64_t procs;	       /* header + procs_off */
	uint64_t tables;       /* header + threads_off */
	uint64_t counters;     /* from a setting to the counts that belong to it */
	uint64_t most_ticks;   /* bound of every delay and doorbell; see struct sb_page_record */
	uint64_t spans;	       /* header + spans_off */
	uint64_t calls;	       /* header + calls_off */
	uint64_t functions;    /* header + functions_off */
	uint64_t trace, taken; /* header + trace_off, chunks_off; 0: calls are not recorded */
	uint64_t span_size;    /* of a block, bytes */
	uint64_t span_within, span_cost; /* ticks; see struct hook_cost */
	uint64_t value_within, value_cost;
	uint64_t stack;	      /* where the stack of the first thread ends; 0: unknown */
	uint32_t span_blocks; /* 0: no site times calls */
	uint32_t chunks;      /* 0: calls are not recorded */
	uint32_t stacks;      /* 0: without their stacks */
	uint32_t stack_size;  /* as in struct sb_page_header */
	uint64_t stack_list, stacks_taken; /* header + stack_list_off, stacks_off */
	uint64_t common;		   /* the region's common code */
	uint32_t slots;			   /* owned slots a cell, a power of two */
	bool own_slots;			   /* the thread pointer may be read in user space */
};

/* What a site does with a hit. Addresses are the target's. */
enum arch_kind {
	ARCH_HIT,   /* counts it, delays it */
	ARCH_BEGIN, /* and a call begins, whose time is taken */
	ARCH_END,   /* it ends: counts nothing, delays by SB_CELL_DELAY_EXIT */
};

/* As arch_count.follow: the result that the first argument points to. Only of functions that return
 * 0 where they have written it. */
enum { ARCH_FOLLOW_RESULT = 7 };

struct arch_count {
	uint64_t cell; /* of process 0 */
	uint64_t each; /* the function's own counter; 0: none */
	enum arch_kind kind;
	uint16_t function; /* of ARCH_BEGIN, ARCH_END: its number among those timed by themselves;
			      0: none */
	bool values;	   /* of these, too: the cell has values (struct sb_page_cell) */
	uint8_t text;	   /* with ARCH_FOLLOW_RESULT: the argument that is a text; 0: none */
	uint8_t follow;	   /* of ARCH_BEGIN: the argument, 1 to 6, whose memory has the words that
			      are not in registers (struct sb_page_stacked); 0: the stack */
};

struct arch_site {
	uint16_t entry;	    /* offset of the first instruction to run */
	uint16_t displaced; /* offset of the displaced instructions */
	uint16_t size;
	struct plan_pc pcs[PLAN_MAX_INSNS + 1]; /* offsets are from the stub's start */
	size_t n_pcs;
};

struct arch_regs {
	struct user_regs_struct gp;
};

/* A way to run a system call in the target and to return without a tracer. */
struct arch_gadgets {
	uint64_t syscall;   /* `syscall; ret` */
	uint64_t sigreturn; /* loads rt_sigreturn's number and calls it */
	uint64_t pop;	    /* where sigreturn is 0: pops the number's register and returns ... */
	uint64_t bare;	    /* ... to a bare system call instruction */
	uint64_t result;    /* as sigreturn, but keeps a function's result first; 0: none yet */
};

/* The words under a thread's stack pointer while it is in a stub. */
struct arch_spill {
	uint64_t word[16]; /* word[i] is at sp - 8 * (i + 1) */
};

struct arch_part {
	const char *name;
	uint32_t off, size; /* from the beginning of the common code */
};

/* How a thread can be moved out of a region's common code. */
enum arch_leave {
	ARCH_LEAVE_NOT,	   /* unknown: another version's code, or one of the gadgets */
	ARCH_LEAVE_OK,	   /* nothing is lost */
	ARCH_LEAVE_CUT,	   /* a delay is cut short: *cut is what the stub would have recorded */
	ARCH_LEAVE_NOTING, /* its figures are being written: some of them are lost */
};

struct arch_cut {
	uint64_t cell;	/* address in the target */
	uint64_t start; /* clock_read() at the start of the delay */
	uint64_t want;	/* the time that the stub had to spend, ticks */
	bool counted;	/* its cell has counted the hit */
};

struct arch {
	const char *name;
	uint16_t elf_machine;
	int xstate_note; /* PTRACE_GETREGSET's name for the vector registers */

	/* The counter that measures delays. */
	uint64_t (*clock_read)(void);
	/* Does the kernel trust it, and may user space read it? why: at least 128 bytes. */
	bool (*clock_trusted)(char *why, size_t size);
	/* May a program read its thread pointer in user space (AT_HWCAP2)? */
	bool (*thread_pointer_readable)(void);

	/* Common code of a region, common_size bytes, to run at env->common. */
	size_t (*common_size)(void);
	/*
	 * A fault `at` bytes into it: where the thread is to continue instead; 0: it is in no code
	 * whose faults are expected (that which copies Python frames).
	 */
	size_t (*after_fault)(size_t at);
	void (*emit_common)(const struct arch_env *env, uint8_t *buf);
	void (*common_gadgets)(uint64_t common, struct arch_gadgets *out);
	/* Its parts, by name, for profilers: at most ARCH_PARTS, in order. Returns how many. */
	size_t (*common_parts)(struct arch_part *parts);

	/*
	 * One site's stub at address `at`: counts, then the plan's displaced instructions. A hit
	 * that the thread filter leaves out is in `each` all the same. Returns its size, or 0 with
	 * *why.
	 */
	size_t (*emit_site)(const struct arch_env *env, const struct plan *plan,
			    const struct arch_count *count, uint64_t at, uint8_t *buf, size_t cap,
			    struct arch_site *out, enum plan_refusal *why);
	/*
	 * The same for a doorbell: at the dynamic linker's r_brk, or (once) at an interpreter's
	 * start, where it is silent once sbinject has set `quiet` (struct sb_page_proc).
	 */
	size_t (*emit_doorbell)(const struct arch_env *env, const struct plan *plan, uint64_t at,
				bool once, uint8_t *buf, size_t cap, struct arch_site *out,
				enum plan_refusal *why);
	/*
	 * Moves a thread out of a stub without running it: the registers become what they were at
	 * the site's entry, computed from what has been spilled so far; the caller sets the pc.
	 *
	 * leave_site: the pc is `at` bytes into a site's stub, whose code before the displaced
	 * instructions is code[len]. leave_common: the same for a region's common code; it sets the
	 * pc to where the site continues, and leave_site() does the rest.
	 *
	 * half: the function's own counter may have this hit, and its cell does not have it. The
	 * caller sets it: true where leave_common() was called first and found the hit not counted.
	 */
	bool (*leave_site)(const uint8_t *code, size_t len, size_t at,
			   const struct arch_spill *spill, struct arch_regs *regs, bool *half);
	enum arch_leave (*leave_common)(const uint8_t *code, size_t len, size_t at,
					const struct arch_spill *spill, struct arch_regs *regs,
					struct arch_cut *cut);

	/* Bytes of the one-byte hook (`--mechanism int3`); a trap's pc is addr + trap_advance. */
	uint8_t trap_insn[4];
	uint8_t trap_len, trap_advance;
	uint8_t syscall_insn[4];
	uint8_t syscall_len;

	/* Finds gadgets in code; fills what is still 0 in *out. Returns true when complete. */
	bool (*find_gadgets)(const uint8_t *code, size_t len, uint64_t addr,
			     struct arch_gadgets *out);

	uint64_t (*pc)(const struct arch_regs *regs);
	/* A system call that is to be restarted still is: the instruction must precede pc too. */
	void (*set_pc)(struct arch_regs *regs, uint64_t pc);
	/* Prevents a restart: the thread was in a system call that is given up. */
	void (*no_restart)(struct arch_regs *regs);
	uint64_t (*sp)(const struct arch_regs *regs);
	uint64_t (*thread_pointer)(const struct arch_regs *regs);
	/* Is it the address of a C library's thread control block? first: the word it points at. */
	bool (*thread_block)(uint64_t pointer, uint64_t first);
	/* From it, in glibc, the values of the thread's first 32 keys. */
	uint16_t thread_values;

	/*
	 * Bytes for the thread's own stack, ending below its red zone, so that a thread that
	 * reaches the gadget's return without a tracer restores itself by rt_sigreturn:
	 * registers, vector state (xstate as read with NT_X86_XSTATE or its like), signal mask.
	 * A system call that the stop interrupted is restarted. Returns the frame's size (0:
	 * does not fit cap) and its address in *sp, which is the stack pointer to call with.
	 */
	size_t (*build_frame)(const struct arch_regs *regs, const uint8_t *xstate,
			      size_t xstate_len, uint64_t sigmask,
			      const struct arch_gadgets *gadgets, uint8_t *buf, size_t cap,
			      uint64_t *sp);
	/*
	 * The registers that a signal handler will return to, as they lie in memory: in the
	 * signal frame, or in a copy of its ucontext_t. context_next() finds the first such at
	 * or after *at in buf[len]; context_store() changes nothing but the registers.
	 */
	size_t context_size;
	bool (*context_next)(const uint8_t *buf, size_t len, size_t *at, struct arch_regs *regs);
	void (*context_store)(uint8_t *bytes, const struct arch_regs *regs);
	/*
	 * Are the registers at buf[at] the remains of a frame, with a later one over a part of
	 * them? buf is what lies at addr, ARCH_FRAME_MAX before and behind them. A frame leaves out
	 * some of its bytes (siginfo without SA_SIGINFO), in which those of an older one remain.
	 */
	bool (*context_covered)(const uint8_t *buf, size_t len, uint64_t addr, size_t at);
	/*
	 * Registers for a system call at the gadget, on the stack prepared by build_frame().
	 * defer_syscall() turns it into rt_sigreturn, until it has been entered; enter_syscall(),
	 * at its entry, sets the intended number; -1: none, the kernel skips it.
	 */
	void (*prepare_syscall)(struct arch_regs *regs, const struct arch_gadgets *gadgets,
				uint64_t sp, long nr, const uint64_t args[6]);
	void (*defer_syscall)(struct arch_regs *regs, const struct arch_gadgets *gadgets,
			      uint64_t sp);
	void (*enter_syscall)(struct arch_regs *regs, uint64_t sp, long nr);
	/* Registers for a call of a function of one argument. */
	void (*prepare_call)(struct arch_regs *regs, uint64_t sp, uint64_t function, uint64_t arg);
	/*
	 * The thread is on its way out of a system call that returns EINTR at any stop and that the
	 * kernel does not restart; restart_syscall() makes it begin again.
	 */
	bool (*interrupted_for_good)(const struct arch_regs *regs);
	/*
	 * ... that the kernel restarts from its restart block, one per thread; restart_syscall()
	 * makes it begin again where that block is lost.
	 */
	bool (*waits_with_block)(const struct arch_regs *regs);
	void (*restart_syscall)(struct arch_regs *regs);
	/* At a system call's entry: makes the kernel skip it. */
	void (*skip_syscall)(struct arch_regs *regs);
	uint64_t (*syscall_result)(const struct arch_regs *regs);
	uint64_t (*call_result)(const struct arch_regs *regs);
};

extern const struct arch *const arch;

/* Machine code of a function that returns its argument plus one; for calibration. */
extern const uint8_t arch_sample_function[];
extern const size_t arch_sample_size;

/*
 * Functions classed by what a uprobe on their first instruction costs: the kernel emulates some
 * instructions, and runs the others out of line. A sample begins with an instruction of its class
 * and returns.
 */
enum { ARCH_PROBE_KINDS = 4 };
unsigned int arch_probe_kind(const uint8_t *code, size_t len);
/* False: the kernel would run the first instruction wrongly, and harm the threads that pass it. */
bool arch_probe_safe(const uint8_t *code, size_t len);
const uint8_t *arch_probe_sample(unsigned int kind, size_t *len);

#endif
