// SPDX-License-Identifier: MIT
// cudart [-n ROUNDS] [-g GATE] LIBRARY LIBRARY: launches by the runtime API, by the addresses of
// functions that stand for kernels: of every kind of symbol, of the libraries in turn, which get
// one place in memory, and addresses that are no function. At its end it prints "launched N NAME"
// for each; the name is empty where nothing has one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <getopt.h>
#include <map>
#include <string>
#include <unistd.h>

struct dim3 {
	unsigned x, y, z;
};
struct config {
	dim3 grid, block;
	size_t shared;
	void *stream, *attributes;
	unsigned n_attributes;
};
extern "C" int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
extern "C" int cudaLaunchKernelExC(const config *, const void *, void **);
extern "C" int cudaLibraryGetKernel(void **, void *, const char *);

#define KERNEL __attribute__((noinline, noclone, used))
#define BODY   asm volatile("" : : "r"(p) : "memory")

namespace model
{
template <int N, typename T> KERNEL void scale(T *p, size_t)
{
	BODY;
	asm volatile("" : : "i"(N));
}
} // namespace model
namespace
{
KERNEL void inner(float *p)
{
	BODY;
}
} // namespace
static KERNEL void local_one(double *p)
{
	BODY;
}
extern "C" KERNEL void plain_c(void *p)
{
	BODY;
}

#define LONGER(a, b) PASTE(a, b)
#define PASTE(a, b)  a##b
#define L1	     of_many_letters_of_many_letters_of_many_letters_of_many_letters_of_many
#define L2	     LONGER(L1, L1)
#define L4	     LONGER(L2, L2)
#define L8	     LONGER(L4, L4)
#define L16	     LONGER(L8, L8)
#define TEXT(a)	     WORDS(a)
#define WORDS(a)     #a
extern "C" KERNEL void L16(void *p)
{
	BODY;
}

static std::map<std::string, long> launched;
static bool bad;

static void launch(const void *f, const char *name)
{
	config c = {{4, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr, 0};

	bad |= cudaLaunchKernel(f, {8, 1, 1}, {64, 1, 1}, nullptr, 0, nullptr) != 0;
	bad |= cudaLaunchKernelExC(&c, f, nullptr) != 0;
	launched[name] += 2;
}

static void launch_of(const char *path, const char *name)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	auto stub = lib ? (const void *(*)(int))dlsym(lib, "victim_stub") : nullptr;

	if (!stub) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	for (int i = 0; i < 3; i++) {
		launch(stub(0), name);
		launch(stub(1), "hidden(int)");
	}
	usleep(300000); // they are read before the library goes
	printf("place %p\n", stub(0));
	dlclose(lib);
	usleep(300000);
}

static void one_round()
{
	static char heap[4096];
	void *kernel = nullptr;

	launch((const void *)model::scale<3, float>, "model::scale<3, float>(float*, unsigned long)");
	launch((const void *)model::scale<4, float>, "model::scale<4, float>(float*, unsigned long)");
	launch((const void *)inner, "(anonymous namespace)::inner(float*)");
	launch((const void *)local_one, "local_one(double*)");
	launch((const void *)plain_c, "plain_c");
	launch((const void *)L16, TEXT(L16));
	launch((const char *)plain_c + 1, "");
	launch(heap + 64, "");
	launch(nullptr, "");
	if (!cudaLibraryGetKernel(&kernel, heap, "asked for"))
		launch(kernel, "asked for");
}

int main(int argc, char **argv)
{
	const char *gate = nullptr;
	int rounds = 10;

	for (int c; (c = getopt(argc, argv, "n:g:")) >= 0;) {
		if (c == 'n')
			rounds = atoi(optarg);
		else if (c == 'g')
			gate = optarg;
	}
	if (argc - optind != 2)
		return 2;
	setvbuf(stdout, nullptr, _IOLBF, 0);
	puts("ready");
	while (gate && access(gate, F_OK))
		usleep(10000);
	for (int i = 0; i < rounds; i++)
		one_round();
	for (int i = 0; i < 2; i++) {
		launch_of(argv[optind], "plugin::stub_of_one(float*)");
		launch_of(argv[optind + 1], "plugin::stub_of_two(float*)");
	}
	for (const auto &l : launched)
		printf("launched %ld %s\n", l.second, l.first.c_str());
	puts(bad ? "self-check failed" : "self-check ok");
	return bad;
}
