/* SPDX-License-Identifier: MIT */
/* Checks of a process. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "check.h"
#include "elf/image.h"
#include "inject/page.h"
#include "inject/probe.h"
#include "inject/remote.h"
#include "inject/space.h"
#include "inject/stack.h"
#include "inject/tree-task.h"
#include "src/base/caps.h"
#include "src/base/maps.h"

#define PF_KTHREAD 0x00200000

enum { EXEC_TRIES = 20 };

/* Fields 3 (state) and 9 (flags) of /proc/PID/stat. */
static bool read_stat(pid_t pid, char *state, unsigned int *flags)
{
	char path[64], text[1024];
	const char *paren;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f); /* the name may hold newlines and ')' */
	fclose(f);
	text[n] = '\0';
	paren = strrchr(text, ')');
	return paren && sscanf(paren + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

static int look_kind(const struct check_on *on, struct sb_err *err)
{
	pid_t pid = on->pid;
	unsigned int flags;
	char state;
	pid_t tgid = task_tgid(pid);

	if (!read_stat(pid, &state, &flags) || !tgid) {
		err_set(err, SB_ENOPROC, "no such process: %d", pid);
		return -SB_ENOPROC;
	}
	if (flags & PF_KTHREAD)
		return err_set(err, SB_EBADPROC,
			       "process %d is a kernel thread: it has no user "
			       "code to hook",
			       pid);
	if ((state == 'Z' || state == 'X') && task_ended(pid)) {
		err_set(err, SB_EBADPROC, "process %d is a zombie: it has ended", pid);
		err_hint(err, "its parent, %d, has not collected its status", task_parent(pid));
		return -SB_EBADPROC;
	}
	if (tgid != pid) {
		err_set(err, SB_EBADPROC, "%d is a thread of process %d", pid, tgid);
		err_hint(err, "use -p %d; thread=%d after the target limits it to that thread",
			 tgid, pid);
		return -SB_EBADPROC;
	}
	return 0;
}

static int look_tracer(const struct check_on *on, struct sb_err *err)
{
	return task_tracer(on->pid) > 0 ? task_seize_error(on->pid, on->pid, err) : 0;
}

/* The kernel's own answer: opening the memory of a process needs the same rights as ptrace. */
static int look_permission(const struct check_on *on, struct sb_err *err)
{
	struct memory mem;
	int ret = memory_open(&mem, on->pid, NULL);

	if (ret == -SB_ENOPROC)
		return err_set(err, SB_ENOPROC, "process %d ended", on->pid);
	if (ret < 0)
		return task_no_permission(on->pid, err);
	memory_close(&mem);
	return 0;
}

static int look_program(const struct check_on *on, struct sb_err *err)
{
	struct image *img;
	int ret = image_of_exe(on->pid, &img, err);

	if (ret == 0)
		image_put(img);
	else
		err_prefix(err, "process %d", on->pid);
	return ret;
}

/* valgrind's tools are programs of their own: .../valgrind/memcheck-amd64-linux. */
static bool is_valgrind_tool(const char *exe)
{
	const char *name = strrchr(exe, '/');
	size_t len = strlen(exe);

	return name && name - exe >= 9 && !strncmp(name - 9, "/valgrind", 9) && len > 6 &&
	       !strcmp(exe + len - 6, "-linux");
}

int check_translated(pid_t pid, struct sb_err *err)
{
	char path[64], exe[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", maps_face(pid));
	n = CAPS(readlink(path, exe, sizeof(exe) - 1));
	exe[n > 0 ? n : 0] = '\0';
	if (!is_valgrind_tool(exe))
		return 0;
	err_set(err, SB_EREFUSED,
		"process %d runs in valgrind, which runs a translation of the program and not its "
		"code: no hook would ever be passed",
		pid);
	err_hint(err, "start the program without valgrind");
	return -SB_EREFUSED;
}

static int look_translated(const struct check_on *on, struct sb_err *err)
{
	return check_translated(on->pid, err);
}

bool check_is_hooked(pid_t pid)
{
	pid_t tracer;

	return space_is_hooked(pid, &tracer);
}

static int look_hooked(const struct check_on *on, struct sb_err *err)
{
	pid_t pid = on->pid;
	pid_t tracer;

	if (!space_is_hooked(pid, &tracer))
		return 0;
	if (task_is_tracer(tracer)) {
		err_set(err, SB_EHOOKED, "process %d is hooked by another sbinject (pid %d)", pid,
			tracer);
		err_hint(err, "end that one first");
	} else {
		err_set(err, SB_EHOOKED,
			"process %d was left hooked by an sbinject that was killed", pid);
		err_hint(err, "sbinject recover -p %d restores it", pid);
	}
	return -SB_EHOOKED;
}

static int look_shadow_stack(const struct check_on *on, struct sb_err *err)
{
	if (!task_has_shadow_stack(on->pid))
		return 0;
	err_set(err, SB_ECONFINED,
		"process %d runs with a user shadow stack: a hook that displaces a call would end "
		"it",
		on->pid);
	err_hint(err, "start it without: GLIBC_TUNABLES=glibc.cpu.x86_shstk=off");
	return -SB_ECONFINED;
}

static int look_seccomp(const struct check_on *on, struct sb_err *err)
{
	int mode = task_any_seccomp(on->pid);

	if (mode == 1) {
		err_set(err, SB_ECONFINED,
			"process %d is in seccomp's strict mode, in which reading the clock (TSC) "
			"would end it",
			on->pid);
		err_hint(err, "confine it by a filter instead (SECCOMP_MODE_FILTER)");
		return -SB_ECONFINED;
	}
	/* If seccomp can be suspended, that is done for the few remote calls. */
	if (!mode || !probe_machine()->seccomp)
		return 0;
	err_set(err, SB_ECONFINED,
		"process %d is confined by seccomp, which cannot be suspended: %s", on->pid,
		strerror(probe_machine()->seccomp));
	err_hint(err,
		 "run sbinject as root (CAP_SYS_ADMIN) and not confined itself, so that it may "
		 "suspend the filter for the few calls it needs");
	return -SB_ECONFINED;
}

static int look_frozen(const struct check_on *on, struct sb_err *err)
{
	if (!task_frozen(on->pid))
		return 0;
	err_set(err, SB_ECONFINED, "process %d is frozen by its cgroup", on->pid);
	err_hint(
		err,
		"thaw it first (freezer.state or cgroup.freeze): nothing in it can run until then");
	return -SB_ECONFINED;
}

static int look_gadgets(const struct check_on *on, struct sb_err *err)
{
	struct arch_gadgets gadgets;
	struct memory mem;
	struct maps maps;
	int ret;

	if (memory_open(&mem, on->pid, err) < 0)
		return -(int)err->code;
	ret = maps_read(on->pid, &maps, err);
	if (ret == 0)
		ret = maps.count ? remote_find_gadgets(&mem, &maps, &gadgets, err) :
				   err_set(err, SB_ENOPROC, "process %d ended", on->pid);
	maps_free(&maps);
	memory_close(&mem);
	return ret;
}

static int look_stacks(const struct check_on *on, struct sb_err *err)
{
	size_t room = probe_machine()->room;

	if (!room || stack_has_room(on->pid, room))
		return 0;
	err_set(err, SB_ETARGET,
		"process %d: no thread has %zu KB of stack to spare for a remote call", on->pid,
		(room + 1023) >> 10);
	err_hint(err, "try again when one of them is less deep, or give the threads larger stacks");
	return -SB_ETARGET;
}

/* A remote call needs one descriptor for a moment: a free number below the limit. */
static int look_descriptors(const struct check_on *on, struct sb_err *err)
{
	uint64_t limit = task_limit(on->pid, "Max open files"), used = 0;
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", maps_face(on->pid));
	dir = CAPS(opendir(path));
	while (dir && (e = readdir(dir)))
		used += isdigit((unsigned char)e->d_name[0]) &&
			strtoull(e->d_name, NULL, 10) < limit;
	if (dir)
		closedir(dir);
	if (!dir || used < limit)
		return 0;
	err_set(err, SB_ENOMEM, "process %d has all of its %llu file descriptors in use", on->pid,
		(unsigned long long)limit);
	err_hint(err, "prlimit --pid %d --nofile=%llu: raises its limit", on->pid,
		 (unsigned long long)limit + 16);
	return -SB_ENOMEM;
}

static int look_room(const struct check_on *on, struct sb_err *err)
{
	uint64_t limit = task_limit(on->pid, "Max address space"), pages = 0, need;
	struct sb_page_header layout;
	char path[64];
	FILE *f;

	page_layout(&layout, &(struct page_want){
				     .targets = on->targets, .more = UINT32_MAX, .little = true });
	need = layout.size + (1 << 20);
	snprintf(path, sizeof(path), "/proc/%d/statm", maps_face(on->pid));
	f = fopen(path, "re");
	if (f && fscanf(f, "%" SCNu64, &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	pages *= (uint64_t)sysconf(_SC_PAGESIZE);
	if (limit == UINT64_MAX || pages + need <= limit)
		return 0;
	err_set(err, SB_ENOMEM,
		"process %d has no room for %llu MB more of address space (its limit is %llu MB)",
		on->pid, (unsigned long long)need >> 20, (unsigned long long)limit >> 20);
	err_hint(err, "prlimit --pid %d --as=unlimited: lifts it; the room is not memory used",
		 on->pid);
	return -SB_ENOMEM;
}

const struct check check_process_rows[] = {
	{ "is a process", look_kind, true },
	{ "not traced by another", look_tracer, false },
	{ "permission", look_permission, true },
	{ "program", look_program, true },
	{ "runs its own code", look_translated, true },
	{ "not hooked yet", look_hooked, false },
	{ "shadow stack", look_shadow_stack, false },
	{ "seccomp", look_seccomp, false },
	{ "not frozen", look_frozen, false },
	{ "a way back (rt_sigreturn)", look_gadgets, false },
	{ "stacks", look_stacks, false },
	{ "descriptors", look_descriptors, false },
	{ "address space", look_room, false },
};
const size_t check_process_count = sizeof(check_process_rows) / sizeof(*check_process_rows);

/* During an exec a process is incomplete: the old memory is gone, the new one is mapped piece by
 * piece, the file's name appears late, and a leader that another thread replaces is a zombie for a
 * moment. An attach waits for the end of the exec. */
static bool may_pass(pid_t pid, const struct sb_err *err)
{
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return false;
	return err->code == SB_ETARGET || err->code == SB_ENOPROC || err->code == SB_EFILE ||
	       err->code == SB_EBADPROC;
}

int check_look(const struct check *check, const struct check_on *on, struct sb_err *err)
{
	struct sb_err why = { 0 };
	int ret = check->look(on, &why);

	for (int i = 1; i < EXEC_TRIES && ret < 0 && on && may_pass(on->pid, &why); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		why = (struct sb_err){ 0 };
		ret = check->look(on, &why);
	}
	if (ret < 0 && err)
		*err = why;
	return ret;
}

int check_process(pid_t pid, uint32_t targets, struct sb_err *err)
{
	struct check_on on = { pid, targets };
	int ret = 0;

	for (size_t i = 0; i < check_process_count && ret == 0; i++)
		ret = check_look(&check_process_rows[i], &on, err);
	return ret;
}

int check_readable(pid_t pid, struct sb_err *err)
{
	struct check_on on = { pid, 1 };
	int ret = 0;

	for (size_t i = 0; i < check_process_count && ret == 0; i++)
		if (check_process_rows[i].first)
			ret = check_look(&check_process_rows[i], &on, err);
	return ret;
}

int check_trap(pid_t pid, struct sb_err *err)
{
	const char *why = task_trap_unfit(pid);

	if (!why)
		return 0;
	err_set(err, SB_EREFUSED,
		"process %d cannot be hooked by int3: %s, and the kernel would "
		"reset that at a hit",
		pid, why);
	err_hint(err, "use --mechanism jump");
	return -SB_EREFUSED;
}
