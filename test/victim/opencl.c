/* SPDX-License-Identifier: MIT */
/*
 * opencl [-n ROUNDS] [-g GATE]: runs a real kernel on the first OpenCL device that there is, by the
 * loader libOpenCL.so.1, which is opened with dlopen(): the program is built where there is none,
 * and ends with status 77 then. Each round writes a buffer of 4000 bytes, doubles its numbers by a
 * kernel, reads and checks them, and waits. The declarations are those of the public interface.
 */
#include <dlfcn.h>
#include <stddef.h>
#include "victim.h"

enum { N = 1000, CL_MEM_READ_WRITE = 1, CL_TRUE = 1 };

typedef struct object *cl_object;

static const char source[] = "__kernel void twice(__global int *a) { "
			     "int i = get_global_id(0); a[i] = 2 * a[i]; }";

static struct {
	int (*platforms)(unsigned, cl_object *, unsigned *);
	int (*devices)(cl_object, uint64_t, unsigned, cl_object *, unsigned *);
	cl_object (*context)(const intptr_t *, unsigned, const cl_object *, void *, void *, int *);
	cl_object (*queue)(cl_object, cl_object, uint64_t, int *);
	cl_object (*program)(cl_object, unsigned, const char **, const size_t *, int *);
	int (*build)(cl_object, unsigned, const cl_object *, const char *, void *, void *);
	cl_object (*kernel)(cl_object, const char *, int *);
	cl_object (*buffer)(cl_object, uint64_t, size_t, void *, int *);
	int (*arg)(cl_object, unsigned, size_t, const void *);
	int (*write)(cl_object, cl_object, unsigned, size_t, size_t, const void *, unsigned,
		     const cl_object *, cl_object *);
	int (*read)(cl_object, cl_object, unsigned, size_t, size_t, void *, unsigned,
		    const cl_object *, cl_object *);
	int (*range)(cl_object, cl_object, unsigned, const size_t *, const size_t *, const size_t *,
		     unsigned, const cl_object *, cl_object *);
	int (*finish)(cl_object);
	int (*release)(cl_object);
} cl;

static const struct name {
	const char *name;
	size_t at;
} names[] = {
	{ "clGetPlatformIDs", 0 },
	{ "clGetDeviceIDs", 1 },
	{ "clCreateContext", 2 },
	{ "clCreateCommandQueue", 3 },
	{ "clCreateProgramWithSource", 4 },
	{ "clBuildProgram", 5 },
	{ "clCreateKernel", 6 },
	{ "clCreateBuffer", 7 },
	{ "clSetKernelArg", 8 },
	{ "clEnqueueWriteBuffer", 9 },
	{ "clEnqueueReadBuffer", 10 },
	{ "clEnqueueNDRangeKernel", 11 },
	{ "clFinish", 12 },
	{ "clReleaseMemObject", 13 },
};

static cl_object queue, kernel, context;

static bool open_loader(void)
{
	void *lib = dlopen("libOpenCL.so.1", RTLD_NOW);
	bool ok = lib;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && ok; i++) {
		void *f = dlsym(lib, names[i].name);

		memcpy((void **)(void *)&cl + names[i].at, &f, sizeof(f));
		ok = f;
	}
	return ok;
}

static bool open_device(void)
{
	const char *text = source;
	cl_object platform, device, program;
	unsigned n = 0;
	int error = 0;

	if (cl.platforms(1, &platform, &n) || !n ||
	    cl.devices(platform, 0xffffffff, 1, &device, &n) || !n)
		return false;
	context = cl.context(NULL, 1, &device, NULL, NULL, &error);
	queue = context ? cl.queue(context, device, 0, &error) : NULL;
	program = queue ? cl.program(context, 1, &text, NULL, &error) : NULL;
	if (!program || cl.build(program, 1, &device, "", NULL, NULL))
		return false;
	kernel = cl.kernel(program, "twice", &error);
	return kernel;
}

static bool one_round(int seed)
{
	int numbers[N], error;
	cl_object memory = cl.buffer(context, CL_MEM_READ_WRITE, sizeof(numbers), NULL, &error);
	size_t size = N;
	bool ok = memory;

	for (int i = 0; i < N; i++)
		numbers[i] = seed + i;
	ok = ok && !cl.arg(kernel, 0, sizeof(memory), &memory) &&
	     !cl.write(queue, memory, CL_TRUE, 0, sizeof(numbers), numbers, 0, NULL, NULL) &&
	     !cl.range(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL) && !cl.finish(queue) &&
	     !cl.read(queue, memory, CL_TRUE, 0, sizeof(numbers), numbers, 0, NULL, NULL);
	for (int i = 0; i < N && ok; i++)
		ok = numbers[i] == 2 * (seed + i);
	return ok && !cl.release(memory);
}

int main(int argc, char **argv)
{
	uint64_t rounds = UINT64_MAX, done = 0;
	const char *gate = NULL;
	bool ok = true;

	for (int c; (c = getopt(argc, argv, "n:g:")) >= 0;) {
		if (c == 'n')
			rounds = strtoull(optarg, NULL, 10);
		else
			gate = optarg;
	}
	victim_catch_term();
	if (!open_loader() || !open_device()) {
		puts("no OpenCL device");
		return 77;
	}
	victim_ready();
	victim_gate(gate);
	for (; done < rounds && !victim_stop && ok; done++)
		ok = one_round((int)done);
	victim_calls("rounds", done);
	return victim_done(ok);
}
