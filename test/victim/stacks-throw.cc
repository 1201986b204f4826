// SPDX-License-Identifier: MIT
// stacks-throw FILE: as stacks, in C++: calls while an exception passes (from destructors), from
// handlers of exceptions that came through several frames, and after them.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdexcept>

#define HOOKED __attribute__((noinline, noclone, used))

static FILE *out;
static long serial;
static const char *way;

extern "C" HOOKED long slow(long id, long us)
{
	timespec ts = {0, us * 1000};
	void *at[100];
	int n = backtrace(at, 100);

	fprintf(out, "%ld %s", id, way);
	for (int i = 1; i < n; i++) {
		Dl_info info = {};

		if (!dladdr(at[i], &info) || !info.dli_fname)
			break;
		fprintf(out, " %s+0x%lx", info.dli_fname,
			(unsigned long)((char *)at[i] - (char *)info.dli_fbase));
	}
	fputc('\n', out);
	fflush(out);
	nanosleep(&ts, nullptr);
	asm volatile("" : "+r"(us) : : "memory");
	return id;
}

namespace deep
{
struct Guard {
	HOOKED ~Guard()
	{
		slow(++serial, 1500);
		asm volatile("" ::: "memory");
	}
};

HOOKED void thrower(int depth, bool guarded)
{
	char room[100];

	memset(room, depth, sizeof(room));
	asm volatile("" : : "r"(room) : "memory");
	if (!depth)
		throw std::runtime_error("thrown");
	if (guarded) {
		Guard guard;

		thrower(depth - 1, false);
		asm volatile("" ::: "memory");
	} else {
		thrower(depth - 1, false);
		asm volatile("" ::: "memory");
	}
}

template <class T> HOOKED T through(T depth)
{
	try {
		way = "destructor";
		thrower(depth, true);
	} catch (const std::exception &) {
		way = "handler";
		slow(++serial, 1500);
	}
	way = "after";
	slow(++serial, 1500);
	asm volatile("" : "+r"(depth) : : "memory");
	return depth;
}
} // namespace deep

int main(int, char **argv)
{
	out = fopen(argv[1], "a");
	if (!out)
		return 1;
	for (int i = 1; i < 6; i++)
		deep::through(i);
	puts("self-check ok");
	return 0;
}
