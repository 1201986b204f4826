// SPDX-License-Identifier: MIT
// arguments [CALLS]: functions whose arguments lie in registers, on the stack and in objects, as
// their debug information has them. Each argument says what the others are. Prints "calls N".
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define HOOKED __attribute__((noinline, noclone, used))
#define OPAQUE(x) asm volatile("" : "+r"(x) : : "memory")

enum class colour : unsigned char { red, green, blue };
struct pair {
	int a, b;
};
struct wide {
	long v[4];
};
struct holder {
	long base;
	HOOKED long method(unsigned short low, const char *text);
};

static long done;

// A double lies elsewhere, and a typedef is what it names.
typedef volatile long counted;
extern "C" HOOKED long a_kinds(signed char i, double d, colour c, counted n, bool odd)
{
	OPAQUE(i);
	return done += i + static_cast<long>(d) + static_cast<long>(c) + n + odd;
}

// A name that traces use, and none.
extern "C" HOOKED long a_names(int module, int *, const unsigned &r)
{
	OPAQUE(module);
	return done += module + static_cast<long>(r);
}

// The address of the result takes the first register.
extern "C" HOOKED wide a_returned(unsigned n)
{
	OPAQUE(n);
	return { { n, n, n, n } };
}

extern "C" HOOKED long a_object(pair p, int n)
{
	OPAQUE(n);
	return done += p.a + p.b + n;
}

extern "C" HOOKED double a_float(double d)
{
	asm volatile("" : "+x"(d));
	return d * 2;
}

extern "C" HOOKED long a_none()
{
	asm volatile("" : : : "memory");
	return ++done;
}

HOOKED long holder::method(unsigned short low, const char *text)
{
	OPAQUE(low);
	return done += base + low + text[0];
}

// The compiler may leave out what is not used, or is the same in each call.
static __attribute__((noinline)) long a_clone(long, pair *p, long n)
{
	OPAQUE(n);
	return done += p->a + n;
}

int main(int argc, char **argv)
{
	unsigned calls = argc > 1 ? static_cast<unsigned>(atoi(argv[1])) : 1000;
	holder h = { 5 };
	pair p = { 1, 2 };
	int x = 0;

	for (unsigned n = 1; n <= calls; n++) {
		signed char i = static_cast<signed char>(n % 100 - 50);

		a_kinds(i, n, static_cast<colour>(n % 3), -static_cast<long>(n), n % 2);
		a_names(static_cast<int>(n), &x, n);
		if (a_returned(n).v[3] != n)
			abort();
		a_object(p, static_cast<int>(n));
		a_float(n);
		a_none();
		h.method(static_cast<unsigned short>(n * 3), "x");
		a_clone(n, &p, n);
	}
	printf("calls %u\n", calls);
	return 0;
}
