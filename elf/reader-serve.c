/* SPDX-License-Identifier: MIT */
/* The reader's side: a question, a search, an answer. */
#include "src/base/confine.h"
#include "reader-wire.h"
#include "here.h"
#include "src/base/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEPT = 256 };

static struct image *kept[KEPT]; /* the last images, so that a file is parsed once for many names */
static unsigned int turn;

static bool receive_all(int fd, void *bytes, size_t len)
{
	char *p = bytes;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* file[1]: the separate debug file, or -1. */
static bool receive_ask(int fd, struct reader_ask *ask, int file[2])
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { ask, sizeof(*ask) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	file[0] = file[1] = -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(c),
		       c->cmsg_len == CMSG_LEN(2 * sizeof(int)) ? 2 * sizeof(int) : sizeof(int));
	return n > 0 && receive_all(fd, (char *)ask + n, sizeof(*ask) - (size_t)n) && file[0] >= 0;
}

static char *receive_text(int fd, size_t len)
{
	char *text = malloc(len + 1);

	if (!text || !receive_all(fd, text, len))
		_exit(1);
	text[len] = '\0';
	return text;
}

static struct image *open_image(const int file[2], const char *name, struct sb_err *err)
{
	struct image *img;

	if (image_get_open(file[0], name, "", &img, err) < 0)
		return NULL;
	if (!img->debug_tried) {
		img->debug_tried = true;
		img->debug_fd = file[1] < 0 ? -1 : dup(file[1]);
	}
	return img;
}

/* One more holder, for the next questions. */
static void keep(struct image *img)
{
	for (size_t i = 0; i < KEPT; i++)
		if (kept[i] == img)
			return;
	image_put(kept[turn % KEPT]);
	kept[turn++ % KEPT] = image_ref(img);
}

static void add_name(struct symbol_list *list, struct image *img, char *name)
{
	struct symbol *more = reallocarray(list->sym, list->count + 1, sizeof(*more));

	if (!more || !name)
		_exit(1);
	list->sym = more;
	list->sym[list->count++] = (struct symbol){ .vaddr = image_entry(img), .name = name };
	if (!list->img)
		list->img = image_ref(img);
}

static void list_near(struct image *img, const char *name, struct symbol_list *list)
{
	struct suggester near;

	if (!suggest_name(&near, name))
		return;
	here_suggest(img, &near);
	for (size_t i = 0; i < near.count; i++)
		add_name(list, img, near.best[i].text);
}

static void list_name(struct image *img, uint64_t vaddr, struct symbol_list *list)
{
	static char name[SYMBOL_NAME_MOST];

	if (!here_name_at(img, vaddr, name, sizeof(name)))
		return;
	add_name(list, img, strdup(name));
	list->sym[0].vaddr = vaddr;
}

static void list_object(struct image *img, uint64_t vaddr, struct symbol_list *list)
{
	char *name = here_object(img, vaddr);

	if (name)
		add_name(list, img, name);
}

static int search(struct image *img, const struct reader_ask *ask, const char *text,
		  struct symbol_list *list, struct reader_reply *reply, struct sb_err *err)
{
	switch (ask->op) {
	case READER_FIND:
		return here_find(img, text, ask->flags, list, err);
	case READER_LINE:
		return here_find_line(img, text, ask->line, list, err);
	case READER_EVERYWHERE:
		return here_find_everywhere(img, text, ask->flags, list, err);
	case READER_ARGUMENTS:
		return here_arguments(img, ask->vaddr, text, list, err);
	case READER_NEAR:
		list_near(img, text, list);
		return 0;
	case READER_NAME:
		list_name(img, ask->vaddr, list);
		return 0;
	case READER_OBJECT:
		list_object(img, ask->vaddr, list);
		return 0;
	case READER_RULES:
		reply->number = here_rules(img, ask->vaddr, &reply->rules);
		return 0;
	case READER_INDEX:
		image_index(img);
		reply->n_func = (uint32_t)img->func_count;
		reply->n_go = img->go ? (uint32_t)image_gotab(img)->count : 0;
		return 0;
	default:
		reply->number = here_count_inlined(img, text);
		return 0;
	}
}

static size_t size_of(const struct symbol_list *list, const struct image *img,
		      const struct reader_reply *reply)
{
	size_t bytes = img->n_inlined * sizeof(struct inline_copy) +
		       reply->n_func * sizeof(struct reader_func) +
		       reply->n_go * sizeof(struct reader_go);

	for (size_t i = 0; i < list->count; i++)
		bytes += sizeof(struct reader_sym) + strlen(list->sym[i].name);
	return bytes;
}

static char *compose_index(char *at, const struct image *img, const struct reader_reply *reply)
{
	for (size_t i = 0; i < reply->n_func; i++, at += sizeof(struct reader_func)) {
		uint32_t table = img->func[i].sym & 3;
		struct reader_func f = { .start = img->func[i].start, .size = img->func[i].size };

		f.table = table == TABLE_EXTRA && !img->debug.packed ? TABLE_EXTRA : TABLE_DYNSYM;
		memcpy(at, &f, sizeof(f));
	}
	for (size_t i = 0; i < reply->n_go; i++, at += sizeof(struct reader_go)) {
		struct reader_go f = { .start = img->gotab.func[i].start,
				       .assembly = img->gotab.func[i].assembly };

		memcpy(at, &f, sizeof(f));
	}
	return at;
}

static char *compose(const struct symbol_list *list, const struct image *img,
		     const struct reader_reply *reply)
{
	char *all = malloc(reply->bytes + 1), *at = all;

	if (!all)
		_exit(1);
	for (size_t i = 0; i < list->count; i++, at += sizeof(struct reader_sym)) {
		const struct symbol *sym = &list->sym[i];

		*(struct reader_sym *)(void *)at =
			(struct reader_sym){ .vaddr = sym->vaddr,
					     .size = sym->size,
					     .offset = sym->offset,
					     .name_len = (uint32_t)strlen(sym->name),
					     .ifunc = sym->ifunc };
	}
	if (img->n_inlined)
		memcpy(at, img->inlined, img->n_inlined * sizeof(struct inline_copy));
	at += img->n_inlined * sizeof(struct inline_copy);
	at = compose_index(at, img, reply);
	for (size_t i = 0; i < list->count; i++) {
		size_t len = strlen(list->sym[i].name);

		memcpy(at, list->sym[i].name, len);
		at += len;
	}
	return all;
}

static uint32_t flaws_of(const struct image *img)
{
	return (img->budget.over ? READER_SLOW : 0) |
	       (img->map.torn || img->debug.map.torn ? READER_TORN : 0) |
	       (img->flaw == image_flaw_packed ? READER_PACKED : 0) |
	       (img->flaw == image_flaw_debug ? READER_DEBUG : 0);
}

static bool answer(int fd, const struct reader_ask *ask, const int file[2], const char *name,
		   const char *text)
{
	struct sb_err *err = NULL;
	struct reader_reply reply = { 0 };
	struct symbol_list list = { 0 };
	struct image *img = open_image(file, name, &reply.err);
	char *bytes = NULL;
	bool ok;

	if (!img)
		reply.ret = -(int)reply.err.code;
	else if (ask->wants_err)
		err = &reply.err;
	if (img)
		reply.ret = search(img, ask, text, &list, &reply, err);
	if (img && (list.count > READER_SYMBOLS || size_of(&list, img, &reply) > READER_BYTES)) {
		symbol_list_free(&list);
		reply.ret = err_set(err, SB_ENOMEM, "%s: more than %u functions match", name,
				    READER_SYMBOLS);
	}
	if (img) {
		reply.flaws = flaws_of(img);
		reply.n_sym = (uint32_t)list.count;
		reply.n_inlined = (uint32_t)img->n_inlined;
		reply.bytes = size_of(&list, img, &reply);
		bytes = compose(&list, img, &reply);
		keep(img);
	}
	ok = sock_send_all(fd, &reply, sizeof(reply)) && sock_send_all(fd, bytes, reply.bytes);
	free(bytes);
	symbol_list_free(&list);
	image_put(img);
	return ok;
}

void reader_serve(int fd)
{
	struct reader_ask ask;
	int file[2];
	bool ok = true;

	while (ok && receive_ask(fd, &ask, file)) {
		char *name = receive_text(fd, ask.name_len), *text = receive_text(fd, ask.text_len);

		ok = answer(fd, &ask, file, name, text);
		free(name);
		free(text);
		for (int i = 0; i < 2; i++)
			if (file[i] >= 0)
				close(file[i]);
	}
}
