/* SPDX-License-Identifier: MIT */
/*
 * From targets to places in files: finds names in a process (or in a file that no process maps),
 * turns addresses into offsets, and arms each offset of each file once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "priv.h"
#include "inject/memory.h"
#include "inject/mimic.h"
#include "src/base/log.h"
#include "src/base/text.h"

/* A place as found, with all that is needed to arm it. */
struct candidate {
	size_t target;
	bool doorbell;
	struct image *img;
	const char *name;
	uint64_t vaddr, func; /* in addresses of the file */
	uint64_t address, size;
	bool elsewhere; /* the function is implemented in another file */
	uint32_t dev;	/* as /proc/PID/maps shows them */
	uint64_t inode;
	char path[64]; /* of the parsed descriptor; no other one is ever armed */
};

struct finder {
	struct uprobe_session *s;
	pid_t pid;
	uint32_t row;
	struct memory mem;
	struct maps maps;
	struct mimic *mimic;
	struct resolve_access access;
};

static int read_target(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct finder *f = ctx;

	return memory_peek(&f->mem, addr, buf, len) == len ? 0 : -1;
}

static int call_target(void *ctx, uint64_t function, uint64_t *result, struct sb_err *err)
{
	const struct finder *f = ctx;

	return mimic_call(f->mimic, function, result, err);
}

/* ---- arming ---- */

static bool file_offset(const struct image *img, uint64_t vaddr, uint64_t *offset)
{
	struct image_segment seg[16];
	size_t n = image_text(img, seg, 16);

	for (size_t i = 0; i < n && i < 16; i++) {
		if (vaddr < seg[i].vaddr || vaddr - seg[i].vaddr >= seg[i].size)
			continue;
		*offset = seg[i].offset + (vaddr - seg[i].vaddr);
		return true;
	}
	return false;
}

static void refuse(struct uprobe_session *s, const struct candidate *c, pid_t pid,
		   const char *reason)
{
	if (!c->doorbell)
		target_refuse(&s->target[c->target], image_name(c->img), c->name, c->address,
			      reason, pid);
}

static struct uplace *place_at(struct uprobe_session *s, const struct candidate *c, uint64_t offset)
{
	for (size_t i = 0; i < s->n_places; i++) {
		struct uplace *p = &s->place[i];

		if (p->offset == offset && p->inode == c->inode && p->dev == c->dev &&
		    p->doorbell == c->doorbell && (p->armed || p->target == c->target))
			return p;
	}
	return NULL;
}

static struct uplace *place_new(struct uprobe_session *s, const struct candidate *c,
				uint64_t offset)
{
	struct uplace *p;

	if ((s->n_places & (s->n_places - 1)) == 0)
		s->place = must(
			realloc(s->place, (s->n_places ? s->n_places * 2 : 1) * sizeof(*s->place)));
	p = &s->place[s->n_places++];
	*p = (struct uplace){
		.target = c->target,
		.doorbell = c->doorbell,
		.dev = c->dev,
		.inode = c->inode,
		.offset = offset,
		.img = image_ref(c->img),
		.module = text_dup(image_name(c->img)),
		.symbol = text_dup(c->name),
		.build_id = text_dup(image_build_id(c->img)),
		.address = c->address,
		.size = c->size,
	};
	return p;
}

static void place_row(struct uplace *p, uint32_t row)
{
	for (size_t i = 0; i < p->n_rows; i++)
		if (p->rows[i] == row)
			return;
	if (!row)
		return;
	p->rows = must_realloc(p->rows, (p->n_rows + 1) * sizeof(*p->rows));
	p->rows[p->n_rows++] = row;
}

static void warn_floor(struct uprobe_session *s, size_t target, uint64_t cost_ns)
{
	const struct target *t = &s->target[target];
	char least[32];

	if (!t->delay_ns || t->delay_ns >= cost_ns)
		return;
	spec_format_ns((cost_ns + 99) / 100 * 100, least, sizeof(least));
	session_warn(s,
		     "target '%s': by a uprobe a hit takes at least %s here, whatever is asked; "
		     "'given' shows the actual delay",
		     t->spec->text, least);
}

/* A place to be armed. The pointers of its candidate are valid until then. */
struct upending {
	size_t place;
	uint32_t row;
	struct candidate c;
};

static void pend(struct uprobe_session *s, const struct candidate *c, size_t place, uint32_t row)
{
	if ((s->n_pending & (s->n_pending - 1)) == 0)
		s->pending = must_realloc(s->pending, (s->n_pending ? s->n_pending * 2 : 1) *
							      sizeof(*s->pending));
	s->pending[s->n_pending++] = (struct upending){ place, row, *c };
	s->place[place].waiting = true;
}

static void settle(struct uprobe_session *s, const struct upending *w,
		   const struct uprobe_place *at, pid_t pid)
{
	struct uplace *p = &s->place[w->place];
	char why[160];

	p->waiting = false;
	if (at->refused) {
		refuse(s, &w->c, pid, uprobes_refusal(at->refused, why, sizeof(why)));
		return;
	}
	p->armed = true;
	p->id = at->id;
	place_row(p, w->row);
	s->target[p->target].planted = true;
	warn_floor(s, p->target, at->cost_ns);
}

/* Arms the waiting places, all of one target: those of one file together. */
static void arm_pending(struct uprobe_session *s, pid_t pid)
{
	struct uprobe_place *at = must_calloc(s->n_pending + 1, sizeof(*at));
	size_t first = 0, n;

	for (; first < s->n_pending; first += n) {
		const struct upending *w = &s->pending[first];

		for (n = 0; first + n < s->n_pending && !strcmp(w[n].c.path, w->c.path); n++) {
			at[n] = (struct uprobe_place){ .offset = s->place[w[n].place].offset };
			at[n].code = image_bytes(w[n].c.img, w[n].c.vaddr, &at[n].len);
		}
		if (s->u)
			uprobes_arm(s->u, w->c.path, (uint32_t)w->c.target, at, n);
		for (size_t i = 0; i < n; i++)
			settle(s, &w[i], &at[i], pid);
	}
	s->n_pending = 0;
	free(at);
}

/* A place that cannot be armed now. */
static bool clashes(struct uprobe_session *s, const struct candidate *c, const struct uplace *p,
		    pid_t pid)
{
	pid_t hooked = s->u && !p->armed ? usession_clash(c->dev, c->inode, p->offset) : 0;
	char reason[128];

	if (!hooked)
		return false;
	s->deaf |= c->doorbell;
	snprintf(reason, sizeof(reason),
		 "process %d has it hooked by another sbinject: a uprobe there would end that "
		 "process",
		 hooked);
	refuse(s, c, pid, reason);
	return true;
}

/* A few processes that neither fork nor exec have one each. Otherwise one is in every process, ours
 * or not, until the session ends. */
static void ring(struct uprobe_session *s, const struct candidate *c, uint64_t offset, pid_t pid,
		 uint32_t row)
{
	struct uplace *p;

	if (!s->u || usession_ring_one(s, c->path, c->dev, c->inode, offset, pid, row))
		return;
	p = place_at(s, c, offset);
	if (!p)
		p = place_new(s, c, offset);
	if (p->armed || clashes(s, c, p, pid))
		return;
	p->armed = uprobes_doorbell(s->u, c->path, offset, 0, &p->id) == 0;
	s->deaf |= !p->armed;
}

static void note_clash(struct uprobe_session *s, const struct candidate *c, size_t other, pid_t pid)
{
	char reason[TEXT_QUOTE_SIZE + 64], quoted[TEXT_QUOTE_SIZE];

	if (target_yields(&s->target[c->target], &s->target[other]))
		return;
	text_quote(s->target[other].spec->text, quoted, sizeof(quoted));
	snprintf(reason, sizeof(reason), "already a site of target '%s'", quoted);
	s->target[c->target].clashes = true;
	refuse(s, c, pid, reason);
}

/*
 * A place is armed for all processes that map the file. So neither the data of a process (its map,
 * its slots, its resolvers) nor a path that it can change decides about it: only the file that was
 * read, and the functions in that file's own tables. NULL: it may be armed.
 */
static const char *why_not(const struct candidate *c, uint64_t *offset)
{
	if (image_flaw(c->img))
		return image_flaw(c->img);
	if (c->elsewhere)
		return "the process names an implementation in another file, and the uprobe "
		       "backend arms only the file that the target names";
	if (c->vaddr != c->func)
		return "the uprobe backend hooks the entries of functions only";
	if (!file_offset(c->img, c->vaddr, offset))
		return "it is not in a part of the file that can be executed";
	if (!image_is_entry(c->img, c->vaddr))
		return "no function begins there by the file's own tables, and the uprobe backend "
		       "goes by nothing else";
	if (!*c->path)
		return "the limit on open files is reached (ulimit -n)";
	return NULL;
}

static void take(struct uprobe_session *s, struct candidate *c, pid_t pid, uint32_t row)
{
	struct uplace *p;
	uint64_t offset = 0;
	const char *why;

	c->path[0] = '\0';
	if (!image_mapped_as(c->img, &c->dev, &c->inode) ||
	    !image_own_path(c->img, c->path, sizeof(c->path)))
		c->path[0] = '\0';
	why = why_not(c, &offset);
	if (why) {
		s->deaf |= c->doorbell;
		refuse(s, c, pid, why);
		return;
	}
	if (c->doorbell) {
		ring(s, c, offset, pid, row);
		return;
	}
	p = place_at(s, c, offset);
	if (p && p->target != c->target) {
		note_clash(s, c, p->target, pid);
		return;
	}
	if (!p)
		p = place_new(s, c, offset);
	if (clashes(s, c, p, pid))
		return;
	if (!p->armed && !p->waiting)
		pend(s, c, (size_t)(p - s->place), row);
	if (p->armed)
		place_row(p, row);
}

/* ---- in a process ---- */

static void take_site(struct finder *f, size_t target, bool doorbell, const struct resolve_site *rs)
{
	struct candidate c = {
		.target = target,
		.doorbell = doorbell,
		.elsewhere = rs->elsewhere,
		.img = rs->img,
		.name = rs->name,
		.vaddr = rs->addr - rs->bias,
		.func = rs->func - rs->bias,
		.address = rs->addr,
		.size = rs->size,
	};

	take(f->s, &c, f->pid, f->row);
}

static void find_target(struct finder *f, size_t i)
{
	struct resolve_result res = { 0 };
	/* Too slow for every process, and for many functions that the process need not have. */
	bool hints = !f->s->cfg->all && !f->s->target[i].spec->listed;
	int ret;

	if (f->s->target[i].removed || spec_in_kernel(f->s->target[i].spec))
		return;
	ret = target_resolve(&f->s->target[i], f->pid, &f->maps, &f->access, hints, &res);
	for (size_t k = 0; ret == 0 && k < res.count; k++)
		take_site(f, i, false, &res.site[k]);
	arm_pending(f->s, f->pid);
	resolve_free(&res);
}

static void hang_doorbell(struct finder *f)
{
	struct resolve_result res = { 0 };

	if (maps_read(f->pid, &f->maps, NULL) == 0 && f->maps.count &&
	    target_find_doorbell(f->pid, &f->maps, &f->access, &res))
		take_site(f, 0, true, &res.site[0]);
	resolve_free(&res);
	maps_free(&f->maps);
}

void usession_look(struct uprobe_session *s, pid_t pid, uint32_t row)
{
	struct finder f = { .s = s, .pid = pid, .row = row };

	f.access = (struct resolve_access){ .read = read_target, .call = call_target, .ctx = &f };
	if (memory_open(&f.mem, pid, NULL) < 0)
		return;
	if (s->u && !s->cfg->all && usession_awaits(s))
		hang_doorbell(&f); /* first: it reports what is mapped from now on */
	if (maps_read(pid, &f.maps, NULL) == 0 && f.maps.count) {
		f.mimic = mimic_open(&f.mem, &f.maps);
		for (size_t i = 0; i < s->n_targets; i++)
			find_target(&f, i);
		mimic_close(f.mimic);
	}
	maps_free(&f.maps);
	memory_close(&f.mem);
}

/* A fork has the mappings of its parent until a doorbell rings. While the parent lives, the search
 * there is enough. */
static bool looked_at_elsewhere(const struct uprobe_session *s, const struct urecord *fork)
{
	for (const struct urecord *rec = s->records; rec && fork->image != fork->row && !s->deaf;
	     rec = rec->next)
		if (rec->row == fork->image && !rec->ended)
			return true;
	return false;
}

void usession_look_everywhere(struct uprobe_session *s)
{
	pid_t *all;
	size_t n = s->cfg->all ? processes_all(&all) : 0;

	for (size_t i = 0; i < n; i++)
		usession_look(s, all[i], 0);
	if (s->cfg->all)
		free(all);
	for (struct urecord *rec = s->records; rec && !s->cfg->all; rec = rec->next)
		if (!rec->ended && rec->generation != -1u && !looked_at_elsewhere(s, rec))
			usession_look(s, rec->pid, rec->row);
}

/* ---- in a file ---- */

static void take_symbols(struct uprobe_session *s, size_t target, const struct symbol_list *list)
{
	struct target *t = &s->target[target];

	for (size_t i = 0; i < list->count; i++) {
		const struct symbol *sym = &list->sym[i];
		uint64_t start = 0, end = 0;
		struct candidate c = {
			.target = target,
			.img = list->img,
			.name = sym->name,
			.vaddr = sym->vaddr + sym->offset,
			.address = sym->vaddr + sym->offset,
			.size = sym->size,
		};

		c.func = image_function_at(list->img, c.vaddr, &start, &end) ? start : sym->vaddr;
		if (sym->ifunc)
			refuse(s, &c, 0,
			       "each process chooses the implementation, and no process maps this "
			       "file");
		else
			take(s, &c, 0, 0);
	}
	t->module_seen = true;
}

static void look_file(struct uprobe_session *s, size_t target, const char *path)
{
	struct target *t = &s->target[target];
	const struct spec *spec = t->spec;
	struct symbol_list list = { 0 };
	struct sb_err why = { 0 };
	struct image *img;
	int ret = image_get(path, path, &img, &why);

	if (ret == 0) {
		ret = spec->kind == SPEC_LINE ?
			      symbol_find_line(img, spec->symbol, spec->line, &list, &why) :
			      symbol_find(img, spec->symbol,
					  (spec->kind == SPEC_LITERAL ? SYMBOL_LITERAL : 0) |
						  (spec->row ? SYMBOL_VERSIONS : 0),
					  &list, &why);
		if (image_flaw(img)) {
			symbol_list_free(&list);
			ret = image_refuse(img, &why);
		}
		image_put(img);
		t->module_seen = true;
	}
	t->module_seen |= why.code == SB_ENOELF; /* it exists, but cannot be armed */
	if (ret < 0 && !t->planted)
		t->why = why;
	if (ret == 0)
		take_symbols(s, target, &list);
	arm_pending(s, 0);
	symbol_list_free(&list);
}

void usession_look_files(struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		struct target *t = &s->target[i];
		struct stat st;

		if (t->removed || t->planted || spec_in_kernel(t->spec) || t->n_refused ||
		    t->spec->module[0] != '/' || glob_is_pattern(t->spec->module) ||
		    stat(t->spec->module, &st) < 0)
			continue;
		look_file(s, i, t->spec->module);
	}
}

int usession_judge(const struct uprobe_session *s, size_t target, struct sb_err *err)
{
	const struct target *t = &s->target[target];
	char quoted[TEXT_QUOTE_SIZE];

	if (t->planted || t->removed)
		return 0;
	if (t->n_refused) {
		err_set(err, t->clashes ? SB_EEXIST : SB_EREFUSED, "%s", t->refused[0].reason);
	} else if (t->module_seen && t->why.code && t->why.code != SB_ENOMODULE &&
		   t->why.code != SB_EFILE) {
		*err = t->why;
	} else if (s->cfg->all) {
		err_set(err, SB_ENOMODULE,
			"no process maps such a module, and no such file exists");
		err_hint(err, "give the absolute path of the file, which is then armed before a "
			      "process runs it");
	} else {
		return 0;
	}
	err_prefix(err, "target '%s'", text_quote(t->spec->text, quoted, sizeof(quoted)));
	return -(int)err->code;
}
