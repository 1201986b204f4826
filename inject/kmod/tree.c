/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pid=N means process N and all its descendants. A process's ancestry cannot be determined later (a
 * daemon has lost its own), so membership is inherited at fork: a table of processes, each with a
 * bit for every target that it belongs to. A process is identified by its struct pid, which is
 * held: its number may be reused for another process, the held struct pid is not. A number that is
 * awaited is one of the namespace of its writer, and means the first process that gets it.
 *
 * sched_process_fork and sched_process_exit are not exported; they are found by name.
 */
#include <linux/hashtable.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "speed_bump.h"

struct member {
	struct hlist_node node;
	struct pid *pid; /* held */
	u64 bits;
};

struct awaited {
	pid_t nr; /* 0: none */
	struct pid_namespace *ns;
};

static DEFINE_HASHTABLE(members, 10);
static DEFINE_SPINLOCK(members_lock);
static u64 bits_in_use;			       /* under members_lock */
static struct awaited awaited[SB_MAX_TARGETS]; /* pid= of a process that does not exist yet */
static struct tracepoint *on_fork_tp, *on_exit_tp;

/* Under members_lock. */
static struct member *find(const struct pid *pid)
{
	struct member *m;

	hash_for_each_possible(members, m, node, (unsigned long)pid) if (m->pid == pid) return m;
	return NULL;
}

/* Under members_lock. True: it is new for at least one of them. */
static bool join(struct pid *pid, u64 bits)
{
	struct member *m = find(pid);
	bool fresh;

	if (!m) {
		m = kzalloc(sizeof(*m), GFP_ATOMIC);
		if (!m)
			return false;
		m->pid = get_pid(pid);
		hash_add(members, &m->node, (unsigned long)pid);
	}
	fresh = bits & ~m->bits;
	m->bits |= bits;
	return fresh;
}

static void member_free(struct member *m)
{
	put_pid(m->pid);
	kfree(m);
}

/* Under members_lock. A process that has appeared is not awaited any more. */
static u64 awaits(struct pid *pid)
{
	u64 bits = 0;

	for (unsigned int i = 0; i < SB_MAX_TARGETS; i++) {
		struct awaited *a = &awaited[i];

		if (!a->nr || pid_nr_ns(pid, a->ns) != a->nr)
			continue;
		a->nr = 0;
		bits |= 1ull << i;
	}
	return bits & bits_in_use;
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	const struct member *m;
	unsigned long flags;
	u64 bits;

	if (!READ_ONCE(bits_in_use) || parent->tgid == child->tgid)
		return;
	spin_lock_irqsave(&members_lock, flags);
	m = find(task_tgid(parent));
	bits = (m ? m->bits : 0) | awaits(task_tgid(child));
	if (bits)
		join(task_tgid(child), bits);
	spin_unlock_irqrestore(&members_lock, flags);
}

/* Every thread of a process passes here; the last one ends it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
static void on_exit(void *data, struct task_struct *task, bool group_dead)
#else
static void on_exit(void *data, struct task_struct *task)
#endif
{
	struct member *m;
	unsigned long flags;

	if (!READ_ONCE(bits_in_use) || atomic_read(&task->signal->live))
		return;
	spin_lock_irqsave(&members_lock, flags);
	m = find(task_tgid(task));
	if (m)
		hash_del(&m->node);
	spin_unlock_irqrestore(&members_lock, flags);
	if (m)
		member_free(m);
}

bool sb_tree_has(unsigned int bit)
{
	const struct member *m;
	unsigned long flags;
	bool has;

	spin_lock_irqsave(&members_lock, flags);
	m = find(task_tgid(current));
	has = m && m->bits >> bit & 1;
	spin_unlock_irqrestore(&members_lock, flags);
	return has;
}

/* One pass over all processes: children of members. on_fork() sees later forks. */
static bool take_children(u64 bit)
{
	struct task_struct *p;
	bool more = false;

	rcu_read_lock();
	for_each_process(p)
	{
		const struct member *m;
		struct pid *pid = task_tgid(p);
		unsigned long flags;

		spin_lock_irqsave(&members_lock, flags);
		m = find(task_tgid(rcu_dereference(p->real_parent)));
		if (pid && m && m->bits & bit && atomic_read(&p->signal->live))
			more |= join(pid, bit);
		spin_unlock_irqrestore(&members_lock, flags);
	}
	rcu_read_unlock();
	return more;
}

/*
 * Under members_lock: on_exit() has not run for it yet. A process that has ended and was not reaped
 * has no calls to count, and no exit left at which it would be removed.
 */
static bool is_alive(struct pid *pid)
{
	const struct task_struct *p;
	bool alive;

	rcu_read_lock();
	p = pid_task(pid, PIDTYPE_TGID);
	alive = p && atomic_read(&p->signal->live);
	rcu_read_unlock();
	return alive;
}

int sb_tree_add(pid_t pid, unsigned int bit)
{
	struct pid *root = find_get_pid(pid); /* in the writer's namespace */
	unsigned long flags;

	spin_lock_irqsave(&members_lock, flags);
	WRITE_ONCE(bits_in_use, bits_in_use | 1ull << bit);
	smp_mb(); /* on_exit() reads in reverse order: whether it lives, and then the bits */
	if (!root)
		awaited[bit] = (struct awaited){ pid, get_pid_ns(task_active_pid_ns(current)) };
	else if (is_alive(root))
		join(root, 1ull << bit);
	spin_unlock_irqrestore(&members_lock, flags);
	put_pid(root);
	while (take_children(1ull << bit))
		cond_resched();
	return 0;
}

void sb_tree_remove(unsigned int bit)
{
	struct pid_namespace *ns;
	HLIST_HEAD(dead);
	struct hlist_node *next;
	struct member *m;
	unsigned long flags;
	int bucket;

	spin_lock_irqsave(&members_lock, flags);
	WRITE_ONCE(bits_in_use, bits_in_use & ~(1ull << bit));
	ns = awaited[bit].ns;
	awaited[bit] = (struct awaited){};
	hash_for_each_safe(members, bucket, next, m, node)
	{
		m->bits &= ~(1ull << bit);
		if (m->bits)
			continue;
		hash_del(&m->node);
		hlist_add_head(&m->node, &dead);
	}
	spin_unlock_irqrestore(&members_lock, flags);
	if (ns)
		put_pid_ns(ns);
	hlist_for_each_entry_safe(m, next, &dead, node) member_free(m);
}

static void look_at(struct tracepoint *tp, void *priv)
{
	if (!strcmp(tp->name, "sched_process_fork"))
		on_fork_tp = tp;
	if (!strcmp(tp->name, "sched_process_exit"))
		on_exit_tp = tp;
}

int sb_tree_start(void)
{
	int ret;

	for_each_kernel_tracepoint(look_at, NULL);
	if (!on_fork_tp || !on_exit_tp)
		return -EOPNOTSUPP;
	ret = tracepoint_probe_register(on_fork_tp, on_fork, NULL);
	if (ret)
		return ret;
	ret = tracepoint_probe_register(on_exit_tp, on_exit, NULL);
	if (ret)
		tracepoint_probe_unregister(on_fork_tp, on_fork, NULL);
	return ret;
}

void sb_tree_stop(void)
{
	tracepoint_probe_unregister(on_exit_tp, on_exit, NULL);
	tracepoint_probe_unregister(on_fork_tp, on_fork, NULL);
	tracepoint_synchronize_unregister();
	for (unsigned int bit = 0; bit < SB_MAX_TARGETS; bit++)
		sb_tree_remove(bit);
}
