/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_UPROBE_IOCTL_BPF_H
#define SB_UPROBE_IOCTL_BPF_H

/*
 * The calls of ioctl() on devices of a name, for kernel.bpf.c. The call is seen where the kernel
 * enters and leaves it: at the function of the system call, or at the tracepoints of all system
 * calls. What is written of it says which request it was: its number, and what is in the memory
 * behind it, which is read at the end, when the driver has written the status there.
 *
 * The numbers, and the places in the memory, are those of the headers of NVIDIA's open driver. The
 * memory is the program's: what it has there may be anything.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
};
struct path {
	struct dentry *dentry;
};
struct inode {
	unsigned short i_mode;
};
struct file {
	struct path f_path;
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct task_struct___open {
	struct files_struct *files;
};
#pragma clang attribute pop

#define MODE_TYPE   0170000
#define MODE_DEVICE 0020000 /* a character device */

/* Of a call in progress, behind what is written of it. */
#define AT_ARGUMENT KERNEL_IOCTL_VALUES

#define MAGIC(CMD)  ((CMD) >> 8 & 0xff)
#define NUMBER(CMD) ((CMD)&0xff)
#define SIZE(CMD)   ((CMD) >> 16 & 0x3fff)

#define RM_FREE	   0x29
#define RM_CONTROL 0x2a
#define RM_ALLOC   0x2b
#define TRANSFER   211 /* hands on another request, with its size and place */

/* Sizes of their structures. Another size is another driver's, which nothing is known of. */
#define CONTROL_SIZE	32
#define FREE_SIZE	16
#define ALLOC_SIZE	32
#define ALLOC_LONG_SIZE 48 /* with rights, in front of the status */

struct transfer {
	__u32 number, size;
	__u64 at;
};

/* ---- which device ---- */

static __always_inline bool is_named(const char *name)
{
#pragma unroll
	for (__u32 i = 0; i < KERNEL_DEVICE; i++) {
		if (i < setting.device_len && name[i] != (char)setting.device[i])
			return false;
	}
	return !setting.device_whole || !name[setting.device_len % KERNEL_DEVICE];
}

/* The name of the device behind a descriptor, 16 bytes. False: it is not one of those. */
static __always_inline bool device_of(__u32 fd, char name[KERNEL_DEVICE])
{
	const struct task_struct___open *task = (const void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slot = BPF_CORE_READ(table, fd), *file = 0;
	struct dentry *dentry;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return false;
	bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE) != MODE_DEVICE)
		return false;
	dentry = BPF_CORE_READ(file, f_path.dentry);
	bpf_probe_read_kernel_str(name, KERNEL_DEVICE, BPF_CORE_READ(dentry, d_name.name));
	return is_named(name);
}

/* ---- what was asked for ---- */

static __always_inline __u64 user_word(__u64 at)
{
	__u32 value;

	return bpf_probe_read_user(&value, sizeof(value), (const void *)at) ? KERNEL_UNKNOWN :
									      value;
}

/* Of requests of the resource manager: what they ask for, and their status. */
static __always_inline void read_request(__u64 *value, __u64 number, __u32 size, __u64 at)
{
	if (number == RM_FREE && size == FREE_SIZE) {
		value[KERNEL_IOCTL_STATUS] = user_word(at + 12);
	} else if (number == RM_CONTROL && size == CONTROL_SIZE) {
		value[KERNEL_IOCTL_DETAIL] = user_word(at + 8);
		value[KERNEL_IOCTL_STATUS] = user_word(at + 28);
	} else if (number == RM_ALLOC && (size == ALLOC_SIZE || size == ALLOC_LONG_SIZE)) {
		value[KERNEL_IOCTL_DETAIL] = user_word(at + 12);
		value[KERNEL_IOCTL_STATUS] = user_word(at + (size == ALLOC_SIZE ? 28 : 40));
	}
}

static __always_inline void decode(struct call *call)
{
	__u64 *value = call->value, at = value[AT_ARGUMENT];
	__u32 cmd = (__u32)value[KERNEL_IOCTL_CMD], size = SIZE(cmd);
	struct transfer inner;

	value[KERNEL_IOCTL_NUMBER] = cmd;
	value[KERNEL_IOCTL_DETAIL] = value[KERNEL_IOCTL_STATUS] = KERNEL_UNKNOWN;
	if (MAGIC(cmd) != 'F')
		return;
	value[KERNEL_IOCTL_NUMBER] = NUMBER(cmd);
	if (NUMBER(cmd) == TRANSFER &&
	    !bpf_probe_read_user(&inner, sizeof(inner), (const void *)at)) {
		value[KERNEL_IOCTL_NUMBER] = inner.number;
		size = inner.size;
		at = inner.at;
	}
	read_request(value, value[KERNEL_IOCTL_NUMBER], size, at);
}

/* ---- begin and end ---- */

static __always_inline void ioctl_begins(const struct pt_regs *regs)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	char name[KERNEL_DEVICE] = {};
	__u64 fd = 0, cmd = 0, at = 0;
	struct calls *c;
	struct call *call;

	if (!is_concerned())
		return;
	bpf_probe_read_kernel(&fd, sizeof(fd), &PT_REGS_PARM1(regs));
	if (!device_of((__u32)fd, name) || !begins() || !setting.timed)
		return;
	c = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c)
		return;
	bpf_probe_read_kernel(&cmd, sizeof(cmd), &PT_REGS_PARM2(regs));
	bpf_probe_read_kernel(&at, sizeof(at), &PT_REGS_PARM3(regs));
	c->depth = 1;
	call = &c->call[0];
	call->value[KERNEL_IOCTL_CMD] = (__u32)cmd;
	call->value[AT_ARGUMENT] = at;
	__builtin_memcpy(&call->value[KERNEL_IOCTL_DEVICE], name, sizeof(name));
	stamp(call);
}

static __always_inline void ioctl_ends(__u64 now, __u64 result)
{
	struct call *call = pop();

	if (!call)
		return;
	now -= call->start;
	decode(call);
	call->value[KERNEL_IOCTL_RESULT] = result;
	ended(call, now, OF_CURRENT, 0);
}

SEC("fentry")
int ifenter(__u64 *ctx)
{
	__u64 regs = 0;

	bpf_get_func_arg(ctx, 0, &regs);
	ioctl_begins((const struct pt_regs *)regs);
	return 0;
}

SEC("fexit")
int ifleave(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns(), raw = 0;

	bpf_get_func_ret(ctx, &raw);
	ioctl_ends(now, raw);
	return 0;
}

SEC("kprobe")
int ikenter(struct pt_regs *regs)
{
	ioctl_begins((const struct pt_regs *)PT_REGS_PARM1(regs));
	return 0;
}

SEC("kretprobe")
int ikleave(struct pt_regs *regs)
{
	ioctl_ends(bpf_ktime_get_ns(), PT_REGS_RC(regs));
	return 0;
}

/* Of every system call: what it is comes first. */
SEC("raw_tp")
int ipenter(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[1] == setting.call)
		ioctl_begins((const struct pt_regs *)ctx->args[0]);
	return 0;
}

SEC("raw_tp")
int ipleave(struct bpf_raw_tracepoint_args *ctx)
{
	ioctl_ends(bpf_ktime_get_ns(), ctx->args[1]);
	return 0;
}

#endif
