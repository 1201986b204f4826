/* SPDX-License-Identifier: MIT */
/*
 * Registers, signal frames and gadgets of x86-64, and the table `arch`.
 *
 * The signal frame is the one that the kernel itself would build (struct rt_sigframe of
 * arch/x86/include/asm/sigframe.h), so rt_sigreturn can restore it: a thread whose tracer dies in
 * the middle of a remote call returns by itself.
 */
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "stub.h"

#define RED_ZONE	  128
#define FXSAVE_SIZE	  512
#define FXSAVE_REGISTERS  416 /* bytes of it that are always written */
#define XSAVE_HEADER	  64
#define SW_RESERVED	  464	     /* in the FXSAVE image */
#define FP_XSTATE_MAGIC1_ 0x46505853 /* also in <asm/sigcontext.h>, which clashes */
#define FP_XSTATE_MAGIC2_ 0x46505845
#define UC_FLAGS	  7 /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define XFEATURES_AMX	  (3ull << 17)
#define HWCAP2_FSGSBASE_  2

/* The kernel's frame: restorer, ucontext with an 8-byte mask, siginfo; then the vector state. */
struct frame {
	uint64_t restorer;
	uint64_t uc_flags, uc_link;
	uint64_t ss_sp;
	uint32_t ss_flags, ss_pad;
	uint64_t ss_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t sigmask;
	uint8_t siginfo[128];
};
_Static_assert(__builtin_offsetof(struct frame, sigmask) == 8 + 40 + 256, "rt_sigframe");

struct sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size;
	uint32_t padding[7];
};

static uint64_t clock_read(void)
{
	return __builtin_ia32_rdtsc();
}

static bool clock_trusted(char *why, size_t size)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/available_clocksource";
	char line[128] = "";
	FILE *f = fopen(path, "re");

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	/* The kernel removes a TSC that it found unstable from this list. */
	if (!f || strstr(line, "tsc"))
		return true;
	snprintf(why, size, "the kernel does not offer the TSC as a clock (%s)", path);
	return false;
}

static bool thread_pointer_readable(void)
{
	return getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_;
}

static const uint8_t *find(const uint8_t *hay, size_t len, const char *needle, size_t n)
{
	return memmem(hay, len, needle, n);
}

static uint64_t find_at(const uint8_t *code, size_t len, uint64_t addr, const char *bytes, size_t n)
{
	const uint8_t *hit = find(code, len, bytes, n);

	return hit ? addr + (uint64_t)(hit - code) : 0;
}

static bool find_gadgets(const uint8_t *code, size_t len, uint64_t addr, struct arch_gadgets *out)
{
	if (!out->syscall)
		out->syscall = find_at(code, len, addr, "\x0f\x05\xc3", 3);
	if (!out->sigreturn)
		out->sigreturn = find_at(code, len, addr, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	if (!out->sigreturn)
		out->sigreturn = find_at(code, len, addr, "\xb8\x0f\0\0\0\x0f\x05", 7);
	if (!out->pop)
		out->pop = find_at(code, len, addr, "\x58\xc3", 2);
	if (!out->bare)
		out->bare = find_at(code, len, addr, "\x0f\x05", 2);
	return out->syscall && (out->sigreturn || (out->pop && out->bare));
}

static uint64_t regs_pc(const struct arch_regs *regs)
{
	return regs->gp.rip;
}

static void regs_set_pc(struct arch_regs *regs, uint64_t pc)
{
	regs->gp.rip = pc;
}

static uint64_t regs_sp(const struct arch_regs *regs)
{
	return regs->gp.rsp;
}

static uint64_t regs_thread_pointer(const struct arch_regs *regs)
{
	return regs->gp.fs_base;
}

/* The ABI's rule for TLS: the block begins with its own address. */
static bool regs_thread_block(uint64_t pointer, uint64_t first)
{
	return pointer == first;
}

/*
 * Where a feature's part of the XSAVE image ends; 0: the processor has none. Asked once: a virtual
 * machine leaves for its host at each CPUID, and a thread of the target is held meanwhile.
 */
static size_t feature_end(unsigned int feature)
{
	static size_t ends[64];
	static uint64_t known;
	unsigned int eax, ebx, ecx, edx;

	if (!(known >> feature & 1) && __get_cpuid_count(0xd, feature, &eax, &ebx, &ecx, &edx))
		ends[feature] = eax + ebx;
	known |= 1ull << feature;
	return ends[feature];
}

/*
 * The bytes of the XSAVE image that rt_sigreturn must restore: up to the end of the last feature in
 * use. Tiles are left out unless they are in use: the kernel refuses a frame that is larger than
 * the thread's permitted size.
 */
static size_t xstate_size(const uint8_t *xstate, size_t len, uint64_t *features)
{
	uint64_t sw, in_use;
	size_t size = FXSAVE_SIZE + XSAVE_HEADER;

	if (len < size)
		return 0;
	memcpy(&sw, xstate + SW_RESERVED, sizeof(sw));
	memcpy(&in_use, xstate + FXSAVE_SIZE, sizeof(in_use));
	*features = (sw & ~XFEATURES_AMX) | (in_use & XFEATURES_AMX);
	for (unsigned int i = 2; i < 63; i++)
		if ((*features >> i & 1) && feature_end(i) > size)
			size = feature_end(i);
	return size <= len ? size : 0;
}

static void fill_vectors(uint8_t *at, const uint8_t *xstate, size_t size, uint64_t features)
{
	struct sw_bytes sw = {
		.magic1 = FP_XSTATE_MAGIC1_,
		.extended_size = (uint32_t)size + 4,
		.xfeatures = features,
		.xstate_size = (uint32_t)size,
	};
	uint32_t magic2 = FP_XSTATE_MAGIC2_;

	memcpy(at, xstate, size);
	memcpy(at + SW_RESERVED, &sw, sizeof(sw));
	memcpy(at + size, &magic2, sizeof(magic2));
}

static void fill_registers(struct frame *f, const struct user_regs_struct *r)
{
	f->r8 = r->r8, f->r9 = r->r9, f->r10 = r->r10, f->r11 = r->r11;
	f->r12 = r->r12, f->r13 = r->r13, f->r14 = r->r14, f->r15 = r->r15;
	f->di = r->rdi, f->si = r->rsi, f->bp = r->rbp, f->bx = r->rbx;
	f->dx = r->rdx, f->ax = r->rax, f->cx = r->rcx, f->sp = r->rsp;
	f->ip = r->rip, f->flags = r->eflags, f->cs = r->cs, f->ss = r->ss;
}

/*
 * See signal(7), "never restarted after being interrupted": calls without a timeout of their own to
 * recompute, or with one that starts anew; and calls that wait on a socket that has a timeout
 * (SO_RCVTIMEO, SO_SNDTIMEO). Where they return EINTR they have transferred nothing.
 */
static bool interrupted_for_good(const struct arch_regs *regs)
{
	static const uint16_t calls[] = {
		SYS_epoll_wait,
		SYS_epoll_pwait,
		SYS_rt_sigtimedwait,
		SYS_semop,
		SYS_semtimedop,
		SYS_io_getevents,
		333 /* io_pgetevents */,
		441 /* epoll_pwait2 */,
		SYS_read,
		SYS_readv,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_recvmmsg,
		SYS_write,
		SYS_writev,
		SYS_sendto,
		SYS_sendmsg,
		SYS_sendmmsg,
		SYS_sendfile,
		SYS_splice,
		SYS_accept,
		SYS_accept4,
		SYS_connect,
		426 /* io_uring_enter */,
	};

	if ((long)regs->gp.rax != -EINTR)
		return false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (regs->gp.orig_rax == calls[i])
			return true;
	return false;
}

static bool waits_with_block(const struct arch_regs *regs)
{
	return (long)regs->gp.rax == -516 && (long)regs->gp.orig_rax >= 0;
}

/* A call that was itself a restart has left no trace of its number: that one is interrupted. */
static void restart_syscall(struct arch_regs *regs)
{
	if (regs->gp.orig_rax == SYS_restart_syscall) {
		regs->gp.rax = (uint64_t)-EINTR;
		return;
	}
	regs->gp.rip -= 2; /* length of `syscall` */
	regs->gp.rax = regs->gp.orig_rax;
}

/*
 * A system call that the stop interrupted: the kernel would decide on its way out whether to
 * restart it. rt_sigreturn has no such step, so the frame contains the decision. A restart block
 * (-516) does not survive rt_sigreturn: that call returns EINTR.
 */
static void fill_restart(struct frame *f, const struct arch_regs *regs)
{
	const struct user_regs_struct *r = &regs->gp;
	long result = (long)r->rax;

	if ((long)r->orig_rax < 0)
		return;
	if (result == -512 || result == -513 || result == -514 || interrupted_for_good(regs)) {
		f->ip = r->rip - 2;
		f->ax = r->orig_rax;
	} else if (result == -516) {
		f->ax = (uint64_t)-EINTR;
	}
}

/* `pop rax; ret` needs two more words in front of the frame. */
static size_t frame_head(const struct arch_gadgets *gadgets)
{
	return gadgets->sigreturn ? 0 : 16;
}

/* Lower end of the frame. */
static void put_return(uint8_t *buf, size_t head, const struct arch_gadgets *g)
{
	uint64_t chain[3] = { g->pop, SYS_rt_sigreturn, g->bare };

	if (head)
		memcpy(buf, chain, sizeof(chain));
	else
		memcpy(buf, &g->sigreturn, sizeof(g->sigreturn));
}

static size_t build_frame(const struct arch_regs *regs, const uint8_t *xstate, size_t xstate_len,
			  uint64_t sigmask, const struct arch_gadgets *gadgets, uint8_t *buf,
			  size_t cap, uint64_t *sp)
{
	struct frame f = { .uc_flags = UC_FLAGS, .sigmask = sigmask, .oldmask = sigmask };
	size_t head = frame_head(gadgets);
	uint64_t features, vectors, base;
	size_t vsize = xstate_size(xstate, xstate_len, &features);

	if (!vsize)
		return 0;
	vectors = (regs->gp.rsp - RED_ZONE - vsize - 4) & ~63ull;
	base = ((vectors - sizeof(f)) & ~15ull) - 8; /* as after a call, for function calls */
	if (vectors + vsize + 4 - (base - head) > cap)
		return 0;
	memset(buf, 0, vectors - (base - head));
	fill_registers(&f, &regs->gp);
	fill_restart(&f, regs);
	/* Flags that rt_sigreturn rejects: so the alternate stack stays as it is. */
	f.ss_flags = ~0u;
	f.fpstate = vectors;
	memcpy(buf + head, &f, sizeof(f));
	put_return(buf, head, gadgets);
	fill_vectors(buf + (vectors - (base - head)), xstate, vsize, features);
	*sp = base - head;
	return vectors + vsize + 4 - *sp;
}

#define CONTEXT_AT   __builtin_offsetof(struct frame, r8)
#define CONTEXT_SIZE (__builtin_offsetof(struct frame, fpstate) - CONTEXT_AT)
#define SELECTORS_AT (__builtin_offsetof(struct frame, cs) - CONTEXT_AT)
#define SELECTORS    0x002b000000000033ull /* of 64-bit user code */

static bool context_load(const uint8_t *bytes, struct arch_regs *regs)
{
	/* Flags that user code always has, and those that it may have. */
	const uint64_t on = 1ull << 1 | 1ull << 9, may = 0x3ffdff | on;
	struct user_regs_struct *r = &regs->gp;
	struct frame f = { 0 };

	memcpy(&f.r8, bytes, CONTEXT_SIZE);
	if ((f.flags & on) != on || (f.flags & ~may) || f.sp < 4096)
		return false;
	memset(regs, 0, sizeof(*regs));
	r->r8 = f.r8, r->r9 = f.r9, r->r10 = f.r10, r->r11 = f.r11;
	r->r12 = f.r12, r->r13 = f.r13, r->r14 = f.r14, r->r15 = f.r15;
	r->rdi = f.di, r->rsi = f.si, r->rbp = f.bp, r->rbx = f.bx;
	r->rdx = f.dx, r->rax = f.ax, r->rcx = f.cx, r->rsp = f.sp;
	r->rip = f.ip, r->eflags = f.flags, r->cs = f.cs, r->ss = f.ss;
	r->orig_rax = (uint64_t)-1;
	return true;
}

static bool context_next(const uint8_t *buf, size_t len, size_t *at, struct arch_regs *regs)
{
	uint64_t word;

	for (; *at + CONTEXT_SIZE <= len; *at += 8) {
		memcpy(&word, buf + *at + SELECTORS_AT, sizeof(word));
		if (word == SELECTORS && context_load(buf + *at, regs))
			return true;
	}
	return false;
}

static void context_store(uint8_t *bytes, const struct arch_regs *regs)
{
	struct frame f;

	memcpy(&f.r8, bytes, CONTEXT_SIZE);
	fill_registers(&f, &regs->gp);
	memcpy(bytes, &f.r8, CONTEXT_SIZE);
}

/* Where the kernel writes a frame, in any case: so what is there of another one is newer. */
static bool is_written(uint64_t off)
{
	static const struct {
		uint64_t from, to;
	} written[] = {
		{ __builtin_offsetof(struct frame, uc_flags),
		  __builtin_offsetof(struct frame, reserved) },
		{ __builtin_offsetof(struct frame, sigmask),
		  __builtin_offsetof(struct frame, siginfo) },
		{ sizeof(struct frame) + 16, sizeof(struct frame) + 16 + FXSAVE_REGISTERS },
	};

	for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++)
		if (off >= written[i].from && off < written[i].to)
			return true;
	return false;
}

/*
 * Is there a whole frame at buf[f], as the kernel wrote it, in place, with both of its magic
 * numbers, one of which is where a frame with the registers at buf[at] would be written?
 */
static bool covers(const uint8_t *buf, size_t len, uint64_t addr, size_t f, size_t at)
{
	uint64_t old = at - CONTEXT_AT, vectors;
	struct sw_bytes sw;
	uint32_t magic2;
	struct frame frame;

	if (f + sizeof(frame) > len)
		return false;
	memcpy(&frame, buf + f, sizeof(frame));
	vectors = frame.fpstate - addr;
	if ((frame.fpstate & 63) || vectors < f + sizeof(frame) ||
	    vectors > f + sizeof(frame) + 64 || vectors + FXSAVE_SIZE > len)
		return false;
	memcpy(&sw, buf + vectors + SW_RESERVED, sizeof(sw));
	if (sw.magic1 != FP_XSTATE_MAGIC1_ || sw.xstate_size > ARCH_FRAME_MAX ||
	    vectors + sw.xstate_size + sizeof(magic2) > len)
		return false;
	memcpy(&magic2, buf + vectors + sw.xstate_size, sizeof(magic2));
	return magic2 == FP_XSTATE_MAGIC2_ && (is_written(vectors + SW_RESERVED - old) ||
					       is_written(vectors + sw.xstate_size - old));
}

static bool context_covered(const uint8_t *buf, size_t len, uint64_t addr, size_t at)
{
	uint64_t word;

	for (size_t f = at & 7; f < at; f += 8) {
		memcpy(&word, buf + f + SELECTORS_AT, sizeof(word));
		if (word == SELECTORS && f >= CONTEXT_AT && at >= CONTEXT_AT &&
		    covers(buf, len, addr, f - CONTEXT_AT, at))
			return true;
	}
	return false;
}

static void prepare_syscall(struct arch_regs *regs, const struct arch_gadgets *gadgets, uint64_t sp,
			    long nr, const uint64_t args[6])
{
	struct user_regs_struct *r = &regs->gp;

	r->rip = gadgets->syscall;
	r->rsp = sp;
	r->rax = (uint64_t)nr;
	r->orig_rax = (uint64_t)-1;
	r->rdi = args[0], r->rsi = args[1], r->rdx = args[2];
	r->r10 = args[3], r->r8 = args[4], r->r9 = args[5];
	r->eflags &= ~(1ull << 8 | 1ull << 10); /* no single step, direction up */
}

static void defer_syscall(struct arch_regs *regs, const struct arch_gadgets *gadgets, uint64_t sp)
{
	regs->gp.rax = SYS_rt_sigreturn;
	regs->gp.rsp = sp + frame_head(gadgets) + 8; /* its return address is popped */
}

static void enter_syscall(struct arch_regs *regs, uint64_t sp, long nr)
{
	regs->gp.orig_rax = (uint64_t)nr;
	regs->gp.rsp = sp;
}

static void prepare_call(struct arch_regs *regs, uint64_t sp, uint64_t function, uint64_t arg)
{
	regs->gp.rip = function;
	regs->gp.rdi = arg;
	regs->gp.rsp = sp;
	regs->gp.rax = 0;
	regs->gp.orig_rax = (uint64_t)-1;
	regs->gp.eflags &= ~(1ull << 8 | 1ull << 10);
}

static void skip_syscall(struct arch_regs *regs)
{
	regs->gp.orig_rax = (uint64_t)-1;
}

static uint64_t syscall_result(const struct arch_regs *regs)
{
	return regs->gp.rax;
}

static uint64_t call_result(const struct arch_regs *regs)
{
	return regs->gp.rbx;
}

static const struct arch x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.xstate_note = NT_X86_XSTATE,
	.clock_read = clock_read,
	.clock_trusted = clock_trusted,
	.thread_pointer_readable = thread_pointer_readable,
	.common_size = stub_common_size,
	.after_fault = stub_after_fault,
	.emit_common = stub_emit_common,
	.common_gadgets = stub_common_gadgets,
	.common_parts = stub_common_parts,
	.emit_site = stub_emit_site,
	.emit_doorbell = stub_emit_doorbell,
	.leave_site = stub_leave_site,
	.leave_common = stub_leave_common,
	.trap_insn = { 0xcc },
	.trap_len = 1,
	.trap_advance = 1,
	.syscall_insn = { 0x0f, 0x05 },
	.syscall_len = 2,
	.find_gadgets = find_gadgets,
	.pc = regs_pc,
	.set_pc = regs_set_pc,
	.no_restart = skip_syscall,
	.sp = regs_sp,
	.thread_pointer = regs_thread_pointer,
	.thread_block = regs_thread_block,
	.thread_values = 0x310, /* struct pthread: specific_1stblock */
	.build_frame = build_frame,
	.context_size = CONTEXT_SIZE,
	.context_next = context_next,
	.context_store = context_store,
	.context_covered = context_covered,
	.prepare_syscall = prepare_syscall,
	.defer_syscall = defer_syscall,
	.enter_syscall = enter_syscall,
	.prepare_call = prepare_call,
	.interrupted_for_good = interrupted_for_good,
	.waits_with_block = waits_with_block,
	.restart_syscall = restart_syscall,
	.skip_syscall = skip_syscall,
	.syscall_result = syscall_result,
	.call_result = call_result,
};

const struct arch *const arch = &x86_64;
