/* SPDX-License-Identifier: MIT */
#include "cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/base/text.h"

struct sum {
	struct result *res;
	const char *preset;
	const struct result_row *row;
	size_t n;
};

/* What is added up of one target: its share, or the reason why it is not known. */
typedef const char *share_fn(const struct result_target *target, uint64_t *share);

__attribute__((format(printf, 2, 3))) static void unknown(struct result_figure *f, const char *fmt,
							  ...)
{
	va_list ap;

	f->known = false;
	va_start(ap, fmt);
	if (vasprintf(&f->reason, fmt, ap) < 0)
		abort();
	va_end(ap);
}

static const struct result_target *target_of(const struct sum *s, const char *spec)
{
	for (size_t i = 0; i < s->res->n_targets; i++)
		if (s->res->target[i].preset && !strcmp(s->res->target[i].spec, spec))
			return &s->res->target[i];
	return NULL;
}

/* A function that the library lacks has no calls. NULL: every call was counted. */
static const char *calls_of(const struct result_target *t, uint64_t *calls)
{
	if (t->n_refused)
		return t->refused[0].reason;
	if (t->outcome == OUTCOME_PENDING)
		return "the library was not loaded";
	if (t->outcome == OUTCOME_REFUSED)
		return t->reason && *t->reason ? t->reason : "it was not hooked";
	if (t->pid)
		return "pid= limits it";
	*calls = t->counts.hits;
	return NULL;
}

static const char *ns_of(const struct result_target *t, uint64_t *ns)
{
	const char *why = calls_of(t, ns);

	if (why)
		return why;
	*ns = 0;
	if (!t->counts.hits)
		return NULL;
	if (!t->times.known)
		return "it was not timed (sbinject trace, time=yes)";
	if (t->n_untimed)
		return t->untimed[0].reason;
	*ns = t->times.inclusive_ns;
	return NULL;
}

static const char *missed_of(const struct result_target *t, uint64_t *missed)
{
	const char *why = ns_of(t, missed);

	*missed = t->times.missed;
	return why;
}

/* The value that the target adds up by the name "bytes"; NULL: there is none. */
static const struct result_value *bytes_value(const struct result_times *times)
{
	for (size_t i = 0; i < times->n_values; i++)
		if (times->value[i].summed && !strcmp(times->value[i].name, "bytes"))
			return &times->value[i];
	return NULL;
}

static const char *bytes_of(const struct result_target *t, uint64_t *bytes)
{
	const char *why = ns_of(t, bytes);
	const struct result_value *v = bytes_value(&t->times);

	*bytes = 0;
	if (why || !t->counts.hits)
		return why;
	if (!v)
		return "no argument of its calls is added up as bytes";
	if (!v->sum_known)
		return "the sum is larger than 64 bits can hold";
	if (v->sum_calls != t->times.calls)
		return "the bytes of some calls are not known";
	*bytes = v->sum;
	return NULL;
}

static struct result_figure *new_figure(const struct sum *s, const char *name)
{
	struct result *res = s->res;
	struct result_figure *f;

	res->cuda = must_realloc(res->cuda, (res->n_cuda + 1) * sizeof(*res->cuda));
	f = &res->cuda[res->n_cuda++];
	*f = (struct result_figure){ .name = must_strdup(name), .known = true };
	return f;
}

static struct result_figure *add_figure(const struct sum *s, const char *name)
{
	struct result_figure *f = new_figure(s, name);

	if (s->res->doorbells_lost)
		unknown(f, "a program ran on before its libraries were hooked");
	return f;
}

/* The next target of a kind (NULL: any) from row *i on, with its share; NULL: none is left, or the
 * figure is not known. */
static const struct result_target *next_share(const struct sum *s, struct result_figure *f,
					      const char *kind, share_fn *fn, size_t *i,
					      uint64_t *share)
{
	for (; *i < s->n && f->known; ++*i) {
		const struct result_row *row = &s->row[*i];
		const struct result_target *t;
		const char *why;

		if (kind && strcmp(row->kind, kind) != 0)
			continue;
		t = target_of(s, row->spec);
		why = !t	   ? "it is not a target of this run" :
		      row->limited ? row->limited :
				     fn(t, share);
		++*i;
		if (!why)
			return t;
		unknown(f, "%s: %s", row->spec, why);
	}
	return NULL;
}

static void add_up(const struct sum *s, const char *name, const char *kind, share_fn *fn)
{
	struct result_figure *f = add_figure(s, name);
	uint64_t share = 0;

	for (size_t i = 0; next_share(s, f, kind, fn, &i, &share);)
		if (__builtin_add_overflow(f->n, share, &f->n))
			unknown(f, "the sum is larger than 64 bits can hold");
}

/* Each target's calls by the time for which it was hooked. */
static void add_rate(const struct sum *s, const char *name, const char *kind)
{
	struct result_figure *f = add_figure(s, name);
	const struct result_target *t;
	uint64_t calls = 0;

	f->real = true;
	for (size_t i = 0; (t = next_share(s, f, kind, calls_of, &i, &calls));) {
		if (calls && !(t->active_s > 0))
			unknown(f, "%s: for how long it was hooked is not known", t->spec);
		else if (calls)
			f->x += (double)calls / t->active_s;
	}
}

static void add_quantiles(const struct sum *s, const char *kind)
{
	static const struct {
		const char *name;
		size_t at;
	} quantiles[] = {
		{ "p50_ns", offsetof(struct result_times, p50_ns) },
		{ "p90_ns", offsetof(struct result_times, p90_ns) },
		{ "p99_ns", offsetof(struct result_times, p99_ns) },
	};
	char name[64];

	for (size_t q = 0; q < sizeof(quantiles) / sizeof(*quantiles); q++) {
		struct result_times times = { .known = false };
		const struct result_target *t;
		struct result_figure *f;
		uint64_t ns;

		snprintf(name, sizeof(name), "%.40s.%s", kind, quantiles[q].name);
		f = add_figure(s, name);
		for (size_t i = 0; (t = next_share(s, f, kind, ns_of, &i, &ns));)
			if (t->times.calls)
				result_times_add(&times, &t->times);
		if (f->known && !times.calls)
			unknown(f, "no call returned");
		if (f->known)
			f->n = *(const uint64_t *)(const void *)((const char *)&times +
								 quantiles[q].at);
		free(times.bucket);
	}
}

static bool has_kind(const struct sum *s, const char *kind)
{
	for (size_t i = 0; i < s->res->n_targets; i++) {
		const struct result_target *t = &s->res->target[i];

		if (t->preset && !strcmp(t->preset, s->preset) && !strcmp(t->kind, kind))
			return true;
	}
	return false;
}

static void add_kind(const struct sum *s, const char *kind)
{
	static const struct {
		const char *name;
		share_fn *fn;
	} parts[] = { { "calls", calls_of }, { "ns", ns_of }, { "missed", missed_of } };
	char name[64];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(name, sizeof(name), "%.40s.%s", kind, parts[i].name);
		add_up(s, name, kind, parts[i].fn);
	}
	snprintf(name, sizeof(name), "%.40s.calls_per_s", kind);
	add_rate(s, name, kind);
	add_quantiles(s, kind);
	if (strcmp(kind, "memcpy") != 0 && strcmp(kind, "alloc") != 0)
		return;
	snprintf(name, sizeof(name), "%.40s.bytes", kind);
	add_up(s, name, kind, bytes_of);
}

static bool has_preset(const struct result *res, const char *preset)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].preset && !strcmp(res->target[i].preset, preset))
			return true;
	return false;
}

static const struct result_target *ioctls_of(const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (!strcmp(res->target[i].spec, RESULT_IOCTLS))
			return &res->target[i];
	return NULL;
}

/* What the kernel saw: of a target that is of no preset. */
static void add_ioctls(const struct sum *s, const char *limited)
{
	static const struct {
		const char *name;
		share_fn *fn;
	} parts[] = { { "ioctls", calls_of }, { "ioctl_ns", ns_of } };
	const struct result_target *t = ioctls_of(s->res);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct result_figure *f = new_figure(s, parts[i].name);
		const char *why = !t	  ? "they were not asked for (--kernel)" :
				  limited ? limited :
					    parts[i].fn(t, &f->n);

		if (why)
			unknown(f, "%s", why);
	}
}

void result_cuda(struct result *res, const char *preset, const struct result_row *row, size_t n,
		 const char *ioctls_limited)
{
	struct sum s = { res, preset, row, n };

	if (has_preset(res, preset) || ioctls_of(res))
		add_ioctls(&s, ioctls_limited);
	if (!has_preset(res, preset))
		return;
	add_up(&s, "api_calls", NULL, calls_of);
	add_up(&s, "launches", "launch", calls_of);
	add_rate(&s, "launches_per_s", "launch");
	add_up(&s, "allocations", "alloc", calls_of);
	add_up(&s, "allocated_bytes", "alloc", bytes_of);
	add_up(&s, "transfers", "memcpy", calls_of);
	add_up(&s, "transferred_bytes", "memcpy", bytes_of);
	add_up(&s, "syncs", "sync", calls_of);
	add_up(&s, "sync_ns", "sync", ns_of);
	for (size_t i = 0; i < n; i++) {
		bool first = true;

		for (size_t k = 0; k < i; k++)
			first &= strcmp(row[k].kind, row[i].kind) != 0;
		if (first && has_kind(&s, row[i].kind))
			add_kind(&s, row[i].kind);
	}
}
