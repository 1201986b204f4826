/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libcuda.so.1 that does nothing but count: names, variants and arguments as the
 * driver has them, of which programs get most through cuGetProcAddress. Each function counts its
 * calls, and its bytes where it has some; victim_cuda_log() prints both. What waits for the device
 * sleeps for 300 us.
 */
#include <dlfcn.h>
#include <stddef.h>
#include "victim.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

enum { WAIT_NS = 300000 };

static struct row {
	const char *name; /* without its version: all of them are one */
	uint64_t calls, bytes;
} rows[32];

/* Rows are made by the constructor alone, so that counting needs no lock. */
static struct row *row(const char *name)
{
	size_t i = 0;

	while (rows[i].name && strcmp(rows[i].name, name) != 0)
		i++;
	rows[i].name = name;
	return &rows[i];
}

static void count(struct row *r, uint64_t bytes)
{
	__atomic_add_fetch(&r->calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&r->bytes, bytes, __ATOMIC_RELAXED);
}

/* DRIVER(its name, the name of its row, parameters, bytes, what it does before it counts) */
#define DRIVER(symbol, name, parameters, bytes, first)               \
	static struct row *row_##symbol;                             \
	__attribute__((constructor)) static void make_##symbol(void) \
	{                                                            \
		row_##symbol = row(name);                            \
	}                                                            \
	CUresult symbol parameters;                                  \
	VICTIM_HOOKED CUresult symbol parameters                     \
	{                                                            \
		first;                                               \
		count(row_##symbol, bytes);                          \
		return 0;                                            \
	}
#define FUNCTION(symbol, name, parameters, bytes) DRIVER(symbol, name, parameters, bytes, )
#define WAITING(symbol, name, parameters) \
	DRIVER(symbol, name, parameters, 0, victim_sleep_ns(WAIT_NS))

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define LAUNCH                                                                                  \
	(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
	 unsigned shared, void *stream, void **params, void **extra)

FUNCTION(cuInit, "cuInit", (unsigned flags), 0)
FUNCTION(cuCtxGetCurrent, "cuCtxGetCurrent", (void **ctx), 0)
FUNCTION(cuLaunchKernel, "cuLaunchKernel", LAUNCH, 0)
FUNCTION(cuLaunchKernel_ptsz, "cuLaunchKernel", LAUNCH, 0)
FUNCTION(cuLaunchKernelEx, "cuLaunchKernelEx", (const void *cfg, void *f, void **p, void **x), 0)
FUNCTION(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", (const void *cfg, void *f, void **p, void **x),
	 0)
FUNCTION(cuGraphLaunch, "cuGraphLaunch", (void *graph, void *stream), 0)
FUNCTION(cuMemAlloc_v2, "cuMemAlloc", (CUdeviceptr * p, size_t size), size)
FUNCTION(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr * p, size_t size, void *s), size)
FUNCTION(cuMemAllocAsync_ptsz, "cuMemAllocAsync", (CUdeviceptr * p, size_t size, void *s), size)
FUNCTION(cuMemAllocHost_v2, "cuMemAllocHost", (void **p, size_t size), 0)
FUNCTION(cuMemFree_v2, "cuMemFree", (CUdeviceptr p), 0)
FUNCTION(cuMemcpyHtoD_v2, "cuMemcpyHtoD", (CUdeviceptr d, const void *s, size_t n), n)
FUNCTION(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", (CUdeviceptr d, const void *s, size_t n), n)
FUNCTION(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", (void *d, CUdeviceptr s, size_t n, void *st), n)
FUNCTION(cuMemcpyPeer, "cuMemcpyPeer", (CUdeviceptr d, void *dc, CUdeviceptr s, void *sc, size_t n),
	 n)
FUNCTION(cuMemcpy2D_v2, "cuMemcpy2D", (const void *copy), 0)
FUNCTION(cuMemsetD32_v2, "cuMemsetD32", (CUdeviceptr d, unsigned v, size_t n), 0)
FUNCTION(cuEventRecord, "cuEventRecord", (void *event, void *stream), 0)
FUNCTION(cuModuleGetFunction, "cuModuleGetFunction", (void **f, void *m, const char *name), 0)
WAITING(cuStreamSynchronize, "cuStreamSynchronize", (void *stream))
WAITING(cuStreamSynchronize_ptsz, "cuStreamSynchronize", (void *stream))
WAITING(cuCtxSynchronize, "cuCtxSynchronize", (void))

/* As the driver's: NAME stands for its newest version, and flags 2 ask for _ptsz and _ptds. */
static void *find(const char *name, uint64_t flags)
{
	static const char *const own[] = { "_v2_ptds", "_ptsz", "_ptds" };
	static const char *const plain[] = { "_v2", "" };
	char symbol[128];
	void *found = NULL;

	for (size_t i = 0; i < 3 && flags & 2 && !found; i++) {
		snprintf(symbol, sizeof(symbol), "%s%s", name, own[i]);
		found = dlsym(RTLD_DEFAULT, symbol);
	}
	for (size_t i = 0; i < 2 && !found; i++) {
		snprintf(symbol, sizeof(symbol), "%s%s", name, plain[i]);
		found = dlsym(RTLD_DEFAULT, symbol);
	}
	return found;
}

CUresult cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status)
{
	static struct row *r;

	if (!r)
		r = row("cuGetProcAddress");
	count(r, 0);
	*f = find(name, flags);
	return *f ? 0 : 500;
}

void victim_cuda_log(void)
{
	for (size_t i = 0; rows[i].name; i++) {
		victim_calls(rows[i].name, rows[i].calls);
		printf("bytes %s %llu\n", rows[i].name, (unsigned long long)rows[i].bytes);
	}
}
