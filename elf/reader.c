/* SPDX-License-Identifier: MIT */
/* The side that asks. A question takes some 20 us if the file was asked about before. */
#include "reader.h"
#include "src/base/confine.h"
#include "here.h"
#include "reader-wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "src/base/crowd.h"
#include "src/base/sock.h"

/* Beside what this process has: tables, names and matches of the largest programs take 500 MB. */
#define MEMORY (2ull << 30)

enum {
	SOCKET = 3,
	WAIT_MS = 100,
	MOST_MS = (BUDGET_SECONDS + 5) * 1000,
	SEND_S = 2, /* a question is short, and a reader that is well takes it at once */
	READERS = 4,
};

/*
 * One for the files of each owner on each file system: a file that takes its reader over could lie
 * about files of the same owner only, who can write these anyway.
 */
static struct reader {
	int fd, pidfd;
	pid_t pid, owner; /* owner: a fork of the process that started it has none; 0: none */
	bool asked;	  /* about files of: */
	uid_t uid;
	uint64_t dev;
	unsigned int turn; /* of its last question */
} readers[READERS];
static unsigned int turn;
static bool local;

void reader_local(void)
{
	local = true;
}

static bool runs(const struct reader *r)
{
	return r->owner == getpid();
}

/* ---- its start and its end ---- */

static bool confine(int fd)
{
	uint64_t resident, had = confine_data_size(&resident);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t faults;

	sigfillset(&faults);
	for (size_t i = 0; i < 4; i++)
		sigdelset(&faults, (const int[]){ SIGBUS, SIGSEGV, SIGILL, SIGFPE }[i]);
	sigprocmask(SIG_SETMASK, &faults, NULL);
	prctl(PR_SET_NAME, "sbinject-reader");
	/* A pipe of the command line's must end with the command line. */
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	if ((fd != SOCKET && dup2(fd, SOCKET) < 0) ||
	    syscall(SYS_close_range, SOCKET + 1, ~0u, 0) < 0)
		return false;
	crowd_hurry(); /* its parent's priority ended at the fork */
	confine_limit(RLIMIT_CORE, 0);
	confine_limit(RLIMIT_DATA, had + MEMORY);
	confine_rights();
	return confine_calls();
}

static void reader_main(int fd)
{
	local = true;
	images_abandon();
	if (confine(fd))
		reader_serve(SOCKET);
	_exit(0);
}

static void start(struct reader *r)
{
	const struct timeval limit = { .tv_sec = SEND_S };
	int pair[2];
	pid_t pid;

	if (local || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	pid = fork();
	if (pid == 0)
		reader_main(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	*r = (struct reader){
		.fd = pair[0],
		.pid = pid,
		.owner = getpid(),
		.pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
	};
}

/* Its zombie goes with the next wait for any child, or with this process. */
static void end(struct reader *r)
{
	if (!runs(r))
		return;
	if (r->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0);
		close(r->pidfd);
	}
	close(r->fd);
	r->owner = 0;
}

void reader_start(void)
{
	if (!runs(&readers[0]))
		start(&readers[0]);
}

/* The one for the owner of this file, or one that was never asked, or in place of the oldest. */
static struct reader *reader_of(const struct image *img)
{
	struct reader *best = &readers[0];

	for (struct reader *r = readers; r < readers + READERS; r++)
		if (runs(r) && r->asked && r->uid == img->uid && r->dev == img->dev)
			return r;
	for (struct reader *r = readers; r < readers + READERS; r++) {
		if (runs(r) && !r->asked)
			return r;
		if (runs(best) && (!runs(r) || r->turn < best->turn))
			best = r;
	}
	end(best);
	start(best);
	return best;
}

/* ---- one question ---- */

static bool send_ask(const struct reader *r, const struct reader_ask *ask, const int file[2],
		     const char *name, const char *text)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	size_t fds = (file[1] < 0 ? 1 : 2) * sizeof(int);
	struct iovec iov = { (void *)(uintptr_t)ask, sizeof(*ask) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_SPACE(fds) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fds);
	memcpy(CMSG_DATA(c), file, fds);
	return sendmsg(r->fd, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(*ask) &&
	       sock_send_all(r->fd, name, ask->name_len) &&
	       sock_send_all(r->fd, text, ask->text_len);
}

enum outcome { DONE, DIED, LATE };

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* until_ms: for the whole answer, however it trickles. */
static enum outcome receive(const struct reader *r, void *bytes, size_t len, uint64_t until_ms)
{
	struct pollfd fd = { .fd = r->fd, .events = POLLIN };
	char *p = bytes;

	while (len) {
		ssize_t n;

		if (now_ms() >= until_ms || budget_halted())
			return LATE;
		if (poll(&fd, 1, WAIT_MS) <= 0)
			continue;
		n = recv(r->fd, p, len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return DIED;
		p += n;
		len -= (size_t)n;
	}
	return DONE;
}

/* The answer with its records, to be freed. */
static enum outcome converse(struct reader *r, const struct reader_ask *ask, const int file[2],
			     const char *name, const char *text, struct reader_reply *reply,
			     char **bytes)
{
	uint64_t until_ms = now_ms() + MOST_MS;
	enum outcome got;

	*bytes = NULL;
	if (!runs(r) || !send_ask(r, ask, file, name, text))
		return DIED;
	got = receive(r, reply, sizeof(*reply), until_ms);
	if (got != DONE)
		return got;
	if (!reader_is_plausible(reply))
		return DIED;
	reply->err.what[sizeof(reply->err.what) - 1] = '\0';
	reply->err.hint[sizeof(reply->err.hint) - 1] = '\0';
	*bytes = malloc(reply->bytes + 1);
	return *bytes ? receive(r, *bytes, reply->bytes, until_ms) : DIED;
}

static int refuse(struct image *img, enum outcome why, struct sb_err *err)
{
	if (why == LATE)
		img->budget.over = true;
	else
		img->flaw = "the process that reads its names ended: it is damaged, or takes more "
			    "memory than it may";
	return image_refuse(img, err);
}

static enum outcome try(struct image *img, const struct reader_ask *q, const char *text,
			struct reader_reply *reply, char **bytes)
{
	int file[2] = { img->fd, image_debug_fd(img) };
	struct reader *r = reader_of(img);
	enum outcome got = converse(r, q, file, img->name, text, reply, bytes);

	r->asked = true;
	r->uid = img->uid;
	r->dev = img->dev;
	r->turn = ++turn;
	if (got != DONE)
		end(r);
	return got;
}

/* What a question is to bring. */
struct wish {
	struct symbol_list *list;
	uint64_t *number;
	struct unwind_rules *rules;
};

static int take(struct image *img, enum reader_op op, const struct reader_reply *reply,
		const char *bytes, const struct wish *wish, struct sb_err *err)
{
	if (!reader_take(img, op, reply, bytes, wish->list)) {
		img->flaw = "what was read of it is wrong";
		return image_refuse(img, err);
	}
	if (wish->number)
		*wish->number = reply->number;
	if (wish->rules)
		*wish->rules = reply->rules;
	if (reply->ret < 0 && err && !err->code)
		*err = reply->err;
	return reply->ret;
}

/* A reader that is gone before the question (by the kernel's choice, say) is replaced. */
static int ask(struct image *img, const struct reader_ask *asked, const char *text,
	       const struct wish *wish, struct sb_err *err)
{
	struct reader_ask q = *asked;
	struct reader_reply reply;
	enum outcome got = DIED;
	char *bytes = NULL;
	int ret;

	if (wish->list)
		*wish->list = (struct symbol_list){ 0 };
	if (image_flaw(img))
		return image_refuse(img, err);
	if (img->fd < 0)
		return err_set(err, SB_ESYS, "%s: too many files are open", img->name);
	q.wants_err = err && !err->code;
	q.name_len = (uint32_t)strlen(img->name);
	q.text_len = (uint32_t)strlen(text);
	for (int tries = 0; tries < 2 && got == DIED; tries++) {
		free(bytes);
		got = try(img, &q, text, &reply, &bytes);
	}
	ret = got == DONE ? take(img, q.op, &reply, bytes, wish, err) : refuse(img, got, err);
	free(bytes);
	return ret;
}

static int ask_list(struct image *img, const struct reader_ask *asked, const char *text,
		    struct symbol_list *list, struct sb_err *err)
{
	return ask(img, asked, text, &(struct wish){ .list = list }, err);
}

int symbol_find(struct image *img, const char *pattern, unsigned int flags, struct symbol_list *out,
		struct sb_err *err)
{
	return local ? here_find(img, pattern, flags, out, err) :
		       ask_list(img, &(struct reader_ask){ .op = READER_FIND, .flags = flags },
				pattern, out, err);
}

int symbol_find_line(struct image *img, const char *file, unsigned int line,
		     struct symbol_list *out, struct sb_err *err)
{
	return local ? here_find_line(img, file, line, out, err) :
		       ask_list(img, &(struct reader_ask){ .op = READER_LINE, .line = line }, file,
				out, err);
}

int symbol_find_everywhere(struct image *img, const char *name, unsigned int flags,
			   struct symbol_list *list, struct sb_err *err)
{
	return local ? here_find_everywhere(img, name, flags, list, err) :
		       ask_list(img,
				&(struct reader_ask){ .op = READER_EVERYWHERE, .flags = flags },
				name, list, err);
}

size_t symbol_count_inlined(struct image *img, const char *name)
{
	uint64_t n = 0;

	if (local)
		return here_count_inlined(img, name);
	ask(img, &(struct reader_ask){ .op = READER_COUNT }, name, &(struct wish){ .number = &n },
	    NULL);
	return n;
}

int symbol_arguments(struct image *img, uint64_t vaddr, const char *name, char **text,
		     struct sb_err *err)
{
	struct symbol_list list;
	int ret = local ? here_arguments(img, vaddr, name, &list, err) :
			  ask_list(img,
				   &(struct reader_ask){ .op = READER_ARGUMENTS, .vaddr = vaddr },
				   name, &list, err);

	if (ret < 0)
		return ret;
	if (!list.count) {
		symbol_list_free(&list);
		return err_set(err, SB_ENOMEM, "no memory for its arguments");
	}
	*text = list.sym[0].name;
	list.sym[0].name = NULL;
	symbol_list_free(&list);
	return 0;
}

/* The reader has the nearest ones of each image; the nearest of all are chosen among these. */
void symbol_suggest(struct image *const *img, size_t n, const char *name, char *buf, size_t size)
{
	struct suggester near;
	struct symbol_list list;

	if (size)
		*buf = '\0';
	if (size < 2 || !suggest_name(&near, name))
		return;
	for (size_t i = 0; i < n; i++) {
		if (local) {
			here_suggest(img[i], &near);
		} else if (!ask(img[i], &(struct reader_ask){ .op = READER_NEAR }, name,
				&(struct wish){ .list = &list }, NULL)) {
			for (size_t k = 0; k < list.count && k < SUGGEST_BEST; k++)
				suggest_offer(&near, list.sym[k].name, strlen(list.sym[k].name));
			symbol_list_free(&list);
		}
	}
	suggest_print(&near, buf, size);
}

bool symbol_name_at(struct image *img, uint64_t vaddr, char *buf, size_t size)
{
	struct symbol_list list;
	bool found;

	if (local)
		return here_name_at(img, vaddr, buf, size);
	if (ask_list(img, &(struct reader_ask){ .op = READER_NAME, .vaddr = vaddr }, "", &list,
		     NULL) < 0)
		return false;
	found = list.count == 1;
	if (found)
		snprintf(buf, size, "%s", list.sym[0].name);
	symbol_list_free(&list);
	return found;
}

bool unwind_rules(struct image *img, uint64_t vaddr, struct unwind_rules *out)
{
	uint64_t found = 0;

	if (local)
		return here_rules(img, vaddr, out);
	return ask(img, &(struct reader_ask){ .op = READER_RULES, .vaddr = vaddr }, "",
		   &(struct wish){ .number = &found, .rules = out }, NULL) >= 0 &&
	       found;
}

char *symbol_object(struct image *img, uint64_t vaddr)
{
	struct symbol_list list;
	char *name = NULL;

	if (local)
		return here_object(img, vaddr);
	if (ask_list(img, &(struct reader_ask){ .op = READER_OBJECT, .vaddr = vaddr }, "", &list,
		     NULL) < 0)
		return NULL;
	if (list.count == 1) {
		name = list.sym[0].name;
		list.sym[0].name = NULL;
	}
	symbol_list_free(&list);
	return name;
}

char *symbol_holder(struct image *img, uint64_t start)
{
	char name[512];

	if (!symbol_name_at(img, start, name, sizeof(name)))
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)start);
	return strdup(name);
}

/* Without an index the image has a flaw, so nothing is done with it. */
static bool index_of(struct image *img)
{
	struct sb_err err = { 0 };

	if (local)
		return false;
	if (ask(img, &(struct reader_ask){ .op = READER_INDEX }, "", &(struct wish){ 0 }, &err) <
		    0 &&
	    !image_flaw(img))
		img->flaw = "its functions could not be read";
	return true;
}

__attribute__((constructor)) static void offer_index(void)
{
	image_index_from(index_of);
}
