/* SPDX-License-Identifier: MIT */
/*
 * cuda [-t THREADS] [-n ROUNDS] [-u NS] [-r] [-g GATE] LIBRARY: a program that uses a CUDA driver
 * as frameworks do: LIBRARY (victim-cuda.c) is opened with dlopen(), and all functions come from
 * cuGetProcAddress. Each thread asks for another variant of them. A round launches three kernels,
 * copies and allocates, and waits once; -r adds a copy of a rectangle. Without -n it works until
 * SIGTERM, with -u it sleeps for so long after each round. At the end it prints the library's own
 * log, and the ns that it measured around the waits as `took sync NS`.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stddef.h>
#include "victim.h"

typedef int get_fn(const char *name, void **f, int version, uint64_t flags, int *status);

struct functions {
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*launch_ex)(const void *, void *, void **, void **);
	int (*graph)(void *, void *);
	int (*alloc)(unsigned long long *, size_t);
	int (*alloc_async)(unsigned long long *, size_t, void *);
	int (*alloc_host)(void **, size_t);
	int (*free)(unsigned long long);
	int (*to_device)(unsigned long long, const void *, size_t);
	int (*to_host)(void *, unsigned long long, size_t, void *);
	int (*peer)(unsigned long long, void *, unsigned long long, void *, size_t);
	int (*rectangle)(const void *);
	int (*set)(unsigned long long, unsigned, size_t);
	int (*event)(void *, void *);
	int (*current)(void **);
	int (*sync)(void *);
	int (*sync_all)(void);
};

static const struct name {
	const char *name;
	size_t at;
} names[] = {
	{ "cuLaunchKernel", offsetof(struct functions, launch) },
	{ "cuLaunchKernelEx", offsetof(struct functions, launch_ex) },
	{ "cuGraphLaunch", offsetof(struct functions, graph) },
	{ "cuMemAlloc", offsetof(struct functions, alloc) },
	{ "cuMemAllocAsync", offsetof(struct functions, alloc_async) },
	{ "cuMemAllocHost", offsetof(struct functions, alloc_host) },
	{ "cuMemFree", offsetof(struct functions, free) },
	{ "cuMemcpyHtoD", offsetof(struct functions, to_device) },
	{ "cuMemcpyDtoHAsync", offsetof(struct functions, to_host) },
	{ "cuMemcpyPeer", offsetof(struct functions, peer) },
	{ "cuMemcpy2D", offsetof(struct functions, rectangle) },
	{ "cuMemsetD32", offsetof(struct functions, set) },
	{ "cuEventRecord", offsetof(struct functions, event) },
	{ "cuCtxGetCurrent", offsetof(struct functions, current) },
	{ "cuStreamSynchronize", offsetof(struct functions, sync) },
	{ "cuCtxSynchronize", offsetof(struct functions, sync_all) },
};

static struct {
	int threads;
	uint64_t rounds, pause_ns;
	bool rectangles;
	const char *gate;
	get_fn *get;
	int (*init)(unsigned);
} all = { .threads = 1, .rounds = UINT64_MAX };

static uint64_t sync_ns;

static bool get_all(struct functions *f, uint64_t flags)
{
	bool ok = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ok &= all.get(names[i].name, (void **)(void *)((char *)f + names[i].at), 13000,
			      flags, NULL) == 0;
	return ok;
}

static int wait_for_device(const struct functions *f, uint64_t round)
{
	uint64_t from = victim_now_ns();
	int bad = round % 2 ? f->sync(NULL) : f->sync_all();

	__atomic_add_fetch(&sync_ns, victim_now_ns() - from, __ATOMIC_RELAXED);
	return bad;
}

static int one_round(const struct functions *f, uint64_t round)
{
	unsigned long long p = 0x7f0000000000;
	void *host;
	int bad;

	bad = f->launch(NULL, 80, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
	bad |= f->launch(NULL, 40, 2, 1, 128, 1, 1, 0, NULL, NULL, NULL);
	bad |= f->launch_ex(NULL, NULL, NULL, NULL);
	bad |= f->graph(NULL, NULL);
	bad |= f->alloc(&p, 4096 + round);
	bad |= f->alloc_async(&p, 1 << 20, NULL);
	bad |= f->alloc_host(&host, 512);
	bad |= f->to_device(p, &p, 1000 + round % 7);
	bad |= f->to_host(&p, p, 333, NULL);
	bad |= f->peer(p, NULL, p, NULL, 5000000000);
	if (all.rectangles)
		bad |= f->rectangle(NULL);
	bad |= f->set(p, 1, 2);
	bad |= f->event(NULL, NULL);
	bad |= f->current(&host);
	bad |= f->free(p);
	return bad | wait_for_device(f, round);
}

static void *work(void *arg)
{
	struct functions f = { 0 };
	intptr_t bad = !get_all(&f, (uintptr_t)arg % 2 ? 2 : 1);

	victim_gate(all.gate);
	for (uint64_t i = 0; i < all.rounds && !victim_stop && !bad; i++) {
		bad |= one_round(&f, i);
		if (all.pause_ns)
			victim_sleep_ns(all.pause_ns);
	}
	return (void *)bad;
}

static bool open_library(const char *path, void (**log)(void))
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	all.get = (get_fn *)dlsym(lib, "cuGetProcAddress_v2");
	*log = (void (*)(void))dlsym(lib, "victim_cuda_log");
	return all.get && *log &&
	       all.get("cuInit", (void **)(void *)&all.init, 13000, 0, NULL) == 0;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	void (*log)(void);
	bool ok;

	for (int c; (c = getopt(argc, argv, "t:n:u:rg:")) >= 0;) {
		if (c == 't')
			all.threads = atoi(optarg);
		else if (c == 'n')
			all.rounds = strtoull(optarg, NULL, 10);
		else if (c == 'u')
			all.pause_ns = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			all.rectangles = true;
		else if (c == 'g')
			all.gate = optarg;
	}
	victim_catch_term();
	if (optind >= argc || all.threads > 64 || !open_library(argv[optind], &log))
		return 2;
	ok = all.init(0) == 0;
	for (int i = 0; i < all.threads; i++)
		pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i);
	victim_ready();
	for (int i = 0; i < all.threads; i++) {
		void *bad;

		pthread_join(thread[i], &bad);
		ok &= !bad;
	}
	log();
	printf("took sync %llu\n", (unsigned long long)sync_ns);
	return victim_done(ok);
}
