/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libcuda.so.1 that does nothing but count: names, variants and arguments as the
 * driver has them, of which programs get most through cuGetProcAddress. Each function counts its
 * calls, its bytes where it has some, and the calls that fail; victim_cuda_log() prints all three,
 * and the launches by kernel and what they asked for. What waits for the device sleeps for 300 us.
 * These fail: a launch of blocks above 1024 (1), an allocation of 2^50 bytes (2), a query of an
 * event that is not NULL (600), and one to free address 13 (a code that no header has). What a
 * device would run, victim_cuda_watch hears of, if it is set (victim-cupti.c).
 */
#include <dlfcn.h>
#include <stddef.h>
#include "victim.h"

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

enum { WAIT_NS = 300000 };

/* Its kinds are those of CUPTI's records. */
enum { DEVICE_COPY = 1, DEVICE_MEMSET = 2, DEVICE_KERNEL = 10, DEVICE_PEER = 22 };
void (*victim_cuda_watch)(int kind, uint64_t handle, uint64_t bytes, void *stream,
			  const unsigned shape[7]);

static void watched(int kind, uint64_t handle, uint64_t bytes, void *stream,
		    const unsigned shape[7])
{
	if (victim_cuda_watch)
		victim_cuda_watch(kind, handle, bytes, stream, shape);
}

static struct row {
	const char *name; /* without its version: all of them are one */
	uint64_t calls, bytes, failed;
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

enum { KERNELS = 16, KERNEL_BYTES = 4096 };

/* Launches by handle, which is a multiple of KERNEL_BYTES. */
static uint64_t launches[KERNELS];

/* What launches asked for, as CUlaunchConfig has it; the rest of that is not used here. */
struct shape {
	unsigned grid[3], block[3], shared;
	void *stream;
	void *attributes;
	unsigned n_attributes;
};

enum { SHAPES = 256 };

static struct {
	struct shape shape;
	const void *f;
	uint64_t launches;
} shapes[SHAPES];
static size_t n_shapes;
static bool shapes_busy;

static bool same_shape(const struct shape *a, const struct shape *b)
{
	return !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block)) && a->shared == b->shared &&
	       a->stream == b->stream;
}

static void launch(const void *f, const struct shape *shape)
{
	size_t i = 0;

	__atomic_add_fetch(&launches[(uintptr_t)f / KERNEL_BYTES % KERNELS], 1, __ATOMIC_RELAXED);
	if (shape->block[0] <= 1024)
		watched(DEVICE_KERNEL, (uintptr_t)f, 0, shape->stream,
			(const unsigned *)(const void *)shape);
	while (__atomic_test_and_set(&shapes_busy, __ATOMIC_ACQUIRE))
		;
	while (i < n_shapes && (shapes[i].f != f || !same_shape(&shapes[i].shape, shape)))
		i++;
	if (i < SHAPES) {
		shapes[i].shape = *shape;
		shapes[i].f = f;
		shapes[i].launches++;
		n_shapes += i == n_shapes;
	}
	__atomic_clear(&shapes_busy, __ATOMIC_RELEASE);
}

/* Memory: an address has the number of its allocation, whose size is kept. */
enum { ADDRESS_SHIFT = 20, ALLOCATIONS = 1 << 16 };

static uint64_t sizes[ALLOCATIONS], n_allocations, live_bytes;

static int allocate(CUdeviceptr *p, size_t size)
{
	uint64_t n;

	if (size >> 50)
		return 2;
	n = __atomic_add_fetch(&n_allocations, 1, __ATOMIC_RELAXED) % ALLOCATIONS;
	sizes[n] = size;
	__atomic_add_fetch(&live_bytes, size, __ATOMIC_RELAXED);
	*p = n << ADDRESS_SHIFT;
	return 0;
}

static int give_back(CUdeviceptr p)
{
	uint64_t n = p >> ADDRESS_SHIFT;

	if (p == 13)
		return -77;
	if (n < ALLOCATIONS)
		__atomic_sub_fetch(&live_bytes, __atomic_exchange_n(&sizes[n], 0, __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
	return 0;
}

/* The handle is in the name: "name_3" is 3, and one without a number is not found. */
static int get_function(void **f, const char *name)
{
	const char *number = strrchr(name, '_');

	if (!number || number[1] < '0' || number[1] > '9')
		return 500;
	*f = (void *)(uintptr_t)(strtoul(number + 1, NULL, 10) * KERNEL_BYTES);
	return 0;
}

static void launch_ex(const void *f, const struct shape *config)
{
	static const struct shape none;

	launch(f, config ? config : &none);
}

static void count(struct row *r, uint64_t bytes, CUresult result)
{
	__atomic_add_fetch(&r->failed, result != 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&r->calls, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&r->bytes, bytes, __ATOMIC_RELAXED);
}

/* DRIVER(its name, the name of its row, parameters, bytes, what it does first, what it returns) */
#define DRIVER(symbol, name, parameters, bytes, first, result)       \
	static struct row *row_##symbol;                             \
	__attribute__((constructor)) static void make_##symbol(void) \
	{                                                            \
		row_##symbol = row(name);                            \
	}                                                            \
	CUresult symbol parameters;                                  \
	VICTIM_HOOKED CUresult symbol parameters                     \
	{                                                            \
		first;                                               \
		count(row_##symbol, bytes, result);                  \
		return result;                                       \
	}
#define FUNCTION(symbol, name, parameters, bytes) DRIVER(symbol, name, parameters, bytes, , 0)
#define FAILING(symbol, name, parameters, bytes, result) \
	DRIVER(symbol, name, parameters, bytes, , result)
#define WAITING(symbol, name, parameters) \
	DRIVER(symbol, name, parameters, 0, victim_sleep_ns(WAIT_NS), 0)

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define LAUNCH                                                                                  \
	(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
	 unsigned shared, void *stream, void **params, void **extra)

FUNCTION(cuInit, "cuInit", (unsigned flags), 0)
FUNCTION(cuCtxGetCurrent, "cuCtxGetCurrent", (void **ctx), 0)
#define LAUNCHED \
	launch(f, &(struct shape){ { gx, gy, gz }, { bx, by, bz }, shared, stream, NULL, 0 })
DRIVER(cuLaunchKernel, "cuLaunchKernel", LAUNCH, 0, LAUNCHED, bx > 1024 ? 1 : 0)
DRIVER(cuLaunchKernel_ptsz, "cuLaunchKernel", LAUNCH, 0, LAUNCHED, bx > 1024 ? 1 : 0)
#define LAUNCH_EX (const struct shape *cfg, void *f, void **p, void **x)
DRIVER(cuLaunchKernelEx, "cuLaunchKernelEx", LAUNCH_EX, 0, launch_ex(f, cfg), 0)
DRIVER(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", LAUNCH_EX, 0, launch_ex(f, cfg), 0)
FUNCTION(cuGraphLaunch, "cuGraphLaunch", (void *graph, void *stream), 0)
DRIVER(cuMemAlloc_v2, "cuMemAlloc", (CUdeviceptr * p, size_t size), size,
       int result = allocate(p, size), result)
DRIVER(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr * p, size_t size, void *s), size,
       int result = allocate(p, size), result)
DRIVER(cuMemAllocAsync_ptsz, "cuMemAllocAsync", (CUdeviceptr * p, size_t size, void *s), size,
       int result = allocate(p, size), result)
FUNCTION(cuMemAllocHost_v2, "cuMemAllocHost", (void **p, size_t size), 0)
DRIVER(cuMemFree_v2, "cuMemFree", (CUdeviceptr p), 0, int result = give_back(p), result)
#define COPIED(kind, how, stream) watched(kind, how, n, stream, NULL)
DRIVER(cuMemcpyHtoD_v2, "cuMemcpyHtoD", (CUdeviceptr d, const void *s, size_t n), n,
       COPIED(DEVICE_COPY, 1, NULL), 0)
DRIVER(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", (CUdeviceptr d, const void *s, size_t n), n,
       COPIED(DEVICE_COPY, 1, NULL), 0)
DRIVER(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", (void *d, CUdeviceptr s, size_t n, void *st), n,
       COPIED(DEVICE_COPY, 2, st), 0)
DRIVER(cuMemcpyPeer, "cuMemcpyPeer", (CUdeviceptr d, void *dc, CUdeviceptr s, void *sc, size_t n),
       n, COPIED(DEVICE_PEER, 10, NULL), 0)
FUNCTION(cuMemcpy2D_v2, "cuMemcpy2D", (const void *copy), 0)
DRIVER(cuMemsetD32_v2, "cuMemsetD32", (CUdeviceptr d, unsigned v, size_t n), 0,
       watched(DEVICE_MEMSET, 0, 4 * n, NULL, NULL), 0)
FAILING(cuEventQuery, "cuEventQuery", (void *event), 0, event ? 600 : 0)
FUNCTION(cuEventRecord, "cuEventRecord", (void *event, void *stream), 0)
DRIVER(cuModuleGetFunction, "cuModuleGetFunction", (void **f, void *m, const char *name), 0,
       int result = get_function(f, name), result)
DRIVER(cuLibraryGetKernel, "cuLibraryGetKernel", (void **f, void *l, const char *name), 0,
       int result = get_function(f, name), result)
DRIVER(cuKernelGetFunction, "cuKernelGetFunction", (void **f, void *k), 0,
       *f = (char *)k + KERNEL_BYTES, 0)
FUNCTION(cuCtxCreate_v4, "cuCtxCreate", (void **ctx, void *with, unsigned flags, int device), 0)
FUNCTION(cuCtxDestroy_v2, "cuCtxDestroy", (void *ctx), 0)
FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **ctx, int device), 0)
FUNCTION(cuModuleUnload, "cuModuleUnload", (void *m), 0)
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
	count(r, 0, 0);
	*f = find(name, flags);
	return *f ? 0 : 500;
}

void victim_cuda_log(void)
{
	for (unsigned int i = 0; i < KERNELS; i++)
		printf("launches 0x%x %llu\n", i * KERNEL_BYTES, (unsigned long long)launches[i]);
	printf("live %llu\n", (unsigned long long)live_bytes);
	for (size_t i = 0; i < n_shapes; i++) {
		const struct shape *s = &shapes[i].shape;

		printf("shape %p %u,%u,%u %u,%u,%u %u %p %llu\n", shapes[i].f, s->grid[0],
		       s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->shared,
		       s->stream, (unsigned long long)shapes[i].launches);
	}
	for (size_t i = 0; rows[i].name; i++) {
		victim_calls(rows[i].name, rows[i].calls);
		printf("bytes %s %llu\n", rows[i].name, (unsigned long long)rows[i].bytes);
		printf("failed %s %llu\n", rows[i].name, (unsigned long long)rows[i].failed);
	}
}
