/* SPDX-License-Identifier: MIT */
/*
 * The child keeps one mapping of its own, where neither it nor the target had anything: a page of
 * code (a system call, two traps) and a stack. Through them the parent makes it unmap the rest, and
 * map a page wherever the function faults.
 */
#include "mimic.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clock.h"
#include "ptrace.h"

enum {
	PAGE = 4096,
	STACK = 64 << 10,
	OWN = PAGE + STACK,
	CALLED_TRAP = 64, /* in the page of code: where a call returns to */
	FAULTS_MAX = 4096,
	STOP_US = 500000,
	TLS_REACH = 64 << 10,
	RSEQ_UNREGISTER = 1,
};

struct mimic {
	const struct memory *theirs;
	const struct maps *maps;
	struct memory own;
	pid_t pid;
	uint64_t base; /* of its own mapping */
	uint64_t tls; /* its thread pointer's place in the target: pages of zeros stand in for it */
	struct arch_regs regs;
	struct arch_gadgets gadgets;
	sigset_t mask; /* the mask before */
	uint64_t end;  /* ns: deadline of a call */
	bool broken;   /* could not be started, or was lost */
};

struct mimic *mimic_open(const struct memory *mem, const struct maps *maps)
{
	struct mimic *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->theirs = mem;
	m->maps = maps;
	m->own.fd = -1;
	return m;
}

static int lost(struct mimic *m, struct sb_err *err)
{
	m->broken = true;
	return err_set(err, SB_ETARGET, "a copy of process %d could not be run", m->theirs->pid);
}

/* ---- the child ---- */

/* Between fork and stop: only system calls. */
static void child(uint64_t base, pid_t parent)
{
	static const int wanted[] = { SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	sigset_t others;
	void *own = mmap((void *)base, OWN, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	/* The terminal's signals are for the parent, which handles them. */
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigdelset(&others, wanted[i]);
	sigprocmask(SIG_SETMASK, &others, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || own != (void *)base ||
	    mprotect(own, PAGE, PROT_READ | PROT_EXEC) < 0 || ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(1);
	kill(getpid(), SIGSTOP);
	_exit(1);
}

static bool is_free(const struct maps *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->count; i++)
		if (maps->entry[i].start < end && maps->entry[i].end > start)
			return false;
	return true;
}

/* A place that is free in the target and here. */
static uint64_t find_place(const struct maps *theirs, const struct maps *ours)
{
	for (uint64_t at = 1ull << 32; at < 1ull << 46; at += 1ull << 32)
		if (is_free(theirs, at, at + OWN) && is_free(ours, at, at + OWN))
			return at;
	return 0;
}

static bool wait_signal(struct mimic *m, int sig)
{
	struct stop stop;

	return pt_wait(m->pid, &stop, STOP_US) && stop.kind == STOP_SIGNAL && stop.sig == sig;
}

/* ---- system calls of the child ---- */

static int do_syscall(struct mimic *m, long nr, const uint64_t args[6], uint64_t *result)
{
	struct arch_regs regs = m->regs;

	arch->prepare_syscall(&regs, &m->gadgets, m->base + OWN - 256, nr, args);
	if (pt_set_regs(m->pid, &regs) < 0 || pt_cont(m->pid, 0) < 0 || !wait_signal(m, SIGTRAP) ||
	    pt_get_regs(m->pid, &regs) < 0)
		return -1;
	*result = arch->syscall_result(&regs);
	return *result > -4096ull ? -1 : 0;
}

static int unmap(struct mimic *m, uint64_t start, uint64_t len)
{
	const uint64_t args[6] = { start, len };
	uint64_t result;

	return do_syscall(m, SYS_munmap, args, &result);
}

static int map(struct mimic *m, uint64_t addr, bool executable)
{
	const uint64_t args[6] = { addr,
				   PAGE,
				   (uint64_t)(PROT_READ | (executable ? PROT_EXEC : PROT_WRITE)),
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				   (uint64_t)-1,
				   0 };
	uint64_t result;

	return do_syscall(m, SYS_mmap, args, &result) < 0 || result != addr ? -1 : 0;
}

/* The kernel writes to a registered area whenever the thread is preempted. */
static int forget_rseq(struct mimic *m)
{
	struct pt_rseq_area area;
	uint64_t result;

	if (!pt_rseq(m->pid, &area))
		return 0;
	return do_syscall(
		m, SYS_rseq,
		(const uint64_t[6]){ area.addr, area.size, RSEQ_UNREGISTER, area.signature },
		&result);
}

/* Unmaps all but its own mapping; the kernel may refuse to unmap its own pages. */
static int empty(struct mimic *m)
{
	struct maps maps;
	int ret = maps_read(m->pid, &maps, NULL);

	for (size_t i = 0; i < maps.count && ret >= 0; i++) {
		const struct map_entry *e = &maps.entry[i];

		if (e->start < m->base + OWN && e->end > m->base)
			continue;
		if (unmap(m, e->start, e->end - e->start) < 0 && strncmp(e->path, "[v", 2) != 0)
			ret = -1;
	}
	maps_free(&maps);
	return ret;
}

static int fill_code(struct mimic *m)
{
	uint8_t code[CALLED_TRAP + sizeof(arch->trap_insn)] = { 0 };
	size_t len = arch->syscall_len;

	memcpy(code, arch->syscall_insn, len);
	memcpy(code + len, arch->trap_insn, arch->trap_len);
	memcpy(code + CALLED_TRAP, arch->trap_insn, arch->trap_len);
	m->gadgets.syscall = m->base;
	return memory_write(&m->own, m->base, code, sizeof(code), NULL);
}

static int start(struct mimic *m)
{
	pid_t parent = getpid();
	struct maps ours;

	if (maps_read(parent, &ours, NULL) < 0)
		return -1;
	m->base = find_place(m->maps, &ours);
	maps_free(&ours);
	if (!m->base)
		return -1;
	m->pid = fork();
	if (m->pid == 0)
		child(m->base, parent);
	if (m->pid < 0 || !wait_signal(m, SIGSTOP) || pt_own(m->pid) < 0 ||
	    memory_open(&m->own, m->pid, NULL) < 0 || fill_code(m) < 0 ||
	    pt_get_regs(m->pid, &m->regs) < 0)
		return -1;
	m->tls = arch->thread_pointer(&m->regs);
	return forget_rseq(m) < 0 || empty(m) < 0 ? -1 : 0;
}

/* ---- the call ---- */

/* A page of the target, or zeros where the thread's own would be. */
static bool give_page(struct mimic *m, uint64_t addr)
{
	uint64_t page = addr & ~(uint64_t)(PAGE - 1);
	const struct map_entry *e = maps_find(m->maps, page);
	uint8_t bytes[PAGE] = { 0 };

	if (e && e->r) {
		if (memory_peek(m->theirs, page, bytes, PAGE) != PAGE)
			return false;
	} else if (addr - (m->tls - TLS_REACH) > 2 * TLS_REACH) {
		return false;
	}
	return map(m, page, e && e->x) == 0 && memory_write(&m->own, page, bytes, PAGE, NULL) >= 0;
}

static int gave_up(const struct mimic *m, uint64_t function, const char *why, struct sb_err *err)
{
	return err_set(err, SB_ETARGET, "process %d: the function at 0x%llx %s", m->theirs->pid,
		       (unsigned long long)function, why);
}

/* One stop of the running function: 1 it continues, 0 it has returned. */
static int step(struct mimic *m, uint64_t function, const struct stop *stop, struct sb_err *err)
{
	struct arch_regs regs;
	uint64_t addr;

	if (stop->kind == STOP_SYSCALL)
		return gave_up(m, function, "makes a system call", err);
	if (stop->kind != STOP_SIGNAL || pt_get_regs(m->pid, &regs) < 0)
		return lost(m, err);
	if (stop->sig == SIGTRAP && arch->pc(&regs) == m->base + CALLED_TRAP + arch->trap_advance)
		return 0;
	if (stop->sig != SIGSEGV || !pt_fault_addr(m->pid, &addr) || !give_page(m, addr))
		return gave_up(m, function, "cannot be run in a copy", err);
	return pt_set_regs(m->pid, &regs) < 0 ? lost(m, err) : 1;
}

static int run(struct mimic *m, uint64_t function, struct sb_err *err)
{
	struct stop stop;
	int ret = 1;

	for (int faults = 0; ret > 0; faults++) {
		if (pt_syscall(m->pid) < 0)
			return lost(m, err);
		if (faults == FAULTS_MAX || clock_ns() > m->end ||
		    !pt_wait(m->pid, &stop, STOP_US)) {
			m->broken = true; /* it still runs: do not use it again */
			return gave_up(m, function, "does not return", err);
		}
		ret = step(m, function, &stop, err);
	}
	return ret;
}

static int call(struct mimic *m, uint64_t function, uint64_t *result, struct sb_err *err)
{
	uint64_t back = m->base + CALLED_TRAP, sp = m->base + OWN - 1024 - sizeof(back);
	struct arch_regs regs = m->regs;
	int ret;

	arch->prepare_call(&regs, sp, function, 0);
	if (memory_write(&m->own, sp, &back, sizeof(back), NULL) < 0 ||
	    pt_set_regs(m->pid, &regs) < 0)
		return lost(m, err);
	m->end = clock_ns() + STOP_US * 1000ull;
	ret = run(m, function, err);
	if (ret == 0 && pt_get_regs(m->pid, &regs) < 0)
		ret = lost(m, err);
	if (ret == 0)
		*result = arch->syscall_result(&regs); /* a function returns in the same register */
	return ret;
}

int mimic_call(struct mimic *m, uint64_t function, uint64_t *result, struct sb_err *err)
{
	sigset_t chld;
	int ret;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &m->mask);
	if (!m->pid && start(m) < 0)
		m->broken = true;
	ret = m->broken ? lost(m, err) : call(m, function, result, err);
	sigprocmask(SIG_SETMASK, &m->mask, NULL);
	return ret;
}

void mimic_close(struct mimic *m)
{
	if (!m)
		return;
	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		while (waitpid(m->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	memory_close(&m->own);
	free(m);
}
