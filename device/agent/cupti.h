/* SPDX-License-Identifier: MIT */
#ifndef SB_CUPTI_H
#define SB_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/*
 * The few functions of CUPTI that the agent calls, and the few numbers that they take and return,
 * declared here from NVIDIA's documentation of the CUPTI 12.9 and 13.0 interfaces
 * (docs.nvidia.com/cupti). They are found by name in the library that the program has: nothing is
 * built against its headers.
 */
enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_OPERATION = 7, /* of a flush: no buffers are registered */
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

/* Kinds of records. */
enum {
	CUPTI_KIND_COPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_PEER_COPY = 22,
};

enum { CUPTI_FLUSH_FORCED = 1 };

typedef void cupti_request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void cupti_complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			       size_t valid);
typedef void cupti_callback_fn(void *user, int domain, uint32_t id, const void *data);

struct cupti {
	int (*get_version)(uint32_t *version);
	int (*subscribe)(void **subscriber, cupti_callback_fn *callback, void *user);
	int (*unsubscribe)(void *subscriber);
	int (*register_callbacks)(cupti_request_fn *request, cupti_complete_fn *complete);
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*flush)(uint32_t flag);
	int (*next)(uint8_t *buffer, size_t valid, void **record);
	int (*dropped)(void *context, uint32_t stream, size_t *n);
	int (*timestamp)(uint64_t *ns);
};

#endif
