/* SPDX-License-Identifier: MIT */
/*
 * launches [-t THREADS] [-l LAUNCHES] [-w NS] [-n ROUNDS] [-g GATE]: a program of the CUDA runtime. In
 * each round a thread copies to the device, launches LAUNCHES kernels of two names that each work for
 * NS on the device, copies back and waits; in each sixteenth round it allocates and frees. It begins
 * when the file GATE exists and ends after ROUNDS rounds, or at SIGTERM. Prints what it did, with the
 * time of a round by its own clock; a line `rate NS` for each half second.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>

enum { BYTES = 64 << 10, BLOCKS = 8, THREADS = 128 };

static volatile sig_atomic_t over;
static int launches = 20, threads = 1;
static long rounds = -1;
static long long work_ns;
static const char *gate;

struct worker {
	pthread_t thread;
	unsigned long long launches, transfers, bytes, allocations, syncs, rounds;
};

static void check(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return;
	fprintf(stderr, "launches: %s: %s\n", what, cudaGetErrorString(err));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static __device__ void work(long long ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while ((long long)(now - begin) < ns);
}

extern "C" __global__ void add_one(float *data, long long ns)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
	if (ns)
		work(ns);
}

template <typename T> __global__ void scale(T *data, T by, long long ns)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] *= by;
	if (ns)
		work(ns);
}

/* What a sweep counts as progress. */
extern "C" __attribute__((noinline)) void round_done(struct worker *w)
{
	w->rounds++;
	asm volatile("" : : "r"(w) : "memory");
}

static void one_round(struct worker *w, cudaStream_t stream, float *host, float *device)
{
	check(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream), "copy");
	for (int i = 0; i < launches; i++)
		if (i % 2)
			scale<float><<<BLOCKS, THREADS, 0, stream>>>(device, 0.5f, work_ns);
		else
			add_one<<<BLOCKS, THREADS, 0, stream>>>(device, work_ns);
	check(cudaGetLastError(), "launch");
	check(cudaMemcpyAsync(host, device, BYTES, cudaMemcpyDeviceToHost, stream), "copy back");
	check(cudaStreamSynchronize(stream), "wait");
	w->launches += launches;
	w->transfers += 2;
	w->bytes += 2 * BYTES;
	w->syncs++;
	if (w->rounds % 16 == 0) {
		void *more;

		check(cudaMalloc(&more, 1 << 20), "allocate");
		check(cudaFree(more), "free");
		w->allocations++;
	}
	round_done(w);
}

static void *worker_run(void *arg)
{
	struct worker *w = (struct worker *)arg, warm = {};
	cudaStream_t stream;
	float *host, *device;

	check(cudaStreamCreate(&stream), "stream");
	check(cudaMallocHost(&host, BYTES), "host memory");
	check(cudaMalloc(&device, BYTES), "memory");
	for (int i = 0; i < 64; i++)
		one_round(&warm, stream, host, device);
	while (gate && access(gate, F_OK) != 0 && !over)
		usleep(1000);
	while (!over && (rounds < 0 || w->rounds < (unsigned long long)rounds))
		one_round(w, stream, host, device);
	return NULL;
}

static void *rate_run(void *arg)
{
	struct worker *w = (struct worker *)arg;

	while (!over) {
		uint64_t begin = now_ns(), had = __atomic_load_n(&w->rounds, __ATOMIC_RELAXED), had_now;

		usleep(500000);
		had_now = __atomic_load_n(&w->rounds, __ATOMIC_RELAXED);
		if (had_now > had)
			printf("rate %llu\n", (unsigned long long)((now_ns() - begin) / (had_now - had)));
		fflush(stdout);
	}
	return NULL;
}

static void stop(int sig)
{
	(void)sig;
	over = 1;
}

int main(int argc, char **argv)
{
	struct worker *w;
	pthread_t rate;
	int opt;

	while ((opt = getopt(argc, argv, "t:l:w:n:g:")) != -1) {
		switch (opt) {
		case 't': threads = atoi(optarg); break;
		case 'l': launches = atoi(optarg); break;
		case 'w': work_ns = atoll(optarg); break;
		case 'n': rounds = atol(optarg); break;
		case 'g': gate = optarg; break;
		default: return 2;
		}
	}
	signal(SIGTERM, stop);
	check(cudaSetDevice(0), "device");
	w = (struct worker *)calloc(threads, sizeof(*w));
	for (int i = 0; i < threads; i++)
		pthread_create(&w[i].thread, NULL, worker_run, &w[i]);
	pthread_create(&rate, NULL, rate_run, w);
	for (int i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		if (!i)
			continue;
		w->launches += w[i].launches;
		w->transfers += w[i].transfers;
		w->bytes += w[i].bytes;
		w->allocations += w[i].allocations;
		w->syncs += w[i].syncs;
		w->rounds += w[i].rounds;
	}
	printf("did launches %llu transfers %llu bytes %llu allocations %llu syncs %llu rounds %llu\n",
	       w->launches, w->transfers, w->bytes, w->allocations, w->syncs, w->rounds);
	return 0;
}
