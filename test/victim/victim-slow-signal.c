/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: a condition is signalled slowly, some 20 us each, in the C library's code. CPython
 * signals that the GIL is free with the GIL's own mutex held: a thread that is stopped somewhere
 * stands there more often than not.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

int pthread_cond_signal(pthread_cond_t *cond)
{
	static int (*real)(pthread_cond_t *);
	static char place[1 << 20];

	if (!real)
		real = (int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_signal");
	memset(place, 1, sizeof(place));
	return real(cond);
}
