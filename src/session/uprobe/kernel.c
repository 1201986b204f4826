/* SPDX-License-Identifier: MIT */
/* Targets in the kernel: from a name to programs at functions and tracepoints, and their times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "priv.h"
#include "kernel/names.h"
#include "src/base/text.h"

/* On each processor's kernel: __x64_sys_ioctl, __arm64_sys_ioctl; not its other ABIs. */
#define IOCTL_FUNCTION "__[ax]*64_sys_ioctl"

enum { PLACES_MAX = 256 /* of a target: each costs descriptors, and memory of the kernel */ };

static const enum kernel_mechanism mechanisms[] = {
	[KERNEL_WAY_FENTRY] = KERNEL_FENTRY,
	[KERNEL_WAY_KPROBE] = KERNEL_KPROBE,
	[KERNEL_WAY_TRACEPOINT] = KERNEL_TRACEPOINT,
};

static const enum kernel_mechanism ioctl_mechanisms[] = {
	[KERNEL_WAY_FENTRY] = KERNEL_IOCTL_FENTRY,
	[KERNEL_WAY_KPROBE] = KERNEL_IOCTL_KPROBE,
	[KERNEL_WAY_TRACEPOINT] = KERNEL_IOCTL_TRACEPOINT,
};

static enum kernel_mechanism mechanism_of(const struct spec *spec, enum kernel_way way)
{
	switch (spec->kind) {
	case SPEC_IOCTL:
		return ioctl_mechanisms[way];
	case SPEC_INTERRUPT:
		return KERNEL_INTERRUPT_TRACEPOINT;
	case SPEC_OFFCPU:
		return KERNEL_OFFCPU_TRACEPOINT;
	default:
		return mechanisms[way];
	}
}

/* ---- values ---- */

/* Of an argument or of what is returned; VALUE_TYPES: it cannot be recorded. */
static enum value_type described(const struct kernel_proto *proto, const struct spec_value *v)
{
	if (!v->position)
		return proto->returned;
	return v->position <= proto->n ? proto->argument[v->position - 1] : VALUE_TYPES;
}

static void set_value(struct kernel_setting *set, size_t i, const struct spec_value *v)
{
	set->position[i] = v->position ? (uint8_t)(v->position - 1) : KERNEL_RETURN;
	set->shift[i] = (uint8_t)(v->offset * 8);
	set->bits[i] = (uint8_t)(v->type == VALUE_BOOL ? 8 : value_bits(v->type));
	set->sign[i] = value_signed(v->type);
	set->sum[i] = v->sum;
}

/* NULL, or why the values of the target are not there. */
static const char *check_value(const struct kernel_name *k, const struct spec_value *v)
{
	enum { BY_KPROBE = 5 };
	const struct kernel_proto *proto = &k->proto;

	if (k->way == KERNEL_WAY_KPROBE && v->position > BY_KPROBE)
		return "a kprobe reads only the first 5 arguments";
	if (!proto->known && k->way == KERNEL_WAY_TRACEPOINT)
		return "the kernel does not describe its arguments";
	if (!proto->known)
		return NULL;
	if (v->position > proto->n)
		return "it has fewer arguments";
	if (described(proto, v) == VALUE_TYPES)
		return v->position ? "that argument is neither an integer nor a pointer" :
				     "it returns neither an integer nor a pointer";
	return NULL;
}

/* Types that were not given are those of the first function of the target. */
static const char *take_values(struct target *t, const struct kernel_name *k)
{
	const char *why = NULL;

	for (size_t i = 0; i < t->spec->n_values && !why; i++) {
		const struct spec_value *v = &t->spec->value[i];

		why = check_value(k, v);
		if (why || v->typed || v->offset || !k->proto.known)
			continue;
		if (!t->own)
			t->spec = t->own = spec_copy(t->spec);
		t->own->value[i].type = described(&k->proto, v);
		t->own->value[i].typed = true;
	}
	return why;
}

/* Of a target whose symbol is a name or the begin of one. */
static void begun_setting(const struct spec *spec, struct kernel_setting *set)
{
	size_t len = strcspn(spec->symbol, "*");

	_Static_assert((int)SPEC_DEVICE_MAX < (int)KERNEL_DEVICE - 1, "a cut name is not a whole");
	set->n_values = spec->kind == SPEC_IOCTL     ? KERNEL_IOCTL_VALUES :
			spec->kind == SPEC_INTERRUPT ? KERNEL_INTERRUPT_VALUES :
						       KERNEL_OFFCPU_VALUES;
	set->device_len = (uint32_t)(len <= SPEC_DEVICE_MAX ? len : SPEC_DEVICE_MAX);
	set->device_whole = !spec->symbol[len];
	memcpy(set->device, spec->symbol, set->device_len);
	set->call = SYS_ioctl;
}

static struct kernel_setting setting_of(const struct uprobe_session *s, size_t target)
{
	const struct spec *spec = s->target[target].spec;
	struct kernel_setting set = { .target = (uint32_t)target,
				      .n_values = (uint8_t)spec->n_values,
				      .timed = spec->timed,
				      .record = s->spans != NULL,
				      .kthreads = spec->kthreads,
				      .min_ns = s->cfg->trace_min_ns };

	for (size_t i = 0; i < spec->n_values; i++)
		set_value(&set, i, &spec->value[i]);
	if (spec_is_begun(spec))
		begun_setting(spec, &set);
	return set;
}

/* ---- places ---- */

static struct kplace *place_new(struct uprobe_session *s, size_t target,
				const struct kernel_name *k)
{
	struct kplace *p;

	s->kplace = must_realloc(s->kplace, (s->n_kplaces + 1) * sizeof(*s->kplace));
	p = &s->kplace[s->n_kplaces++];
	*p = (struct kplace){ .target = target,
			      .module = text_dup(k->module),
			      .symbol = text_dup(k->name),
			      .address = k->address };
	return p;
}

static void refuse(struct target *t, const struct kernel_name *k, const char *why)
{
	target_refuse(t, k->module, k->name, k->address, why, 0);
}

/* Where fentry is refused for one function, a kprobe may be taken. */
static int attach(struct uprobe_session *s, size_t target, const struct kernel_name *k,
		  enum kernel_mechanism *how, uint32_t *place, struct sb_err *err)
{
	struct kernel_setting set = setting_of(s, target);
	uint64_t address = k->by_address ? k->address : 0;
	int ret = uprobes_kernel(s->u, k->name, address, *how, &set, place, err);

	if (ret == 0 || k->way != KERNEL_WAY_FENTRY || !kernel_has_kprobes())
		return ret;
	*how = mechanism_of(s->target[target].spec, KERNEL_WAY_KPROBE);
	*err = (struct sb_err){ 0 };
	return uprobes_kernel(s->u, k->name, address, *how, &set, place, err);
}

/* Of what is hit in interrupts and switches; of many processes, those that are not prepared make
 * their counts by themselves. */
static void prepare(struct uprobe_session *s, size_t target)
{
	enum { PREPARED_MOST = 64 };
	const struct spec *spec = s->target[target].spec;
	size_t n = 0;

	for (const struct urecord *rec = s->records;
	     rec && spec->kind == SPEC_OFFCPU && n < PREPARED_MOST; rec = rec->next, n++)
		if (!rec->ended)
			uprobes_prepare(s->u, rec->row, (uint32_t)target);
}

static void arm(struct uprobe_session *s, size_t target, const struct kernel_name *k)
{
	struct target *t = &s->target[target];
	enum kernel_mechanism how = mechanism_of(t->spec, k->way);
	const char *why = take_values(t, k);
	struct sb_err err = { 0 };
	struct kplace *p;
	uint32_t place = 0;

	if (!why && s->u)
		prepare(s, target);
	uspans_hold(s->spans);
	if (!why && s->u && attach(s, target, k, &how, &place, &err) < 0)
		why = err.what;
	if (!why && !uspans_name(s->spans, place, k->name, k->module, t->spec))
		why = "too many targets record values";
	uspans_go(s->spans);
	if (why) {
		refuse(t, k, why);
		return;
	}
	p = place_new(s, target, k);
	p->mechanism = kernel_mechanism_name(how);
	p->place = place;
	t->planted = true;
}

/*
 * Where calls of ioctl() are seen: at the kernel's function, which costs other system calls
 * nothing, else at the tracepoints of all of them.
 */
static int find_ioctl(struct kernel_list *list, struct sb_err *err)
{
	struct kernel_list point = { 0 };
	struct sb_err ignored = { 0 };
	int ret = kernel_functions(IOCTL_FUNCTION, list, err);

	if (ret == 0 && list->n && list->name[0].way != KERNEL_WAY_NONE)
		return 0;
	if (kernel_tracepoints("raw_syscalls", "sys_enter", &point, &ignored) == 0 && point.n &&
	    point.name[0].way != KERNEL_WAY_NONE) {
		kernel_list_free(list);
		*list = point;
		*err = (struct sb_err){ 0 };
		return 0;
	}
	kernel_list_free(&point);
	return ret;
}

static int find(const struct spec *spec, struct kernel_list *list, struct sb_err *err)
{
	switch (spec->kind) {
	case SPEC_IOCTL:
		return find_ioctl(list, err);
	case SPEC_INTERRUPT:
		return kernel_tracepoints("irq", "irq_handler_entry", list, err);
	case SPEC_OFFCPU:
		return kernel_tracepoints("sched", "sched_switch", list, err);
	case SPEC_KERNEL:
		return kernel_functions(spec->symbol, list, err);
	default:
		return kernel_tracepoints(spec->module, spec->symbol, list, err);
	}
}

static size_t hookable(const struct kernel_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += list->name[i].way != KERNEL_WAY_NONE;
	return n;
}

int usession_kernel_add(struct uprobe_session *s, size_t target, struct sb_err *err)
{
	struct target *t = &s->target[target];
	struct kernel_list list = { 0 };
	int ret = find(t->spec, &list, err);
	size_t n = hookable(&list);

	t->module_seen = true;
	if (ret == 0 && n > PLACES_MAX && s->u) {
		err_set(err, SB_EREFUSED, "%zu of them can be hooked, and a target has at most %d",
			n, PLACES_MAX);
		err_hint(err, "take a narrower pattern");
		ret = -SB_EREFUSED;
	}
	for (size_t i = 0; i < list.n && ret == 0; i++) {
		if (list.name[i].way == KERNEL_WAY_NONE)
			refuse(t, &list.name[i], list.name[i].why);
		else
			arm(s, target, &list.name[i]);
	}
	if (ret == 0 && !t->planted)
		ret = err_set(err, SB_EREFUSED, "%s", t->refused[0].reason);
	if (ret < 0)
		t->why = *err;
	kernel_list_free(&list);
	return ret;
}

int usession_kernel_add_all(struct uprobe_session *s, struct sb_err *err)
{
	int ret = 0;

	kernel_names_hold();
	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		if (!spec_in_kernel(s->target[i].spec))
			continue;
		ret = usession_kernel_add(s, i, err);
		if (ret < 0 && s->target[i].spec->optional) {
			*err = (struct sb_err){ 0 };
			ret = 0;
		}
	}
	kernel_names_release();
	if (ret == 0 && s->u)
		usession_tell_lacks(s);
	return ret;
}

void usession_kernel_remove(struct uprobe_session *s, size_t target)
{
	if (s->u)
		uprobes_kernel_remove(s->u, (uint32_t)target);
}

/* After the last call: what was recorded, and what was not. */
void usession_kernel_end(struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_kplaces && s->u && !s->kernel_ended; i++) {
		struct kernel_times t;
		uint64_t unseen;

		uprobes_kernel_read(s->u, s->kplace[i].place, &t, &unseen);
		s->traced.lost += t.lost;
		s->traced.filtered += t.filtered;
		s->kernel_unseen += unseen;
	}
	s->kernel_ended = true;
	uspans_close(s->spans, &s->traced);
	s->spans = NULL;
}

void usession_kernel_free(struct uprobe_session *s)
{
	for (size_t i = 0; i < s->n_kplaces; i++) {
		free(s->kplace[i].module);
		free(s->kplace[i].symbol);
	}
	free(s->kplace);
}

/* ---- figures ---- */

static double quantile(const struct kernel_times *t, double share)
{
	struct page_spans spans = { .least = ~t->inv_least, .most = t->most };

	memcpy(spans.bucket, t->bucket, sizeof(spans.bucket));
	return page_span_quantile(&spans, share) + 0.5;
}

static void add_bucket(struct result_times *out, unsigned int i, uint64_t calls)
{
	out->bucket = must_realloc(out->bucket, (out->n_buckets + 1) * sizeof(*out->bucket));
	out->bucket[out->n_buckets++] = (struct result_bucket){ page_span_bucket(i),
								page_span_bucket(i + 1), calls };
}

static void fill_times(const struct kernel_times *t, struct result_times *out)
{
	/* NOLINTNEXTLINE(misc-redundant-expression): both are constants */
	_Static_assert((int)KERNEL_BUCKETS == (int)SB_PAGE_SPAN_BUCKETS, "the same buckets");

	out->known = true;
	out->calls = t->calls;
	out->inclusive_ns = t->ns;
	out->min_ns = t->calls ? ~t->inv_least : 0;
	out->max_ns = t->most;
	out->p50_ns = (uint64_t)quantile(t, 0.5);
	out->p90_ns = (uint64_t)quantile(t, 0.9);
	out->p99_ns = (uint64_t)quantile(t, 0.99);
	for (unsigned int i = 0; i < KERNEL_BUCKETS; i++)
		if (t->bucket[i])
			add_bucket(out, i, t->bucket[i]);
}

static void add_values(const struct spec *spec, const struct kernel_times *t,
		       struct result_times *out)
{
	for (size_t i = 0; i < spec->n_values; i++) {
		struct result_value *v = &out->value[i];

		v->sum_calls += t->summed[i];
		if (t->sum[i] == UINT64_MAX || __builtin_add_overflow(v->sum, t->sum[i], &v->sum))
			v->sum_known = false;
	}
}

void usession_times(struct session_core *core, size_t target, struct result_times *out)
{
	struct uprobe_session *s = usession(core);
	const struct spec *spec = s->target[target].spec;
	struct page_sums sums;

	*out = (struct result_times){ .known = spec->timed && spec_in_kernel(spec) };
	if (!out->known)
		return;
	target_values(spec, out);
	for (size_t i = 0; i < spec->n_values; i++)
		out->value[i].sum_known = true;
	for (size_t i = 0; i < s->n_kplaces && s->u; i++) {
		struct result_times one = { 0 };
		struct kernel_times t;
		uint64_t unseen;

		if (s->kplace[i].target != target)
			continue;
		uprobes_kernel_read(s->u, s->kplace[i].place, &t, &unseen);
		fill_times(&t, &one);
		result_times_add(out, &one);
		free(one.bucket);
		add_values(spec, &t, out);
	}
	out->own_known = false;
	usession_target_sums(s, target, &sums);
	out->missed = sums.hits > out->calls ? sums.hits - out->calls : 0;
}

/* The times of each function, where a target has several. */
static void time_site(const struct uprobe_session *s, const struct kplace *p,
		      struct result_site *site)
{
	struct kernel_times t;
	uint64_t unseen;

	uprobes_kernel_read(s->u, p->place, &t, &unseen);
	if (t.calls)
		fill_times(&t, &site->times);
}

void usession_kernel_sites(struct uprobe_session *s, size_t target, struct result_target *rt)
{
	const struct spec *spec = s->target[target].spec;
	size_t n = 0;

	for (size_t i = 0; i < s->n_kplaces; i++)
		n += s->kplace[i].target == target;
	for (size_t i = 0; i < s->n_kplaces; i++) {
		const struct kplace *p = &s->kplace[i];
		struct result_site *site;

		if (p->target != target)
			continue;
		site = target_site(rt, p->module, NULL, p->symbol, p->address, 0, p->mechanism);
		for (const struct urecord *rec = s->records; rec; rec = rec->next)
			if (rec->counts[target].hits)
				result_add_pid(&site->pids, &site->n_pids, rec->pid);
		if (s->u && spec->timed && n > 1)
			time_site(s, p, site);
	}
}
