/* SPDX-License-Identifier: MIT */
#include "sites.h"
#include "src/base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inject/landing.h"

enum { MAX_SEGMENTS = 16, MAX_BRANCHES = 64 };

struct entry {
	uint64_t vaddr;
	bool int3, exit, args, ends;
	struct plan plan;
	enum plan_refusal why;
	char detail[64];
};

struct image_plan {
	struct image *img;
	struct entry *entry; /* sorted by vaddr, then int3, exit, args, ends */
	size_t count;
	struct image_plan *next;
};

struct image_plans {
	struct image_plan *first;
};

struct image_plans *plans_new(void)
{
	return must_calloc(1, sizeof(struct image_plans));
}

void plans_free(struct image_plans *plans)
{
	while (plans && plans->first) {
		struct image_plan *ip = plans->first;

		plans->first = ip->next;
		image_put(ip->img);
		free(ip->entry);
		free(ip);
	}
	free(plans);
}

void found_add(struct found *found, const struct found_site *site)
{
	if ((found->count & (found->count - 1)) == 0)
		found->site = must_realloc(found->site, (found->count ? found->count * 2 : 1) *
								sizeof(*found->site));
	found->site[found->count++] = *site;
}

void found_free(struct found *found)
{
	for (size_t i = 0; i < found->count; i++) {
		image_put(found->site[i].img);
		free(found->site[i].name);
	}
	free(found->site);
	found->site = NULL;
	found->count = 0;
}

/* image_get() counts by file, so one file is one object. */
static struct image_plan *plan_of(struct image_plans *plans, struct image *img)
{
	struct image_plan *ip = plans->first;

	while (ip && ip->img != img)
		ip = ip->next;
	if (ip)
		return ip;
	ip = must_calloc(1, sizeof(*ip));
	ip->img = image_ref(img);
	ip->next = plans->first;
	plans->first = ip;
	return ip;
}

static int entry_cmp(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->int3 != y->int3)
		return x->int3 - y->int3;
	if (x->exit != y->exit)
		return x->exit - y->exit;
	if (x->args != y->args)
		return x->args - y->args;
	return x->ends - y->ends;
}

static struct entry *entry_find(const struct image_plan *ip, const struct found_site *s, bool int3)
{
	struct entry key = {
		.vaddr = s->addr - s->bias,
		.int3 = int3,
		.exit = s->exit,
		.args = s->hook.values,
		.ends = s->hook.kind == ARCH_BEGIN,
	};

	if (!ip->count)
		return NULL;
	return bsearch(&key, ip->entry, ip->count, sizeof(key), entry_cmp);
}

static bool segment_of(const struct image *img, uint64_t vaddr, struct image_segment *out)
{
	struct image_segment seg[MAX_SEGMENTS];
	size_t n = image_text(img, seg, MAX_SEGMENTS);

	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		if (vaddr - seg[i].vaddr < seg[i].size) {
			*out = seg[i];
			return true;
		}
	}
	return false;
}

/* cmp 0x10(%r14),...; 0x18 on a thread's own stack. Every Go function that checks its stack starts
 * so. */
static bool go_checks(const struct plan_request *req)
{
	static const uint8_t check[2][3] = { { 0x3b, 0x66, 0x10 }, { 0x3b, 0x66, 0x18 } };
	size_t off = req->func - req->text_addr;
	size_t room = req->text_len - off < 24 ? req->text_len - off : 24;

	return memmem(req->text + off, room, check[0], sizeof(check[0])) ||
	       memmem(req->text + off, room, check[1], sizeof(check[1]));
}

/* A function of Go's runtime: some run without a goroutine, or with their own register rules. */
static bool is_go_runtime(const char *name)
{
	static const char *const package[] = { "runtime.", "runtime/internal/",
					       "internal/runtime/" };

	for (size_t i = 0; i < sizeof(package) / sizeof(*package); i++)
		if (!strncmp(name, package[i], strlen(package[i])))
			return true;
	return false;
}

/* Completes the request for a Go function; false: it cannot be hooked. */
static bool go_allows(const struct found_site *s, struct plan_request *req)
{
	enum image_go go;
	bool checks;

	if (!image_is_go(s->img) || !strchr(s->name, '.'))
		return true;
	go = image_go_function(s->img, req->func);
	if (go == GO_NOT)
		return true;
	checks = go_checks(req);
	req->go = true;
	req->go_waits = !req->entry || !checks;
	if (checks)
		return true;
	req->go_leaf = req->entry && go == GO_COMPILED && !is_go_runtime(s->name);
	return req->go_leaf;
}

bool sites_request(const struct found_site *s, bool int3, struct plan_request *req)
{
	struct image_segment seg;
	uint64_t start, end;

	memset(req, 0, sizeof(*req));
	req->addr = s->addr - s->bias;
	req->func = s->func - s->bias;
	req->func_end = s->size ? req->func + s->size : 0;
	req->exit = s->exit;
	req->runs_on = s->runs_on;
	req->switches = s->switches;
	req->leaves = s->leaves;
	req->args = s->hook.values;
	req->ends = s->hook.kind == ARCH_BEGIN;
	req->entry = req->addr == req->func && !s->exit;
	req->int3 = int3;
	if (!segment_of(s->img, req->addr, &seg))
		return false;
	req->text = seg.bytes;
	req->text_addr = seg.vaddr;
	req->text_len = seg.size;
	if (!req->func_end && image_function_at(s->img, req->addr, &start, &end) &&
	    start == req->func)
		req->func_end = end;
	image_function_room(s->img, req->func, req->func_end ? req->func_end : req->func + 1,
			    &req->prev_end, &req->next);
	if (req->func_end)
		req->fill_end = image_fill_end(s->img, req->func_end);
	if (image_function_at(s->img, req->prev_end - 1, &start, &end) && end == req->prev_end)
		req->prev = start;
	return true;
}

static bool bounds(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	return image_function_at(ctx, addr, start, end);
}

/* The scan does not record calls to a place that it takes for a function's entry: so the callee is
 * hidden from its bounds. */
struct callee {
	struct image *img;
	uint64_t vaddr;
};

static bool bounds_but_of_callee(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	const struct callee *c = ctx;

	return addr != c->vaddr && image_function_at(c->img, addr, start, end);
}

static bool is_call(struct image *img, const struct landing *l)
{
	size_t avail;
	const uint8_t *p = image_bytes(img, l->from, &avail);

	return l->confirmed && p && avail >= 5 && (*p & 0xfe) == 0xe8; /* call or jmp, rel32 */
}

size_t sites_callers(struct image *img, uint64_t vaddr, uint64_t *from, size_t cap)
{
	struct landing_set *set = landing_new();
	struct callee callee = { img, vaddr };
	struct image_segment seg[MAX_SEGMENTS];
	struct landing *found = must_calloc(cap, sizeof(*found));
	size_t segs = image_text(img, seg, MAX_SEGMENTS), n = 0;
	bool known = set && landing_add_window(set, vaddr, 1) == 0;

	for (size_t i = 0; i < segs && i < MAX_SEGMENTS && known; i++)
		known = landing_scan(set, seg[i].bytes, seg[i].vaddr, seg[i].size,
				     bounds_but_of_callee, &callee) == 0;
	if (known)
		n = landing_query(set, vaddr, 1, found, cap);
	known &= n <= cap;
	for (size_t i = 0; i < n && known; i++) {
		known = is_call(img, &found[i]);
		from[i] = found[i].from;
	}
	landing_free(set);
	free(found);
	return known ? n : 0;
}

static void scan(struct landing_set *set, struct image *img)
{
	struct image_segment seg[MAX_SEGMENTS];
	size_t n = image_text(img, seg, MAX_SEGMENTS);

	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++)
		landing_scan(set, seg[i].bytes, seg[i].vaddr, seg[i].size, bounds, img);
	image_done_reading(img);
}

/* Each pass of a place in mid-function counts: a loop inside the inlined function must not count as
 * calls. */
static bool inlined_loop(const struct found_site *s, const struct landing_set *set)
{
	struct landing found[MAX_BRANCHES];
	uint64_t vaddr = s->addr - s->bias;
	size_t n;

	if (!image_inlined_from(s->img, vaddr, vaddr))
		return false;
	n = landing_query(set, vaddr, 1, found, MAX_BRANCHES);
	for (size_t i = 0; i < n && i < MAX_BRANCHES; i++)
		if (image_inlined_from(s->img, vaddr, found[i].from))
			return true;
	return n > MAX_BRANCHES;
}

static void plan_one(const struct found_site *s, const struct landing_set *set, struct entry *e)
{
	struct plan_request req;

	e->vaddr = s->addr - s->bias;
	if (!sites_request(s, e->int3, &req))
		e->why = PLAN_MID_INSTRUCTION;
	else if (image_has_textrel(s->img))
		e->why = PLAN_TEXTREL;
	else if (!go_allows(s, &req))
		e->why = PLAN_GO_NOSPLIT;
	else
		e->why = plan_make(&req, set, &e->plan, e->detail, sizeof(e->detail));
	if (e->why != PLAN_OK || s->addr == s->func || s->exit)
		return;
	if (image_inlined_again(s->img, e->vaddr))
		e->why = PLAN_INLINE_SEVERAL;
	else if (inlined_loop(s, set))
		e->why = PLAN_INLINE_LOOPS;
}

static void add_range(struct plan_range **list, size_t *n, uint64_t start, uint64_t len)
{
	if (!(*n & (*n - 1)))
		*list = must_realloc(*list, (*n ? *n * 2 : 1) * sizeof(**list));
	(*list)[(*n)++] = (struct plan_range){ start, start + len };
}

/* The bytes that the plans of an image change. */
static void add_changed(struct plan_range **list, size_t *n, const struct plan *plan)
{
	add_range(list, n, plan->addr, plan->len);
	if (plan->pad)
		add_range(list, n, plan->pad, sizeof(plan->pad_orig));
}

static bool lacks_room(const struct image_plan *ip, const struct found_site *s,
		       const struct entry *e)
{
	return s->img == ip->img && e && !e->int3 && !e->plan.pad &&
	       (e->exit ? e->why == PLAN_EXIT_ROOM :
			  e->why == PLAN_TOO_SHORT && s->addr == s->func);
}

/* The first of the cached plans at or above vaddr. */
static size_t entry_from(const struct image_plan *ip, uint64_t vaddr)
{
	size_t lo = 0, hi = ip->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ip->entry[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The bytes are in the window of an entry, or among the instructions that it displaces: the exit
 * there may lose its own window, whose first byte must not be jumped to then.
 */
static bool is_displaced(const struct image_plan *ip, size_t first, const struct plan *plan)
{
	for (size_t i = first; i < ip->count && ip->entry[i].vaddr < plan->resume; i++) {
		const struct plan *o = &ip->entry[i].plan;
		uint64_t end = o->addr + o->len > o->resume ? o->addr + o->len : o->resume;

		if (!ip->entry[i].exit && ip->entry[i].why == PLAN_OK && o->addr < plan->resume &&
		    plan->addr < end)
			return true;
	}
	return false;
}

/* The plans of the part's exits that have a jump of their own; the caller frees them. */
static struct plan *find_twins(const struct image_plan *ip, const struct plan_request *req,
			       size_t *n)
{
	size_t first = entry_from(ip, req->func), cap = 0;
	struct plan *twins = NULL;

	*n = 0;
	for (size_t i = first; i < ip->count && ip->entry[i].vaddr < req->func_end; i++) {
		const struct entry *e = &ip->entry[i];

		if (!e->exit || e->int3 || e->why != PLAN_OK || e->plan.twin ||
		    e->plan.addr < req->func || is_displaced(ip, first, &e->plan))
			continue;
		if (*n == cap)
			twins = must_realloc(twins, (cap = cap ? 2 * cap : 8) * sizeof(*twins));
		twins[(*n)++] = e->plan;
	}
	return twins;
}

/*
 * Exits and entries without space for a jump of their own: by an island each, or a twin. After all
 * others have been planned, since an island may lie in the no-ops that another hook uses; with a
 * scan of its own, since few need one.
 */
static void plan_islands(struct image_plan *ip, const struct found *found)
{
	struct landing_set *set = NULL;
	struct plan_range *taken = NULL;
	struct plan_request req;
	size_t n = 0;

	for (size_t i = 0; i < found->count; i++) {
		const struct found_site *s = &found->site[i];
		unsigned int len;
		uint64_t addr;

		if (!lacks_room(ip, s, entry_find(ip, s, false)) || !sites_request(s, false, &req))
			continue;
		req.islands = true;
		plan_landing_range(&req, &addr, &len);
		set = set ? set : landing_new();
		landing_add_window(set, addr, len);
	}
	if (!set)
		return;
	scan(set, ip->img);
	for (size_t i = 0; i < ip->count; i++)
		if (ip->entry[i].why == PLAN_OK)
			add_changed(&taken, &n, &ip->entry[i].plan);
	for (size_t i = 0; i < found->count; i++) {
		struct entry *e = entry_find(ip, &found->site[i], false);
		struct plan *twins = NULL;

		if (!lacks_room(ip, &found->site[i], e) ||
		    !sites_request(&found->site[i], false, &req) ||
		    !go_allows(&found->site[i], &req))
			continue;
		req.islands = true;
		req.taken = taken;
		req.n_taken = n;
		req.twins = twins = e->exit ? find_twins(ip, &req, &req.n_twins) : NULL;
		e->why = plan_make(&req, set, &e->plan, e->detail, sizeof(e->detail));
		free(twins);
		if (e->why == PLAN_OK)
			add_changed(&taken, &n, &e->plan);
	}
	landing_free(set);
	free(taken);
}

/* Plans the sites of one image that the cache lacks, with one scan of its text. */
static void fill_cache(struct image_plan *ip, const struct found *found, bool int3)
{
	struct landing_set *set = landing_new();
	size_t had = ip->count, want = 0;
	struct plan_request req;

	for (size_t i = 0; i < found->count; i++) {
		const struct found_site *s = &found->site[i];
		unsigned int len;
		uint64_t addr;

		if (s->img != ip->img || s->hook.why != PLAN_OK || entry_find(ip, s, int3))
			continue;
		want++;
		if (!sites_request(s, int3, &req) || !go_allows(s, &req))
			continue;
		plan_landing_range(&req, &addr, &len);
		if (len)
			landing_add_window(set, addr, len);
	}
	if (want) {
		scan(set, ip->img);
		ip->entry = must_realloc(ip->entry, (had + want) * sizeof(*ip->entry));
		for (size_t i = 0; i < found->count; i++) {
			const struct found_site *s = &found->site[i];
			struct image_plan old = { .entry = ip->entry, .count = had };
			struct entry e = { .int3 = int3,
					   .exit = s->exit,
					   .args = s->hook.values,
					   .ends = s->hook.kind == ARCH_BEGIN };

			if (s->img != ip->img || s->hook.why != PLAN_OK ||
			    entry_find(&old, s, int3))
				continue;
			plan_one(s, set, &e);
			ip->entry[ip->count++] = e;
		}
		qsort(ip->entry, ip->count, sizeof(*ip->entry), entry_cmp);
	}
	landing_free(set);
	if (want && !int3)
		plan_islands(ip, found);
}

static void rebase(struct plan *plan, uint64_t bias)
{
	plan->addr += bias;
	plan->resume += bias;
	if (plan->pad)
		plan->pad += bias;
	if (plan->twin)
		plan->twin += bias;
	for (unsigned int i = 0; i < plan->retargets; i++)
		plan->retarget[i].field += bias;
}

static void use_cached(const struct image_plan *ip, struct found_site *s, bool int3)
{
	const struct entry *e = entry_find(ip, s, int3);

	if (!e)
		return;
	s->hook.plan = e->plan;
	s->hook.why = image_flaw(ip->img) ? PLAN_FILE_CHANGED : e->why;
	memcpy(s->detail, e->detail, sizeof(s->detail));
	rebase(&s->hook.plan, s->bias);
}

void plans_make(struct image_plans *plans, struct found *found, bool int3)
{
	for (size_t i = 0; i < found->count; i++) {
		struct image_plan *ip = plan_of(plans, found->site[i].img);

		if (i == 0 || found->site[i - 1].img != found->site[i].img)
			fill_cache(ip, found, int3);
		use_cached(ip, &found->site[i], int3);
	}
}
