/* SPDX-License-Identifier: MIT */
#include "foreign.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "inject/arch/arch.h"
#include "inject/memory.h"
#include "src/base/maps.h"
#include "src/base/text.h"

/* From include/uapi/linux/bpf.h; a distribution's headers may be older than its kernel. */
enum {
	LINK_GET_FD_BY_ID = 30,
	LINK_GET_NEXT_ID = 31,
	OBJ_GET_INFO_BY_FD = 15,
	LINK_TYPE_PERF_EVENT = 7,
	LINK_TYPE_UPROBE_MULTI = 12,
	PERF_EVENT_UPROBE = 1,
	PERF_EVENT_URETPROBE = 2,
	LINKS_MOST = 1 << 16,
};

union bpf_request {
	struct {
		uint32_t id, next_id, open_flags;
	} link;
	struct {
		uint32_t fd, len;
		uint64_t info;
	} object;
	char room[128];
};

struct link_info {
	uint32_t type, id, prog_id, pad;
	union {
		struct {
			uint32_t type, pad;
			uint64_t file_name;
			uint32_t name_len, offset;
		} perf_event;
		struct {
			uint64_t path, offsets, ref_ctr_offsets, cookies;
			uint32_t path_size, count, flags, pid;
		} multi;
		char room[128];
	};
};

static long bpf(int command, union bpf_request *request)
{
	return syscall(SYS_bpf, command, request, sizeof(*request));
}

/* Opens the next link; -1: there is none, or no permission. */
static int next_link(uint32_t *id)
{
	union bpf_request request;
	int fd;

	do {
		memset(&request, 0, sizeof(request));
		request.link.id = *id;
		if (bpf(LINK_GET_NEXT_ID, &request) < 0)
			return -1;
		*id = request.link.next_id;
		memset(&request, 0, sizeof(request));
		request.link.id = *id;
		fd = (int)bpf(LINK_GET_FD_BY_ID, &request);
	} while (fd < 0); /* it vanished meanwhile */
	return fd;
}

static bool link_info(int fd, struct link_info *info)
{
	union bpf_request request;

	memset(&request, 0, sizeof(request));
	request.object.fd = (uint32_t)fd;
	request.object.len = sizeof(*info);
	request.object.info = (uintptr_t)info;
	return bpf(OBJ_GET_INFO_BY_FD, &request) == 0;
}

/* The file of a link's uprobes and their number; 0: it has none. */
static size_t link_places(int fd, char *path, uint32_t size, uint32_t *id)
{
	struct link_info info = { 0 };
	uint32_t type, kind;

	path[0] = '\0';
	if (!link_info(fd, &info))
		return 0;
	type = info.type;
	*id = info.id;
	memset(&info, 0, sizeof(info));
	if (type == LINK_TYPE_PERF_EVENT) {
		info.perf_event.file_name = (uintptr_t)path;
		info.perf_event.name_len = size;
	} else if (type == LINK_TYPE_UPROBE_MULTI) {
		info.multi.path = (uintptr_t)path;
		info.multi.path_size = size;
	} else {
		return 0;
	}
	if (!link_info(fd, &info))
		return 0;
	kind = info.perf_event.type;
	if (type == LINK_TYPE_UPROBE_MULTI)
		return info.multi.count;
	return kind == PERF_EVENT_UPROBE || kind == PERF_EVENT_URETPROBE;
}

static struct foreign_probe *add(struct foreign *out, const char *path, pid_t pid, const char *name,
				 size_t places)
{
	struct foreign_probe *p;
	struct stat st = { 0 };

	for (size_t i = 0; i < out->n; i++) {
		p = &out->probe[i];
		if (!p->off && p->pid == pid && !strcmp(p->path, path) && !strcmp(p->name, name)) {
			p->places += places;
			return p;
		}
	}
	out->probe = realloc(out->probe, (out->n + 1) * sizeof(*p));
	if (!out->probe)
		abort();
	p = &out->probe[out->n++];
	stat(path, &st);
	*p = (struct foreign_probe){
		.dev = st.st_dev, .inode = st.st_ino, .pid = pid, .places = places
	};
	snprintf(p->path, sizeof(p->path), "%s", path);
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

/* perf's events by that name: each by itself, since each has a breakpoint or has none. */
static void add_off(struct foreign *out, const char *path, const char *offset)
{
	struct foreign_probe *p = add(out, path, 0, "an event of tracefs, on by perf", 0);

	p->off = true;
	p->offset = strtoull(offset, NULL, 0);
	p->places = 1;
}

/* A tool may have named the file by a descriptor of its own: resolve it. */
static void add_of(struct foreign *out, const char *path, pid_t pid, const char *name,
		   size_t places)
{
	char theirs[64], file[4096];
	ssize_t n = -1;
	int fd;

	if (sscanf(path, "/proc/self/fd/%d", &fd) == 1 ||
	    sscanf(path, "/proc/%*d/fd/%d", &fd) == 1) {
		snprintf(theirs, sizeof(theirs), "/proc/%d/fd/%d", pid, fd);
		n = readlink(theirs, file, sizeof(file) - 1);
	}
	file[n > 0 ? n : 0] = '\0';
	add(out, n > 0 ? file : path, pid, name, places);
}

/* Does this descriptor's text in fdinfo name that link? */
static bool holds_link(int fdinfo_dir, const char *fd, uint32_t id)
{
	char line[128];
	unsigned int found;
	bool holds = false;
	int at = openat(fdinfo_dir, fd, O_RDONLY | O_CLOEXEC);
	FILE *f = at < 0 ? NULL : fdopen(at, "r");

	if (!f)
		return false;
	while (!holds && fgets(line, sizeof(line), f))
		holds = sscanf(line, "link_id: %u", &found) == 1 && found == id;
	fclose(f);
	return holds;
}

static bool process_holds(pid_t pid, uint32_t id)
{
	char path[64], target[64];
	bool holds = false;
	struct dirent *e;
	int info;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	info = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && info >= 0 && !holds && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		holds = strstr(target, "bpf") && holds_link(info, e->d_name, id);
	}
	if (dir)
		closedir(dir);
	if (info >= 0)
		close(info);
	return holds;
}

static pid_t link_holder(uint32_t id)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	pid_t holder = 0;

	while (proc && !holder && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && process_holds(pid, id))
			holder = pid;
	}
	if (proc)
		closedir(proc);
	return holder;
}

static void process_name(pid_t pid, char *buf, size_t size)
{
	char path[64], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f) {
		size_t n = fread(name, 1, sizeof(name) - 1, f);

		name[n] = '\0';
		fclose(f);
	}
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = c[1] ? '?' : '\0';
	snprintf(buf, size, "%s", name[0] ? name : "?");
}

static void read_links(struct foreign *out)
{
	uint32_t id = 0, own = 0;
	char path[4096], name[32];

	for (int i = 0, fd; i < LINKS_MOST && (fd = next_link(&id)) >= 0; i++) {
		size_t places = link_places(fd, path, sizeof(path), &own);
		pid_t pid;

		close(fd);
		if (!places || !path[0])
			continue;
		pid = link_holder(own);
		if (pid == getpid())
			continue;
		if (pid)
			process_name(pid, name, sizeof(name));
		add_of(out, path, pid, pid ? name : "a pinned BPF link", places);
	}
}

static bool event_is_on(const char *root, const char *event)
{
	char path[512], state = '0';
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/%s/enable", root, event);
	f = fopen(path, "re");
	if (f && fread(&state, 1, 1, f) != 1)
		state = '0';
	if (f)
		fclose(f);
	return state == '1';
}

/* "p:GROUP/EVENT PATH:0xOFFSET ARG..."; an "r" line is a probe on the return. */
static void read_events(struct foreign *out, const char *root)
{
	char file[256], line[8192], event[256], path[4096];
	FILE *f;

	snprintf(file, sizeof(file), "%s/uprobe_events", root);
	f = fopen(file, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon;

		if (sscanf(line, "%*1[pr]%*[^:]:%255s %4095s", event, path) != 2 &&
		    sscanf(line, "%*1[pr]:%255s %4095s", event, path) != 2)
			continue;
		colon = strrchr(path, ':');
		if (!colon)
			continue;
		*colon = '\0';
		if (event_is_on(root, event))
			add(out, path, 0, "tracefs", 1);
		else
			add_off(out, path, colon + 1);
	}
	if (f)
		fclose(f);
}

void foreign_read(struct foreign *out)
{
	out->probe = NULL;
	out->n = 0;
	read_links(out);
	if (access("/sys/kernel/tracing/uprobe_events", R_OK) == 0)
		read_events(out, "/sys/kernel/tracing");
	else
		read_events(out, "/sys/kernel/debug/tracing");
}

void foreign_free(struct foreign *foreign)
{
	free(foreign->probe);
	foreign->probe = NULL;
	foreign->n = 0;
}

/* The file of this mapping is the probe's, and the probe's place in it has a breakpoint. */
static bool is_armed(const struct foreign_probe *probe, pid_t pid, const struct map_entry *m)
{
	uint64_t at = probe->offset - m->offset;
	uint8_t insn[sizeof(arch->trap_insn)];
	struct memory mem;
	bool armed;

	if (!m->x || m->inode != probe->inode || at >= m->end - m->start ||
	    memory_open(&mem, pid, NULL) < 0)
		return false;
	armed = memory_peek(&mem, m->start + at, insn, arch->trap_len) == arch->trap_len &&
		!memcmp(insn, arch->trap_insn, arch->trap_len);
	memory_close(&mem);
	return armed;
}

static bool is_armed_in(const struct foreign_probe *probe, pid_t pid)
{
	bool armed = false;
	struct maps maps;

	if (maps_read(pid ? pid : getpid(), &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.count && !armed; i++)
		armed = is_armed(probe, pid ? pid : getpid(), &maps.entry[i]);
	maps_free(&maps);
	return armed;
}

bool foreign_is_in(const struct foreign_probe *probe, pid_t pid, const char *path)
{
	char theirs[4352];
	struct stat st;

	if (probe->off && !is_armed_in(probe, pid))
		return false;
	if (pid)
		snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", pid, path);
	else
		snprintf(theirs, sizeof(theirs), "%s", path);
	if (probe->inode && stat(theirs, &st) == 0)
		return st.st_dev == probe->dev && st.st_ino == probe->inode;
	return !strcmp(probe->path, path);
}

bool foreign_is_mapped(const struct foreign_probe *probe, pid_t pid)
{
	bool mapped = false;
	struct maps maps;

	if (maps_read(pid, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < maps.count && !mapped; i++) {
		const struct map_entry *m = &maps.entry[i];

		mapped = m->x && m->path[0] == '/' && (!probe->inode || m->inode == probe->inode) &&
			 foreign_is_in(probe, pid, m->path);
	}
	maps_free(&maps);
	return mapped;
}

void foreign_holder(const struct foreign_probe *probe, char *buf, size_t size)
{
	if (probe->pid)
		snprintf(buf, size, "%s (pid %d)", probe->name, probe->pid);
	else
		snprintf(buf, size, "%s", probe->name);
}

void foreign_text(const struct foreign_probe *probe, char *buf, size_t size)
{
	char holder[64], path[TEXT_QUOTE_SIZE];

	foreign_holder(probe, holder, sizeof(holder));
	snprintf(buf, size, "%s: %s, %zu place%s", holder,
		 text_quote(probe->path, path, sizeof(path)), probe->places,
		 probe->places == 1 ? "" : "s");
}
