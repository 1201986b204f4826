/* SPDX-License-Identifier: MIT */
#include "trace.h"
#include "kernel-names.h"
#include "trace-stacks.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inject/arch/arch.h"
#include "src/base/must.h"
#include "src/session/processes.h"
#include "src/session/trace-pipe.h"

#define MS 1000000ull

enum {
	PASS_EVENTS = 1 << 14, /* in one go: the session's thread may wait for it, about 1 ms */
	BUSY_MS = 2,	       /* between two goes where there was something ... */
	IDLE_MS = 20,	       /* ... and where there was nothing */
	RECLAIM_MS = 1000,
	AWAIT_NAME_MS = 500, /* for the session to name a thread */
	NOTES = 1 << 20,     /* places of a page's notes, of 8 bytes */
	/* Owners are what the target has written: these bound what nonsense can make of them. */
	UNNAMED_MOST = 1024,
	UNKNOWN_MOST = 4096,
	SPAN_NUMBERS = 255, /* span_bit is below that */
	TARGETS_FROM = 1 << 16,
	PYTHON_FROM = TARGETS_FROM + SPAN_NUMBERS,
};

/* What a value of a preset's row means. */
enum role { ROLE_FUNCTION, ROLE_KERNEL, ROLE_OF, ROLE_OWNER, ROLE_UNLOADED, ROLES };

static const char *const roles[ROLES] = {
	[ROLE_FUNCTION] = "function", [ROLE_KERNEL] = "kernel",	    [ROLE_OF] = "of",
	[ROLE_OWNER] = "owner",	      [ROLE_UNLOADED] = "unloaded",
};

struct traced_page {
	struct page *page;
	struct page_trace *trace;
	uint32_t *note; /* by place: the function's id; 0: no note yet */
	uint64_t notes_at;
};

_Static_assert((int)SPAN_NUMBERS < (int)TRACE_VALUE_SETS, "a set of values for each target");

/* A name, until it has been declared. */
struct named {
	char *name, *module;
	bool declared;
};

struct traced_process {
	pid_t pid;
	bool declared;
	char name[64];
};

/* A thread without a track: the session is asked for it. */
struct unnamed {
	pid_t pid;
	uint64_t owner, since_ns;
	bool asked;
};

struct tracing {
	pthread_mutex_t lock; /* of all below */
	pthread_t thread;
	struct tracing_config cfg;
	bool end;
	struct traced_page *page;
	size_t n_pages;
	struct trace_threads threads;
	struct trace_clock clk;
	struct named target[SPAN_NUMBERS], *function;
	size_t n_functions;
	uint32_t n_later; /* functions that were numbered as they came */
	struct traced_process *process;
	size_t n_processes;
	struct unnamed *unnamed;
	size_t n_unnamed, n_unknown; /* tracks of threads that were never named */
	uint64_t reclaimed_ns;
	struct trace_bytes declared, spans;	  /* to be written, in this order */
	struct trace_plain *span;		  /* of one chunk, without values ... */
	struct trace_valued *valued;		  /* ... and with */
	struct tracing_masks masks[SPAN_NUMBERS]; /* by target */
	uint8_t role[SPAN_NUMBERS][ROLES];	  /* which value has it, from 1; 0: none */
	struct kernel_names kernels;
	struct trace_values values[TRACE_VALUE_SETS]; /* by target; n: 0, it has none */
	bool named[TRACE_VALUE_SETS];		      /* these were declared */
	struct trace_maps maps; /* with stacks, and where something is launched */
	bool launches;		/* a target launches by addresses, or has values that are named */
	struct tracing_sums sums;
};

/* The page that a callback is for. */
struct pass {
	struct tracing *t;
	struct traced_page *page;
};

static struct traced_process *process_of(struct tracing *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_processes; i++)
		if (t->process[i].pid == pid)
			return &t->process[i];
	t->process = must_realloc(t->process, (t->n_processes + 1) * sizeof(*t->process));
	t->process[t->n_processes] = (struct traced_process){ .pid = pid };
	return &t->process[t->n_processes++];
}

static const struct traced_process *declare_process(struct tracing *t, pid_t pid)
{
	struct traced_process *p = process_of(t, pid);

	if (!p->declared)
		trace_put_process(&t->declared, &(struct trace_process){ pid, p->name });
	p->declared = true;
	return p;
}

static void forget_process(struct tracing *t, pid_t pid)
{
	trace_maps_forget(&t->maps, pid, &t->spans);
	*process_of(t, pid) = t->process[t->n_processes - 1];
	t->n_processes--;
}

/* A thread that has ended meanwhile has the name of its process. */
static void declare_thread(struct tracing *t, struct trace_track *track)
{
	const struct traced_process *p;
	char name[64] = "";

	if (track->declared)
		return;
	track->declared = true;
	p = declare_process(t, track->pid);
	if (track->tid)
		processes_thread_name(track->pid, track->tid, name, sizeof(name));
	trace_put_thread(&t->declared, &(struct trace_thread){ .id = track->id,
							       .pid = track->pid,
							       .tid = track->tid,
							       .name = name[0] ? name : p->name });
}

static void declare_function(struct tracing *t, uint32_t id, enum trace_code code, const char *name,
			     const char *module)
{
	trace_put_function(&t->declared, &(struct trace_function){ id, code, name, module });
}

/* ---- functions ---- */

static uint32_t named_id(struct tracing *t, struct named *n, uint32_t id)
{
	if (!n->declared)
		declare_function(t, id, TRACE_NATIVE, n->name ? n->name : "?", n->module);
	n->declared = true;
	return id;
}

/* Numbers the functions of the agents' notes that have been written since. */
static void read_notes(const struct pass *p)
{
	struct traced_page *page = p->page;
	struct page_note note = { .at = page->notes_at };

	while (page_next_note(page->page, &note)) {
		uint64_t place = note.at / 8 - 1;

		page->notes_at = note.at;
		if (place >= NOTES)
			continue;
		page->note[place] = PYTHON_FROM + p->t->n_later++;
		declare_function(p->t, page->note[place], TRACE_PYTHON, note.symbol, note.module);
	}
	page_note_done(&note);
}

/* Of a Python function, by the place of the counter in its note; 0: there is no such note. */
static uint32_t python_id(const struct pass *p, uint32_t place)
{
	if (place >= NOTES)
		return 0;
	if (!p->page->note[place])
		read_notes(p);
	return p->page->note[place];
}

/* 0: an event with invalid contents. */
static uint32_t function_of(const struct pass *p, const struct sb_page_event *event)
{
	struct tracing *t = p->t;

	if (event->kind == SB_EVENT_PYTHON)
		return python_id(p, event->function);
	if (event->function && event->function <= t->n_functions &&
	    t->function[event->function - 1].name)
		return named_id(t, &t->function[event->function - 1], event->function);
	if (event->span_bit >= SPAN_NUMBERS || !t->target[event->span_bit].name)
		return 0;
	return named_id(t, &t->target[event->span_bit], TARGETS_FROM + event->span_bit);
}

/* The names of a target's values, before its first call. */
static void declare_values(struct tracing *t, uint8_t bit)
{
	if (!t->named[bit])
		trace_put_values(&t->declared, &t->values[bit]);
	t->named[bit] = true;
}

/* ---- threads ---- */

static pid_t pid_of(const struct traced_page *p, uint32_t proc)
{
	return (pid_t)page_proc(p->page, proc)->pid;
}

static struct unnamed *unnamed_of(struct tracing *t, pid_t pid, uint64_t owner)
{
	for (size_t i = 0; i < t->n_unnamed; i++)
		if (t->unnamed[i].pid == pid && t->unnamed[i].owner == owner)
			return &t->unnamed[i];
	return NULL;
}

/* Without a name after a while, it gets a track without a thread's id. */
static bool ready(void *ctx, uint32_t proc, uint64_t owner, uint64_t first)
{
	const struct pass *p = ctx;
	struct tracing *t = p->t;
	pid_t pid = pid_of(p->page, proc);
	struct unnamed *u;

	if (trace_thread_of(&t->threads, pid, owner, first))
		return true;
	u = unnamed_of(t, pid, owner);
	if (!u && t->n_unnamed == UNNAMED_MOST)
		return true;
	if (!u) {
		t->unnamed = must_realloc(t->unnamed, (t->n_unnamed + 1) * sizeof(*t->unnamed));
		u = &t->unnamed[t->n_unnamed++];
		*u = (struct unnamed){ pid, owner, clock_ns(), false };
	}
	if (clock_ns() - u->since_ns < AWAIT_NAME_MS * MS)
		return false;
	*u = t->unnamed[--t->n_unnamed];
	return true;
}

static struct trace_track *track_of(struct tracing *t, pid_t pid, uint64_t owner, uint64_t ticks)
{
	struct trace_track *track = trace_thread_of(&t->threads, pid, owner, ticks);
	pid_t tid;

	if (track)
		return track;
	tid = t->cfg.follow && !trace_thread_known(&t->threads, pid, pid) ? pid : 0;
	/* Too many: the rest of a process is one track. No FS base is ~1. */
	if (++t->n_unknown > UNKNOWN_MOST)
		return trace_thread_add(&t->threads, pid, 0, 1, 0);
	return trace_thread_add(&t->threads, pid, tid, owner, 0);
}

static bool dead(void *ctx, uint32_t proc, uint64_t owner)
{
	const struct pass *p = ctx;
	pid_t pid = pid_of(p->page, proc);
	const struct trace_track *track = trace_thread_of(&p->t->threads, pid, owner, UINT64_MAX);
	char path[64];

	if (!track || !track->tid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, track->tid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* ---- events ---- */

/* How long it took, ns. */
static uint64_t length_of(const struct tracing *t, const struct sb_page_event *event,
			  uint64_t start_ns)
{
	uint64_t end = event->start + event->ticks - 1;

	if (event->kind == SB_EVENT_DELAY)
		end += (uint64_t)t->cfg.cost->delay_ticks;
	return trace_clock_ns(&t->clk, end) - start_ns;
}

/* Spans keep their order: those that were collected of one kind go before the next of the other. */
struct runs {
	size_t plain, valued;
};

static void put_run(struct tracing *t, struct runs *run)
{
	trace_put_spans(&t->spans, t->span, run->plain);
	trace_put_valued(&t->spans, t->valued, run->valued);
	*run = (struct runs){ 0 };
}

static const struct trace_values *values_of(const struct tracing *t, const struct page_event *e)
{
	return e->event.kind == SB_EVENT_CALL && e->event.more &&
			       e->event.span_bit < SPAN_NUMBERS && t->values[e->event.span_bit].n ?
		       &t->values[e->event.span_bit] :
		       NULL;
}

/*
 * A call that ended with a jump to another function has returned nothing itself, and what is in no
 * register may not have been read. A stub writes all values of a target; what is in the page may be
 * less.
 */
static uint32_t unknown_of(const struct tracing *t, const struct page_event *e)
{
	const struct tracing_masks *masks = &t->masks[e->event.span_bit];
	uint32_t missing = ~0ull << 2 * (e->event.more < 16 ? e->event.more : 16);

	missing |= e->event.known & SB_KNOWN_RETURNED ? 0 : masks->returned;
	return missing | (e->event.known & SB_KNOWN_STACKED ? 0 : masks->stacked);
}

/* ---- names of kernels ---- */

/* False: no value has this role, or it is not known. */
static bool value_as(const struct tracing *t, const struct page_event *e, enum role role,
		     uint64_t *value)
{
	uint32_t i = t->role[e->event.span_bit][role];

	if (!i || unknown_of(t, e) >> (i - 1) & 1)
		return false;
	*value = e->value[i - 1];
	return true;
}

/* The text behind the values, *len bytes; 0: there is none. */
static const char *raw_text_of(const struct tracing *t, const struct page_event *e, size_t *len)
{
	uint32_t places = (t->values[e->event.span_bit].n + 1) / 2;
	const char *text = (const char *)(e->value + 2 * (size_t)places);

	*len = e->event.more > places ? strnlen(text, 16 * (size_t)(e->event.more - places)) : 0;
	return text;
}

/* The number of the name behind the values; 0: there is none. */
static uint32_t text_of(struct tracing *t, const struct page_event *e)
{
	size_t len;
	const char *text = raw_text_of(t, e, &len);
	uint32_t number;
	bool fresh;

	if (!len)
		return 0;
	number = kernel_name(&t->kernels, text, len, &fresh);
	if (fresh)
		trace_put_kernel(&t->declared, number, t->kernels.name[number - 1]);
	return number;
}

/*
 * A call that gives a handle to a kernel by its name, or to what another handle means, says so in
 * the roles of its values: `kernel` is the handle, `of` the other one, `owner` the module.
 */
static uint32_t names_kernel(struct tracing *t, pid_t pid, const struct page_event *e,
			     uint64_t handle)
{
	struct kernel_handle h = { .pid = pid,
				   .handle = handle,
				   .from = e->event.start + e->event.ticks - 1 };
	const struct kernel_handle *of = NULL;
	uint64_t other;

	if (value_as(t, e, ROLE_OF, &other))
		of = kernel_names_find(&t->kernels, pid, other, e->event.start);
	value_as(t, e, ROLE_OWNER, &h.module);
	h.name = of ? of->name : text_of(t, e);
	h.module = of ? of->module : h.module;
	kernel_names_set(&t->kernels, &h);
	return h.name;
}

/*
 * The runtime API launches by the address of a function in the program: its name is the kernel's.
 * The command line finds it, again whenever other code is mapped. A handle of the driver is no such
 * address.
 */
static uint32_t names_address(struct tracing *t, pid_t pid, uint64_t address, struct runs *run)
{
	struct kernel_handle *h = kernel_names_address(&t->kernels, pid, address);
	struct kernel_handle known = { .pid = pid, .handle = address, .name = h ? h->name : 0 };

	if (h && !h->change) /* a handle, without a name at that time */
		return 0;
	known.change = trace_maps_change(&t->maps, pid);
	if (h && h->change == known.change)
		return h->mapped ? h->name : 0;
	put_run(t, run);
	if (!trace_maps_have(&t->maps, pid, address))
		trace_maps_look(&t->maps, pid, false, &t->spans);
	known.change = trace_maps_change(&t->maps, pid);
	known.mapped = trace_maps_have(&t->maps, pid, address);
	if (known.mapped && !known.name)
		known.name = kernel_name_number(&t->kernels);
	if (known.mapped && known.name)
		trace_put(&t->spans, TRACE_MESSAGE_ADDRESS,
			  &(struct trace_address){ known.name, pid, address },
			  sizeof(struct trace_address));
	if (h)
		*h = known;
	else if (known.change)
		kernel_names_set(&t->kernels, &known);
	return known.mapped ? known.name : 0;
}

/* The number of the name of the kernel that a call launches or asks for; 0: none is known. */
static uint32_t kernel_of(struct tracing *t, pid_t pid, const struct page_event *e,
			  struct runs *run)
{
	const struct kernel_handle *h;
	uint64_t handle;

	if (!values_of(t, e))
		return 0;
	if (value_as(t, e, ROLE_UNLOADED, &handle))
		kernel_names_unload(&t->kernels, pid, handle);
	if (value_as(t, e, ROLE_KERNEL, &handle))
		return names_kernel(t, pid, e, handle);
	if (!value_as(t, e, ROLE_FUNCTION, &handle))
		return 0;
	h = kernel_names_find(&t->kernels, pid, handle, e->event.start);
	if (!h && t->masks[e->event.span_bit].addresses)
		return names_address(t, pid, handle, run);
	return h ? h->name : 0;
}

/* A value that is a text: its number, or unknown where there are too many. */
static void put_text(struct tracing *t, const struct page_event *e, struct trace_valued *to)
{
	const struct trace_values *values = &t->values[e->event.span_bit];
	size_t len;

	for (uint32_t i = 0; i < values->n; i++) {
		if (values->value[i].type != VALUE_STR)
			continue;
		raw_text_of(t, e, &len);
		to->value[i] = text_of(t, e);
		to->unknown |= (uint32_t)(len && !to->value[i]) << i;
	}
}

static void add_span(struct tracing *t, struct runs *run, const struct trace_plain *span,
		     const struct page_event *e)
{
	const struct trace_values *values = values_of(t, e);
	struct trace_valued *to = &t->valued[run->valued];

	if (values ? run->plain : run->valued) {
		put_run(t, run);
		to = t->valued;
	}
	if (!values) {
		t->span[run->plain++] = *span;
		return;
	}
	run->valued++;
	declare_values(t, e->event.span_bit);
	*to = (struct trace_valued){ .plain = *span,
				     .set = e->event.span_bit,
				     .unknown = unknown_of(t, e) };
	memcpy(to->value, e->value,
	       sizeof(*e->value) *
		       (2u * e->event.more < VALUE_MAX ? 2u * e->event.more : VALUE_MAX));
	put_text(t, e, to);
}

/* The next span is that of its call. */
static void add_stack(struct tracing *t, pid_t pid, const struct sb_page_stack *stack)
{
	trace_maps_look(&t->maps, pid, false, &t->spans);
	trace_put_stack(&t->spans, pid, stack);
	t->sums.stacks++;
}

static void events(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *e, size_t n)
{
	const struct pass *p = ctx;
	struct tracing *t = p->t;
	pid_t pid = pid_of(p->page, proc);
	struct runs run = { 0 };

	if (t->launches)
		trace_maps_look_rarely(&t->maps, pid, &t->spans);
	for (size_t i = 0; i < n; i++) {
		const struct sb_page_event *event = &e[i].event;
		struct trace_track *track = track_of(t, pid, owner, event->start);
		struct trace_plain span = { .function = function_of(p, event) };
		bool delay = event->kind == SB_EVENT_DELAY;

		if (!span.function) {
			t->sums.lost++;
			continue;
		}
		declare_thread(t, track);
		span.start_ns = trace_clock_ns(&t->clk, event->start);
		span.dur_ns = length_of(t, event, span.start_ns);
		span.thread = track->id;
		span.kind = delay ? TRACE_DELAY : TRACE_CALL;
		span.kernel = kernel_of(t, pid, &e[i], &run);
		if (e[i].stack)
			put_run(t, &run);
		if (e[i].stack)
			add_stack(t, pid, e[i].stack);
		add_span(t, &run, &span, &e[i]);
		*(delay ? &t->sums.delays : &t->sums.calls) += 1;
	}
	put_run(t, &run);
}

static const struct page_trace_ops ops = { ready, events, dead };

static void add_sums(struct tracing *t, const struct page_trace *trace)
{
	struct page_trace_sums sums = page_trace_sums(trace);

	t->sums.lost += sums.lost;
	t->sums.unseen += sums.unseen;
	t->sums.filtered += sums.shorter;
	t->sums.stacks_lost += sums.stacks_lost;
}

/* ---- the thread ---- */

/* False: the command line is gone. */
static bool write_all(int fd, struct trace_bytes *b)
{
	size_t at = 0;

	while (at < b->len) {
		ssize_t n = write(fd, b->data + at, b->len - at);

		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? (size_t)n : 0;
	}
	b->len = at < b->len ? b->len : 0;
	return !b->len;
}

/* Takes what is complete in all pages. Returns the number of events. */
static size_t take(struct tracing *t)
{
	uint64_t now = clock_ns();
	bool rarely = now - t->reclaimed_ns >= RECLAIM_MS * MS;
	size_t n = 0;

	trace_clock_follow(&t->clk);
	if (rarely)
		t->reclaimed_ns = now;
	for (size_t i = 0; i < t->n_pages; i++) {
		struct pass pass = { t, &t->page[i] };

		n += page_trace_drain(t->page[i].trace, &ops, &pass, PASS_EVENTS);
		if (rarely)
			page_trace_reclaim(t->page[i].trace, &ops, &pass);
	}
	return n;
}

/* Takes over what is to be written. */
static void take_bytes(struct tracing *t, struct trace_bytes *declared, struct trace_bytes *spans)
{
	struct trace_bytes d = *declared, s = *spans;

	*declared = t->declared;
	*spans = t->spans;
	t->declared = d;
	t->spans = s;
}

static void *run(void *arg)
{
	struct trace_bytes declared = { 0 }, spans = { 0 };
	struct tracing *t = arg;
	bool end = false, heard = true;
	size_t n;

	while (!end) {
		pthread_mutex_lock(&t->lock);
		end = t->end;
		n = take(t);
		take_bytes(t, &declared, &spans);
		pthread_mutex_unlock(&t->lock);
		heard = heard && write_all(t->cfg.fd, &declared) && write_all(t->cfg.fd, &spans);
		declared.len = spans.len = 0;
		if (!end && n < PASS_EVENTS)
			poll(NULL, 0, n ? BUSY_MS : IDLE_MS);
	}
	free(declared.data);
	free(spans.data);
	return NULL;
}

static void put_begin(struct tracing *t)
{
	struct trace_begin begin = {
		.begin_ns = t->clk.line[0].ns,
		.begin_unix_ns = clock_realtime_ns(),
	};

	trace_put(&t->declared, TRACE_MESSAGE_BEGIN, &begin, sizeof(begin));
}

struct tracing *tracing_open(const struct tracing_config *cfg)
{
	struct tracing *t = must_calloc(1, sizeof(*t));
	sigset_t all, old;
	int ret;

	t->cfg = *cfg;
	t->span = must_calloc(SB_PAGE_EVENTS, sizeof(*t->span));
	t->valued = must_calloc(SB_PAGE_EVENTS, sizeof(*t->valued));
	trace_clock_open(&t->clk, cfg->clk->ticks_per_ns);
	put_begin(t);
	pthread_mutex_init(&t->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		return t;
	trace_clock_free(&t->clk);
	free(t->declared.data);
	free(t->span);
	free(t->valued);
	free(t);
	return NULL;
}

void tracing_page(struct tracing *t, struct page *page)
{
	uint64_t min = clock_ticks(t->cfg.clk, (double)t->cfg.min_ns);

	pthread_mutex_lock(&t->lock);
	t->page = must_realloc(t->page, (t->n_pages + 1) * sizeof(*t->page));
	t->page[t->n_pages++] = (struct traced_page){
		.page = page,
		.trace = page_trace_open(page, min, t->cfg.per_second),
		.note = must_calloc(NOTES, sizeof(uint32_t)),
	};
	pthread_mutex_unlock(&t->lock);
}

void tracing_process_gone(struct tracing *t, struct page *page, uint32_t proc)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n_pages; i++) {
		struct pass pass = { t, &t->page[i] };

		if (t->page[i].page != page)
			continue;
		page_trace_end(t->page[i].trace, proc, &ops, &pass);
		if (proc != UINT32_MAX)
			forget_process(t, pid_of(&t->page[i], proc));
	}
	pthread_mutex_unlock(&t->lock);
}

void tracing_page_gone(struct tracing *t, struct page *page)
{
	size_t kept = 0;

	tracing_process_gone(t, page, UINT32_MAX);
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n_pages; i++) {
		struct traced_page *p = &t->page[i];

		if (p->page == page) {
			add_sums(t, p->trace);
			page_trace_free(p->trace);
			free(p->note);
		} else {
			t->page[kept++] = *p;
		}
	}
	t->n_pages = kept;
	pthread_mutex_unlock(&t->lock);
}

void tracing_thread(struct tracing *t, pid_t pid, pid_t tid, uint64_t pointer, bool since)
{
	uint64_t owner = ~pointer;

	pthread_mutex_lock(&t->lock);
	trace_thread_add(&t->threads, pid, tid, owner, since ? 0 : arch->clock_read());
	for (size_t i = 0; i < t->n_unnamed; i++)
		if (t->unnamed[i].pid == pid && t->unnamed[i].owner == owner)
			t->unnamed[i--] = t->unnamed[--t->n_unnamed];
	pthread_mutex_unlock(&t->lock);
}

bool tracing_asks(struct tracing *t, pid_t *pid)
{
	bool asks = false;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n_unnamed; i++) {
		struct unnamed *u = &t->unnamed[i];

		if (u->asked || (asks && u->pid != *pid))
			continue;
		*pid = u->pid;
		asks = u->asked = true;
	}
	pthread_mutex_unlock(&t->lock);
	return asks;
}

void tracing_process(struct tracing *t, pid_t pid, const char *text)
{
	struct traced_process *p;

	pthread_mutex_lock(&t->lock);
	trace_threads_gone(&t->threads, pid);
	kernel_names_unload(&t->kernels, pid, 0);
	p = process_of(t, pid);
	p->declared = false;
	snprintf(p->name, sizeof(p->name), "%s", text);
	if (t->cfg.stacks || t->launches)
		trace_maps_look(&t->maps, pid, true, &t->spans);
	pthread_mutex_unlock(&t->lock);
}

void tracing_mapped(struct tracing *t, pid_t pid)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	if (t->cfg.stacks || t->launches)
		trace_maps_look(&t->maps, pid, true, &t->spans);
	pthread_mutex_unlock(&t->lock);
}

static void name(struct named *n, const char *text, const char *module)
{
	free(n->name);
	free(n->module);
	n->name = must_strdup(text);
	n->module = module ? must_strdup(module) : NULL;
}

void tracing_target(struct tracing *t, uint8_t bit, const char *text, const char *module)
{
	pthread_mutex_lock(&t->lock);
	if (bit < SPAN_NUMBERS)
		name(&t->target[bit], text, module);
	pthread_mutex_unlock(&t->lock);
}

static uint8_t index_of(const struct trace_values *values, const char *name)
{
	for (uint32_t i = 0; i < values->n; i++)
		if (!strcmp(values->value[i].name, name))
			return (uint8_t)(i + 1);
	return 0;
}

void tracing_values(struct tracing *t, uint8_t bit, const struct trace_values *values,
		    const struct tracing_masks *masks)
{
	pthread_mutex_lock(&t->lock);
	if (bit < SPAN_NUMBERS) {
		t->values[bit] = *values;
		t->values[bit].set = bit;
		t->masks[bit] = *masks;
		for (int r = 0; r < ROLES; r++)
			t->role[bit][r] = masks->preset ? index_of(values, roles[r]) : 0;
		t->launches |= masks->addresses && t->role[bit][ROLE_FUNCTION];
		for (uint32_t i = 0; i < values->n; i++)
			t->launches |= value_is_named(values->value[i].type);
	}
	pthread_mutex_unlock(&t->lock);
}

void tracing_function(struct tracing *t, uint32_t number, const char *text, const char *module)
{
	pthread_mutex_lock(&t->lock);
	if (number > t->n_functions) {
		t->function = must_realloc(t->function, number * sizeof(*t->function));
		memset(t->function + t->n_functions, 0,
		       (number - t->n_functions) * sizeof(*t->function));
		t->n_functions = number;
	}
	if (number)
		name(&t->function[number - 1], text, module);
	pthread_mutex_unlock(&t->lock);
}

static void free_names(struct named *n, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(n[i].name);
		free(n[i].module);
	}
}

/* ---- what devices did ---- */

/* No FS base makes this owner. */
#define DEVICE_OWNER (1ull << 62)

uint32_t tracing_device_track(struct tracing *t, pid_t pid, const char *text)
{
	struct trace_track *track;

	pthread_mutex_lock(&t->lock);
	declare_process(t, pid);
	track = trace_thread_add(&t->threads, pid, 0, DEVICE_OWNER + t->threads.n, 0);
	track->declared = true;
	trace_put_thread(&t->declared,
			 &(struct trace_thread){ .id = track->id, .pid = pid, .name = text });
	pthread_mutex_unlock(&t->lock);
	return track->id;
}

uint32_t tracing_device_function(struct tracing *t, const char *text, const char *kind)
{
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = PYTHON_FROM + t->n_later++;
	declare_function(t, id, TRACE_DEVICE, text, kind);
	pthread_mutex_unlock(&t->lock);
	return id;
}

void tracing_device_values(struct tracing *t, const struct trace_values *values)
{
	pthread_mutex_lock(&t->lock);
	trace_put_values(&t->declared, values);
	pthread_mutex_unlock(&t->lock);
}

void tracing_device_work(struct tracing *t, const struct trace_valued *span, size_t n)
{
	pthread_mutex_lock(&t->lock);
	trace_put_valued(&t->spans, span, n);
	t->sums.device += n;
	pthread_mutex_unlock(&t->lock);
}

size_t tracing_waits(struct tracing *t)
{
	size_t n;

	pthread_mutex_lock(&t->lock);
	n = t->spans.len;
	pthread_mutex_unlock(&t->lock);
	return n;
}

void tracing_close(struct tracing *t, struct tracing_sums *sums)
{
	struct trace_end end;

	*sums = (struct tracing_sums){ 0 };
	if (!t)
		return;
	while (t->n_pages)
		tracing_page_gone(t, t->page[0].page);
	pthread_mutex_lock(&t->lock);
	trace_clock_follow(&t->clk);
	*sums = t->sums;
	end = (struct trace_end){ .spans = sums->calls + sums->delays + sums->device,
				  .lost = sums->lost + sums->unseen,
				  .filtered = sums->filtered,
				  .end_ns = trace_clock_ns(&t->clk, arch->clock_read()) };
	trace_put(&t->spans, TRACE_MESSAGE_END, &end, sizeof(end));
	t->end = true;
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	close(t->cfg.fd);
	pthread_mutex_destroy(&t->lock);
	free_names(t->target, SPAN_NUMBERS);
	free_names(t->function, t->n_functions);
	trace_threads_free(&t->threads);
	trace_clock_free(&t->clk);
	kernel_names_free(&t->kernels);
	trace_maps_free(&t->maps);
	free(t->function);
	free(t->page);
	free(t->process);
	free(t->unnamed);
	free(t->declared.data);
	free(t->spans.data);
	free(t->span);
	free(t->valued);
	free(t);
}
