/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libcudart.so.13 that does nothing but refuse launches without blocks.
 */
#include <stddef.h>
#include "victim.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int cudaError_t;

struct dim3 {
	unsigned x, y, z;
};

struct config {
	struct dim3 grid, block;
	size_t shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

VICTIM_HOOKED cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid,
					   struct dim3 block, void **args, size_t shared,
					   void *stream)
{
	VICTIM_OPAQUE(function);
	return grid.x && block.x && !args && !shared && !stream ? 0 : 9;
}

VICTIM_HOOKED cudaError_t cudaLaunchKernelExC(const struct config *config, const void *function,
					      void **args)
{
	VICTIM_OPAQUE(function);
	return config->grid.x && config->block.x && !args ? 0 : 9;
}

/* The handle of a kernel that a program has asked for by its name. */
VICTIM_HOOKED cudaError_t cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
	VICTIM_OPAQUE(name);
	*kernel = library;
	return library ? 0 : 500;
}
