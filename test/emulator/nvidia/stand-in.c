// SPDX-License-Identifier: GPL-2.0
/*
 * Stands for the driver of NVIDIA in tests: its device, and functions of the names that the open
 * driver has. An ioctl allocates as much as its number says over 200, and hands work to a thread.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

int os_alloc_mem(void **address, u64 size);
int nv_kthread_q_schedule_q_item(void *queue, struct work_struct *item);
long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

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

module_misc_device(device);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stands for a driver in tests");
