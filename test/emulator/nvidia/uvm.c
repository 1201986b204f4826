// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include "stand-in.h"

int uvm_api_register_gpu(int gpu);
int uvm_api_migrate(int gpu);

noinline int uvm_api_register_gpu(int gpu)
{
	barrier();
	return gpu;
}

noinline int uvm_api_migrate(int gpu)
{
	barrier();
	return gpu + 1;
}

static noinline void nv_kthread_q_flush(void)
{
	barrier();
}

void uvm_enter(void)
{
	nv_kthread_q_flush();
	if (uvm_api_migrate(uvm_api_register_gpu(0)) != 1)
		nv_kthread_q_flush();
}
