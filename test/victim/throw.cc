// SPDX-License-Identifier: MIT
// throw: C++ exceptions pass through hooked functions: one that throws at its entry's heels, one
// that an exception passes through, one whose destructors run on the way.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>

static volatile sig_atomic_t stop;
static unsigned long long calls, destroyed, caught;

struct Guard {
	~Guard() { destroyed++; }
};

namespace victim
{
__attribute__((noinline, noclone, used)) int thrower(int x)
{
	asm volatile("" : "+r"(x) : : "memory");
	if (x & 1)
		throw std::runtime_error("odd " + std::to_string(x));
	return x + 1;
}

__attribute__((noinline, noclone, used)) int passer(int x)
{
	Guard guard;
	int y = thrower(x);

	asm volatile("" : "+r"(y) : : "memory");
	return y + 1;
}

template <typename T> __attribute__((noinline, noclone, used)) T templated(T x)
{
	asm volatile("" : "+r"(x) : : "memory");
	return x + 2;
}
} // namespace victim

static void on_term(int) { stop = 1; }

int main(int argc, char **argv)
{
	unsigned long long rounds = argc > 1 ? strtoull(argv[1], nullptr, 0) : 0;
	bool ok = true;

	signal(SIGTERM, on_term);
	puts("ready");
	fflush(stdout);
	for (unsigned long long i = 0; !stop && (!rounds || i < rounds); i++) {
		int x = static_cast<int>(i & 0xffff);

		calls++;
		try {
			ok &= victim::passer(x) == x + 2 && !(x & 1);
		} catch (const std::exception &e) {
			caught++;
			ok &= (x & 1) && std::string(e.what()) == "odd " + std::to_string(x);
		}
		ok &= victim::templated<long>(x) == x + 2;
	}
	ok &= destroyed == calls && caught == calls / 2;
	printf("calls passer %llu\ncalls thrower %llu\ncalls templated %llu\n", calls, calls, calls);
	puts(ok ? "self-check ok" : "self-check FAILED");
	return ok ? 0 : 1;
}
