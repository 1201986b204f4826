/* SPDX-License-Identifier: GPL-2.0 */
/* The files of /sys/kernel/speed_bump. */
#include <linux/capability.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include "speed_bump.h"

DEFINE_MUTEX(sb_lock);
LIST_HEAD(sb_targets);
bool sb_enabled;
u64 sb_default_delay_ns = 1000000;
atomic64_t sb_total_hits, sb_total_delay_ns;

static struct kobject *dir;

static ssize_t enabled_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(sb_enabled));
}

static ssize_t enabled_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			     size_t count)
{
	int ret, on;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (kstrtoint(buf, 10, &on) || on < 0 || on > 1)
		return -EINVAL;
	mutex_lock(&sb_lock);
	ret = sb_enable(on);
	mutex_unlock(&sb_lock);
	return ret ? ret : count;
}

static ssize_t default_delay_ns_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(sb_default_delay_ns));
}

static ssize_t default_delay_ns_store(struct kobject *kobj, struct kobj_attribute *attr,
				      const char *buf, size_t count)
{
	char text[32];
	u64 ns;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	strscpy(text, buf, sizeof(text));
	ret = sb_parse_delay(strim(text), &ns);
	if (!ret)
		WRITE_ONCE(sb_default_delay_ns, ns);
	return ret ? ret : count;
}

static ssize_t targets_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			     size_t count)
{
	char *text;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (count > SB_MAX_COMMAND)
		return -EINVAL;
	text = kstrndup(buf, count, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	ret = strchr(strim(text), '\n') ? -EINVAL : sb_command(strim(text));
	kfree(text);
	return ret ? ret : count;
}

static ssize_t stats_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const struct sb_target *t;
	size_t n = 0;

	mutex_lock(&sb_lock);
	list_for_each_entry(t, &sb_targets, list) n++;
	mutex_unlock(&sb_lock);
	return sysfs_emit(buf,
			  "enabled: %d\ntargets: %zu\ntotal_hits: %lld\ntotal_delay_ns: %lld\n",
			  READ_ONCE(sb_enabled), n, atomic64_read(&sb_total_hits),
			  atomic64_read(&sb_total_delay_ns));
}

static int line_of(const struct sb_target *t, char *buf, size_t size)
{
	int n = scnprintf(buf, size, "%s delay_ns=%llu hits=%lld", t->name, READ_ONCE(t->delay_ns),
			  atomic64_read(&t->hits));

	if (t->pid)
		n += scnprintf(buf + n, size - n, " pid=%d", t->pid);
	return n + scnprintf(buf + n, size - n, "\n");
}

/* 64 long names exceed the page of an ordinary attribute: so it is a binary file. */
static ssize_t list_read(char *buf, loff_t at, size_t count)
{
	size_t size = SB_MAX_TARGETS * (SB_MAX_PATH + SB_MAX_SYMBOL + 128), n = 0;
	char *text = kvmalloc(size, GFP_KERNEL);
	const struct sb_target *t;
	ssize_t ret;

	if (!text)
		return -ENOMEM;
	mutex_lock(&sb_lock);
	list_for_each_entry(t, &sb_targets, list) n += line_of(t, text + n, size - n);
	mutex_unlock(&sb_lock);
	ret = memory_read_from_buffer(buf, count, &at, text, n);
	kvfree(text);
	return ret;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
static ssize_t targets_list_read(struct file *file, struct kobject *kobj,
				 const struct bin_attribute *attr, char *buf, loff_t at,
				 size_t count)
#else
static ssize_t targets_list_read(struct file *file, struct kobject *kobj,
				 struct bin_attribute *attr, char *buf, loff_t at, size_t count)
#endif
{
	return list_read(buf, at, count);
}

static struct kobj_attribute enabled_file = __ATTR_RW(enabled);
static struct kobj_attribute default_file = __ATTR_RW(default_delay_ns);
static struct kobj_attribute targets_file = __ATTR_WO(targets);
static struct kobj_attribute stats_file = __ATTR_RO(stats);
static struct bin_attribute list_file = {
	.attr = { .name = "targets_list", .mode = 0444 },
	.read = targets_list_read,
};

static const struct attribute *files[] = {
	&enabled_file.attr, &default_file.attr, &targets_file.attr, &stats_file.attr, NULL,
};

static int __init speed_bump_init(void)
{
	int ret = sb_tree_start();

	if (ret)
		return ret;
	dir = kobject_create_and_add("speed_bump", kernel_kobj);
	ret = dir ? sysfs_create_files(dir, files) : -ENOMEM;
	if (!ret)
		ret = sysfs_create_bin_file(dir, &list_file);
	if (!ret)
		return 0;
	kobject_put(dir);
	sb_tree_stop();
	return ret;
}

/* The files first: no process can write any more when the targets are removed. */
static void __exit speed_bump_exit(void)
{
	sysfs_remove_bin_file(dir, &list_file);
	sysfs_remove_files(dir, files);
	kobject_put(dir);
	mutex_lock(&sb_lock);
	WRITE_ONCE(sb_enabled, false);
	sb_clear();
	mutex_unlock(&sb_lock);
	sb_probe_stop();
	sb_tree_stop();
}

module_init(speed_bump_init);
module_exit(speed_bump_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Slows functions of user space by an exact time");
