/* SPDX-License-Identifier: MIT */
/*
 * Planting: from plans to changed text.
 *
 *	1. find a hole in the map near the sites, emit stubs for it	no thread stopped
 *	2. map the region and fill it					by remote calls
 *	3. write the text						all threads stopped
 *
 * If the tracer dies in 1 or 2, a mapping remains that no thread jumps into; in 3, each page of
 * text is either as it was or hooked, and the journal lists all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include "clock.h"
#include "fault.h"
#include "frames.h"
#include "region.h"
#include "tree-task.h"
#include "src/base/log.h"
#include "src/base/maps.h"

enum { REACH_MARGIN = 64 << 20, MAP_TRIES = 8, STOP_TRIES = 20, UNWINDER_READS = 16 };

struct planting {
	struct space *space;
	struct tree *tree;
	pid_t pid;
	struct space_site *sites;
	size_t n;
	struct arch_env env;
	struct region *region;
	uint8_t *code; /* from the region's code_off on */
	size_t code_len;
};

static int by_addr(const void *a, const void *b)
{
	const struct space_site *x = a, *y = b;

	if (x->plan.addr != y->plan.addr)
		return x->plan.addr < y->plan.addr ? -1 : 1;
	return !x->plan.len - !y->plan.len; /* an entry before its inner exit */
}

static size_t count_patches(const struct planting *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->sites[i].why == PLAN_OK)
			n += (p->sites[i].plan.len != 0) + (p->sites[i].plan.pad != 0) +
			     p->sites[i].plan.retargets;
	return n;
}

static size_t count_sites(const struct planting *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->sites[i].why == PLAN_OK;
	return n;
}

/* The traces of a uprobe or a debugger: traps in place of first bytes, and no other difference. */
static bool only_breakpoints(const uint8_t *now, const uint8_t *orig, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (now[i] != orig[i] && now[i] != arch->trap_insn[0])
			return false;
	return true;
}

static bool overlaps(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/* A hook of ours that was planted before. */
static bool is_hooked(const struct space *space, const struct plan *plan)
{
	for (size_t i = 0; i < space->n_regions; i++) {
		const struct region *r = space->regions[i];

		for (uint32_t k = 0; k < r->journal->n_patches && !space->stale[i]; k++)
			if (overlaps(r->patches[k].addr, r->patches[k].len, plan->addr, plan->len))
				return true;
	}
	return false;
}

static enum plan_refusal why_changed(const struct planting *p, const struct plan *plan,
				     const uint8_t *now, size_t len)
{
	if (is_hooked(p->space, plan))
		return PLAN_OVERLAP;
	return len == plan->len && only_breakpoints(now, plan->orig, len) ? PLAN_BREAKPOINT :
									    PLAN_TEXT_CHANGED;
}

/*
 * The text must be what the plan was made from: another tool's hook must not be hooked. The memory
 * of a process that has ended meanwhile cannot be read; that is no statement about its text.
 */
static int check_text(struct planting *p, struct sb_err *err)
{
	const struct memory *mem = &p->space->mem;
	uint8_t now[PLAN_MAX_WINDOW];

	for (size_t i = 0; i < p->n; i++) {
		const struct plan *plan = &p->sites[i].plan;
		size_t len;

		if (p->sites[i].why != PLAN_OK)
			continue;
		len = memory_peek(mem, plan->addr, now, plan->len);
		if (len != plan->len && memory_gone(mem))
			return memory_err_gone(p->pid, err);
		if (len != plan->len || memcmp(now, plan->orig, len))
			p->sites[i].why = why_changed(p, plan, now, len);
	}
	return 0;
}

/* The site whose window, if it has one, begins last at or before addr. */
static struct space_site *site_before(const struct planting *p, uint64_t addr)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (p->sites[mid].plan.addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo && !p->sites[lo - 1].plan.len)
		lo--;
	return lo ? &p->sites[lo - 1] : NULL;
}

/*
 * Refuses a site in mid-function whose window would cover a branch that another site's hook
 * redirects.
 */
static void check_retargets(struct planting *p, const struct plan *plan)
{
	uint8_t bytes[PLAN_MAX_RETARGET];
	unsigned int len;
	uint64_t addr;

	for (unsigned int i = 0; i < plan->retargets; i++) {
		struct space_site *s;

		len = plan_retarget(&plan->retarget[i], 0, &addr, bytes);
		s = site_before(p, addr + len - 1);
		if (s && s->why == PLAN_OK && &s->plan != plan && s->plan.addr + s->plan.len > addr)
			s->why = PLAN_LANDING;
	}
}

/* The plans of one image leave each other's bytes alone if they were made together. Others may not:
 * a target at an entry, and one at the exits of the function before it. */
static bool island_is_free(const struct planting *p, const struct space_site *s)
{
	uint64_t island = s->plan.pad, len = sizeof(s->plan.pad_orig);

	for (size_t i = 0; i < p->n; i++) {
		const struct plan *o = &p->sites[i].plan;

		if (&p->sites[i] == s || p->sites[i].why != PLAN_OK || !o->len)
			continue;
		if (overlaps(o->addr, o->len, island, len) ||
		    (o->pad && overlaps(o->pad, len, island, len)))
			return false;
	}
	return true;
}

/* Refuses sites that another region of sbinject hooks already, and windows that overlap. */
static void check_overlap(struct planting *p)
{
	struct space_site *last = NULL;
	uint64_t end = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct space_site *s = &p->sites[i];

		if (s->why != PLAN_OK || !s->plan.len)
			continue;
		if (s->plan.addr < end ||
		    (s->plan.pad && s->plan.shape != PLAN_ISLAND && s->plan.pad < end)) {
			/* A function that is not timed still counts. */
			if (last->kind != ARCH_END || s->kind == ARCH_END) {
				s->why = s->function && s->function == last->function ?
						 PLAN_EXIT_SHORT :
						 PLAN_OVERLAP;
				continue;
			}
			last->why = PLAN_OVERLAP;
		}
		end = s->plan.addr + s->plan.len;
		last = s;
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->sites[i].why == PLAN_OK)
			check_retargets(p, &p->sites[i].plan);
	for (size_t i = 0; i < p->n; i++)
		if (p->sites[i].why == PLAN_OK && p->sites[i].plan.shape == PLAN_ISLAND &&
		    !island_is_free(p, &p->sites[i]))
			p->sites[i].why = PLAN_OVERLAP;
}

/* Of the function of site `bad`. True: it changed. */
static bool follow_refusal(const struct space_site *bad, struct space_site *s)
{
	if (s->function != bad->function || s->target != bad->target || s->why != PLAN_OK)
		return false;
	if (s->kind == ARCH_BEGIN && !s->whole) {
		s->kind = ARCH_HIT;
		s->untimed = bad->why;
		return true;
	}
	if (s->kind == ARCH_HIT && s->untimed)
		return false;
	s->why = bad->why;
	return true;
}

/*
 * A function that cannot be hooked at one exit is hooked at none, and a timed one that cannot be
 * hooked at its entry neither. True: a site changed.
 */
static bool check_exits(struct planting *p)
{
	bool changed = false;

	for (size_t i = 0; i < p->n; i++)
		for (size_t j = 0; j < p->n && p->sites[i].why != PLAN_OK && p->sites[i].function;
		     j++)
			changed |= follow_refusal(&p->sites[i], &p->sites[j]);
	return changed;
}

static uint64_t find_hole(const struct planting *p, uint64_t size)
{
	uint64_t first = p->sites[0].plan.addr, last = p->sites[p->n - 1].plan.addr;
	uint64_t reach = (2ull << 30) - REACH_MARGIN;
	uint64_t lo = last > reach ? last - reach : 0, hole;
	struct maps maps;

	if (maps_read(p->pid, &maps, NULL) < 0)
		return 0;
	hole = maps_find_gap(&maps, last, lo, first + reach, size);
	maps_free(&maps);
	return hole;
}

static void add_patch(struct journal_patch *patch, uint64_t addr, size_t site, uint8_t len,
		      const uint8_t *orig)
{
	patch->addr = addr;
	patch->site = (uint32_t)site;
	patch->len = len;
	memcpy(patch->orig, orig, len);
}

/* A branch to the entry, redirected to the displaced instructions. */
static size_t add_retargets(struct planting *p, const struct plan *plan, size_t site, uint64_t past,
			    struct journal_patch *patch)
{
	uint8_t orig[PLAN_MAX_RETARGET];
	unsigned int len;
	uint64_t addr;

	for (unsigned int i = 0; i < plan->retargets; i++) {
		len = plan_retarget(&plan->retarget[i], past, &addr, patch[i].now);
		memory_peek(&p->space->mem, addr, orig, len);
		add_patch(&patch[i], addr, site, (uint8_t)len, orig);
	}
	return plan->retargets;
}

static size_t add_patches(struct planting *p, const struct space_site *s, size_t site,
			  uint64_t stub, const struct arch_site *as, struct journal_patch *patch)
{
	const struct plan *plan = &s->plan;
	size_t n = 1;

	if (!plan->len)
		return 0;
	add_patch(&patch[0], plan->addr, site, plan->len, plan->orig);
	if (plan->shape == PLAN_INT3) {
		memcpy(patch[0].now, arch->trap_insn, arch->trap_len);
	} else if (plan->pad) {
		add_patch(&patch[1], plan->pad, site, sizeof(plan->pad_orig), plan->pad_orig);
		plan_patch(plan, stub + as->entry, patch[0].now, patch[1].now);
		n++;
	} else {
		plan_patch(plan, stub + as->entry, patch[0].now, NULL);
	}
	return n + add_retargets(p, plan, site, stub + as->displaced, patch + n);
}

static void fill_site(struct journal_site *js, const struct space_site *s, uint32_t stub,
		      const struct arch_site *as)
{
	js->addr = s->plan.addr;
	js->len = s->plan.len;
	js->shape = (uint8_t)s->plan.shape;
	js->stub = stub;
	js->stub_size = as->size;
	js->entry = as->entry;
	js->displaced = as->displaced;
	js->cookie = s->cookie;
	js->flags = s->start ? JOURNAL_START : 0;
	js->before = s->plan.before ? s->plan.insn[s->plan.before].off : 0;
	js->n_pcs = (uint8_t)as->n_pcs;
	for (size_t i = 0; i < as->n_pcs; i++) {
		js->pcs[i].emitted = as->pcs[i].emitted;
		js->pcs[i].original = (int16_t)(as->pcs[i].original - s->plan.addr);
	}
}

static int patch_by_addr(const void *a, const void *b)
{
	const struct journal_patch *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Of the function's own counter; 0: it has none. */
static uint64_t each_address(const struct planting *p, const struct space_site *s)
{
	uint64_t off = s->each ? page_each_offset(&p->space->control->page, s->each - 1) : 0;

	return off ? p->space->page_addr + off : 0;
}

/* Emits one stub; false with s->why set where it cannot be. */
static bool emit_one(struct planting *p, struct space_site *s, uint64_t at, uint8_t *buf,
		     struct arch_site *as)
{
	struct arch_count count = {
		.cell = p->space->page_addr + page_cell_offset(&p->space->control->page, s->target),
		.each = s->kind == ARCH_END ? 0 : each_address(p, s),
		.kind = s->kind,
		.values = s->values,
		.follow = s->follow,
		.text = s->text,
	};
	enum plan_refusal why = PLAN_UNMOVABLE;
	struct plan plan = s->plan;
	size_t size;

	if (s->kind != ARCH_BEGIN) /* its exits are not hooked */
		plan.inner = 0;
	if (s->kind != ARCH_HIT && p->space->control->page.lay.functions_off &&
	    s->each <= UINT16_MAX)
		count.function = (uint16_t)s->each;
	if (s->doorbell)
		size = arch->emit_doorbell(&p->env, &plan, at, s->start, buf, ARCH_SITE_MAX, as,
					   &why);
	else
		size = arch->emit_site(&p->env, &plan, &count, at, buf, ARCH_SITE_MAX, as, &why);
	if (!size)
		s->why = why;
	return size != 0;
}

/* The exit at addr of the function of an entry, if it has a stub and no window. */
static const struct space_site *inner_exit(const struct planting *p, const struct space_site *entry,
					   uint64_t addr)
{
	for (size_t i = (size_t)(entry - p->sites) + 1; i < p->n; i++) {
		const struct space_site *s = &p->sites[i];

		if (s->plan.addr > addr)
			break;
		if (s->plan.addr == addr && s->kind == ARCH_END && !s->plan.len &&
		    s->function == entry->function && s->target == entry->target)
			return s;
	}
	return NULL;
}

/*
 * Leads the stub of an entry to the stubs of its inner exits. Where one was refused, check_exits()
 * comes next.
 */
static void link_exits(struct planting *p, const struct space_site *s,
		       const struct journal_site *js)
{
	for (unsigned int i = 0; i < s->plan.insns; i++) {
		uint64_t stub = p->region->addr + js->stub, off = js->pcs[i].emitted;
		uint8_t *code = p->code + (js->stub - p->region->journal->code_off) + off;
		const struct space_site *exit;

		if (!(s->plan.inner >> i & 1))
			continue;
		exit = inner_exit(p, s, s->plan.addr + s->plan.insn[i].off);
		if (exit && exit->why == PLAN_OK)
			plan_link(code, stub + off, exit->stub_entry);
	}
}

static void link_all(struct planting *p)
{
	const struct journal_site *js = p->region->sites;

	for (size_t i = 0; i < p->n; i++) {
		const struct space_site *s = &p->sites[i];

		if (s->why != PLAN_OK)
			continue;
		if (s->kind == ARCH_BEGIN && s->plan.inner)
			link_exits(p, s, js);
		js++;
	}
}

/* Stubs and journal for a region at addr. A site that cannot be emitted leaves its place unused. */
static void emit_region(struct planting *p, uint64_t addr)
{
	struct region *r = region_new(addr, count_sites(p), count_patches(p), arch->common_size());
	struct journal_header *h = r->journal;
	uint32_t off = h->code_off;
	size_t site = 0, patch = 0;

	p->region = r;
	p->env.common = addr + h->common_off;
	p->code_len = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct space_site *s = &p->sites[i];
		struct arch_site as;

		if (s->why != PLAN_OK || !emit_one(p, s, addr + off, p->code + p->code_len, &as))
			continue;
		s->stub_entry = addr + off + as.entry;
		fill_site(&r->sites[site], s, off, &as);
		patch += add_patches(p, s, site, addr + off, &as, &r->patches[patch]);
		off += (as.size + 15u) & ~15u;
		p->code_len = off - h->code_off;
		site++;
	}
	link_all(p);
	h->n_sites = (uint32_t)site;
	h->n_patches = (uint32_t)patch;
	qsort(r->patches, patch, sizeof(*r->patches), patch_by_addr);
	h->session = p->space->session;
	h->page_addr = p->space->page_addr;
	h->page_size = p->space->page_size;
	h->record_addr = p->space->record_addr;
	h->record_size = 4096;
	h->tracer_pid = p->space->control->page.lay.tracer_pid;
	/* Unwinders look for rt_sigreturn's instructions at an unknown pc, and read beyond it. */
	h->region_size = r->size = (off + UNWINDER_READS + 4095u) & ~4095u;
}

/*
 * There may be fewer patches and sites than region_new() was called for: the gap between them
 * stays, and patches_off is still right.
 */
static int write_region(struct planting *p, struct sb_err *err)
{
	struct region *r = p->region;
	const struct memory *mem = &p->space->mem;
	uint8_t *common = malloc(arch->common_size());
	int ret;

	if (!common)
		abort();
	arch->emit_common(&p->env, common);
	ret = memory_write(mem, p->env.common, common, arch->common_size(), err);
	free(common);
	if (ret >= 0)
		ret = memory_write(mem, r->addr + r->journal->code_off, p->code, p->code_len, err);
	if (ret >= 0)
		ret = memory_write(mem, r->addr + sizeof(*r->journal), r->journal + 1,
				   r->journal->common_off - sizeof(*r->journal), err);
	if (ret >= 0 && fault_point("region-header", mem->pid))
		ret = err_set(err, SB_ETARGET, "fault: region-header");
	/* The header last: a journal that can be found is complete. */
	if (ret >= 0)
		ret = memory_write(mem, r->addr, r->journal, sizeof(*r->journal), err);
	return ret;
}

static int map_locked(struct remote *r, uint64_t addr, uint64_t size, struct sb_err *err)
{
	uint64_t at;

	return remote_map(r, addr, size, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, &at, err);
}

static int map_region(struct planting *p, struct remote *r, uint64_t addr, uint64_t size,
		      struct sb_err *err)
{
	long got = -1, ret;
	int code;

	space_announce_region(p->space, addr, size);
	code = remote_syscall(r, &got, err, SYS_mmap, addr, size, (uint64_t)(PROT_READ | PROT_EXEC),
			      (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE),
			      (uint64_t)-1, 0ul);
	if (code >= 0 && got == -EAGAIN) /* it locks its memory, up to a limit */
		return map_locked(r, addr, size, err);
	if (got > 0 && (code < 0 || (uint64_t)got != addr))
		remote_syscall(r, &ret, NULL, SYS_munmap, (uint64_t)got, size, 0ul, 0ul, 0ul, 0ul);
	if (code < 0)
		return code;
	return (uint64_t)got == addr ? 0 : -SB_ENOMEM;
}

static int map_at(struct planting *p, uint64_t addr, uint64_t size, struct sb_err *err)
{
	struct space *space = p->space;
	struct remote r;
	int code = remote_begin(&r, p->tree, space, &space->mem, &space->gadgets, err);

	if (code < 0)
		return code;
	code = map_region(p, &r, addr, size, err);
	remote_end(&r);
	return code;
}

/* No thread can jump into it yet. */
static void unmap_region(struct planting *p)
{
	struct space *space = p->space;
	struct remote r;
	long ret;

	if (remote_begin(&r, p->tree, space, &space->mem, &space->gadgets, NULL) < 0)
		return;
	remote_syscall(&r, &ret, NULL, SYS_munmap, p->region->addr, p->region->size, 0ul, 0ul, 0ul,
		       0ul);
	remote_end(&r);
}

static int make_region(struct planting *p, struct sb_err *err)
{
	uint64_t room = count_sites(p) * (sizeof(struct journal_site) + ARCH_SITE_MAX) +
			count_patches(p) * sizeof(struct journal_patch) + arch->common_size() +
			8192;
	int ret = -SB_ENOMEM;

	p->code = malloc(room);
	if (!p->code)
		abort();
	for (int i = 0; i < MAP_TRIES && ret == -SB_ENOMEM; i++) {
		uint64_t addr = find_hole(p, (room + 4095) & ~4095ull);

		if (!addr)
			break;
		region_put(p->region);
		emit_region(p, addr);
		while (check_exits(p)) {
			region_put(p->region);
			emit_region(p, addr);
		}
		if (!p->region->journal->n_sites)
			return 0;
		ret = map_at(p, addr, p->region->size, err);
	}
	if (ret == -SB_ENOMEM)
		return err_set(err, SB_ENOMEM,
			       "process %d: no room for stubs within 2 GB of the code", p->pid);
	if (ret < 0)
		return ret;
	ret = write_region(p, err);
	if (ret < 0)
		unmap_region(p);
	return ret;
}

/* Registers in the bytes to be replaced move to the copy of those bytes. */
static bool move_regs(const struct region *r, struct arch_regs *regs)
{
	const struct journal_site *s = region_window_at(r, arch->pc(regs));

	for (int i = 0; s && i < s->n_pcs; i++) {
		if (s->addr + (uint64_t)(int64_t)s->pcs[i].original != arch->pc(regs))
			continue;
		arch->set_pc(regs, r->addr + s->stub + s->pcs[i].emitted);
		return true;
	}
	return false;
}

/*
 * So do those that a signal handler will return to. The copy is equivalent: it does not matter
 * whether the frame is live. They are read again: the remains of an older frame may lie over this
 * one, and what was read before they moved would be written back.
 */
static void move_frame(void *ctx, uint64_t at, const struct arch_regs *seen)
{
	const struct planting *p = ctx;
	struct arch_regs regs;
	uint8_t bytes[512];
	size_t off = 0;

	if (!region_window_at(p->region, arch->pc(seen)) || arch->context_size > sizeof(bytes) ||
	    memory_peek(&p->space->mem, at, bytes, arch->context_size) != arch->context_size ||
	    !arch->context_next(bytes, arch->context_size, &off, &regs) ||
	    !move_regs(p->region, &regs))
		return;
	arch->context_store(bytes, &regs);
	memory_write(&p->space->mem, at, bytes, arch->context_size, NULL);
}

/* Deep in the kernel and on the way back into a window: only a page fault leads there. */
static bool faults_in_window(const struct planting *p, const struct thread *t)
{
	bool in_call;
	uint64_t pc;

	if (!t->kept || t->state == THREAD_STOPPED || !task_waits(t->tid, &pc, &in_call))
		return false;
	return !in_call && region_window_at(p->region, pc);
}

/* A fork in progress has copied the text already: its event must be dispatched first. */
static bool is_thread_in_the_way(const struct planting *p)
{
	for (struct proc *proc = p->tree->procs; proc; proc = proc->next)
		for (struct thread *t = proc->threads; t; t = t->next)
			if (proc->space == p->space && (tree_forks(t) || faults_in_window(p, t)))
				return true;
	return false;
}

static void move_threads(struct planting *p)
{
	size_t scan = frames_scan_bytes(tree_count_threads(p->tree, p->space));
	struct arch_regs regs;

	for (struct proc *proc = p->tree->procs; proc; proc = proc->next) {
		for (struct thread *t = proc->threads; t; t = t->next) {
			if (proc->space != p->space || t->state != THREAD_STOPPED ||
			    pt_get_regs(t->tid, &regs) < 0)
				continue;
			frames_on_stack(&p->space->mem, arch->sp(&regs), scan, move_frame, p);
			if (t->tid != proc->pid)
				space_stack(p->space, &regs);
			if (move_regs(p->region, &regs))
				pt_set_regs(t->tid, &regs);
		}
	}
}

static int write_text(struct planting *p, struct sb_err *err)
{
	struct space_restored done = { 0 };
	int ret = region_write_text(p->region, &p->space->mem, false, &done, err);

	p->space->hooked = true;
	p->region->planted_ns = clock_ns();
	if (ret < 0)
		region_write_text(p->region, &p->space->mem, true, &done, NULL);
	return ret;
}

static int stop_and_write(struct planting *p, struct sb_err *err)
{
	int ret;

	for (int i = 0; i < STOP_TRIES; i++) {
		ret = tree_stop_patiently(p->tree, p->space, err);
		if (ret < 0)
			return ret;
		if (!is_thread_in_the_way(p)) {
			move_threads(p);
			fault_point("plant-moved", p->pid);
			ret = write_text(p, err);
			fault_point("plant-written", p->pid);
			tree_resume(p->tree, p->space);
			return ret;
		}
		tree_resume(p->tree, p->space);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return err_set(err, SB_ETARGET,
		       "process %d: could not stop all threads at a safe point to change its code "
		       "(forks, or page faults there)",
		       p->pid);
}

/* 0: calls are not recorded. */
static uint64_t trace_address(const struct space *space, uint64_t off)
{
	return space->control->page.lay.chunks ? space->page_addr + off : 0;
}

/* Where the stack of the first thread ends, which never moves; 0: unknown. */
static uint64_t stack_end(pid_t pid)
{
	struct maps maps;
	uint64_t end = 0;

	if (maps_read(pid, &maps, NULL) < 0)
		return 0;
	for (size_t i = 0; i < maps.count; i++)
		if (!strcmp(maps.entry[i].path, "[stack]"))
			end = maps.entry[i].end;
	maps_free(&maps);
	return end;
}

int space_plant(struct space *space, struct tree *tree, pid_t pid, struct space_site *sites,
		size_t n, struct sb_err *err)
{
	struct planting p = {
		.space = space, .tree = tree, .pid = pid, .sites = sites, .n = n,
		.env = {
			.header = space->page_addr,
			.record = space->record_addr,
			.procs = space->page_addr + space->control->page.lay.procs_off,
			.tables = space->page_addr + space->control->page.lay.threads_off,
			.counters = space->control->page.lay.counters_off,
			.most_ticks = page_most_ticks(&space->control->page),
			.spans = space->page_addr + space->control->page.lay.spans_off,
			.calls = space->page_addr + space->control->page.lay.calls_off,
			.functions = space->page_addr + space->control->page.lay.functions_off,
			.trace = trace_address(space, space->control->page.lay.trace_off),
			.taken = trace_address(space, space->control->page.lay.chunks_off),
			.chunks = space->control->page.lay.chunks,
			.stacks = space->control->page.lay.stacks,
			.stack_size = space->control->page.lay.stack_size,
			.stack_list = trace_address(space, space->control->page.lay.stack_list_off),
			.stacks_taken = trace_address(space, space->control->page.lay.stacks_off),
			.span_blocks = space->control->page.lay.span_blocks,
			.span_size = page_slots(&space->control->page) *
				     sizeof(struct sb_page_span),
			.span_within = space->control->page.span_cost[0],
			.span_cost = space->control->page.span_cost[1],
			.value_within = space->control->page.value_cost[0],
			.value_cost = space->control->page.value_cost[1],
			.stack = stack_end(pid),
			.slots = space->control->page.lay.slots,
			.own_slots = arch->thread_pointer_readable(),
		},
	};
	int ret;

	qsort(sites, n, sizeof(*sites), by_addr);
	ret = check_text(&p, err);
	if (ret < 0)
		return ret;
	check_overlap(&p);
	check_exits(&p);
	if (count_sites(&p))
		ret = make_region(&p, err);
	if (ret >= 0 && p.region && p.region->journal->n_sites) {
		space_add_region(space, region_get(p.region), false);
		ret = stop_and_write(&p, err);
	}
	region_put(p.region);
	free(p.code);
	return ret;
}
