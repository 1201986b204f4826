/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "btf.h"
#include "elf/suggest.h"
#include "elf/symbol.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "tracefs.h"

#define VMLINUX "vmlinux"

struct permits {
	bool fentry, kprobe;
	char why[120]; /* no fentry */
};

/* The sources, each read when it is first asked for, and kept while `holds` is not 0. */
static struct sources {
	unsigned int holds;
	char *symbols; /* /proc/kallsyms */
	struct kernel_btf *btf;
	struct tracefs_functions *places;
	struct tracefs_events *events;
	struct permits may;
	bool knows_symbols, knows_btf, knows_places, knows_events, knows_may;
} sources;

/* ---- sources ---- */

static char *read_whole(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t len = 0, room = 1 << 20, got;
	char *text = f ? must_realloc(NULL, room + 1) : NULL;

	while (f && (got = fread(text + len, 1, room - len, f)) > 0) {
		len += got;
		if (len == room)
			text = must_realloc(text, (room *= 2) + 1);
	}
	if (!f)
		return NULL;
	text[len] = '\0';
	fclose(f);
	return text;
}

static const char *symbols(void)
{
	if (!sources.knows_symbols)
		sources.symbols = read_whole("/proc/kallsyms");
	sources.knows_symbols = true;
	return sources.symbols;
}

static struct kernel_btf *btf(void)
{
	if (!sources.knows_btf)
		sources.btf = kernel_btf_open();
	sources.knows_btf = true;
	return sources.btf;
}

static const struct tracefs_functions *places(void)
{
	if (!sources.knows_places)
		sources.places = tracefs_functions_open();
	sources.knows_places = true;
	return sources.places;
}

static struct tracefs_events *events(void)
{
	if (!sources.knows_events)
		sources.events = tracefs_events_open();
	sources.knows_events = true;
	return sources.events;
}

static const struct permits *permits(void)
{
	struct permits *may = &sources.may;

	if (!sources.knows_may) {
		may->fentry = kernel_fentry_works(may->why, sizeof(may->why));
		may->kprobe = kernel_has_kprobes();
	}
	sources.knows_may = true;
	return may;
}

void kernel_names_hold(void)
{
	sources.holds++;
}

void kernel_names_release(void)
{
	if (--sources.holds)
		return;
	free(sources.symbols);
	kernel_btf_close(sources.btf);
	tracefs_functions_close(sources.places);
	tracefs_events_close(sources.events);
	sources = (struct sources){ 0 };
}

/* ---- lists ---- */

void kernel_list_free(struct kernel_list *names)
{
	for (size_t i = 0; i < names->n; i++) {
		free(names->name[i].name);
		free(names->name[i].module);
	}
	free(names->name);
	*names = (struct kernel_list){ 0 };
}

bool kernel_has_kprobes(void)
{
	return access("/sys/bus/event_source/devices/kprobe/type", F_OK) == 0;
}

static struct kernel_name *add(struct kernel_list *out, const char *name, const char *module)
{
	struct kernel_name *k;

	if (!(out->n & (out->n - 1)))
		out->name = must_realloc(out->name, (out->n ? out->n * 2 : 1) * sizeof(*out->name));
	k = &out->name[out->n++];
	*k = (struct kernel_name){ .name = must_strdup(name), .module = must_strdup(module) };
	return k;
}

static int by_name(const void *a, const void *b)
{
	const struct kernel_name *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->module, y->module);
}

static void sort(struct kernel_list *names)
{
	if (names->n)
		qsort(names->name, names->n, sizeof(*names->name), by_name);
}

/* The first one of that name; NULL: none. The list is sorted. */
static struct kernel_name *find(const struct kernel_list *names, const char *name)
{
	size_t low = 0, high = names->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(names->name[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < names->n && !strcmp(names->name[low].name, name) ? &names->name[low] : NULL;
}

/* ---- functions ---- */

/* A line of /proc/kallsyms; longer names than the kernel's are none of its functions. */
struct symbol_line {
	uint64_t address;
	char name[512], module[64];
};

/* "ffffffff81000000 T name\t[module]", up to the line's end. False: it is no function. */
static bool read_symbol(const char *line, size_t len, struct symbol_line *s)
{
	const char *end = line + len, *module;
	char *at;

	s->address = strtoull(line, &at, 16);
	if (at == line || end - at < 4 || at[0] != ' ' || !strchr("tTwW", at[1]) || at[2] != ' ')
		return false;
	at += 3;
	len = strcspn(at, " \t\n");
	module = at + len;
	if (!len || len >= sizeof(s->name))
		return false;
	memcpy(s->name, at, len);
	s->name[len] = '\0';
	module += strspn(module, " \t[");
	len = module < end ? strcspn(module, " \t\n[]") : 0;
	snprintf(s->module, sizeof(s->module), "%.*s", (int)(len ? len : strlen(VMLINUX)),
		 len ? module : VMLINUX);
	return true;
}

/* The padding in front of a function has a symbol of its own, which only its whole name means. */
static bool is_padding(const char *name)
{
	return !strncmp(name, "__pfx_", 6) || !strncmp(name, "__cfi_", 6);
}

/* The name in such a line; NULL: it is no function. */
static const char *name_in(const char *line, const char *end)
{
	const char *space = memchr(line, ' ', (size_t)(end - line));

	return space && end - space > 3 && strchr("tTwW", space[1]) && space[2] == ' ' ? space + 3 :
											 NULL;
}

/* A line is read in full only where its name begins as the pattern does: there are 100000. */
static int read_symbols(const char *pattern, struct kernel_list *out)
{
	size_t literal = strcspn(pattern, "*?[\\");
	bool glob = glob_is_pattern(pattern);
	const char *line = symbols(), *end, *name;
	struct symbol_line s;

	if (!line)
		return -1;
	for (; *line; line = end + (*end == '\n')) {
		end = strchrnul(line, '\n');
		name = name_in(line, end);
		if (!name || strncmp(name, pattern, literal) != 0 ||
		    !read_symbol(line, (size_t)(end - line), &s))
			continue;
		if (glob ? glob_match(pattern, s.name) && !is_padding(s.name) :
			   !strcmp(pattern, s.name))
			add(out, s.name, s.module)->address = s.address;
	}
	return 0;
}

static void offer_symbols(struct suggester *near)
{
	const char *line = symbols(), *end, *name;

	for (; *line; line = end + (*end == '\n')) {
		end = strchrnul(line, '\n');
		name = name_in(line, end);
		if (name)
			suggest_offer(near, name, strcspn(name, " \t\n"));
	}
}

static bool take_proto(void *ctx, const char *name, const struct kernel_proto *proto)
{
	const struct kernel_list *names = ctx;
	struct kernel_name *k = find(names, name);

	if (k)
		k->proto = *proto;
	return true;
}

/* The types of the kernel's functions, and of those modules that have one of the names. */
static void describe(struct kernel_list *names)
{
	struct kernel_btf *b = btf();

	if (b)
		kernel_btf_functions(b, VMLINUX, take_proto, names);
	for (size_t i = 0; i < names->n && b; i++) {
		const struct kernel_name *k = &names->name[i];

		if (strcmp(k->module, VMLINUX) != 0 && !k->proto.known)
			kernel_btf_functions(b, k->module, take_proto, names);
	}
}

static void choose(struct kernel_name *k, const struct permits *may, enum tracefs_hookable place)
{
	if (place == TRACEFS_NO_PLACE)
		snprintf(k->why, sizeof(k->why),
			 "notrace: the kernel was built without a place for a hook in it");
	else if (k->proto.known && may->fentry)
		k->way = KERNEL_WAY_FENTRY;
	else if (may->kprobe)
		k->way = KERNEL_WAY_KPROBE;
	else
		snprintf(k->why, sizeof(k->why), "%s, and it has no kprobes",
			 may->fentry ? "the kernel does not describe it (BTF)" : may->why);
}

/* One of several functions of a name, of which the kernel's types do not say which they describe.
 */
static void choose_one(struct kernel_name *k, const struct permits *may, size_t same)
{
	k->proto.known = false;
	k->by_address = may->kprobe && k->address;
	if (k->by_address)
		k->way = KERNEL_WAY_KPROBE;
	else
		snprintf(k->why, sizeof(k->why),
			 "the kernel has %zu functions of this name, which only a kprobe can tell "
			 "apart, %s",
			 same, may->kprobe ? "and it shows no addresses" : "and it has no kprobes");
}

static void choose_all(struct kernel_list *names)
{
	const struct permits *may = permits();
	size_t same;

	for (size_t i = 0; i < names->n; i += same) {
		struct kernel_name *k = &names->name[i];

		for (same = 1; i + same < names->n && !strcmp(k->name, k[same].name); same++)
			;
		for (size_t n = 0; n < same; n++)
			if (same > 1)
				choose_one(&k[n], may, same);
			else
				choose(k, may, tracefs_hookable(places(), k->name));
	}
}

static int none_found(const char *what, const char *pattern, struct suggester *near,
		      struct sb_err *err)
{
	char hint[sizeof(err->hint)] = "", quoted[TEXT_QUOTE_SIZE];

	if (near)
		suggest_print(near, hint, sizeof(hint));
	err_set(err, SB_ENOSYMBOL, "this kernel has no %s '%s'%s", what,
		text_quote(pattern, quoted, sizeof(quoted)),
		*what == 'f' ? ": there is none, or the compiler inlined it everywhere" : "");
	if (*hint)
		err_hint(err, "%s", hint);
	return -SB_ENOSYMBOL;
}

static int no_function(const char *pattern, struct sb_err *err)
{
	struct suggester near;
	bool offers = !glob_is_pattern(pattern) && suggest_init(&near, pattern, strlen(pattern));

	if (offers)
		offer_symbols(&near);
	return none_found("function", pattern, offers ? &near : NULL, err);
}

static int find_functions(const char *pattern, struct kernel_list *out, struct sb_err *err)
{
	if (read_symbols(pattern, out) < 0)
		return err_sys(err, SB_ESYS, "/proc/kallsyms cannot be read");
	if (!out->n)
		return no_function(pattern, err);
	sort(out);
	describe(out);
	choose_all(out);
	return 0;
}

int kernel_functions(const char *pattern, struct kernel_list *out, struct sb_err *err)
{
	int ret;

	kernel_names_hold();
	ret = find_functions(pattern, out, err);
	kernel_names_release();
	return ret;
}

/* ---- tracepoints ---- */

struct points {
	struct kernel_list *out;
	size_t sorted; /* of them */
	const char *subsystem, *pattern;
	struct tracefs_events *events; /* NULL: not known */
	struct suggester *near;
};

static bool means(const char *pattern, const char *name)
{
	return glob_is_pattern(pattern) ? glob_match(pattern, name) : !strcmp(pattern, name);
}

/* Without tracefs a tracepoint is of the subsystem that the user names. */
static bool take_point(void *ctx, const char *name, const struct kernel_proto *proto)
{
	struct points *p = ctx;
	const char *subsystem = p->events ? tracefs_subsystem(p->events, name) : p->subsystem;
	struct kernel_name *k;
	char whole[256];

	if (!means(p->pattern, name) || !means(p->subsystem, subsystem)) {
		snprintf(whole, sizeof(whole), "%s:%s", subsystem, name);
		if (p->near)
			suggest_offer(p->near, whole, strlen(whole));
		return true;
	}
	k = add(p->out, name, subsystem);
	k->proto = *proto;
	k->way = KERNEL_WAY_TRACEPOINT;
	return true;
}

/* Events that are shown and have no tracepoint of their own. */
static void take_event(void *ctx, const char *subsystem, const char *name)
{
	struct points *p = ctx;
	const struct kernel_list known = { p->out->name, p->sorted };
	struct kernel_name *k;

	if (!means(p->pattern, name) || !means(p->subsystem, subsystem) || find(&known, name))
		return;
	k = add(p->out, name, subsystem);
	snprintf(k->why, sizeof(k->why), "%s",
		 strcmp(subsystem, "syscalls") ?
			 "it is an event without a tracepoint that the kernel describes (BTF)" :
			 "a call's events are made of raw_syscalls:sys_enter and sys_exit");
}

static int find_tracepoints(const char *subsystem, const char *pattern, struct kernel_list *out,
			    struct sb_err *err)
{
	struct suggester near;
	char whole[256];
	struct points p = { .out = out, .subsystem = subsystem, .pattern = pattern };
	bool offers;

	snprintf(whole, sizeof(whole), "%s:%s", subsystem, pattern);
	offers = !glob_is_pattern(whole) && suggest_init(&near, whole, strlen(whole));
	p.near = offers ? &near : NULL;
	p.events = events();
	kernel_btf_tracepoints(btf(), take_point, &p);
	sort(out);
	p.sorted = out->n;
	tracefs_events_each(p.events, take_event, &p);
	sort(out);
	if (!out->n)
		return none_found("tracepoint", whole, p.near, err);
	if (offers)
		suggest_print(&near, (char[1]){ 0 }, 1);
	return 0;
}

int kernel_tracepoints(const char *subsystem, const char *pattern, struct kernel_list *out,
		       struct sb_err *err)
{
	int ret;

	kernel_names_hold();
	ret = find_tracepoints(subsystem, pattern, out, err);
	kernel_names_release();
	return ret;
}
