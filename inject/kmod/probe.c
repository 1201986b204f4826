/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes, and the work at a hit. The spin runs in the context of the thread that made the call: it
 * can be killed and preempted, and ends when its target is removed or changes.
 *
 * It does not run in the probe's handler: that is a read section of the kernel, and the removal of
 * any uprobe, of any program and any tool, waits for it (up to 6.11: of this place). So a hit
 * leaves the spin as task work for the thread's return to user space, which follows directly. The
 * work holds its target; `waiting` counts the works that are not done, and the module stays until
 * then.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait_bit.h>
#include "speed_bump.h"

struct delay {
	struct callback_head work;
	struct sb_target *target;
};

static atomic_t waiting;

static bool must_leave(const struct sb_target *t)
{
	return READ_ONCE(t->gone) || !READ_ONCE(sb_enabled) || fatal_signal_pending(current);
}

static void spin(struct sb_target *t)
{
	u64 start = ktime_get_ns(), spent = 0;

	/* The delay is read again: a change applies to spins in progress too. */
	while (spent < READ_ONCE(t->delay_ns) && !must_leave(t)) {
		cpu_relax();
		cond_resched();
		spent = ktime_get_ns() - start;
	}
	atomic64_add(spent, &sb_total_delay_ns);
}

static void waited(struct delay *d)
{
	sb_target_put(d->target);
	kfree(d);
	if (atomic_dec_and_test(&waiting))
		wake_up_var(&waiting);
}

static void spin_now(struct callback_head *work)
{
	struct delay *d = container_of(work, struct delay, work);

	spin(d->target);
	waited(d);
}

/* Without memory, or where the thread ends, the delay is spent in the handler all the same. */
static void spin_outside(struct sb_target *t)
{
	struct delay *d = kmalloc(sizeof(*d), GFP_KERNEL);

	if (!d) {
		spin(t);
		return;
	}
	refcount_inc(&t->refs);
	atomic_inc(&waiting);
	d->target = t;
	init_task_work(&d->work, spin_now);
	if (task_work_add(current, &d->work, TWA_RESUME))
		spin_now(&d->work);
}

static int on_hit(struct sb_target *t)
{
	if (must_leave(t) || (t->pid && !sb_tree_has(t->bit)))
		return 0;
	atomic64_inc(&t->hits);
	atomic64_inc(&sb_total_hits);
	if (READ_ONCE(t->delay_ns))
		spin_outside(t);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
static int handler(struct uprobe_consumer *self, struct pt_regs *regs, __u64 *data)
#else
static int handler(struct uprobe_consumer *self, struct pt_regs *regs)
#endif
{
	return on_hit(container_of(self, struct sb_target, consumer));
}

/* Until 6.11 a probe is named by inode and offset, and its removal waits. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static int put_in(struct sb_target *t)
{
	t->uprobe = uprobe_register(d_inode(t->path.dentry), t->offset, 0, &t->consumer);
	return PTR_ERR_OR_ZERO(t->uprobe);
}

static void take_out(struct sb_target *t)
{
	uprobe_unregister_nosync(t->uprobe, &t->consumer);
	uprobe_unregister_sync();
}
#else
static int put_in(struct sb_target *t)
{
	return uprobe_register(d_inode(t->path.dentry), t->offset, &t->consumer);
}

static void take_out(struct sb_target *t)
{
	uprobe_unregister(d_inode(t->path.dentry), t->offset, &t->consumer);
}
#endif

int sb_probe(struct sb_target *t)
{
	int ret;

	if (t->probed)
		return 0;
	t->consumer.handler = handler;
	ret = put_in(t);
	t->probed = !ret;
	/* An unsuitable place for uprobes is a malformed command to the writer. */
	return ret && ret != -ENOMEM ? -EINVAL : ret;
}

void sb_unprobe(struct sb_target *t)
{
	if (t->probed)
		take_out(t);
	t->probed = false;
}

/*
 * All targets are marked as gone. A thread that has decremented `waiting` may still be in its last
 * instructions here: these are over when every task has been scheduled once.
 */
void sb_probe_stop(void)
{
	wait_var_event(&waiting, !atomic_read(&waiting));
	synchronize_rcu_tasks();
}
