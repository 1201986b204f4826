// SPDX-License-Identifier: MIT
// A library with the stubs of two kernels, as a CUDA compiler leaves them in the host's code.
// Compiled with STUB as the first one's name; libraries whose STUBs have one length are alike.
#include <cstddef>

namespace plugin
{
void STUB(float *p)
{
	asm volatile("" : "+r"(p) : : "memory");
}
} // namespace plugin

static void hidden(int n)
{
	asm volatile("" : "+r"(n) : : "memory");
}

extern "C" const void *victim_stub(int which)
{
	return which ? (const void *)hidden : (const void *)plugin::STUB;
}
