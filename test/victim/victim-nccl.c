/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libnccl.so.2 that does nothing: names and arguments as nccl.h of NCCL 2.28 has
 * them. Inside of a group a collective returns at once; the group's end sleeps for 50 us.
 */
#include <stddef.h>
#include "victim.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int ncclResult_t;

struct unique_id {
	char internal[128];
};

static int groups;

VICTIM_HOOKED ncclResult_t ncclCommInitRank(void **comm, int n, struct unique_id id, int rank)
{
	*comm = &groups;
	return rank < n && !id.internal[0] ? 0 : 4;
}

VICTIM_HOOKED ncclResult_t ncclGroupStart(void)
{
	groups++;
	return 0;
}

VICTIM_HOOKED ncclResult_t ncclGroupEnd(void)
{
	victim_sleep_ns(50000);
	return groups-- > 0 ? 0 : 5;
}

VICTIM_HOOKED ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
					 void *comm, void *stream)
{
	VICTIM_OPAQUE(from);
	return to && count && type < 12 && op < 5 && comm && !stream ? 0 : 4;
}

VICTIM_HOOKED ncclResult_t ncclSend(const void *from, size_t count, int type, int peer, void *comm,
				    void *stream)
{
	VICTIM_OPAQUE(from);
	return count && type < 12 && peer >= 0 && comm && !stream ? 0 : 4;
}

VICTIM_HOOKED ncclResult_t ncclMemAlloc(void **p, size_t size)
{
	*p = &groups;
	return size ? 0 : 4;
}

VICTIM_HOOKED ncclResult_t ncclMemFree(void *p)
{
	return p == &groups ? 0 : 4;
}
