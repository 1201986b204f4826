/* SPDX-License-Identifier: MIT */
/*
 * texts MODE: a program whose code is not where, or not what, a file says; or that relies on
 * where it is interrupted. texts_fn() is called until SIGTERM by two threads.
 *
 *	huge	its text lies on anonymous memory for huge pages, as a remapper puts it there
 *	thp	its text is advised to be on huge pages where it is
 *	memfd	it runs from a memfd that no other process has open
 *	rseq	it counts in restartable sequences: an increment a processor, without a lock
 */
#include <elf.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "victim.h"

extern const char __executable_start[], etext[];
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum { THREADS = 3, CPUS = 256 };

uint64_t texts_fn(uint64_t x);

static uint64_t calls, errors;
static bool counts_by_cpu;
static struct {
	uint64_t n;
} __attribute__((aligned(64))) by_cpu[CPUS];

VICTIM_HOOKED uint64_t texts_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 23 + 11;
	VICTIM_OPAQUE(x);
	return x;
}

/* by_cpu[this processor].n++, begun anew whenever it was interrupted: no lock prefix. */
static void count_restartable(void)
{
#ifdef __x86_64__
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	__asm__ volatile goto(
		".pushsection __rseq_cs, \"aw\"\n\t.balign 32\n3:\n\t.long 0, 0\n\t"
		".quad 1f, 2f - 1f, 4f\n\t.popsection\n\t"
		".pushsection .text.abort, \"ax\"\n\t.byte 0x0f, 0xb9, 0x3d\n\t.long %c[sig]\n"
		"4:\n\tjmp %l[again]\n\t.popsection\n"
		"%=:\n\tlea 3b(%%rip), %%rax\n\tmov %%rax, %[cs]\n"
		"1:\n\tmov %[cpu], %%eax\n\tshl $6, %%rax\n\tadd %[base], %%rax\n\t"
		"mov (%%rax), %%rcx\n\tnop\n\tinc %%rcx\n\tmov %%rcx, (%%rax)\n"
		"2:\n\t"
		:
		: [cs] "m"(area->rseq_cs), [cpu] "m"(area->cpu_id), [base] "r"(by_cpu),
		  [sig] "i"(0x53053053)
		: "rax", "rcx", "memory", "cc"
		: again);
	return;
again:
	count_restartable();
#endif
}

static void *caller(void *arg)
{
	while (!victim_stop) {
		uint64_t i = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);

		if (texts_fn(i) != i * 23 + 11)
			__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);
		if (counts_by_cpu)
			count_restartable();
		else
			victim_sleep_ns(20000);
	}
	return arg;
}

static int be_huge(void)
{
	uintptr_t page = 4095, from, to;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)(uintptr_t)__executable_start;
	Elf64_Phdr *ph = (Elf64_Phdr *)((uintptr_t)__executable_start + eh->e_phoff);
	char *copy;

	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X))
			continue;
		from = ((uintptr_t)__executable_start + ph[i].p_vaddr) & ~page;
		to = ((uintptr_t)__executable_start + ph[i].p_vaddr + ph[i].p_memsz + page) & ~page;
		copy = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		memcpy(copy, (void *)from, to - from);
		madvise(copy, to - from, MADV_HUGEPAGE);
		if (mprotect(copy, to - from, PROT_READ | PROT_EXEC) != 0 ||
		    mremap(copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from) ==
			    MAP_FAILED)
			return -1;
	}
	return 0;
}

static int be_thp(void)
{
	uintptr_t from = (uintptr_t)__executable_start & ~4095ul;

	madvise((void *)from, ((uintptr_t)etext - from + 4095) & ~4095ul, MADV_HUGEPAGE);
	return 0;
}

static char **self;

static int be_memfd(void)
{
	char *args[] = { self[0], self[1], (char *)"again", NULL };
	struct stat st;
	int from, to;

	if (self[2])
		return 0;
	from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	to = memfd_create("texts", MFD_CLOEXEC);
	if (fstat(from, &st) || sendfile(to, from, NULL, (size_t)st.st_size) != st.st_size)
		return -1;
	fexecve(to, args, environ);
	return -1;
}

static int be_restartable(void)
{
	if (!&__rseq_offset || !__rseq_size)
		exit(77);
	counts_by_cpu = true;
	return 0;
}

static const struct text {
	const char *name;
	int (*be)(void);
} texts[] = {
	{ "huge", be_huge },
	{ "thp", be_thp },
	{ "memfd", be_memfd },
	{ "rseq", be_restartable },
};

static bool counted(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < CPUS; i++)
		sum += by_cpu[i].n;
	return !counts_by_cpu || sum == calls;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	int ret = -1;

	self = argv;
	victim_catch_term();
	for (size_t i = 0; argc > 1 && i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(argv[1], texts[i].name) == 0)
			ret = texts[i].be();
	if (ret != 0)
		return 2;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, caller, NULL))
			return 2;
	victim_ready();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	victim_calls("texts_fn", calls);
	return victim_done(errors == 0 && counted());
}
