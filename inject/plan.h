/* SPDX-License-Identifier: MIT */
#ifndef SB_PLAN_H
#define SB_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How one site is hooked: which bytes are replaced, and what the replaced instructions become when
 * they run at another address. Pure: the input is bytes and addresses, the output a plan or a
 * refusal. Nothing of the target is touched, nothing is allocated. All addresses are run-time
 * addresses.
 *
 * A window is the bytes that a jump replaces. It qualifies when it is made of whole instructions,
 * lies on one page (SIGKILL can cut a write across two pages in half), and nothing lands behind its
 * first byte. Three shapes, tried in this order:
 *
 *	body	5 bytes or more of the function:	E:  jmp rel32 stub
 *	tail	a shorter body and no-op padding after,	E:  jmp rel32 stub
 *		or the linker's fill between sections
 *	pre	2 bytes at the entry (padding and fill	E-5: jmp rel32 stub; E: jmp rel8 E-5
 *		after a shorter body count, too), 5 of
 *		padding before it
 *
 * The exit of a function (exits.h) is a site in mid-function whose window ends with it: as few
 * instructions before it as make space for the jump, none where no-ops follow it. Of an exit that
 *runs on into the next function, which may be a no-op, the stub runs behind it. Where that is not
 * enough:
 *
 *	island	2 bytes that end with the exit, and	E: jmp rel8 I; I: jmp rel32 stub
 *		5 of no-ops within reach that never
 *		run, behind a jump or a ret
 *
 *	twin	2 bytes that end with a ret, where	E: jmp rel8 T
 *		another exit T of the function, hooked
 *		itself, has the same instructions
 *
 * An entry of less than 5 bytes without padding in front of it takes an island, too. A twin is safe
 *in whatever order its exit and T are hooked and restored: T does the same, hooked or not.
 *
 * In a function so short that the window of its entry covers an exit, that exit has a stub and no
 * window: the displaced code of the entry's stub leads there (plan_inner()).
 *
 * An endbr64 at the entry stays in place; the window starts after it. So does another first
 * instruction that only pushes a register, moves the stack pointer down or computes a register,
 * where nothing lands behind it: a uprobe that another tool puts on the entry then does no harm.
 */
enum plan_refusal {
	PLAN_OK = 0,
	PLAN_TOO_SHORT,	      /* the body is too short and has no padding to use */
	PLAN_LANDING,	      /* a branch or another symbol lands inside the window */
	PLAN_LOOPS_TO_ENTRY,  /* a branch of the function itself goes to the entry and is out of
			       * reach */
	PLAN_CROSSES_PAGE,    /* the window crosses a page boundary */
	PLAN_UNDECODABLE,     /* an instruction that cannot be decoded */
	PLAN_UNMOVABLE,	      /* an instruction that cannot run elsewhere (e.g. call through rsp) */
	PLAN_OUT_OF_REACH,    /* an operand is farther than +-2 GB from the stub */
	PLAN_MID_INSTRUCTION, /* the address is not the start of an instruction */
	PLAN_GO_NOSPLIT,      /* Go function without stack check, of the runtime or in assembly */
	PLAN_GO_PREEMPT,      /* ... in whose window a goroutine may wait */
	PLAN_TEXTREL,	      /* the module relocates its text */
	PLAN_FILE_CHANGED,    /* while it was read */
	PLAN_TEXT_CHANGED,    /* the memory differs from the file: another tool's hook? */
	PLAN_BREAKPOINT,      /* another tool's breakpoint is the only difference */
	PLAN_INLINE_LOOPS,    /* an inlined copy branches back to where it begins */
	PLAN_INLINE_SEVERAL,  /* an inlined copy begins at more than one place */
	PLAN_NO_ROOM,	      /* no hole for a stub within reach */
	PLAN_OVERLAP,	      /* another hook of sbinject's is there */
	/* Of a function's exits: */
	PLAN_EXIT_INSIDE,      /* the address is no function's entry */
	PLAN_EXIT_NONE,	       /* it has none */
	PLAN_EXIT_ROOM,	       /* there is no space for a jump at one of them */
	PLAN_EXIT_INDIRECT,    /* a jump whose destination is not known: a switch or a tail call */
	PLAN_EXIT_CONDITIONAL, /* a tail call by loop or jrcxz */
	PLAN_EXIT_ELSEWHERE,   /* a jump into the middle of other code */
	PLAN_EXIT_RUNS_ON,     /* where the function ends is not known, or code runs on there */
	PLAN_EXIT_UNDECODABLE, /* an instruction of it cannot be decoded */
	PLAN_EXIT_SHORT,       /* its entry's hook needs the same bytes */
	PLAN_EXIT_GO,	       /* of a timed one: Go moves the stack of a call in progress */
	PLAN_REFUSAL_COUNT
};

/* "a branch lands inside the first 5 bytes (try --mechanism int3)"; never NULL. */
const char *plan_refusal_text(enum plan_refusal why);

enum plan_shape { PLAN_BODY, PLAN_TAIL, PLAN_PRE, PLAN_INT3, PLAN_ISLAND, PLAN_TWIN };

enum {
	PLAN_MAX_SKIPPED = 15, /* bytes of the entry that stay in front of the window */
	PLAN_MAX_WINDOW = 24,  /* 4 bytes of instruction + one of 15, rounded up */
	PLAN_MAX_INSNS = 6,
	PLAN_MAX_RETARGETS = 4,
	PLAN_MAX_RETARGET = 5,	  /* bytes that one changes */
	PLAN_MAX_DISPLACED = 192, /* bytes that plan_emit() may write at most */
};

struct plan_range {
	uint64_t start, end;
};

/* Facts about the site, from the caller. Pointers are borrowed for the call. */
struct plan_request {
	uint64_t addr;		 /* the address to hook */
	uint64_t func, func_end; /* bounds of the function around it; func_end 0: unknown */
	uint64_t prev_end, next; /* nothing but padding between prev_end and func, and between
				    func_end and next; see image_function_room() */
	uint64_t fill_end;	 /* no section holds [func_end, fill_end); 0: unknown */
	uint64_t prev;		 /* where the code that ends at prev_end begins; 0: unknown */
	const uint8_t *text;	 /* bytes of the segment around addr, as in the file */
	uint64_t text_addr;	 /* run-time address of text[0] */
	size_t text_len;
	bool entry;   /* addr is a function's entry: flags are dead by the ABI unless the
			 code reads them, and the red zone is free */
	bool exit;    /* addr is an instruction that leaves the function: a ret, a tail call */
	bool runs_on; /* of an exit: it leaves by running on to func_end, the next function's entry
		       */
	bool islands; /* the shapes with an island and with a twin are allowed */
	const struct plan_range *taken; /* bytes that no island may use */
	size_t n_taken;
	const struct plan
		*twins; /* of other exits of the function, which are hooked if this one is */
	size_t n_twins;
	bool args;     /* of an entry: the hook reads the arguments, so no instruction that writes
			* one may run before it */
	bool ends;     /* of an entry: the exits are hooked, too, and need space */
	bool switches; /* of an exit: the function jumps through tables, which may lead anywhere in
			  it */
	bool leaves; /* of an exit: a conditional jump out of the function is one, too, so none may
		      * run before another exit */
	bool int3;   /* the one-byte hook: always shape PLAN_INT3, one displaced insn */
	bool go; /* Go's code: its runtime looks up the pc of each signal, and aborts on a pc in the
		  * padding, where no instruction is: no jump may be put there */
	bool go_leaf;  /* the entry of a Go function that does not check its stack: see go_leaf of
			  struct plan */
	bool go_waits; /* a goroutine may have been preempted here, and may wait, on no thread, to
			* be resumed: no instruction but the first may begin in the replaced bytes.
			* A stack check is never preempted. */
};

struct plan_insn {
	uint8_t off, len; /* within the window's original bytes */
};

/*
 * A branch of the function itself to its entry, redirected past the hook: Go's way back from
 * morestack is one in each function.
 */
struct plan_retarget {
	uint64_t field;	  /* address of its rel32 field (4 bytes, on one page) */
	uint8_t insn_end; /* bytes from field to the end of the instruction (4) */
	bool widen;	  /* a jump of two bytes at field - 1, followed by traps that never run: it
			   * becomes one of five bytes, all on one page */
};

struct plan {
	enum plan_shape shape;
	uint64_t addr; /* first replaced byte at the entry (after `skipped`) */
	uint8_t len; /* bytes replaced at addr: 5 or more (whole insns), 2 (pre, island, twin), 1 */
	uint64_t pad;	 /* address of the 5 padding bytes used (pre, island), else 0 */
	uint64_t twin;	 /* address of the other exit's window (twin), else 0 */
	uint8_t skipped; /* bytes of the entry's first instruction that stay before addr, or 0 */
	uint8_t pushed;	 /* by which that instruction moves the stack pointer down, bytes */
	uint8_t orig[PLAN_MAX_WINDOW]; /* original bytes at addr: all displaced instructions, and
					  at least len (pre, island and int3 replace fewer than they
					  displace) */
	uint8_t pad_orig[5];
	uint8_t insns;
	uint8_t before; /* of these: run before the stub's own code, the others behind it (exits);
			 * where all do, insn[before] is the end of the window */
	uint8_t inner;	/* a bit for each of these: it is an exit of the function, and another stub
			 * runs in its place (plan_inner()) */
	bool conditional; /* the exit is a conditional jump: the stub's own code runs where it is
			   * taken */
	struct plan_insn insn[PLAN_MAX_INSNS]; /* displaced instructions (padding excluded) */
	uint64_t resume; /* where execution continues after the last displaced instruction */
	bool ends;	 /* the last displaced instruction never falls through (ret, jmp) */
	bool flags_live; /* the stub must keep the arithmetic flags */
	bool entry;	 /* as in the request */
	bool go_leaf;	 /* the stub checks that the goroutine's stack has space for it */
	uint8_t retargets;
	struct plan_retarget retarget[PLAN_MAX_RETARGETS];
};

/* Landings that were found inside candidate windows, see landing.h. */
struct landing_set;

/*
 * Decides. landings may be NULL only where certainly nothing lands (tests). Returns PLAN_OK or the
 * reason; fills *detail (may be NULL) with a short text such as "from 0x1234", or "".
 */
enum plan_refusal plan_make(const struct plan_request *req, const struct landing_set *landings,
			    struct plan *plan, char *detail, size_t detail_size);

/*
 * The exit at address `exit` of the function whose entry has this plan. True: it is among the
 * displaced instructions. *out is then a plan that replaces nothing (its len is 0), for a stub that
 * plan_link() makes the entry's stub go to.
 */
bool plan_inner(struct plan *entry, uint64_t exit, struct plan *out);

/*
 * The same function runs on into the next one, and `exit` is the plan of the no-op at address addr
 * that is its exit. Where the displaced instructions of the entry end just before it, it becomes
 * one of them, so that it is an inner exit, and the bytes of its window stay free.
 */
void plan_append(struct plan *entry, const struct plan *exit, uint64_t addr);

/*
 * The range whose landings plan_make() will look up, for landing_add_window(). len is 0 where the
 * site is refused whatever lands. Cheap: nothing is scanned.
 */
void plan_landing_range(const struct plan_request *req, uint64_t *addr, unsigned int *len);

/* A position in emitted code and the original address it stands for. */
struct plan_pc {
	uint16_t emitted;  /* offset in the emitted bytes */
	uint64_t original; /* the same point of the original code */
};

/*
 * Writes the displaced instructions that run behind the stub's own code as they must be to run at
 * address `at`, followed by a jump to plan->resume unless plan->ends. Branches are widened;
 * RIP-relative operands adjusted; a call pushes the original return address and jumps. pcs
 * (PLAN_MAX_INSNS + 1 entries for both functions) gets one entry for each instruction boundary, so
 * that a thread found there can be moved back. Returns bytes written, or 0 with *why set
 * (PLAN_OUT_OF_REACH). plan_emit_before(): those that run before it, followed by a jump to `hook`;
 * where the exit is conditional, by that condition's jump to it, and a jump to plan->resume.
 */
size_t plan_emit_before(const struct plan *plan, uint64_t at, uint64_t hook, uint8_t *buf,
			size_t cap, struct plan_pc *pcs, size_t *n_pcs, enum plan_refusal *why);
size_t plan_emit(const struct plan *plan, uint64_t at, uint8_t *buf, size_t cap,
		 struct plan_pc *pcs, size_t *n_pcs, enum plan_refusal *why);

/*
 * Leads the emitted instruction at `code`, which runs at address `at` and stands for an inner exit,
 * to the stub at `to`, in the same region.
 */
void plan_link(uint8_t *code, uint64_t at, uint64_t to);

/*
 * The bytes at plan->addr when hooked (plan->len of them; the rest of a window longer than the jump
 * becomes int3, never executed), and at plan->pad. plan_retarget(): the bytes at *addr that make a
 * retarget reach `past` (the emitted displaced code); returns how many, PLAN_MAX_RETARGET at most.
 */
void plan_patch(const struct plan *plan, uint64_t stub, uint8_t *at_addr, uint8_t *at_pad);
unsigned int plan_retarget(const struct plan_retarget *rt, uint64_t past, uint64_t *addr,
			   uint8_t *bytes);

/*
 * The offset of the emitted copy of the instruction that starts at original pc inside the window;
 * -1 if pc is not such a boundary (then the thread is moved on in another way).
 */
int plan_emitted_pc(const struct plan_pc *pcs, size_t n, uint64_t original);

#endif
