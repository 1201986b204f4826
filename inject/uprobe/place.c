/* SPDX-License-Identifier: MIT */
/* One place, and the descriptor that keeps its probe. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "uprobe-priv.h"
#include "src/base/must.h"

size_t uprobes_link(struct uprobes *u)
{
	if ((u->n_links & (u->n_links - 1)) == 0)
		u->link = must_realloc(u->link,
				       (u->n_links ? u->n_links * 2 : 1) * sizeof(*u->link));
	u->link[u->n_links] = (struct uprobe_link){ 0 };
	return u->n_links++;
}

static int place_in(struct uprobes *u, struct bpf_program *prog, pid_t pid, const char *path,
		    uint64_t offset, uint64_t cookie, size_t *id)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = cookie);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(prog, pid, path, (size_t)offset,
								&opts);

	if (!link)
		return errno;
	*id = uprobes_link(u);
	u->link[*id].perf = link;
	return 0;
}

int uprobes_place(struct uprobes *u, struct bpf_program *prog, const char *path, uint64_t offset,
		  uint64_t cookie, size_t *id)
{
	return place_in(u, prog, -1, path, offset, cookie, id);
}

int uprobes_doorbell(struct uprobes *u, const char *path, uint64_t offset, pid_t pid, size_t *id)
{
	return place_in(u, u->on_doorbell, pid ? pid : -1, path, offset, 0, id);
}

void uprobes_disarm(struct uprobes *u, size_t id)
{
	bpf_link__destroy(u->link[id].perf);
	if (u->link[id].multi)
		close(u->link[id].multi);
	u->link[id] = (struct uprobe_link){ 0 };
}
