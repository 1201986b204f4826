/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pid=N means process N and all its descendants. Ancestry cannot be read off a process later (a
 * daemon has lost its own), so membership is inherited at fork: a table of processes, each with
 * a bit for every target that it belongs to. Processes are known by their number in the first
 * pid namespace; what was written is in the writer's own.
 *
 * sched_process_fork and sched_process_exit are not exported; they are found by name.
 */
#include <linux/hashtable.h>
#include <linux/pid.h>
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
	pid_t tgid;
	u64 bits;
};

static DEFINE_HASHTABLE(members, 10);
static DEFINE_SPINLOCK(members_lock);
static u64 bits_in_use;		      /* under members_lock */
static pid_t awaited[SB_MAX_TARGETS]; /* pid= of a process that is not there yet */
static struct tracepoint *on_fork_tp, *on_exit_tp;

/* Under members_lock. */
static struct member *find(pid_t tgid)
{
	struct member *m;

	hash_for_each_possible(members, m, node, tgid) if (m->tgid == tgid) return m;
	return NULL;
}

/* Under members_lock. True: it is new in one of them. */
static bool join(pid_t tgid, u64 bits)
{
	struct member *m = find(tgid);
	bool fresh;

	if (!m) {
		m = kzalloc(sizeof(*m), GFP_ATOMIC);
		if (!m)
			return false;
		m->tgid = tgid;
		hash_add(members, &m->node, tgid);
	}
	fresh = bits & ~m->bits;
	m->bits |= bits;
	return fresh;
}

static u64 awaits(pid_t tgid)
{
	u64 bits = 0;

	for (unsigned int i = 0; i < SB_MAX_TARGETS; i++)
		if (awaited[i] && awaited[i] == tgid)
			bits |= 1ull << i;
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
	m = find(parent->tgid);
	bits = (m ? m->bits : 0) | awaits(child->tgid);
	if (bits)
		join(child->tgid, bits);
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
	m = find(task->tgid);
	if (m)
		hash_del(&m->node);
	spin_unlock_irqrestore(&members_lock, flags);
	kfree(m);
}

bool sb_tree_has(unsigned int bit)
{
	const struct member *m;
	unsigned long flags;
	bool has;

	spin_lock_irqsave(&members_lock, flags);
	m = find(current->tgid);
	has = m && m->bits >> bit & 1;
	spin_unlock_irqrestore(&members_lock, flags);
	return has;
}

/* One pass over all processes: children of members. Forks since are seen by on_fork(). */
static bool take_children(u64 bit)
{
	struct task_struct *p;
	bool more = false;

	rcu_read_lock();
	for_each_process(p)
	{
		const struct member *m;
		unsigned long flags;
		pid_t parent = rcu_dereference(p->real_parent)->tgid;

		spin_lock_irqsave(&members_lock, flags);
		m = find(parent);
		if (m && m->bits & bit && atomic_read(&p->signal->live))
			more |= join(p->tgid, bit);
		spin_unlock_irqrestore(&members_lock, flags);
	}
	rcu_read_unlock();
	return more;
}

int sb_tree_add(pid_t pid, unsigned int bit)
{
	struct pid *root = find_get_pid(pid); /* in the writer's namespace */
	unsigned long flags;

	spin_lock_irqsave(&members_lock, flags);
	WRITE_ONCE(bits_in_use, bits_in_use | 1ull << bit);
	awaited[bit] = root ? 0 : pid;
	if (root)
		join(pid_nr(root), 1ull << bit);
	spin_unlock_irqrestore(&members_lock, flags);
	put_pid(root);
	while (take_children(1ull << bit))
		cond_resched();
	return 0;
}

void sb_tree_remove(unsigned int bit)
{
	struct hlist_node *next;
	struct member *m;
	unsigned long flags;
	int bucket;

	spin_lock_irqsave(&members_lock, flags);
	WRITE_ONCE(bits_in_use, bits_in_use & ~(1ull << bit));
	awaited[bit] = 0;
	hash_for_each_safe(members, bucket, next, m, node)
	{
		m->bits &= ~(1ull << bit);
		if (m->bits)
			continue;
		hash_del(&m->node);
		kfree(m);
	}
	spin_unlock_irqrestore(&members_lock, flags);
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
