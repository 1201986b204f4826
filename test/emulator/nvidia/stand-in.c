// SPDX-License-Identifier: GPL-2.0
/*
 * Stands for the driver of NVIDIA in tests: its device, and functions of the names that the open
 * driver has. An ioctl allocates as much as its number says over 200, hands work to a thread, and
 * waits for one interrupt, whose handler wakes a thread that signals a fence.
 */
#include <linux/completion.h>
#include <linux/dma-fence.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "stand-in.h"

int os_alloc_mem(void **address, u64 size);
int nv_kthread_q_schedule_q_item(void *queue, struct work_struct *item);
long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
irqreturn_t nvidia_isr_kthread_bh(int irq, void *arg);

noinline int os_alloc_mem(void **address, u64 size)
{
	*address = kmalloc(size, GFP_KERNEL);
	return *address ? 0 : 0x51;
}

static void work(struct work_struct *item)
{
}

static DECLARE_WORK(item, work);

noinline int nv_kthread_q_schedule_q_item(void *queue, struct work_struct *work)
{
	return schedule_work(work);
}

static noinline void nv_kthread_q_flush(void)
{
	barrier();
}

/* ---- the interrupt ---- */

static DEFINE_MUTEX(one_at_a_time);
static DECLARE_COMPLETION(handled);
static DEFINE_SPINLOCK(fence_lock);
static struct dma_fence *fence;
static int irq;

static const char *fence_name(struct dma_fence *of)
{
	return "nvidia";
}

static const struct dma_fence_ops fence_operations = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

noinline irqreturn_t nvidia_isr_kthread_bh(int number, void *arg)
{
	nv_kthread_q_schedule_q_item(NULL, &item);
	if (fence)
		dma_fence_signal(fence);
	complete(&handled);
	return IRQ_HANDLED;
}

static irqreturn_t nvidia_isr(int number, void *arg)
{
	return IRQ_WAKE_THREAD;
}

static void interrupt_once(void)
{
	struct dma_fence *made = kzalloc(sizeof(*made), GFP_KERNEL);

	if (!made)
		return;
	dma_fence_init(made, &fence_operations, &fence_lock, 1, 1);
	mutex_lock(&one_at_a_time);
	fence = made;
	generic_handle_irq_safe(irq);
	wait_for_completion(&handled);
	fence = NULL;
	mutex_unlock(&one_at_a_time);
	dma_fence_put(made);
}

static int interrupt_open(void)
{
	/* Without an owner, which would hold the module. */
	irq = __irq_alloc_descs(-1, 0, 1, NUMA_NO_NODE, NULL, NULL);
	if (irq < 0)
		return irq;
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
	return request_threaded_irq(irq, nvidia_isr, nvidia_isr_kthread_bh, 0, "nvidia", &irq);
}

static void interrupt_close(void)
{
	free_irq(irq, &irq);
	irq_free_desc(irq);
}

/* ---- the device ---- */

/* Odd numbers fail as a driver of another version does. */
noinline long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	unsigned int number = _IOC_NR(cmd);
	void *memory;

	if (_IOC_TYPE(cmd) != 'F' || number < 200)
		return -ENOTTY;
	if (os_alloc_mem(&memory, number - 200 + 1))
		return -ENOMEM;
	kfree(memory);
	nv_kthread_q_schedule_q_item(NULL, &item);
	nv_kthread_q_flush();
	uvm_enter();
	interrupt_once();
	return number % 2 ? -EINVAL : 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nvidiactl",
	.fops = &operations,
};

static int __init stand_in_begin(void)
{
	int ret = interrupt_open();

	return ret < 0 ? ret : misc_register(&device);
}

static void __exit stand_in_end(void)
{
	misc_deregister(&device);
	interrupt_close();
}

module_init(stand_in_begin);
module_exit(stand_in_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stands for a driver in tests");
