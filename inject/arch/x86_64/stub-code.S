/* SPDX-License-Identifier: MIT */
/*
 * The code that runs inside the target.
 *
 * None of it runs here: these are templates in .rodata that stub.c copies into a region of the
 * target, with addresses filled in. A region holds one copy of the common code (slow path,
 * doorbell, gadgets) and one site after another:
 *
 *	site:	spill; find the cell of this process and target; count; restore
 *		displaced instructions, relocated; jmp back
 *
 * What the code relies on, and preserves:
 *
 * - At a function's entry the 128 bytes under rsp are dead (the red zone belongs to the callee,
 *   which has not begun), and the kernel leaves them alone when it delivers a signal. So everything
 *   is spilled there and rsp never moves: an unwinder or a signal handler sees the frame of an
 *   ordinary call. In mid-function the red zone may be live; those sites step over it first.
 * - Every register is restored, caller-saved ones too: with -fipa-ra a compiler uses the registers
 *   that its own callee leaves unchanged. Arithmetic flags are kept where the code that follows
 *   reads them (plan.h decides). No vector register is touched.
 * - No lock, no allocation, no system call (except in the doorbell), and no call (except of the code
 *   that copies Python frames, which makes none), so that a site may be in malloc, in a signal handler, in a vfork child or under seccomp.
 * - A signal may arrive between any two instructions and its handler may enter the same site: an
 *   owned slot is changed by single instructions only.
 * - The exit test of the spin is `now - start >= delta` without sign: a clock that steps back ends
 *   the spin instead of hanging the thread.
 * - Any process that maps the page can write its rear, also a fork with fewer rights, and on old
 *   kernels its front as well: no value that is read there becomes an address, or the length of a
 *   loop, without a bound in the code or in the private record.
 * - A setting and its counts lie a fixed distance apart, counters_off: it is added to the cell's
 *   address while RDFSBASE takes its time, and not to the index that results from RDFSBASE.
 *
 * Spill area, under rsp:
 *	-8 rax  -16 rcx  -24 rdx  -32 flags  -40 rbx  -48 rsi  -56 rdi
 *	-64 r8  -72 r9  -80 r10  -88 r11
 *	of a site: -96 its kind  -104 ~FS base, 0: not read; then a call's parent
 *		-112 the process's calls, then rbx  -120 a call's entry, then the event's kind
 *		-128 rsi
 *		of a delay that is recorded: -120 its length, then the kind
 *	of an entry with values, of which some are not in registers: -120 the arguments' hash
 *		-128 1 if they are known
 *	of an exit with values, above rsp, where it has stepped over a red zone that is dead at an
 *	exit: 0 zero, 8 to 48 the arguments, 56 what is returned; 64 places of its record
 *		80 to 112 words that are not in registers, 120 1 if these are known
 *		with a text: 112 how much of it there is at most
 *	of an exit whose first argument points to a result: 80 that, 120 1 if it is known; 88 the
 *		address of a text, 96 its places, 104 its length; 112 the address of the result
 *	of a call whose stack is copied, in the end: 64 the place's number, 72 to 88 rcx, rdi, r10
 *	of a doorbell: -96 its ticket  -104 its return address  -112 time of the ring
 */

#include "stub-offsets.h"

/*
 * Ticks to spend from which on the clock is read once more behind the end of a spin. The end is a
 * mispredicted branch or not, as the delay and the calls before have it, which is 5 ns or more: read
 * behind it, it is part of the time given. A shorter delay has no time for a second reading.
 *
 * In front of that reading the stub waits for 0 to 31 cycles, by a hash of the start. Reason: a clock
 * that ticks in steps of 10 ns falls into step with a loop of calls of a constant length, and the
 * elapsed time is then too long or too short by the same part of a step at each call.
 */
#define READ_AGAIN 160

/*
 * A start that has not been read: where each Nth hit is delayed, the clock is read once it is known
 * that this is one. Else each hit in between waits for it, and for the work before it: 28 ns instead
 * of 6. The delay is then longer by what comes before its start, up to 9 ns.
 */
#define UNREAD 1

	.section .rodata.sb_stub, "a", @progbits

/*
 * Spills a register. The spilled value stays valid in memory until the stub is left, so the state
 * at the site's entry can be computed at any instruction from the spills before it (leave.c):
 * stub_spills lists all of them. num: enum stub_spilled of stub.h.
 */
.macro SPILL num, reg, at
	mov	\reg, -\at(%rsp)
.Lspill\@:
	.pushsection .data.rel.ro.sb_spills, "aw", @progbits
	.quad	.Lspill\@
	.long	\num, \at
	.popsection
.endm
#define SPILL_RAX	SPILL 0, %rax, 8
#define SPILL_RCX	SPILL 1, %rcx, 16
#define SPILL_RDX	SPILL 2, %rdx, 24
#define SPILL_FLAGS	SPILL 3, %rax, 32
#define SPILL_RBX	SPILL 4, %rbx, 40
#define SPILL_RSI	SPILL 5, %rsi, 48
#define SPILL_RDI	SPILL 6, %rdi, 56
#define SPILL_R8	SPILL 7, %r8, 64
#define SPILL_R9	SPILL 8, %r9, 72
#define SPILL_R10	SPILL 9, %r10, 80
#define SPILL_R11	SPILL 10, %r11, 88
	.section .data.rel.ro.sb_spills, "aw", @progbits
	.balign	8
	.globl	stub_spills
stub_spills:
	.section .rodata.sb_stub, "a", @progbits

/*
 * A site. The word that it passes to the slow path in eax says what the site is: KIND_OPEN, the
 * entry of a function that is timed; KIND_CLOSE, one of its exits; with either, what is done with the
 * call's values; in its second byte, the distance from rsp to the function's return address; above
 * that, the number of the function among those whose calls are also timed by themselves, 0: none.
 * stub.c fills it in.
 *
 * own: count in the thread's own slot; otherwise in a shared one with a lock prefix. flags:
 * keep the arithmetic flags. mid: step over the red zone. each: count in the function's own counter
 * as well. go: the entry of a Go function that does not check its stack. close: nothing is counted here.
 * The path to the slow path is placed before the entry, so that the displaced code can follow the
 * end.
 *
 * Go: no check has ensured 128 bytes under rsp. r14 is the goroutine, whose first word is the end
 * of its stack, and r12 and r13 are free at an entry (Go's ABIInternal). Where there is no space
 * the call is counted in a shared slot, without a delay and without the stack. rsp stays unchanged
 * throughout, and the pc is not in Go's code, so that neither a preemption nor a scan of the stack
 * takes place here.
 */
.macro SITE name, own, flags, mid, each, go=0, close=0
	.balign	16
\name:
.if \go
	movabs	$0, %r13
.L\name\()_lowrec = . - 8
	movabs	$0, %r12
.L\name\()_lowcell = . - 8
	add	(%r13), %r12
	cmpl	$STATE_COUNT, CELL_STATE(%r12)
	jb	.L\name\()_end
	testl	$FLAG_THREADS, CELL_FLAGS(%r12)
	jnz	.L\name\()_end
	.byte	0x4c, 0x03, 0x25	/* add common's counters_off(%rip), %r12 */
	.long	0
.L\name\()_lowbase = . - 4
	lock incq 0x7fffffff(%r12)
.L\name\()_lowslot = . - 4
.if \each
	movabs	$0, %r13
.L\name\()_loweach = . - 8
	lock incq (%r13)
.else
.L\name\()_loweach = \name
.endif
	jmp	.L\name\()_end
.else
.L\name\()_lowrec = \name
.L\name\()_lowcell = \name
.L\name\()_lowslot = \name
.L\name\()_lowbase = \name
.L\name\()_loweach = \name
.endif
.L\name\()_slow:
	SPILL_RDX
.if \own
	jmp	.L\name\()_slow_saved
.L\name\()_taken:
	.byte	0x48, 0x2b, 0x0d	/* sub common's counters_off(%rip), %rcx */
	.long	0
.else
.L\name\()_taken = \name - 3
.endif
.L\name\()_slow_saved:
	lea	.L\name\()_done(%rip), %rdx
.L\name\()_kind:
	.byte	0xb8			/* mov $kind, %eax */
	.long	0
.L\name\()_jmp:
	.byte	0xe9			/* jmp common slow path */
	.long	0
.L\name\()_entry:
.if \mid
	lea	-128(%rsp), %rsp
.endif
.if \go
	lea	-128(%rsp), %r12
	cmp	%r12, (%r14)
	ja	\name
.endif
	SPILL_RAX
	SPILL_RCX
.if \flags
	lahf
	seto	%al
	SPILL_FLAGS
.endif
.L\name\()_rec:
	.byte	0x48, 0xb8		/* movabs $record, %rax */
	.quad	0
.L\name\()_cell:
	.byte	0x48, 0xb9		/* movabs $cell of process 0, %rcx */
	.quad	0
	add	(%rax), %rcx
.if \close
	cmpl	$STATE_SLOW, CELL_STATE(%rcx)
	jae	.L\name\()_slow
.L\name\()_each = \name - 2
.L\name\()_base = \name - 3
.L\name\()_mask = \name - 1
	jmp	.L\name\()_out
.else
	cmpl	$STATE_COUNT, CELL_STATE(%rcx)
	jb	.L\name\()_out
.if \each
.L\name\()_each:
	.byte	0x48, 0xb8		/* movabs $counter, %rax */
	.quad	0
	lock incq (%rax)
	cmpl	$STATE_COUNT, CELL_STATE(%rcx)
.else
.L\name\()_each = \name - 2
.endif
	ja	.L\name\()_slow
	SPILL_RDX
.L\name\()_base:
	.byte	0x48, 0x03, 0x0d	/* add common's counters_off(%rip), %rcx */
	.long	0
.if \own
	rdfsbase %rdx
	mov	%edx, %eax
	shr	$2, %eax
.L\name\()_mask:
	.byte	0x25			/* and $(slots - 1) << 10, %eax */
	.long	0
	not	%rdx
	cmp	%rdx, CELL_SLOT+SLOT_OWNER(%rcx,%rax)
	jne	.L\name\()_taken
	incq	CELL_SLOT+SLOT_HITS(%rcx,%rax)
.else
	mov	%esp, %eax
	shr	$2, %eax
	and	$(15 << 10), %eax
.L\name\()_mask:
	.byte	0x05			/* add $slots << 10, %eax */
	.long	0
	lock incq CELL_SLOT+SLOT_HITS(%rcx,%rax)
.endif
.endif
.L\name\()_done:
	mov	-24(%rsp), %rdx
.L\name\()_out:
.if \flags
	mov	-32(%rsp), %rax
	add	$0x7f, %al
	sahf
.endif
	mov	-16(%rsp), %rcx
	mov	-8(%rsp), %rax
.if \mid
	lea	128(%rsp), %rsp
.endif
.L\name\()_end:
.endm

SITE site_own,			1, 0, 0, 0
SITE site_own_flags,		1, 1, 0, 0
SITE site_own_mid,		1, 1, 1, 0
SITE site_shared,		0, 0, 0, 0
SITE site_shared_flags,		0, 1, 0, 0
SITE site_shared_mid,		0, 1, 1, 0
SITE each_own,			1, 0, 0, 1
SITE each_own_flags,		1, 1, 0, 1
SITE each_own_mid,		1, 1, 1, 1
SITE each_shared,		0, 0, 0, 1
SITE each_shared_flags,		0, 1, 0, 1
SITE each_shared_mid,		0, 1, 1, 1
SITE go_own,			1, 0, 0, 0, 1
SITE go_shared,			0, 0, 0, 0, 1
SITE go_each_own,		1, 0, 0, 1, 1
SITE go_each_shared,		0, 0, 0, 1, 1
SITE site_close,		0, 1, 1, 0, 0, 1

/*
 * Adds one delayed hit to slot %rsi: %rax ticks given, %rdx of them in excess of the delay, without
 * overrun. Clobbers rax, rcx, rdx, rdi.
 */
.macro ACCOUNT lock
	\lock addq %rax, SLOT_INJECTED(%rsi)
	xor	%eax, %eax
	test	%rdx, %rdx
	cmovs	%rax, %rdx
	shr	$2, %rdx		/* SB_PAGE_BUCKET_SHIFT */
	cmp	$4, %rdx
	jb	7f
	bsr	%rdx, %rcx
	mov	%ecx, %eax
	sub	$2, %ecx
	shr	%cl, %rdx
	and	$3, %edx
	lea	-4(%rdx,%rax,4), %rdx
	mov	$BUCKETS - 1, %eax
	cmp	%rax, %rdx
	cmova	%rax, %rdx
7:	\lock incq SLOT_BUCKET(%rsi,%rdx,8)
.endm

/* rdi: the struct sb_page_span of this thread and cell; none: where there is none. Clobbers rcx. */
.macro SPAN_SLOT none
	movzwl	CELL_SPAN(%r8), %ecx
	and	.Lspan_mask(%rip), %ecx
	jz	\none
	imul	.Lspan_size(%rip), %rcx
	add	.Lspans(%rip), %rcx
	mov	%rsi, %rdi
	sub	%r8, %rdi
	sub	.Lcounters(%rip), %rdi		/* CELL_SLOT + slot << 10 */
	lea	(%rdi,%rdi,4), %rdi
	lea	-10 * CELL_SLOT(%rcx,%rdi,2), %rdi
.endm

/* Where the calls in progress of this process are. Clobbers rax. */
.macro FIND_CALLS
	mov	.Lrecord(%rip), %rax
	mov	REC_CALLS(%rax), %rax
	add	.Lcalls(%rip), %rax
	mov	%rax, -112(%rsp)
.endm

/* rax: the address of the function's return address; rdx: the set of its call. */
.macro CALL_SET
	movzbl	-95(%rsp), %eax
	add	%rsp, %rax
	mov	%rax, %rdx
	imul	.Lmix(%rip), %rdx
	shr	$64 - CALL_SET_BITS, %rdx
	shl	$CALL_SET_SHIFT, %rdx
	add	-112(%rsp), %rdx
.endm

/* to: the record of the thread whose ~FS base is in rax; ZF: it has one. Else the last of its group. */
.macro THREAD_RECORD to
	mov	%rax, \to
	imul	.Lmix(%rip), \to
	shr	$64 - GROUP_BITS, \to
	shl	$GROUP_SHIFT, \to
	add	-112(%rsp), \to
	add	$THREADS_OFF, \to
	cmp	%rax, THREAD_OWNER(\to)
	je	.Lthread\@
.rept GROUP_SIZE - 1
	add	$THREAD_SIZE, \to
	cmp	%rax, THREAD_OWNER(\to)
	je	.Lthread\@
.endr
.Lthread\@:
.endm

/*
 * rec: a free record of the group whose last one it is, or that of a thread which is in no call, for
 * the thread whose ~FS base is in rax, which goes to rdx; none: there is none. Clobbers rax, count.
 */
.macro CLAIM_RECORD rec, count, none
	mov	%rax, %rdx
	mov	$2 * GROUP_SIZE, \count
.Lclaim_next\@:
	mov	THREAD_OWNER(\rec), %rax
	test	%rax, %rax
	jz	.Lclaim_this\@
	cmp	$GROUP_SIZE, \count
	ja	.Lclaim_not\@
	cmpq	$0, THREAD_CALL(\rec)
	jne	.Lclaim_not\@
.Lclaim_this\@:
	lock cmpxchg %rdx, THREAD_OWNER(\rec)
	je	.Lclaimed\@
.Lclaim_not\@:
	sub	$THREAD_SIZE, \rec
	dec	\count
	jz	\none
	cmp	$GROUP_SIZE, \count
	jne	.Lclaim_next\@
	add	$GROUP_SIZE * THREAD_SIZE, \rec
	jmp	.Lclaim_next\@
.Lclaimed\@:
.endm

/* Raises a figure of slot %rdi to %rcx. Clobbers rax. */
.macro RAISE lock, figure
	mov	\figure(%rdi), %rax
7:	cmp	%rax, %rcx
	jbe	8f
	\lock cmpxchg %rcx, \figure(%rdi)
	jne	7b
8:
.endm

/*
 * Adds one call to slot %rdi: %r10 ticks, %rcx without its children, made within the calls of %r9.
 * Clobbers rax, rcx, rdx.
 *
 * An owned slot keeps the call in SPAN_LAST, and puts the one before into its bucket. Reason: the
 * address of the bucket is then known long before this call's time is, and no load behind it waits
 * for the clock (9 ns).
 */
.macro ADD_SPAN lock
	\lock incq SPAN_CALLS(%rdi)
	\lock addq %r10, SPAN_TICKS(%rdi)
	bt	$63, %r9
	jnc	1f
	\lock incq SPAN_APART(%rdi)
	jmp	2f
1:	\lock addq %rcx, SPAN_OWN(%rdi)
2:	movzbl	CELL_SPAN_BIT(%r8), %ecx
	bt	%rcx, %r9
	jc	3f
	\lock addq %r10, SPAN_OUTER(%rdi)
3:	mov	%r10, %rcx
	RAISE	\lock, SPAN_MOST
	not	%rcx
	RAISE	\lock, SPAN_INV_LEAST
.ifb \lock
	mov	SPAN_LAST(%rdi), %rax
4:	lea	1(%r10), %rcx
	mov	%rax, %rdx
	cmpxchg	%rcx, SPAN_LAST(%rdi)
	jne	4b			/* a signal handler's call came in between */
	test	%rdx, %rdx
	jz	6f
	lea	-1(%rdx), %rax
.else
	mov	%r10, %rax
.endif
	cmp	$32, %rax
	jb	5f
	mov	%rax, %rdx
	bsr	%rax, %rcx
	lea	-4(%rcx), %eax
	shl	$5, %eax
	sub	$5, %ecx
	shr	%cl, %rdx
	and	$31, %edx
	add	%edx, %eax
	mov	$SPAN_BUCKETS - 1, %edx
	cmp	%edx, %eax
	cmova	%edx, %eax
5:	\lock incq SPAN_BUCKET(%rdi,%rax,8)
6:
.endm

/* hash: of arguments, so far, and one more. */
.macro HASH hash, argument
	rol	$11, \hash
	xor	\argument, \hash
.endm

/* Keeps a spilled argument of the call whose entry is rdx. Clobbers rdi. */
.macro KEEP number, at
	mov	-\at(%rsp), %rdi
	mov	%rdi, ARGUMENTS_OFF + 8 * (\number - 1)(%rdx)
.if \number == 1
	mov	%rdi, %rcx
.else
	HASH	%rcx, %rdi
.endif
.endm

/* Takes an argument out of the entry again. Clobbers r10. */
.macro TAKE number
	mov	ARGUMENTS_OFF + 8 * (\number - 1)(%rdx), %r10
	mov	%r10, 8 * \number(%rsp)
.if \number == 1
	mov	%r10, %rcx
.else
	HASH	%rcx, %r10
.endif
.endm

/* Puts the value of a descriptor into `to`, raw. Clobbers rax. */
.macro VALUE descriptor, to
	mov	\descriptor, %al
	and	$15, %eax
	mov	(%rsp,%rax,8), %rax
	testb	$VALUE_UPPER, \descriptor
	jz	.Lvalue\@
	shr	$32, %rax
.Lvalue\@:
	mov	%rax, \to
.endm

/*
 * Places of a record with the cell's values: at most 8, its own included, those of a text, and that
 * of a stack.
 */
.macro PLACES to
	movzbl	CELL_SHAPE(%r8), \to
	and	$7, \to
	testb	$KIND_VALUES, -96(%rsp)
	jnz	.Lvalued\@
	xor	\to, \to
.Lvalued\@:
	inc	\to
	add	.Lstack_place(%rip), \to
	testb	$KIND_RESULT, -96(%rsp)
	jz	.Lplaces\@
	add	96(%rsp), \to
.Lplaces\@:
.endm

/*
 * to: the first of four places in private memory for the pointers of the call whose return address is
 * at `at`; the others are next to it. A call claims a free one, or takes the last. Two calls may use
 * that at once, so a place contains the call's `at`, which is written last and read last, and the hash
 * of the arguments.
 */
.macro KEPT at, to
	mov	\at, \to
	imul	.Lmix(%rip), \to
	shr	$64 - KEPT_BITS, \to
	shl	$KEPT_SHIFT, \to
	add	.Lrecord(%rip), \to
	add	$REC_KEPT, \to
.endm

/* To `target` if the record takes more than one place. Clobbers rsi. */
.macro WIDE target
	movzbl	.Lwide(%rip), %esi
	testb	%sil, -96(%rsp)
	jnz	\target
.endm

/* eax: the words of a call that are not in registers, at most 7 by what the cell says; ZF: none. */
.macro STACKED
	movzbl	CELL_SHAPE(%r8), %eax
	shr	$SHAPE_STACKED, %eax
	and	$7, %eax
.endm

/*
 * rsi: the first of the places that it reserves in chunk rcx, whose number goes to 64(%rsp); "below"
 * if they end before the chunk does.
 */
.macro WIDE_RESERVE
	PLACES	%esi
	mov	%rsi, 64(%rsp)
	xadd	%rsi, CHUNK_USED(%rcx)
	mov	%rsi, 72(%rsp)
	add	64(%rsp), %rsi
	cmp	$EVENTS, %rsi
	mov	72(%rsp), %rsi
.endm

/* Those that are in the chunk are none. Clobbers rsi, rdx. */
.macro WIDE_VOID
	mov	64(%rsp), %edx
.Lvoid\@:
	cmp	$EVENTS, %rsi
	jae	.Lvoided\@
	lea	(%rsi,%rsi,2), %rax
	movq	$-1, CHUNK_EVENTS+EVENT_TICKS(%rcx,%rax,8)
	inc	%rsi
	dec	%edx
	jnz	.Lvoid\@
.Lvoided\@:
.endm

	.balign	64
stub_common:
.Lheader:	.quad	0	/* address of the control page */
.Lrecord:	.quad	0	/* address of the private record */
.Lprocs:	.quad	0	/* address of the process table */
.Ltables:	.quad	0	/* address of the thread filter's tables */
.Lmost:		.quad	0	/* ticks: the longest delay where the record has none */
.Lring_most:	.quad	0	/* ... and the longest wait for a doorbell's answer */
.Lcounters:	.quad	0	/* counters_off */
.Lcalls:	.quad	0	/* address of the calls in progress of process 0 */
.Lspans:	.quad	0	/* address of the blocks of spans */
.Lfunctions:	.quad	0	/* address of functions' own sums */
.Ltrace:	.quad	0	/* address of the list of free chunks; 0: calls are not recorded */
.Ltaken:	.quad	0	/* address of struct sb_page_taken, in front of the chunks */
.Lspan_size:	.quad	0	/* of a block, bytes */
.Lspan_within:	.quad	0	/* ticks of a call's measurement that are in its own time ... */
.Lspan_cost:	.quad	0	/* ... and that are in the time of its caller */
.Lvalue_within:	.quad	0	/* the same of its values */
.Lvalue_cost:	.quad	0
.Lstack:	.quad	0	/* where the stack of the first thread ends; 0: unknown */
.Lstacks:	.quad	0	/* address of the list of places for stacks */
.Lstacks_taken:	.quad	0	/* address of struct sb_page_stacks_taken, in front of them */
.Lstack_size:	.quad	0	/* of one, bytes */
.Lstack_most:	.quad	0	/* bytes of a stack that are copied, a multiple of 8; 0: none */
.Lzeros:	.quad	0, 0, 0, 0, 0
.Lmix:		.quad	0x9e3779b97f4a7c15
.Lspan_mask:	.long	0	/* blocks - 1; 0: there are none */
.Lown:		.long	0	/* 1: RDFSBASE may be used */
.Lslots:	.long	0	/* owned slots << 10 */
.Lchunk_mask:	.long	0	/* chunks - 1 */
.Lstack_mask:	.long	0	/* places for stacks - 1 */
.Lstack_place:	.long	0	/* 1: each record has a place more, for its stack */
.Lwide:		.long	0	/* KIND_* of sites whose records take more than one place */
		.long	0
.Lbelltime:	.quad	0, 100000000	/* a doorbell leaves its futex every 100 ms to check */

/*
 * The slow path: claims a slot, filters by thread, delays, times calls.
 *
 * In: eax the site's kind, rcx the cell, rdx the return address (the site's done label); rax, rcx,
 * rdx are spilled. r8 cell, r10 start (0: no delay; UNREAD, up to .Ldue), r11 return, rsi slot, rbx
 * bit 0: the slot is owned; from .Lspin on the bits above it hold the delay, and r9 the time to spend.
 *
 * A hit is held against the delay that it began with: the settings may change while it spins, and
 * its excess over another delay would go into the residual, which every later hit pays for. Time
 * spent beyond r9 by more than the limit is an interruption: the hit counts with r9, the rest is
 * overrun, and the residual that went into r9 is used up, whatever it was. So no residual outlives
 * a hit that ran to its end.
 */
.Lslow:
	mov	%eax, -96(%rsp)
	SPILL_RBX
	SPILL_RSI
	SPILL_RDI
	SPILL_R8
	SPILL_R9
	SPILL_R10
	SPILL_R11
	mov	%rdx, %r11
.Lkept:
	mov	%rcx, %r8
	xor	%r10d, %r10d
	cmpl	$STATE_SLOW, CELL_STATE(%r8)
	jb	.Lclaim
	mov	CELL_FLAGS(%r8), %eax
	cmp	$FLAG_SPANS, %eax
	jne	.Lodd			/* not only timed */
.Lclaim:
	xor	%ebx, %ebx
	testl	$1, .Lown(%rip)
	jz	.Lunread
	rdfsbase %rdx
	mov	%edx, %eax
	shr	$2, %eax
	mov	.Lslots(%rip), %ecx
	sub	$1024, %ecx
	and	%ecx, %eax
	not	%rdx
	mov	%rdx, -104(%rsp)
	lea	CELL_SLOT(%r8,%rax), %rsi
	add	.Lcounters(%rip), %rsi
	cmp	%rdx, SLOT_OWNER(%rsi)
	jne	.Lfree
.Lowned:
	mov	$1, %ebx
	testb	$KIND_CLOSE, -96(%rsp)
	jnz	.Lclose
	incq	SLOT_HITS(%rsi)
.Lcounted:
	test	%r10, %r10
	jnz	.Lowned_delay

/*
 * A call of a timed function begins here, behind its delay. An entry with the same address belongs
 * to a call that is over, and gives way.
 *
 * rsi: the thread's record, 0: none. r9, rcx, rbx: the call in which it is made, if the thread is
 * in one, its entry, and what that one is within. Stacks grow down: a call at or below the new one
 * is over, and another in its place may be the one.
 */
.Lleave:
	testb	$KIND_OPEN, -96(%rsp)
	jz	.Lreturn
	testl	$FLAG_SPANS, CELL_FLAGS(%r8)
	jz	.Lreturn
	cmpw	$0, CELL_SPAN(%r8)
	je	.Lreturn
	FIND_CALLS
	movzbl	-95(%rsp), %r10d
	add	%rsp, %r10
	xor	%r9d, %r9d
	xor	%esi, %esi
	xor	%ecx, %ecx
	mov	$1, %ebx
	shl	$63, %rbx
	mov	-104(%rsp), %rax
	test	%rax, %rax
	jz	.Lenter
	THREAD_RECORD %rsi
	jne	.Lnew_thread
.Lknown_thread:
	mov	THREAD_CALL(%rsi), %r9
	mov	THREAD_CALL_AT(%rsi), %rcx
	mov	THREAD_WITHIN(%rsi), %rbx
	test	%r9, %r9
	jnz	.Lparent
.Lparentless:
	xor	%r9d, %r9d
	xor	%ecx, %ecx
	xor	%ebx, %ebx
.Lenter:
	CALL_SET
	cmp	%rax, CALL_AT+CALL_NEXT_WAY(%rdx)
	je	.Lsecond_way
	cmpq	$0, CALL_AT(%rdx)
	jne	.Lway
.Lwrite:
	mov	%rax, CALL_AT(%rdx)
	movq	$0, CALL_CHECK(%rdx)
	mov	%r9, CALL_PARENT(%rdx)
	mov	%ecx, CALL_PARENT_AT(%rdx)
	mov	%esi, CALL_THREAD(%rdx)
	mov	%rbx, CALL_WITHIN(%rdx)
	test	%rsi, %rsi
	jz	.Lstamp
	mov	%rdx, %rdi
	sub	-112(%rsp), %rdi
	mov	%rdi, THREAD_CALL_AT(%rsi)
	mov	%rax, THREAD_CALL(%rsi)
	movzbl	CELL_SPAN_BIT(%r8), %ecx
	mov	%rbx, %rdi
	bts	%rcx, %rdi
	mov	%rdi, THREAD_WITHIN(%rsi)
.Lstamp:
	testb	$KIND_KEEP, -96(%rsp)
	jnz	.Lkeep
.Lstamp_kept:
	mov	%rdx, %rcx
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, CALL_START(%rcx)
	xor	%r10, %rax
	imul	.Lmix(%rip), %rax
	xor	CELL_SPAN(%r8), %rax
	xor	%rbx, %rax
	add	%r9, %rax
	mov	%rax, CALL_CHECK(%rcx)
	movq	$0, CALL_CHILDREN(%rcx)
	movq	$0, CALL_COST(%rcx)

.Lreturn:
	mov	%r11, %rdx
.Lback:
	mov	-88(%rsp), %r11
	mov	-80(%rsp), %r10
	mov	-72(%rsp), %r9
	mov	-64(%rsp), %r8
	mov	-56(%rsp), %rdi
	mov	-48(%rsp), %rsi
	mov	-40(%rsp), %rbx
	notrack jmp *%rdx
.Lback_end:

/* What rarely happens, up to .Lodd_end before the hit is counted. */
.Lodd:
	testb	$KIND_CLOSE, -96(%rsp)
	jnz	.Lkept_close
	test	$FLAG_DELAY, %al
	jz	.Lfilter
.Lkept_start:
	mov	$UNREAD, %r10d
	cmpq	$1, CELL_EVERY(%r8)
	ja	.Lfilter
	lfence				/* not while work before the call is under way: it would
					 * pass beside that, up to the depth of the reorder buffer */
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r10
	jmp	.Lfilter
.Lkept_close:				/* of a timed call, the delay begins where its time ends */
	and	$FLAG_SPANS | FLAG_DELAY_EXIT, %al
	cmp	$FLAG_DELAY_EXIT, %al
	je	.Lkept_start
.Lfilter:
	testl	$FLAG_THREADS, CELL_FLAGS(%r8)
	jz	.Lclaim
	rdfsbase %rdi			/* without RDFSBASE the filter is refused */
	mov	CELL_THREADS(%r8), %esi
	and	$TABLES - 1, %esi
	shl	$TABLE_SHIFT, %esi
	add	.Ltables(%rip), %rsi
	mov	%rdi, %rax
	shr	$6, %rax
	mov	$TABLE_SLOTS, %ecx
.Lprobe:
	and	$TABLE_SLOTS - 1, %eax
	mov	(%rsi,%rax,8), %rdx
	cmp	%rdi, %rdx
	je	.Lclaim
	inc	%eax
	test	%rdx, %rdx
	jz	.Lother			/* another thread: not even counted */
	dec	%ecx
	jnz	.Lprobe
	jmp	.Lother

.Lfree:
	xor	%eax, %eax
	cmp	%rax, SLOT_OWNER(%rsi)
	jne	.Lshared
	lock cmpxchg %rdx, SLOT_OWNER(%rsi)
	je	.Lowned
	jmp	.Lshared
.Lunread:
	mov	%rbx, -104(%rsp)
.Lshared:
	mov	%esp, %eax
	shr	$2, %eax
	and	$(15 << 10), %eax
	add	.Lslots(%rip), %eax
	lea	CELL_SLOT(%r8,%rax), %rsi
	add	.Lcounters(%rip), %rsi
	testb	$KIND_CLOSE, -96(%rsp)
	jnz	.Lclose
	mov	$1, %edi
	lock xadd %rdi, SLOT_HITS(%rsi)
.Lodd_end:
	inc	%rdi
	test	%r10, %r10
	jz	.Lleave
	jmp	.Levery
.Lowned_delay:
	mov	SLOT_HITS(%rsi), %rdi
	jmp	.Levery

/* A thread that is left out: what has its call's address is over all the same. */
.Lother:
	testb	$KIND_OPEN, -96(%rsp)
	jz	.Lreturn
	testl	$-1, .Lspan_mask(%rip)
	jz	.Lreturn
	FIND_CALLS
	CALL_SET
	cmp	%rax, CALL_AT(%rdx)
	je	1f
	add	$CALL_NEXT_WAY, %rdx
	cmp	%rax, CALL_AT(%rdx)
	jne	.Lreturn
1:	movq	$0, CALL_AT(%rdx)
	jmp	.Lreturn

.Lnew_thread:
	CLAIM_RECORD %rsi, %edi, 4f
	jmp	.Lknown_thread
4:	xor	%esi, %esi
	jmp	.Lenter
.Lparent:				/* a call at or below the new one is over */
	mov	$64, %edi
4:	and	$CALL_LAST, %ecx
	mov	-112(%rsp), %rdx
	add	%rcx, %rdx
	cmp	%r9, CALL_AT(%rdx)
	jne	.Lparentless
	cmp	%r10, %r9
	ja	.Lenter
	mov	-112(%rsp), %rax
	movq	$1, CALLS_LOST(%rax)
	mov	CALL_PARENT(%rdx), %r9
	mov	CALL_PARENT_AT(%rdx), %ecx
	mov	CALL_WITHIN(%rdx), %rbx
	dec	%edi
	jz	.Lparentless
	test	%r9, %r9
	jnz	4b
	jmp	.Lparentless
.Lway:
	cmp	%rax, CALL_AT(%rdx)
	je	.Lwrite
	cmpq	$0, CALL_AT+CALL_NEXT_WAY(%rdx)
	je	.Lsecond_way
	mov	-112(%rsp), %rdi
	movq	$1, CALLS_GAVE_WAY(%rdi)
	mov	CALL_START(%rdx), %rdi
	cmp	CALL_START+CALL_NEXT_WAY(%rdx), %rdi
	jb	.Lwrite
.Lsecond_way:
	add	$CALL_NEXT_WAY, %rdx
	jmp	.Lwrite
/* The arguments' hash goes into the check by way of r9, which ends there. */
.Lkeep:
	KEEP	1, 56			/* rdi */
	KEEP	2, 48			/* rsi */
	KEEP	3, 24			/* rdx */
	KEEP	4, 16			/* rcx */
	KEEP	5, 64			/* r8 */
	KEEP	6, 72			/* r9 */
	STACKED
	jnz	.Lkeep_stacked
.Lkept_stacked:
	imul	.Lmix(%rip), %rcx
	add	%rcx, %r9
	jmp	.Lstamp_kept

/*
 * Words that are not in registers. eax: their number; rsi: where they are. Those of the stack in the
 * page of the return address can be read. Else they must be part of the stack on which the call is,
 * between the return address and its end: of the first thread's stack, which never moves, or of the
 * one that the C library has made for this thread, whose bounds are in its control block at the FS
 * base. Where that is not sure, nothing is read and nothing is known: nearness of the FS base alone
 * proves nothing, since stacks of coroutines may lie below it.
 */
.Lkeep_stacked:
	mov	%rcx, -120(%rsp)
	movq	$1, -128(%rsp)
	movzbl	-96(%rsp), %ecx
	shr	$KIND_FOLLOW, %ecx
	cmp	$FOLLOW_RESULT, %ecx
	je	.Lkeep_result
	test	%ecx, %ecx
	jnz	.Lkeep_follow
	lea	8(%r10), %rsi
	mov	%r10d, %ecx
	and	$4095, %ecx
	lea	8(%rcx,%rax,8), %ecx
	cmp	$4096, %ecx
	jbe	.Lkeep_copy
.Lkeep_check:
	lea	(%rsi,%rax,8), %rdi
	cmp	%r10, %rsi
	jbe	.Lkeep_unknown
	cmp	%rsi, %rdi
	jb	.Lkeep_unknown
	test	$7, %sil
	jnz	.Lkeep_unknown
	mov	.Lstack(%rip), %rcx
	cmp	%rcx, %rdi
	ja	1f
	sub	%r10, %rcx
	cmp	$STACK_MOST, %rcx
	jb	.Lkeep_copy
1:	mov	-104(%rsp), %rcx
	mov	%rsi, -112(%rsp)
	test	%rcx, %rcx		/* not read */
	jz	.Lkeep_unknown
	not	%rcx
	mov	.Lrecord(%rip), %rsi
	movzwl	REC_STACK(%rsi), %esi
	test	%esi, %esi
	jz	.Lkeep_unknown
	cmp	%rcx, (%rcx)		/* a control block begins with its address ... */
	jne	.Lkeep_unknown
	cmp	%rcx, 16(%rcx)		/* ... and glibc's has it here, too */
	jne	.Lkeep_unknown
	add	%rcx, %rsi
	mov	(%rsi), %rcx
	test	%rcx, %rcx		/* of the first thread, whose stack glibc has not made, it is 0 */
	jz	.Lkeep_unknown
	cmp	%r10, %rcx
	ja	.Lkeep_unknown
	add	8(%rsi), %rcx
	jc	.Lkeep_unknown
	cmp	%rcx, %rdi
	ja	.Lkeep_unknown
	mov	-112(%rsp), %rsi
	jmp	.Lkeep_copy
.Lkeep_unknown:
	lea	.Lzeros(%rip), %rsi
	movq	$0, -128(%rsp)
.Lkeep_copy:
	mov	-120(%rsp), %rcx
.irp n, 0, 1, 2, 3, 4
	mov	8*\n(%rsi), %rdi
	mov	%rdi, STACKED_OFF+8*\n(%rdx)
	HASH	%rcx, %rdi
	dec	%eax
	jz	.Lkeep_known
.endr
.Lkeep_known:
	mov	-128(%rsp), %rdi
	mov	%rdi, STACKED_KNOWN(%rdx)
	HASH	%rcx, %rdi
	jmp	.Lkept_stacked
/*
 * What a pointer points to is written by the function, and read at its exit. The pointer is kept in
 * private memory: what is in the page may be another process's.
 */
.Lkeep_result:
	KEPT	%r10, %rsi
	mov	%eax, -112(%rsp)
.irp way, 64, 192, 64
	xor	%eax, %eax
	lock cmpxchg %r10, KEPT_AT(%rsi)
	je	1f
	cmp	%r10, %rax		/* of a call that left in another way */
	je	1f
	xor	$\way, %rsi
.endr
	movq	$0, KEPT_AT(%rsi)	/* the last way: one of two calls loses */
1:	mov	-112(%rsp), %eax
	mov	-56(%rsp), %rdi
	mov	%rdi, 8(%rsi)
	mov	-48(%rsp), %rdi
	mov	%rdi, 16(%rsi)
	mov	-24(%rsp), %rdi
	mov	%rdi, 24(%rsi)
	mov	-16(%rsp), %rdi
	mov	%rdi, 32(%rsi)
	mov	-64(%rsp), %rdi
	mov	%rdi, 40(%rsi)
	mov	-72(%rsp), %rdi
	mov	%rdi, 48(%rsi)
	mov	-120(%rsp), %rdi
	mov	%rdi, KEPT_HASH(%rsi)
	mov	%r10, KEPT_AT(%rsi)
	jmp	.Lkeep_unknown
.Lkeep_follow:				/* by the registers, not by what the page has of them */
	mov	-56(%rsp), %rsi
	cmp	$2, %ecx
	cmove	-48(%rsp), %rsi
	cmp	$3, %ecx
	cmove	-24(%rsp), %rsi
	cmp	$4, %ecx
	cmove	-16(%rsp), %rsi
	cmp	$5, %ecx
	cmove	-64(%rsp), %rsi
	cmp	$6, %ecx
	cmove	-72(%rsp), %rsi
	jmp	.Lkeep_check

/* rdi: the slot's hits, this one included. */
.Levery:
	mov	CELL_EVERY(%r8), %rcx
	cmp	$1, %rcx
	jbe	.Lnth
	mov	%rdi, %rax
	xor	%edx, %edx
	div	%rcx
	test	%rdx, %rdx
	jnz	.Lleave
.Lnth:					/* the setting may have changed since: r10 decides */
	cmp	$UNREAD, %r10
	jne	.Ldue
	lfence
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r10

.Ldue:
	mov	.Lheader(%rip), %rdi
	mov	%r10, %rax
	sub	HDR_LEASE(%rdi), %rax
	jns	.Llapsed
	mov	CELL_DELAY(%r8), %r9
	lea	(%rbx,%r9,2), %rbx
	mov	SLOT_RESIDUAL(%rsi), %rdx	/* never beyond its bound, whatever it contains */
	mov	CELL_RESIDUAL_MAX(%r8), %rax
	cmp	%rax, %rdx
	cmovg	%rax, %rdx
	neg	%rax
	cmp	%rax, %rdx
	cmovl	%rax, %rdx
	sub	%rdx, %r9
	mov	$0, %eax
	cmovs	%rax, %r9		/* already given more than one delay too much */
	mov	.Lrecord(%rip), %rax
	movzbl	REC_MOST(%rax), %ecx
	mov	$1, %edx
	shl	%cl, %rdx
	test	%ecx, %ecx
	cmovz	.Lmost(%rip), %rdx
	cmp	%rdx, %r9
	cmova	%rdx, %r9
	mov	HDR_GENERATION(%rdi), %ecx
.Lspin:
	rdtsc
	shl	$32, %rdx
	or	%rax, %rdx
	mov	%rdx, %rax
	sub	%r10, %rax		/* elapsed */
	cmp	%r9, %rax
	jae	.Lspent
	cmpl	$STATE_SLOW, CELL_STATE(%r8)
	jb	.Lcut
	cmp	HDR_GENERATION(%rdi), %ecx
	jne	.Lcut
	sub	HDR_LEASE(%rdi), %rdx
	jns	.Lcut
	mov	%r9, %rdx
	sub	%rax, %rdx
	cmp	CELL_PAUSE(%r8), %rdx
	jb	.Lspin
	pause
	jmp	.Lspin

.Lspent:				/* from here to .Lend figures are half written */
	cmp	$READ_AGAIN, %r9
	jb	.Lread
	imul	$0x9e3779b1, %r10d, %edx
	shr	$27, %edx
1:	dec	%edx
	jns	1b
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	sub	%r10, %rax
	cmp	%r9, %rax
	cmovl	%r9, %rax		/* a clock that steps back */
.Lread:
	mov	%rax, -120(%rsp)
	cmp	SLOT_MAX(%rsi), %rax
	jbe	1f
	mov	%rax, SLOT_MAX(%rsi)
1:	mov	%rax, %rdx
	sub	%r9, %rdx		/* beyond the time to spend; never below 0 */
	cmp	CELL_OVERRUN(%r8), %rdx
	ja	.Loverrun
.Lexcess:
	mov	%rbx, %rcx
	shr	%rcx			/* the delay that this hit began with */
	mov	%rax, %rdx
	sub	%rcx, %rdx		/* excess, with a sign */
	mov	%rdx, %rcx		/* carry the excess or the shortfall */
	add	SLOT_RESIDUAL(%rsi), %rcx
	mov	CELL_RESIDUAL_MAX(%r8), %rdi
	cmp	%rdi, %rcx
	cmovg	%rdi, %rcx
	neg	%rdi
	cmp	%rdi, %rcx
	cmovl	%rdi, %rcx
	mov	%rcx, SLOT_RESIDUAL(%rsi)
	test	$1, %bl
	jz	2f
	ACCOUNT
	jmp	.Lgiven
2:	ACCOUNT lock
.Lgiven:
	cmpq	$0, .Ltrace(%rip)
	je	.Lleave
	testl	$FLAG_SPANS, CELL_FLAGS(%r8)
	jz	.Lleave
	mov	%r10, %r9
	mov	-120(%rsp), %r10
	inc	%r10
	movq	$EVENT_DELAY, -120(%rsp)
	jmp	.Levent

.Loverrun:
	lock addq %rdx, SLOT_OVERRUN(%rsi)
	mov	%r9, %rax
	jmp	.Lexcess
.Llapsed:
	lock incq SLOT_LAPSED(%rsi)
	jmp	.Lleave
.Lcut:
	mov	.Lcounters(%rip), %rdx
	lock incq CELL_CUTS(%r8,%rdx)
	lock addq %rax, CELL_CUT_TICKS(%r8,%rdx)
	jmp	.Lleave

/*
 * An exit of a timed function, or of one that is delayed there, too. r10: the start of the delay; 0:
 * none so far; kept in rbx. All that the entry of a call contains is read before the clock, so that a signal handler's calls
 * in between count as the function's own time.
 */
.Lclose:
	lea	(%rbx,%r10,2), %rbx
	testl	$FLAG_SPANS, CELL_FLAGS(%r8)
	jz	.Lclosed
	SPAN_SLOT .Lclosed
	FIND_CALLS
	CALL_SET
	cmp	%rax, CALL_AT(%rdx)
	jne	.Lclose_second
.Lclose_found:
	mov	CALL_START(%rdx), %r9
	xor	%r9, %rax
	imul	.Lmix(%rip), %rax
	xor	CELL_SPAN(%r8), %rax
	xor	CALL_WITHIN(%rdx), %rax
	add	CALL_PARENT(%rdx), %rax
	testb	$KIND_VALUES, -96(%rsp)
	jnz	.Lclose_values
.Lclose_check:
	cmp	%rax, CALL_CHECK(%rdx)
	jne	.Lclose_stale
	mov	%rsi, -128(%rsp)
	mov	%rdx, -120(%rsp)
	mov	-104(%rsp), %rax
	test	%rax, %rax
	jz	3f
	THREAD_RECORD %rcx
	jne	3f
	mov	CALL_AT(%rdx), %rax
	cmp	%rax, THREAD_CALL(%rcx)
	jne	.Lclose_left
.Lclose_thread:
	mov	CALL_PARENT_AT(%rdx), %eax
	mov	%rax, THREAD_CALL_AT(%rcx)
	mov	CALL_PARENT(%rdx), %rax
	mov	%rax, THREAD_CALL(%rcx)
	mov	CALL_WITHIN(%rdx), %rax
	mov	%rax, THREAD_WITHIN(%rcx)
3:	mov	CALL_CHILDREN(%rdx), %r10
	mov	CALL_COST(%rdx), %rcx
	mov	%rdx, %rsi
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	and	$1, %ebx
	lea	(%rbx,%rax,2), %rbx
	sub	%r9, %rax
	sub	.Lspan_within(%rip), %rax
	mov	$0, %edx
	testb	$KIND_VALUES, -96(%rsp)
	jnz	.Lclose_cost
.Lclose_time:
	sub	%rcx, %rax
	cmovs	%rdx, %rax
	add	.Lspan_cost(%rip), %rcx
.Lclose_timed:
	mov	CALL_WITHIN(%rsi), %r9
	mov	CALL_PARENT(%rsi), %rdx
	mov	%rdx, -104(%rsp)
	movzbl	-95(%rsp), %edx
	add	%rsp, %rdx
	cmp	%rdx, CALL_AT(%rsi)
	jne	.Lclose_added		/* it gave way while it was read */
	mov	-104(%rsp), %rdx
	test	%rdx, %rdx
	jnz	.Lclose_parent
.Lclose_sums:
	mov	%rax, %rcx		/* ticks */
	sub	%r10, %rcx
	mov	%rax, %r10
	mov	$0, %eax
	cmovs	%rax, %rcx		/* without its children */
	mov	-120(%rsp), %rdx
	cmpq	$0, .Ltrace(%rip)
	jne	.Lclose_keep
.Lclose_kept:
	movq	$0, CALL_AT(%rdx)
	cmpw	$0, -94(%rsp)
	jne	.Lclose_function
.Lclose_own:
	test	$1, %bl
	jz	.Lclose_shared
	ADD_SPAN
.Lclose_summed:
	testb	$KIND_VALUES, -96(%rsp)
	jnz	.Lclose_add_values
.Lclose_values_added:
	cmpq	$0, .Ltrace(%rip)
	jne	.Lclose_event
.Lclose_added:
	mov	-128(%rsp), %rsi
.Lclosed:
	testl	$FLAG_DELAY_EXIT, CELL_FLAGS(%r8)
	jz	.Lreturn
	mov	%rbx, %r10
	and	$1, %ebx
	shr	%r10
	jnz	1f
	lfence
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %r10
1:	test	%ebx, %ebx
	jz	2f
	incq	SLOT_EXITS(%rsi)
	mov	SLOT_EXITS(%rsi), %rdi
	jmp	.Levery
2:	mov	$1, %edi
	lock xadd %rdi, SLOT_EXITS(%rsi)
	inc	%rdi
	jmp	.Levery
.Lclose_second:
	add	$CALL_NEXT_WAY, %rdx
	cmp	%rax, CALL_AT(%rdx)
	je	.Lclose_found
	jmp	.Lclose_lost		/* it began before timing did, or gave way */
.Lclose_stale:
	movq	$0, CALL_AT(%rdx)	/* an older call, which left in another way */
.Lclose_lost:
	mov	-112(%rsp), %rax
	cmpq	$0, CALLS_GAVE_WAY(%rax)
	je	.Lclosed
	movq	$1, CALLS_LOST(%rax)
	jmp	.Lclosed
.Lclose_parent:
	mov	CALL_PARENT_AT(%rsi), %esi
	and	$CALL_LAST, %esi
	add	-112(%rsp), %rsi
	cmp	%rdx, CALL_AT(%rsi)
	jne	.Lclose_sums
	mov	-120(%rsp), %rdx
	mov	CALL_THREAD(%rdx), %edx
	cmp	%edx, CALL_THREAD(%rsi)
	jne	.Lclose_strange
	mov	-120(%rsp), %rdx
	mov	CALL_START(%rdx), %rdx
	cmp	%rdx, CALL_START(%rsi)
	ja	.Lclose_strange
	add	%rax, CALL_CHILDREN(%rsi)
	add	%rcx, CALL_COST(%rsi)
	jmp	.Lclose_sums
.Lclose_strange:			/* another call in the parent's place: see struct sb_page_call */
	mov	-112(%rsp), %rdx
	movq	$1, CALLS_LOST(%rdx)
	jmp	.Lclose_sums
.Lclose_left:				/* a call that it made was left, and may have got its children */
	mov	-112(%rsp), %rax
	movq	$1, CALLS_LOST(%rax)
	jmp	.Lclose_thread
.Lclose_values:
	TAKE	1
	TAKE	2
	TAKE	3
	TAKE	4
	TAKE	5
	TAKE	6
	movq	$0, 120(%rsp)
	movzbl	CELL_SHAPE(%r8), %r10d
	shr	$SHAPE_STACKED, %r10d
	and	$7, %r10d
	jnz	.Lclose_stacked
.Lclose_taken:
	imul	.Lmix(%rip), %rcx
	add	%rcx, %rax
	mov	-8(%rsp), %rcx
	mov	%rcx, 8 * VALUE_RETURNED(%rsp)
	movq	$0, (%rsp)
	jmp	.Lclose_check
.Lclose_stacked:
	mov	%r10d, 72(%rsp)
.irp n, 0, 1, 2, 3, 4
	mov	STACKED_OFF+8*\n(%rdx), %r10
	mov	%r10, 80+8*\n(%rsp)
	HASH	%rcx, %r10
	decl	72(%rsp)
	jz	.Lclose_known
.endr
.Lclose_known:
	mov	STACKED_KNOWN(%rdx), %r10
	mov	%r10, 120(%rsp)
	HASH	%rcx, %r10
	testb	$KIND_RESULT, -96(%rsp)
	jz	.Lclose_taken
/*
 * The result that the first argument points to, and a text that another one points to. A function
 * that returned 0 has itself written the one and read the other. rax and rcx are kept.
 */
	mov	%rax, 72(%rsp)
	mov	%rcx, 104(%rsp)
	movq	$0, 120(%rsp)
	movq	$0, 88(%rsp)
	movzbl	-95(%rsp), %eax
	add	%rsp, %rax
	KEPT	%rax, %r10
	cmp	%rax, KEPT_AT(%r10)
	je	3f
.irp way, 64, 192, 64
	xor	$\way, %r10
	cmp	%rax, KEPT_AT(%r10)
	je	3f
.endr
	jmp	.Lclose_result
3:	testb	$KIND_RETURNS, -96(%rsp)
	jz	2f
	movzbl	CELL_SHAPE(%r8), %ecx
	shr	$SHAPE_TEXT, %ecx
	cmp	$TEXT_POSITIVE, %ecx
	je	5f
	ja	6f
	cmpl	$0, -8(%rsp)
	jne	2f
	jmp	7f
5:	cmpl	$0, -8(%rsp)
	jl	2f
	jmp	7f
6:	cmpq	$0, -8(%rsp)
	je	2f
7:	mov	8(%r10), %rcx
	mov	%rcx, 112(%rsp)
	HASH	%rcx, 16(%r10)
	HASH	%rcx, 24(%r10)
	HASH	%rcx, 32(%r10)
	HASH	%rcx, 40(%r10)
	HASH	%rcx, 48(%r10)
	cmp	KEPT_HASH(%r10), %rcx
	jne	2f
	movzbl	-96(%rsp), %ecx
	shr	$KIND_FOLLOW, %ecx
	jz	1f
	mov	(%r10,%rcx,8), %rcx
	mov	%rcx, 88(%rsp)
1:	cmp	%rax, KEPT_AT(%r10)
	jne	4f
	testb	$3 << SHAPE_TEXT, CELL_SHAPE(%r8)
	jnz	.Lclose_within
	mov	112(%rsp), %rcx
	test	%rcx, %rcx
	jz	2f
	mov	(%rcx), %rcx
	mov	%rcx, 80(%rsp)
	movq	$1, 120(%rsp)
	movq	$TEXT_MOST, 112(%rsp)
	movq	$0, KEPT_AT(%r10)
	jmp	.Lclose_result
2:	movq	$0, KEPT_AT(%r10)
4:	movq	$0, 88(%rsp)
.Lclose_result:
	mov	72(%rsp), %rax
	mov	104(%rsp), %rcx
	jmp	.Lclose_taken
/*
 * A text of a function that nothing is known of: only what is within the stack above the call, by its
 * bounds as in .Lkeep_check, is known to be readable. rax: the address of the return address; 112: how
 * much of the text there can be.
 */
.Lclose_within:
	movq	$0, KEPT_AT(%r10)
	mov	88(%rsp), %r10
	cmp	%rax, %r10
	jbe	4b
	mov	.Lstack(%rip), %rcx
	sub	%rax, %rcx
	cmp	$STACK_MOST, %rcx
	jae	1f
	add	%rax, %rcx
	jmp	2f
1:	mov	-104(%rsp), %rcx
	test	%rcx, %rcx
	jz	4b
	not	%rcx
	cmp	%rcx, (%rcx)
	jne	4b
	cmp	%rcx, 16(%rcx)
	jne	4b
	mov	%rax, 112(%rsp)
	mov	.Lrecord(%rip), %rax
	movzwl	REC_STACK(%rax), %eax
	test	%eax, %eax
	jz	4b
	add	%rcx, %rax
	mov	(%rax), %rcx
	test	%rcx, %rcx
	jz	4b
	cmp	112(%rsp), %rcx
	ja	4b
	add	8(%rax), %rcx
	jc	4b
	cmp	112(%rsp), %rcx
	jbe	4b
2:	sub	%r10, %rcx
	jbe	4b
	mov	$TEXT_MOST, %eax
	cmp	%rax, %rcx
	cmova	%rax, %rcx
	mov	%rcx, 112(%rsp)
	movq	$1, 120(%rsp)
	jmp	.Lclose_result
.Lclose_cost:				/* that of its values, too; edx is 0 */
	sub	.Lvalue_within(%rip), %rax
	sub	%rcx, %rax
	cmovs	%rdx, %rax
	add	.Lspan_cost(%rip), %rcx
	add	.Lvalue_cost(%rip), %rcx
	jmp	.Lclose_timed

/*
 * Adds the values to their sums. rdi: the span; r9 goes from sum to sum, and rsi from descriptor to
 * descriptor. A sum that does not fit stays at all ones, as closely as an addition and a store do
 * that.
 */
.Lclose_add_values:
	lea	CELL_VALUES(%r8), %rsi
	mov	%rdi, %r9
1:	movzwl	(%rsi), %edx
	test	%edx, %edx
	jz	.Lclose_values_added
	test	$VALUE_SUM, %dl
	jz	4f
	VALUE	%dl, %rcx
	mov	%edx, %eax
	and	$15, %eax
	cmp	$VALUE_RETURNED, %eax
	jb	2f
	je	8f
	testb	$1, 120(%rsp)
	jz	4f
2:	mov	%rcx, %rax
	mov	%edx, %ecx
	shr	$8, %ecx
	shl	%cl, %rax
	test	$VALUE_SIGNED, %dl
	jz	3f
	test	%rax, %rax
	js	4f
3:	shr	%cl, %rax
	test	$VALUE_BOOL, %dl
	jz	5f
	neg	%rax
	sbb	%rax, %rax
	neg	%rax
5:	test	$1, %bl
	jz	6f
	incq	SPAN_SUMMED(%r9)
	add	%rax, SPAN_SUM(%r9)
	jc	7f
4:	add	$8, %r9
	add	$2, %rsi
	lea	CELL_VALUES+VALUES_SIZE(%r8), %rax
	cmp	%rax, %rsi
	jb	1b
	jmp	.Lclose_values_added
6:	lock incq SPAN_SUMMED(%r9)
	lock addq %rax, SPAN_SUM(%r9)
	jnc	4b
7:	movq	$-1, SPAN_SUM(%r9)
	jmp	4b
8:	testb	$KIND_RETURNS, -96(%rsp)
	jz	4b
	jmp	2b

/* The same call among those of its function. */
.Lclose_function:
	movzwl	-94(%rsp), %esi
	mov	%rcx, -120(%rsp)
	shl	$FUNC_SHIFT, %rsi
	add	.Lfunctions(%rip), %rsi
	lock incq FUNC_CALLS(%rsi)
	lock addq %r10, FUNC_TICKS(%rsi)
	bt	$63, %r9
	jnc	1f
	lock incq FUNC_APART(%rsi)
	jmp	2f
1:	lock addq %rcx, FUNC_OWN(%rsi)
2:	xchg	%rdi, %rsi
	mov	%r10, %rcx
	RAISE	lock, FUNC_MOST
	not	%rcx
	RAISE	lock, FUNC_INV_LEAST
	mov	%r10, %rax
	cmp	$4, %rax
	jb	3f
	bsr	%r10, %rcx
	mov	%ecx, %edx
	sub	$2, %ecx
	shr	%cl, %rax
	and	$3, %eax
	lea	-4(%rax,%rdx,4), %eax
	mov	$BUCKETS - 1, %edx
	cmp	%edx, %eax
	cmova	%edx, %eax
3:	lock incq FUNC_BUCKET(%rdi,%rax,8)
	mov	%rsi, %rdi
	mov	-120(%rsp), %rcx
	jmp	.Lclose_own
.Lclose_shared:
	ADD_SPAN lock
	jmp	.Lclose_summed

/* Keeps the start of the call; 0: it gave way, and this may be another one's. */
.Lclose_keep:
	mov	CALL_START(%rdx), %rax
	mov	%rax, -104(%rsp)
	movzbl	-95(%rsp), %eax
	add	%rsp, %rax
	cmp	%rax, CALL_AT(%rdx)
	je	.Lclose_kept
	movq	$0, -104(%rsp)
	jmp	.Lclose_kept
.Lclose_event:
	testb	$KIND_RESULT, -96(%rsp)
	jnz	.Lclose_text
.Lclose_texted:
	mov	-104(%rsp), %r9
	inc	%r10
	movq	$EVENT_CALL, -120(%rsp)
	mov	CELL_EVERY(%r8), %rcx
	cmp	$1, %rcx
	jbe	.Levent
	mov	SPAN_CALLS(%rdi), %rax
	xor	%edx, %edx
	div	%rcx
	test	%rdx, %rdx
	jz	.Levent
	xor	%r10d, %r10d		/* left out, as shorter ones */

	jmp	.Levent

/* The length of the text; what is behind TEXT_MOST bytes is left out. One that does not end within
 * its stack is unknown. */
.Lclose_text:
	xor	%eax, %eax
	mov	88(%rsp), %rsi
	test	%rsi, %rsi
	jz	2f
1:	cmpb	$0, (%rsi,%rax)
	je	2f
	inc	%eax
	cmp	112(%rsp), %rax
	jb	1b
	cmp	$TEXT_MOST, %eax
	je	2f
	xor	%eax, %eax
	movq	$0, 120(%rsp)
2:	mov	%rax, 104(%rsp)
	add	$15, %eax
	shr	$4, %eax
	mov	%rax, 96(%rsp)
	jmp	.Lclose_texted

/*
 * Records a call or a delay: see struct sb_page_trace. -120 its kind, r9 its start, r10 its ticks
 * plus 1. A handler may be in the middle of the same at any
 * instruction, and a chunk is only written to by the thread in it. Clobbers rax, rcx, rdx, rsi, rdi,
 * r9, r10.
 */
.Levent:
	mov	.Ltaken(%rip), %rcx
	mov	.Ltrace(%rip), %rsi
	mov	.Lrecord(%rip), %rax
	mov	REC_CALLS(%rax), %rax
	test	%rax, %rax
	jz	.Levent_unseen
	add	.Lcalls(%rip), %rax
	mov	%rax, -112(%rsp)
	testl	$1, .Lown(%rip)
	jz	.Levent_lost
	test	%r9, %r9
	jz	.Levent_lost
	rdfsbase %rax
	not	%rax
	THREAD_RECORD %rdi
	jne	.Levent_thread
.Levent_known:
	mov	THREAD_CHUNK(%rdi), %edx
	test	%edx, %edx
	jz	.Levent_none
	lea	-1(%rdx), %ecx
	and	.Lchunk_mask(%rip), %ecx
	shl	$CHUNK_SHIFT, %rcx
	add	.Ltaken(%rip), %rcx
	add	$TAKEN_SIZE, %rcx
	cmp	%rax, CHUNK_OWNER(%rcx)
	jne	.Levent_none
	cmp	TRACE_MIN(%rsi), %r10
	jb	.Levent_short
	WIDE	.Levent_wide
	mov	$1, %esi
	xadd	%rsi, CHUNK_USED(%rcx)
	cmp	$EVENTS - 1, %rsi
	jae	.Levent_last
.Levent_reserved:
	cmp	%rax, CHUNK_OWNER(%rcx)
	jne	.Levent_void
.Levent_put:
	lea	(%rsi,%rsi,2), %rsi
	lea	CHUNK_EVENTS(%rcx,%rsi,8), %rcx
	mov	%r9, EVENT_START(%rcx)
	mov	-120(%rsp), %rax
	shl	$EVENT_KIND_SHIFT - EVENT_BIT_SHIFT, %eax
	movzbl	CELL_SPAN_BIT(%r8), %edx
	or	%edx, %eax
	shl	$EVENT_BIT_SHIFT, %rax
	movzwl	-94(%rsp), %edx
	or	%rdx, %rax
	mov	%rax, EVENT_WHAT(%rcx)
	mov	%r10, EVENT_TICKS(%rcx)
.Levent_done:
	cmpq	$EVENT_CALL, -120(%rsp)
	je	.Lclose_added
	jmp	.Lleave
.Levent_thread:
	CLAIM_RECORD %rdi, %ecx, .Levent_lost
	mov	%rdx, %rax
	jmp	.Levent_known
.Levent_short:
	incq	CHUNK_SHORTER(%rcx)
	jmp	.Levent_done
.Levent_unseen:
	lock incq TAKEN_UNSEEN(%rcx)
	jmp	.Levent_done
.Levent_lost:
	mov	.Ltaken(%rip), %rcx
	lock incq TAKEN_LOST(%rcx)
	jmp	.Levent_done
.Levent_none:
	mov	.Ltaken(%rip), %rcx
	cmp	TRACE_MIN(%rsi), %r10
	jae	.Levent_take
	lock incq TAKEN_SHORTER(%rcx)
	jmp	.Levent_done
.Levent_last:				/* after its last event a chunk may be sbinject's at once */
	ja	.Levent_take
	mov	%rdx, %rax
	xor	%edx, %edx
	cmpxchg	%rdx, THREAD_CHUNK(%rdi)
	rdfsbase %rax
	not	%rax
	jmp	.Levent_reserved
.Levent_void:				/* ... and so it was, in a signal handler in between */
	lea	(%rsi,%rsi,2), %rsi
	movq	$-1, CHUNK_EVENTS+EVENT_TICKS(%rcx,%rsi,8)
	mov	THREAD_CHUNK(%rdi), %edx
.Levent_take:				/* edx: what the thread has */
	mov	%rbx, -112(%rsp)
	mov	.Ltaken(%rip), %rcx
	mov	TAKEN_TAKEN(%rcx), %rax
/*
 * Its number is read before it is taken: once it is, the place in the list may be that of a chunk that
 * is offered one round later.
 */
1:	mov	.Ltrace(%rip), %rsi
	cmp	TRACE_OFFERED(%rsi), %rax
	jae	3f
	mov	%eax, %ebx
	and	.Lchunk_mask(%rip), %ebx
	mov	TRACE_LIST(%rsi,%rbx,4), %ebx
	lea	1(%rax), %rsi
	lock cmpxchg %rsi, TAKEN_TAKEN(%rcx)
	jne	1b
	mov	%ebx, %eax
	and	.Lchunk_mask(%rip), %eax
	lea	1(%rax), %ebx
	shl	$CHUNK_SHIFT, %rax
	lea	TAKEN_SIZE(%rcx,%rax), %rcx
	mov	.Lrecord(%rip), %rax
	mov	REC_CALLS(%rax), %rax
	mov	%rax, CHUNK_CALLS(%rcx)
	rdfsbase %rax
	not	%rax
	mov	%rax, CHUNK_OWNER(%rcx)
	mov	%rdx, %rax
	cmpxchg	%rbx, THREAD_CHUNK(%rdi)
	mov	-112(%rsp), %rbx
	jne	2f
	rdfsbase %rax
	not	%rax
	WIDE	.Levent_wide_first
	mov	$1, %esi
	xadd	%rsi, CHUNK_USED(%rcx)
	cmp	$EVENTS - 1, %rsi
	jb	.Levent_reserved		/* unless they have, and it has been read meanwhile */
	ja	.Levent_lost			/* signal handlers have filled it meanwhile */
	lea	(%rsi,%rsi,2), %rsi
	movq	$-1, CHUNK_EVENTS+EVENT_TICKS(%rcx,%rsi,8)
	jmp	.Levent_lost
3:	mov	-112(%rsp), %rbx
	jmp	.Levent_lost
2:	WIDE	.Levent_wide_once	/* a signal handler took one meanwhile: use this once */
	movq	$1, CHUNK_LIMIT(%rcx)
	movq	$EVENTS, CHUNK_USED(%rcx)
	xor	%esi, %esi
	jmp	.Levent_put

/*
 * The same with values, in several places, which one exchange-and-add reserves. Where the chunk ends
 * within them, they are none. 64: their number.
 */
.Levent_wide:
	WIDE_RESERVE
	jb	.Levent_wide_reserved
	cmp	$EVENTS, %rsi
	jae	.Levent_take			/* all of them are behind its end */
	mov	%edx, %eax			/* as .Levent_last: it may be sbinject's at once */
	xor	%edx, %edx
	cmpxchg	%rdx, THREAD_CHUNK(%rdi)
	rdfsbase %rax
	not	%rax
	mov	64(%rsp), %rdx
	add	%rsi, %rdx
	cmp	$EVENTS, %rdx
	ja	.Levent_wide_void
.Levent_wide_reserved:
	cmp	%rax, CHUNK_OWNER(%rcx)
	jne	.Levent_wide_void
.Levent_wide_put:
	lea	(%rsi,%rsi,2), %rsi
	lea	CHUNK_EVENTS(%rcx,%rsi,8), %rcx
	mov	64(%rsp), %rdx
	dec	%edx
	shl	$EVENT_MORE_SHIFT - EVENT_KIND_SHIFT, %edx
	or	-120(%rsp), %edx
	shl	$EVENT_KIND_SHIFT - EVENT_BIT_SHIFT, %rdx
	movzbl	CELL_SPAN_BIT(%r8), %eax
	or	%rax, %rdx
	shl	$EVENT_BIT_SHIFT, %rdx
	movzwl	-94(%rsp), %eax
	or	%rax, %rdx
	testb	$KIND_RETURNS, -96(%rsp)
	jz	1f
	bts	$EVENT_RETURNED, %rdx
1:	testb	$KIND_VALUES, -96(%rsp)
	jz	1f
	testb	$1, 120(%rsp)
	jz	1f
	bts	$EVENT_STACKED, %rdx
1:	mov	%rdx, EVENT_WHAT(%rcx)		/* before all else: a reader skips its places by it */
	mov	%r9, EVENT_START(%rcx)
	movzbl	-95(%rsp), %esi			/* the address that it returns to is a value, too */
	mov	(%rsp,%rsi), %rsi
	mov	%rsi, 8 * VALUE_CALLER(%rsp)
	lea	CELL_VALUES(%r8), %rsi
	lea	EVENT_SIZE(%rcx), %rdi
	mov	64(%rsp), %edx
	testb	$KIND_RESULT, -96(%rsp)
	jz	1f
	sub	96(%rsp), %edx
1:	sub	.Lstack_place(%rip), %edx
1:	dec	%edx
	jz	2f
	VALUE	(%rsi), 8(%rdi)
	VALUE	2(%rsi), 16(%rdi)
	movq	$EVENT_MORE, (%rdi)
	add	$4, %rsi
	add	$EVENT_SIZE, %rdi
	jmp	1b
2:	testb	$KIND_RESULT, -96(%rsp)
	jnz	.Levent_text
.Levent_texted:
	cmpl	$0, .Lstack_place(%rip)
	jne	.Levent_stack
.Levent_stacked:
	mov	%r10, EVENT_TICKS(%rcx)
	jmp	.Levent_done
.Levent_text:				/* into the places from rdi on, which are zeros */
	mov	88(%rsp), %rsi
	mov	104(%rsp), %edx
1:	test	%edx, %edx
	jz	.Levent_texted
	xor	%r9d, %r9d
2:	mov	(%rsi), %al
	mov	%al, 8(%rdi,%r9)
	inc	%rsi
	inc	%r9d
	dec	%edx
	jz	3f
	cmp	$16, %r9d
	jb	2b
3:	movq	$EVENT_MORE, (%rdi)
	add	$EVENT_SIZE, %rdi
	jmp	1b
.Levent_wide_void:
	WIDE_VOID
	mov	THREAD_CHUNK(%rdi), %edx
	jmp	.Levent_take
.Levent_wide_first:			/* in a new chunk; signal handlers may have filled it meanwhile */
	WIDE_RESERVE
	jb	.Levent_wide_reserved
	WIDE_VOID
	jmp	.Levent_lost
.Levent_wide_once:
	PLACES	%esi
	mov	%rsi, 64(%rsp)
	mov	%rsi, CHUNK_LIMIT(%rcx)
	movq	$EVENTS, CHUNK_USED(%rcx)
	xor	%esi, %esi
	jmp	.Levent_wide_put

/*
 * Copies the stack of a recorded call, for the reader to find its callers: see struct sb_page_stack.
 * The code is at an exit, where the registers that a function preserves are the caller's. rcx: the
 * event; rdi: its last place. rsi goes to the stack, and rdi to the copy.
 */
.Levent_stack:
	cmpq	$EVENT_CALL, -120(%rsp)
	jne	.Levent_no_stack		/* a delay has none */
	orb	$KNOWN_STACK, EVENT_KNOWN(%rcx)
	mov	%rcx, 72(%rsp)
	mov	%rdi, 80(%rsp)
	mov	%r10, 88(%rsp)
	mov	.Lstacks(%rip), %rsi
	mov	.Lstacks_taken(%rip), %rdi
	mov	STACKS_TAKEN(%rdi), %rax
1:	cmp	STACKS_OFFERED(%rsi), %rax	/* the number before it is taken, as of a chunk */
	jae	.Levent_stack_lost
	mov	%eax, %edx
	and	.Lstack_mask(%rip), %edx
	mov	STACKS_LIST(%rsi,%rdx,4), %edx
	lea	1(%rax), %r10
	lock cmpxchg %r10, STACKS_TAKEN(%rdi)
	jne	1b
	and	.Lstack_mask(%rip), %edx
	mov	%rdx, 64(%rsp)
	imul	.Lstack_size(%rip), %rdx
	lea	STACKS_SIZE(%rdi,%rdx), %rdi
	movzbl	-95(%rsp), %esi
	add	%rsp, %rsi
	mov	EVENT_START(%rcx), %rax
	mov	%rax, STACK_START(%rdi)
	lea	(%rsi,%rax), %r9		/* the check */
	mov	%rsi, STACK_SP(%rdi)
	movq	$0, STACK_FRAMES(%rdi)
	mov	.Lrecord(%rip), %rdx
	mov	REC_CALLS(%rdx), %rax
	mov	%rax, STACK_CALLS(%rdi)
	mov	-40(%rsp), %rax
	mov	%rax, STACK_BX(%rdi)
	mov	%rbp, STACK_BP(%rdi)
	mov	%r12, STACK_R12(%rdi)
	mov	%r13, STACK_R13(%rdi)
	mov	%r14, STACK_R14(%rdi)
	mov	%r15, STACK_R15(%rdi)
	rdfsbase %rcx
	mov	%rcx, %rax
	not	%rax
	mov	%rax, STACK_OWNER(%rdi)
	movl	$STACK_WHOLE, STACK_END(%rdi)
	mov	.Lstack(%rip), %rax		/* bounds as in .Lkeep_check */
	sub	%rsi, %rax
	cmp	$STACK_MOST, %rax
	jb	2f
	movzwl	REC_STACK(%rdx), %edx
	test	%edx, %edx
	jz	1f
	cmp	%rcx, (%rcx)
	jne	1f
	cmp	%rcx, 16(%rcx)
	jne	1f
	add	%rcx, %rdx
	mov	(%rdx), %rax
	test	%rax, %rax
	jz	1f
	cmp	%rsi, %rax
	ja	1f
	add	8(%rdx), %rax
	jc	1f
	sub	%rsi, %rax
	ja	2f
1:	movl	$STACK_PAGE, STACK_END(%rdi)
	mov	%rsi, %rax
	or	$-4096, %rax
	neg	%rax
2:	mov	.Lstack_most(%rip), %rdx
	and	$-8, %rax
	cmp	%rdx, %rax
	jbe	3f
	movl	$STACK_CUT, STACK_END(%rdi)
	mov	%rdx, %rax
3:	mov	%eax, STACK_LENGTH(%rdi)
	add	$STACK_WORDS, %rdi
	shr	$3, %rax
	test	$1, %al
	jz	4f
	mov	(%rsi), %rdx
	mov	%rdx, (%rdi)
	add	%rdx, %r9
	add	$8, %rsi
	add	$8, %rdi
4:	shr	%rax
	jz	6f
5:	mov	(%rsi), %rdx
	mov	8(%rsi), %rcx
	mov	%rdx, (%rdi)
	mov	%rcx, 8(%rdi)
	add	%rdx, %r9
	add	%rcx, %r9
	add	$16, %rsi
	add	$16, %rdi
	dec	%rax
	jnz	5b
6:	mov	.Lrecord(%rip), %rdi
	cmpl	$0, REC_PYTHON(%rdi)
	jne	.Lpython
.Lpython_copied:
	mov	72(%rsp), %rcx
	mov	80(%rsp), %rdi
	mov	88(%rsp), %r10
	mov	64(%rsp), %rax
	inc	%eax
	mov	%rax, 8(%rdi)
	mov	%r9, 16(%rdi)
.Levent_no_stack:
	movq	$EVENT_MORE, (%rdi)
	jmp	.Levent_stacked
.Levent_stack_lost:			/* the place behind the event stays 0 */
	mov	80(%rsp), %rdi
	mov	88(%rsp), %r10
	jmp	.Levent_no_stack
.Lend:

/*
 * The doorbell: the dynamic linker has mapped something. Ring, and wait until sbinject has answered
 * or its lease has run out, or the wait is longer than any answer takes, which is counted. This is
 * the one place with a system call. It is at an ordinary call's entry, but all registers are kept
 * all the same.
 *
 * The thread that loads or unloads the agent of Python functions does not ring: nothing that it
 * maps is looked for, and it holds the interpreter's lock.
 */
.Lbell:
	SPILL_RDX
	SPILL_RSI
	SPILL_RDI
	SPILL_R8
	SPILL_R9
	SPILL_R10
	SPILL_R11
	mov	.Lheader(%rip), %r9
	mov	.Lrecord(%rip), %rax
	mov	REC_LOADER(%rax), %rdx
	test	%rdx, %rdx		/* 0, too, where a thread has no %fs yet */
	je	.Lbell_ring
	cmp	%fs:0, %rdx
	je	.Lbell_out
.Lbell_ring:
	mov	.Lprocs(%rip), %r8
	add	REC_PROC(%rax), %r8
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, -112(%rsp)
	mov	.Lcounters(%rip), %rdi
	mov	$1, %eax
	lock xadd %eax, RING_RING(%r8,%rdi)
	inc	%eax
	mov	%rax, -96(%rsp)
	lea	TOLD_BELL(%r9,%rdi), %rdi
	lock incl (%rdi)
	cmpl	$0, HDR_BELL_SPIN(%r9)
	jne	.Lbell_wait
	mov	$SYS_futex, %eax
	mov	$1, %esi		/* FUTEX_WAKE */
	mov	$0x7fffffff, %edx
	syscall
.Lbell_wait:
	mov	PROC_DONE(%r8), %esi
	mov	%esi, %eax
	sub	-96(%rsp), %eax
	jns	.Lbell_out
	rdtsc
	shl	$32, %rdx
	or	%rax, %rdx
	mov	%rdx, %rax
	sub	HDR_LEASE(%r9), %rax
	jns	.Lbell_lost
	sub	-112(%rsp), %rdx
	cmp	.Lring_most(%rip), %rdx
	ja	.Lbell_lost
	cmpl	$0, HDR_BELL_SPIN(%r9)
	jne	.Lbell_pause
	mov	%esi, %edx
	mov	$SYS_futex, %eax
	lea	PROC_DONE(%r8), %rdi
	xor	%esi, %esi		/* FUTEX_WAIT */
	lea	.Lbelltime(%rip), %r10
	syscall
	jmp	.Lbell_wait
.Lbell_pause:
	pause
	jmp	.Lbell_wait
.Lbell_lost:
	mov	.Lcounters(%rip), %rdi
	lock incl TOLD_LOST(%r9,%rdi)	/* it has rung: the answer is late, or never comes */
.Lbell_out:
	mov	-24(%rsp), %rdx
	mov	-48(%rsp), %rsi
	mov	-56(%rsp), %rdi
	mov	-64(%rsp), %r8
	mov	-72(%rsp), %r9
	mov	-80(%rsp), %r10
	mov	-88(%rsp), %r11
	mov	-16(%rsp), %rcx
	notrack jmp *-104(%rsp)

/*
 * The doorbell of an interpreter that starts: once it has been answered, it does not ring again.
 * Placed behind the other one, so that a thread stopped here has spilled nothing of that one.
 */
.Lbell_once:
	mov	.Lrecord(%rip), %rax
	mov	REC_PROC(%rax), %rax
	add	.Lprocs(%rip), %rax
	mov	PROC_QUIET(%rax), %ecx
	dec	%ecx
	add	.Lcounters(%rip), %rax
	cmp	RING_ENDED(%rax), %ecx
	jne	.Lbell
	mov	-16(%rsp), %rcx
	notrack jmp *-104(%rsp)

/*
 * Gadgets for remote calls (remote.c): the call, and the return for a thread whose tracer died in
 * the middle of it.
 */
.Lgadget_syscall:
	syscall
	ret
.Lgadget_sigreturn:
	mov	$15, %eax		/* rt_sigreturn */
	syscall
/* A function call instead of a system call: its result is kept in rbx for the tracer. */
.Lgadget_result:
	mov	%rax, %rbx
	mov	$15, %eax
	syscall

/*
 * The Python frames of a thread whose stack has been copied, into the same place. rdi: the record; r9:
 * the check. The one place with a call, of the code behind the common code: no thread is moved out of
 * here, and the spill area is above rsp meanwhile. Only on a stack whose end is known, and while the
 * lease lasts: a fault in that code is one that the tracer sees, which then continues at
 * .Lpython_fault.
 */
.Lpython:
	mov	.Lheader(%rip), %rsi
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	sub	HDR_LEASE(%rsi), %rax
	jns	.Lpython_copied
	mov	64(%rsp), %rsi
	imul	.Lstack_size(%rip), %rsi
	add	.Lstacks_taken(%rip), %rsi
	add	$STACKS_SIZE, %rsi
	cmpl	$STACK_PAGE, STACK_END(%rsi)
	je	.Lpython_copied
	movl	$FRAMES_FAULT, STACK_FRAMES+4(%rsi)
	add	$REC_PYTHON, %rdi
	mov	.Lstack_most(%rip), %rdx
	lea	STACK_WORDS(%rsi,%rdx), %rdx
	rdfsbase %rcx
	lea	-128(%rsp), %rsp
	push	%r8
	push	%r9
	push	%r11
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	call	.Lcommon_end
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%r11
	pop	%r9
	pop	%r8
	lea	128(%rsp), %rsp
	add	%rax, %r9
	jmp	.Lpython_copied
.Lpython_fault:				/* in the frame of what was called */
	mov	$FRAMES_FAULT, %eax
	shl	$32, %rax
	leave
	ret
	.balign	16
.Lcommon_end:

/* The site at the dynamic linker's r_brk; -104 holds the return address. */
	.balign	16
site_doorbell:
	SPILL_RAX
	SPILL_RCX
	lahf
	seto	%al
	SPILL_FLAGS
	lea	.Lbell_back(%rip), %rcx
	mov	%rcx, -104(%rsp)
.Lbell_jmp:
	.byte	0xe9
	.long	0
.Lbell_back:
	mov	-32(%rsp), %rax
	add	$0x7f, %al
	sahf
	mov	-8(%rsp), %rax
.Lbell_end:

/*
 * The offsets in the templates that stub.c needs: struct stub_template and struct stub_common of
 * stub.h, from each template's start.
 */
	.section .data.rel.ro.sb_stub, "aw", @progbits
	.balign	8
.macro DESCRIBE name
	.quad	\name
	.long	.L\name\()_end - \name
	.long	.L\name\()_entry - \name
	.long	.L\name\()_jmp + 1 - \name
	.long	.L\name\()_rec + 2 - \name
	.long	.L\name\()_cell + 2 - \name
	.long	.L\name\()_mask + 1 - \name
	.long	.L\name\()_out - \name
	.long	.L\name\()_each + 2 - \name
	.long	.L\name\()_done - \name
	.long	.L\name\()_base + 3 - \name
	.long	.L\name\()_taken + 3 - \name
	.long	.L\name\()_slow - \name
	.long	.L\name\()_lowrec - \name
	.long	.L\name\()_lowcell - \name
	.long	.L\name\()_lowslot - \name
	.long	.L\name\()_loweach - \name
	.long	.L\name\()_lowbase - \name
	.long	.L\name\()_kind + 1 - \name
.endm

	.globl	stub_templates
	.type	stub_templates, @object
stub_templates:
	DESCRIBE site_own
	DESCRIBE site_own_flags
	DESCRIBE site_own_mid
	DESCRIBE site_shared
	DESCRIBE site_shared_flags
	DESCRIBE site_shared_mid
	DESCRIBE each_own
	DESCRIBE each_own_flags
	DESCRIBE each_own_mid
	DESCRIBE each_shared
	DESCRIBE each_shared_flags
	DESCRIBE each_shared_mid
	DESCRIBE go_own
	DESCRIBE go_shared
	DESCRIBE go_each_own
	DESCRIBE go_each_shared
	DESCRIBE site_close
	.size	stub_templates, . - stub_templates

	.globl	stub_common_template
	.type	stub_common_template, @object
stub_common_template:
	.quad	stub_common
	.quad	site_doorbell
	.long	.Lcommon_end - stub_common
	.long	.Lheader - stub_common
	.long	.Lrecord - stub_common
	.long	.Lprocs - stub_common
	.long	.Ltables - stub_common
	.long	.Lmost - stub_common
	.long	.Lring_most - stub_common
	.long	.Lcounters - stub_common
	.long	.Lcalls - stub_common
	.long	.Lspans - stub_common
	.long	.Lfunctions - stub_common
	.long	.Ltrace - stub_common
	.long	.Ltaken - stub_common
	.long	.Lspan_size - stub_common
	.long	.Lspan_within - stub_common
	.long	.Lspan_cost - stub_common
	.long	.Lvalue_within - stub_common
	.long	.Lvalue_cost - stub_common
	.long	.Lstack - stub_common
	.long	.Lspan_mask - stub_common
	.long	.Lown - stub_common
	.long	.Lslots - stub_common
	.long	.Lchunk_mask - stub_common
	.long	.Lstacks - stub_common
	.long	.Lstacks_taken - stub_common
	.long	.Lstack_size - stub_common
	.long	.Lstack_most - stub_common
	.long	.Lstack_mask - stub_common
	.long	.Lstack_place - stub_common
	.long	.Lwide - stub_common
	.long	.Lslow - stub_common
	.long	.Lbell - stub_common
	.long	.Lbell_once - stub_common
	.long	.Lgadget_syscall - stub_common
	.long	.Lgadget_sigreturn - stub_common
	.long	.Lgadget_result - stub_common
	.long	.Lpython_fault - stub_common
	.long	.Lbell_end - site_doorbell
	.long	.Lbell_jmp + 1 - site_doorbell
	.long	.Lcounted - stub_common
	.long	.Lkept - stub_common
	.long	.Ldue - stub_common
	.long	.Lspin - stub_common
	.long	.Lspent - stub_common
	.long	.Lend - stub_common
	.long	.Lleave - stub_common
	.long	.Lback - stub_common
	.long	.Lback_end - stub_common
	.long	.Lodd - stub_common
	.long	.Lodd_end - stub_common
	.size	stub_common_template, . - stub_common_template

	.section .data.rel.ro.sb_spills, "aw", @progbits
	.globl	stub_spills_end
stub_spills_end:

	.section .note.GNU-stack, "", @progbits
