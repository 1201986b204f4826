/* SPDX-License-Identifier: MIT */
/* The loader of evidence.bpf.c: its maps and links, and reading them. */
#include "load.h"
#include "cache.h"
#include "net.h"
#include "part.h"
#include "rings-map.h"
#include "symbols.h"
#include "within.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "evidence/check.h"
#include "evidence/class.h"
#include "evidence/now.h"
#include "src/base/libbpf-log.h"
#include "src/base/must.h"

extern const char sb_evidence_image[], sb_evidence_image_end[];

static const char *const programs[] = { "on_switch", "on_wakeup", "on_wakeup_new", "on_fork",
					"on_exit" };
enum { PROGRAMS = sizeof(programs) / sizeof(*programs), TRIES = 1000, MOVES = 16 };

struct evidence_bpf {
	struct bpf_object *obj;
	struct bpf_program *each_task;
	struct bpf_link *link[PROGRAMS], *look; /* look: an iterator over all tasks */
	struct bpf_link *waking;		/* NULL: who woke a thread is not recorded */
	struct evidence_row *row;
	struct evidence_control *control;
	struct evidence_part *net, *within, *cache; /* NULL: not asked for */
	struct evidence_entry *futex;
	struct evidence_stack *stack;
	struct rings rings; /* empty: the program records no pauses */
	pid_t *pid;	    /* added */
	size_t n_pids;
	uint64_t torn; /* readings of a thread that changed in each of the tries */
};

/* ---- open ---- */

static int not_permitted(struct sb_err *err)
{
	err_set(err, SB_EPERM, "a BPF program at the scheduler needs root (CAP_BPF, CAP_PERFMON)");
	err_hint(err, "run it with sudo; in a container: --cap-add BPF --cap-add PERFMON, or "
		      "--privileged");
	return -SB_EPERM;
}

static int refused(struct sb_err *err, const char *what)
{
	if (errno == EPERM || errno == EACCES)
		return not_permitted(err);
	err_sys(err, SB_ECONFINED, "%s", what);
	err_hint(err, "it takes Linux 6.1 or later that is not locked down; -v shows what the "
		      "kernel says");
	return -SB_ECONFINED;
}

static int load(struct evidence_bpf *b, bool pauses, struct sb_err *err)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one file */
	size_t size = (size_t)(sb_evidence_image_end - sb_evidence_image);

	if (evidence_types(err) < 0)
		return -SB_ECONFINED;
	b->obj = bpf_object__open_mem(sb_evidence_image, size, NULL);
	if (!b->obj)
		return refused(err, "the kernel does not load the program for evidence");
	bpf_program__set_autoload(bpf_object__find_program_by_name(b->obj, "on_waking"), pauses);
	if ((pauses && !rings_ask(&b->rings, b->obj)) || bpf_object__load(b->obj) < 0)
		return refused(err, "the kernel does not load the program for evidence");
	b->each_task = bpf_object__find_program_by_name(b->obj, "each_task");
	return 0;
}

static void *map_shared(const struct evidence_bpf *b, const char *name, size_t size)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(b->obj, name));
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void find_restarts(struct evidence_control *control)
{
	static const char *const name[] = { "futex_wait_restart", "do_restart_poll",
					    "hrtimer_nanosleep_restart" };
	__u64 address[3];

	symbols_find(name, address, 3);
	control->restart.futex = address[0];
	control->restart.poll = address[1];
	control->restart.nanosleep = address[2];
}

static int open_maps(struct evidence_bpf *b, const struct evidence_config *cfg, struct sb_err *err)
{
	b->row = map_shared(b, "rows", EVIDENCE_ROWS * sizeof(*b->row));
	b->control = map_shared(b, "control", sizeof(*b->control));
	b->futex = map_shared(b, "futexes", EVIDENCE_FUTEXES * sizeof(*b->futex));
	b->stack = map_shared(b, "stacks", EVIDENCE_FUTEXES * sizeof(*b->stack));
	if (!b->row || !b->control || !b->futex || !b->stack ||
	    (cfg->pauses && !rings_map(&b->rings, b->obj)))
		return err_sys(err, SB_ENOMEM, "no room for what the kernel and sbinject share");
	b->control->children = cfg->children;
	b->control->ring_size = b->rings.size;
	b->control->page_shift = (__u32)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	b->control->call.read = SYS_read;
	b->control->call.readv = SYS_readv;
	b->control->call.pread = SYS_pread64;
	b->control->call.preadv = SYS_preadv;
	b->control->call.sendfile = SYS_sendfile;
	b->control->next_row = 1;
	b->control->next_futex = 1;
	evidence_classes(b->control->class_of);
	find_restarts(b->control);
	return 0;
}

/* An iterator over the threads of a process, over one thread, or over all. */
static struct bpf_link *iterator(const struct evidence_bpf *b, pid_t pid, pid_t tid)
{
	union bpf_iter_link_info which = { .task = { .tid = (__u32)tid, .pid = (__u32)pid } };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &which,
		    .link_info_len = sizeof(which));

	return bpf_program__attach_iter(b->each_task, pid || tid ? &opts : NULL);
}

/* Runs it once. */
static int iterate(const struct evidence_bpf *b, const struct bpf_link *link, __u32 mode)
{
	char none[16];
	int fd = bpf_iter_create(bpf_link__fd(link));

	if (fd < 0)
		return -1;
	__atomic_store_n(&b->control->mode, mode, __ATOMIC_SEQ_CST);
	while (read(fd, none, sizeof(none)) > 0)
		;
	close(fd);
	__atomic_store_n(&b->control->mode, EVIDENCE_MODE_OFF, __ATOMIC_SEQ_CST);
	return 0;
}

static int learn_namespace(const struct evidence_bpf *b, struct sb_err *err)
{
	struct bpf_link *link = iterator(b, 0, (pid_t)syscall(SYS_gettid));
	int ret = link ? iterate(b, link, EVIDENCE_MODE_NS) : -1;

	if (ret == 0 && !b->control->ns_own)
		errno = ENOSYS;
	bpf_link__destroy(link);
	if (ret == 0 && b->control->ns_own)
		return 0;
	return refused(err, "the kernel has no BPF iterator over tasks");
}

static int attach(struct evidence_bpf *b, struct sb_err *err)
{
	for (int i = 0; i < PROGRAMS; i++) {
		b->link[i] =
			bpf_program__attach(bpf_object__find_program_by_name(b->obj, programs[i]));
		if (!b->link[i])
			return refused(err, "the kernel attaches no program to its scheduler");
	}
	if (b->rings.size) /* without it the pauses have no waker */
		b->waking =
			bpf_program__attach(bpf_object__find_program_by_name(b->obj, "on_waking"));
	b->look = iterator(b, 0, 0);
	return b->look ? 0 : refused(err, "the kernel has no BPF iterator over tasks");
}

struct evidence_bpf *evidence_bpf_open(const struct evidence_config *cfg, struct sb_err *err)
{
	struct evidence_bpf *b = must_calloc(1, sizeof(*b));
	unsigned int groups = cfg->groups;

	libbpf_set_print(libbpf_log);
	if (load(b, cfg->pauses, err) == 0 && open_maps(b, cfg, err) == 0 &&
	    learn_namespace(b, err) == 0 && attach(b, err) == 0) {
		b->control->sample = cfg->sample;
		if (groups & 1u << GROUP_NETWORK)
			b->net = evidence_net_open(b->obj);
		if (groups & (1u << GROUP_IO | 1u << GROUP_LOCKS))
			b->within = evidence_within_open(b->obj);
		if (groups & 1u << GROUP_IO)
			b->cache = evidence_cache_open(b->obj);
		return b;
	}
	evidence_bpf_close(b);
	return NULL;
}

static void unmap(void *at, size_t size)
{
	if (at)
		munmap(at, size);
}

void evidence_bpf_close(struct evidence_bpf *b)
{
	if (!b)
		return;
	part_close(b->net);
	part_close(b->within);
	part_close(b->cache);
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(b->link[i]);
	bpf_link__destroy(b->look);
	bpf_link__destroy(b->waking);
	unmap(b->row, EVIDENCE_ROWS * sizeof(*b->row));
	unmap(b->control, sizeof(*b->control));
	unmap(b->futex, EVIDENCE_FUTEXES * sizeof(*b->futex));
	unmap(b->stack, EVIDENCE_FUTEXES * sizeof(*b->stack));
	rings_unmap(&b->rings);
	bpf_object__close(b->obj);
	free(b->pid);
	free(b);
}

/* ---- processes ---- */

void evidence_bpf_add(struct evidence_bpf *b, pid_t pid)
{
	struct bpf_link *link;

	for (size_t i = 0; i < b->n_pids; i++)
		if (b->pid[i] == pid)
			return;
	b->pid = must(reallocarray(b->pid, b->n_pids + 1, sizeof(*b->pid)));
	b->pid[b->n_pids++] = pid;
	link = iterator(b, pid, 0);
	/* A thread that another one makes meanwhile is listed behind it. */
	if ((!link || iterate(b, link, EVIDENCE_MODE_ADD) < 0) && kill(pid, 0) == 0)
		__atomic_fetch_add(&b->control->threads_lost, 1, __ATOMIC_RELAXED);
	bpf_link__destroy(link);
}

const char *evidence_bpf_unknown(const struct evidence_bpf *b, enum evidence_counter counter)
{
	if (counter >= EVIDENCE_CACHE_READS)
		return evidence_cache_unknown(b->cache, counter);
	if (counter >= EVIDENCE_FILE_OPENS)
		return evidence_within_unknown(b->within, counter);
	if (counter >= EVIDENCE_TCP_CONNECTS)
		return evidence_net_unknown(b->net, counter);
	return counter < EVIDENCE_READ_CALLS || b->control->has_io ? NULL :
								     "the kernel does not count it";
}

uint64_t evidence_bpf_lost(const struct evidence_bpf *b)
{
	return __atomic_load_n(&b->control->threads_lost, __ATOMIC_RELAXED) + b->torn;
}

/* ---- readings ---- */

/*
 * A copy, and a moment at which it was still true: no change lies between the two. The kernel
 * changes a row in some ns, with its processor to itself.
 */
static uint64_t copy_row(struct evidence_bpf *b, const struct evidence_row *from,
			 struct evidence_row *to)
{
	uint64_t now = 0;
	uint32_t seq;

	for (int i = 0; i < TRIES; i++) {
		seq = __atomic_load_n(&from->seq, __ATOMIC_ACQUIRE);
		*to = *(const volatile struct evidence_row *)from;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		now = evidence_now_ns();
		if (!(seq & 1) && __atomic_load_n(&from->seq, __ATOMIC_RELAXED) == seq)
			return now;
	}
	b->torn++;
	return now;
}

_Static_assert(EVIDENCE_FILE_OPENS - EVIDENCE_TCP_CONNECTS == (int)EVIDENCE_NET_FIELDS &&
		       EVIDENCE_UDP_BYTES_SENT - EVIDENCE_TCP_CONNECTS ==
			       (int)EVIDENCE_NET_UDP_SENT &&
		       EVIDENCE_CACHE_READS - EVIDENCE_FILE_OPENS == (int)EVIDENCE_WITHIN_FIELDS &&
		       EVIDENCE_CYCLES - EVIDENCE_CACHE_READS == (int)EVIDENCE_CACHE_FIELDS &&
		       EVIDENCE_SPINLOCK_WAITS - EVIDENCE_FILE_OPENS == (int)EVIDENCE_WITHIN_LOCKS,
	       "the same order");

static void to_values(const struct evidence_row *row, struct evidence_values *v)
{
	for (int i = 0; i < EVIDENCE_STATES; i++)
		v->of[i] = row->ns[i];
	for (int i = EVIDENCE_STATE_FUTEX; i < EVIDENCE_STATES; i++)
		v->of[EVIDENCE_WAITS + i - EVIDENCE_STATE_FUTEX] = row->entered[i];
	v->of[EVIDENCE_VOLUNTARY] = row->voluntary;
	v->of[EVIDENCE_INVOLUNTARY] = row->involuntary;
	v->of[EVIDENCE_WAKEUPS] = row->wakeups;
	v->of[EVIDENCE_MIGRATIONS] = row->migrations;
	v->of[EVIDENCE_FAULTS_MINOR] = row->minor - row->minor_first;
	v->of[EVIDENCE_FAULTS_MAJOR] = row->major - row->major_first;
	for (int i = 0; i < EVIDENCE_IO_FIELDS; i++)
		v->of[EVIDENCE_READ_CALLS + i] = row->io[i] - row->io_first[i];
	for (int i = 0; i < EVIDENCE_NET_FIELDS; i++)
		v->of[EVIDENCE_TCP_CONNECTS + i] = row->net[i];
	for (int i = 0; i < EVIDENCE_WITHIN_FIELDS; i++)
		v->of[EVIDENCE_FILE_OPENS + i] = row->within[i];
	for (int i = 0; i < EVIDENCE_CACHE_FIELDS; i++)
		v->of[EVIDENCE_CACHE_READS + i] = row->cache[i];
}

static void take_slots(const struct evidence_row *row, struct evidence_reading *r,
		       struct evidence_thread *t)
{
	for (int i = 0; i < EVIDENCE_SLOTS; i++) {
		const struct evidence_slot *slot = &row->futex[i];

		if (slot->entry >= r->n_futexes)
			continue; /* it is newer than the table that was read: of the rest */
		r->futex[slot->entry].ns += slot->ns;
		r->futex[slot->entry].waits += slot->waits;
		t->futex[i] = (struct evidence_futex_part){ slot->entry, slot->ns, slot->waits };
	}
}

static void take_unrecorded(const struct evidence_row *row, struct evidence_reading *r)
{
	r->pauses_lost += row->unrecorded.lost;
	for (int i = 0; i < EVIDENCE_STATES; i++) {
		r->unrecorded.n[i] += row->unrecorded.pauses[i];
		r->unrecorded.ns[i] += row->unrecorded.ns[i];
	}
}

/* The pause in progress, for which the row's state has lasted so long. */
static void take_pause(const struct evidence_row *row, uint64_t lasts, struct evidence_reading *r)
{
	bool queued = row->state == EVIDENCE_STATE_RUN_QUEUE;
	uint32_t state = row->pause.state % EVIDENCE_STATES;

	if (row->state == EVIDENCE_STATE_ON_CPU)
		return;
	r->unrecorded.n[state] += !row->pause.flags;
	r->unrecorded.ns[state] += row->pause.ns + (queued ? 0 : lasts);
	r->unrecorded.ns[EVIDENCE_STATE_RUN_QUEUE] += row->pause.queue_ns + (queued ? lasts : 0);
}

/* Up to this moment: the state that it is in counts, too. */
static void take_row(struct evidence_bpf *b, const struct evidence_row *row,
		     struct evidence_reading *r)
{
	struct evidence_thread *t;
	struct evidence_row copy;
	uint64_t now, lasts;

	now = copy_row(b, row, &copy);
	if (!copy.tid || !copy.since)
		return;
	lasts = now > copy.since ? now - copy.since : 0;
	copy.ns[copy.state % EVIDENCE_STATES] += lasts;
	if (copy.state == EVIDENCE_STATE_FUTEX)
		copy.futex[copy.slot % EVIDENCE_SLOTS].ns += lasts;
	take_unrecorded(&copy, r);
	take_pause(&copy, lasts, r);
	r->thread = must(reallocarray(r->thread, r->n_threads + 1, sizeof(*r->thread)));
	t = &r->thread[r->n_threads++];
	*t = (struct evidence_thread){
		.pid = (pid_t)copy.tgid,
		.tid = (pid_t)copy.tid,
		.began_ns = copy.began,
		.t_ns = now,
		.pauses = copy.pauses,
	};
	to_values(&copy, &t->values);
	take_slots(&copy, r, t);
	for (int i = 0; i < EVIDENCE_STATES; i++)
		t->span_ns += copy.ns[i];
	evidence_values_add(&r->sum, &t->values);
}

static void take_entries(const struct evidence_bpf *b, struct evidence_reading *r)
{
	uint32_t n = __atomic_load_n(&b->control->next_futex, __ATOMIC_ACQUIRE);

	r->n_futexes = n < EVIDENCE_FUTEXES ? n : EVIDENCE_FUTEXES;
	r->futex = must(reallocarray(r->futex, r->n_futexes, sizeof(*r->futex)));
	for (size_t i = 0; i < r->n_futexes; i++) {
		const struct evidence_entry *e = &b->futex[i];

		r->futex[i] = (struct evidence_futex){ e->addr, (pid_t)e->tgid, e->ns, e->waits };
	}
}

static void take_all(struct evidence_bpf *b, struct evidence_reading *r)
{
	uint32_t n = __atomic_load_n(&b->control->next_row, __ATOMIC_ACQUIRE);
	struct evidence_row ended = b->row[0];

	r->n_threads = 0;
	r->sum = (struct evidence_values){ 0 };
	to_values(&ended, &r->sum);
	r->unrecorded = (struct evidence_pauses){ 0 };
	r->pauses_lost = 0;
	take_unrecorded(&ended, r);
	take_entries(b, r);
	for (uint32_t i = 1; i < n && i < EVIDENCE_ROWS; i++)
		take_row(b, &b->row[i], r);
}

/*
 * Again if the counters of a thread that ends moved meanwhile. What a slot gives to its entry moves
 * more often: after some tries the sum of the addresses is off by that, until the next reading.
 */
void evidence_bpf_take(struct evidence_bpf *b, struct evidence_reading *r)
{
	const struct evidence_control *c = b->control;
	uint64_t done, moved;
	uint32_t known;

	iterate(b, b->look, EVIDENCE_MODE_NOW);
	for (int i = 0; i < TRIES; i++) {
		done = __atomic_load_n(&c->folds_done, __ATOMIC_ACQUIRE);
		moved = __atomic_load_n(&c->moves_done, __ATOMIC_ACQUIRE);
		known = __atomic_load_n(&c->next_futex, __ATOMIC_ACQUIRE);
		r->t_ns = evidence_now_ns();
		take_all(b, r);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&c->folds_begun, __ATOMIC_ACQUIRE) == done &&
		    (i >= MOVES || (__atomic_load_n(&c->moves_begun, __ATOMIC_ACQUIRE) == moved &&
				    __atomic_load_n(&c->next_futex, __ATOMIC_ACQUIRE) == known)))
			return;
	}
	b->torn++;
}

void evidence_bpf_pauses(struct evidence_bpf *b, uint64_t until_ns, size_t most,
			 evidence_pause_fn *fn, void *ctx)
{
	if (b->rings.size)
		rings_take(&b->rings, until_ns, most, fn, ctx);
}

bool evidence_bpf_stack(const struct evidence_bpf *b, size_t number,
			struct evidence_stack_copy *out)
{
	struct evidence_stack copy;

	for (int i = 0; i < TRIES && number && number < EVIDENCE_FUTEXES; i++) {
		uint32_t seq = __atomic_load_n(&b->stack[number].seq, __ATOMIC_ACQUIRE);

		copy = *(const volatile struct evidence_stack *)&b->stack[number];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((seq & 1) || __atomic_load_n(&b->stack[number].seq, __ATOMIC_RELAXED) != seq)
			continue;
		*out = (struct evidence_stack_copy){ seq,      copy.ip,	 copy.sp,  copy.bp,
						     copy.bx,  copy.r12, copy.r13, copy.r14,
						     copy.r15, { 0 },	 0 };
		out->size = copy.size < sizeof(out->bytes) ? copy.size : sizeof(out->bytes);
		memcpy(out->bytes, copy.bytes, out->size);
		return seq && out->size;
	}
	return false;
}
