/* SPDX-License-Identifier: MIT */
/*
 * Mini debug info (.gnu_debugdata, xz) is unpacked in a child: its size is known only afterwards,
 * and input that makes the unpacker fail or run for ever harms no other process. The child drops
 * its privileges first, and passes the bytes through a file in memory. The reader, which has none,
 * unpacks by itself.
 */
#include "debugfile.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "budget.h"
#include "src/base/confine.h"

#define PACKED_MAX   (64u << 20)
#define UNPACKED_MAX (256u << 20) /* real ones are below 10 MB */
#define WORK_MAX     (64u << 20)  /* of the unpacker itself */

enum { IN = 3, OUT = 4 };
enum { EXIT_DAMAGED = 10, EXIT_TOO_MUCH }; /* another allocator's failure exits with 1 */

static bool write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* Closes all of sbinject's descriptors in the child except the two files. */
static bool confine(int in, int out)
{
	in = fcntl(in, F_DUPFD, OUT + 1);
	out = fcntl(out, F_DUPFD, OUT + 1);
	if (in < 0 || out < 0 || dup2(in, IN) < 0 || dup2(out, OUT) < 0 ||
	    syscall(SYS_close_range, OUT + 1, ~0u, 0) < 0)
		return false;
	confine_limit(RLIMIT_CPU, BUDGET_SECONDS);
	confine_limit(RLIMIT_CORE, 0);
	confine_rights();
	return true;
}

static uint64_t most_resident(void)
{
	struct rusage used;

	return getrusage(RUSAGE_SELF, &used) == 0 ? (uint64_t)used.ru_maxrss * 1024 : 0;
}

/* libdw unpacks a compressed ELF file from a descriptor, so no library for xz has to be linked. */
static int unpack(int in, int out, uint64_t resident)
{
	uint64_t before = most_resident(), after;
	size_t size = 0;
	char *base = NULL;
	Elf *elf;
	int status;

	elf_version(EV_CURRENT);
	elf = dwelf_elf_begin(in);
	if (elf)
		base = elf_rawfile(elf, &size);
	after = most_resident();
	if (!base) /* no memory, or another reason? */
		status = after > before && after > resident + UNPACKED_MAX / 2 ? EXIT_TOO_MUCH :
										 EXIT_DAMAGED;
	else if (size > UNPACKED_MAX)
		status = EXIT_TOO_MUCH;
	else
		status = write_all(out, (const uint8_t *)base, size) ? 0 : EXIT_DAMAGED;
	elf_end(elf);
	return status;
}

static int child(int in, int out)
{
	uint64_t resident, had = confine_data_size(&resident);

	if (!confine(in, out))
		return EXIT_DAMAGED;
	confine_limit(RLIMIT_DATA, had + UNPACKED_MAX + WORK_MAX);
	return unpack(IN, OUT, resident);
}

/* Its exit status, or -1 where it did not end by itself in time. */
static int await(pid_t pid)
{
	struct pollfd fd = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int status = 0;

	if (fd.fd < 0 || poll(&fd, 1, BUDGET_SECONDS * 1000) != 1)
		kill(pid, SIGKILL);
	if (fd.fd >= 0)
		close(fd.fd);
	if (waitpid(pid, &status, __WALL) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int run(struct view_range packed, int in, int out)
{
	sigset_t chld, mask;
	uint64_t resident;
	pid_t pid;
	int status;

	if (!write_all(in, packed.bytes, packed.size) || lseek(in, 0, SEEK_SET) < 0)
		return EXIT_DAMAGED;
	if (confine_is_done()) {
		confine_data_size(&resident);
		return unpack(in, out, resident);
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &mask);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child(in, out));
	}
	status = pid < 0 ? EXIT_DAMAGED : await(pid);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return status;
}

static bool take(struct debugfile *d, int out)
{
	struct stat st;

	if (fstat(out, &st) < 0 || st.st_size <= 0 || st.st_size > UNPACKED_MAX ||
	    !mapping_open(&d->map, out, (size_t)st.st_size))
		return false;
	d->packed = true;
	return view_open(&d->view, d->map.base, d->map.size, ".gnu_debugdata", NULL) == 0;
}

enum unpacked debugfile_unpack(struct debugfile *d, struct view_range packed)
{
	static const uint8_t magic[6] = { 0xfd, '7', 'z', 'X', 'Z', 0 };
	enum unpacked got = UNPACK_DAMAGED;
	int in, out, status;

	*d = (struct debugfile){ 0 };
	/* Any other format would go to whichever unpacker accepts it. */
	if (packed.size < sizeof(magic) || memcmp(packed.bytes, magic, sizeof(magic)) != 0)
		return UNPACK_DAMAGED;
	if (packed.size > PACKED_MAX)
		return UNPACK_TOO_MUCH;
	in = memfd_create("sbinject-debugdata", MFD_CLOEXEC);
	out = memfd_create("sbinject-unpacked", MFD_CLOEXEC);
	if (in >= 0 && out >= 0) {
		status = run(packed, in, out);
		if (status == 0 && take(d, out))
			got = UNPACK_DONE;
		else if (status != 0 && status != EXIT_DAMAGED)
			got = UNPACK_TOO_MUCH;
	}
	if (got != UNPACK_DONE)
		debugfile_close(d);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return got;
}
