/* SPDX-License-Identifier: MIT */
#include "mapping.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static struct mapping *mappings; /* changed only while no mapping is read */

static size_t whole(const struct mapping *m)
{
	return ((m->size + PAGE - 1) & ~(size_t)(PAGE - 1)) + PAGE;
}

/*
 * From the missing page on, all becomes zeros at once: page by page a large file would take as many
 * signals. Writable, since libelf marks in place what it has unpacked.
 */
static void on_sigbus(int sig, siginfo_t *si, void *context)
{
	uintptr_t at = (uintptr_t)si->si_addr & ~(uintptr_t)(PAGE - 1);
	int saved = errno;

	(void)context;
	for (struct mapping *m = mappings; m && si->si_code > 0; m = m->next) {
		uintptr_t base = (uintptr_t)m->base;

		if (at < base || at - base >= m->size)
			continue;
		if (mmap((void *)at, base + whole(m) - at, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			break;
		m->torn = true;
		errno = saved;
		return;
	}
	signal(sig, SIG_DFL); /* the access is repeated */
	if (si->si_code <= 0)
		raise(sig);
}

static void catch_sigbus(void)
{
	struct sigaction sa = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

bool mapping_open(struct mapping *m, int fd, size_t size)
{
	void *base;

	*m = (struct mapping){ .size = size };
	if (!size || size > SIZE_MAX / 2) {
		errno = EINVAL;
		return false;
	}
	catch_sigbus();
	base = mmap(NULL, whole(m), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return false;
	if (mmap(base, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int saved = errno;

		munmap(base, whole(m));
		errno = saved;
		return false;
	}
	m->base = base;
	m->next = mappings;
	mappings = m;
	return true;
}

void mapping_close(struct mapping *m)
{
	if (!m->base)
		return;
	for (struct mapping **at = &mappings; *at; at = &(*at)->next) {
		if (*at == m) {
			*at = m->next;
			break;
		}
	}
	munmap(m->base, whole(m));
	*m = (struct mapping){ 0 };
}
