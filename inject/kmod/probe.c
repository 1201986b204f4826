/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes, and what is done at a hit. The spin is in the context of the thread that made the call:
 * it can be killed and preempted, and leaves when its target goes or changes.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include "speed_bump.h"

static bool must_leave(const struct sb_target *t)
{
	return READ_ONCE(t->gone) || !READ_ONCE(sb_enabled) || fatal_signal_pending(current);
}

static void spin(struct sb_target *t)
{
	u64 start = ktime_get_ns(), spent = 0;

	/* The delay is read again: a change is for those who wait too. */
	while (spent < READ_ONCE(t->delay_ns) && !must_leave(t)) {
		cpu_relax();
		cond_resched();
		spent = ktime_get_ns() - start;
	}
	atomic64_add(spent, &sb_total_delay_ns);
}

static int on_hit(struct sb_target *t)
{
	if (must_leave(t) || (t->pid && !sb_tree_has(t->bit)))
		return 0;
	atomic64_inc(&t->hits);
	atomic64_inc(&sb_total_hits);
	if (READ_ONCE(t->delay_ns))
		spin(t);
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

/* Until 6.11 a probe is named by inode and offset, and taking it out waits. */
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
	/* What uprobes cannot take is malformed for whoever asked. */
	return ret && ret != -ENOMEM ? -EINVAL : ret;
}

void sb_unprobe(struct sb_target *t)
{
	if (t->probed)
		take_out(t);
	t->probed = false;
}
