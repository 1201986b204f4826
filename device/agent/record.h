/* SPDX-License-Identifier: MIT */
#ifndef SB_RECORD_H
#define SB_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include "cupti.h"
#include "inject/device-abi.h"

/*
 * What CUPTI's activity records say: by offsets of the fields that their layouts have in common
 * since API version 12 (CUDA 10.0: CUpti_ActivityKernel4, Memcpy, MemcpyPtoP, Memset), as the
 * documentation of each version has them. Later layouts add fields behind these. A version is known
 * if that was looked up: an unknown one is refused before anything is enabled.
 *
 *	kernel	start 16, end 24, device 40, context 44, stream 48, grid 52, block 64,
 *		static and dynamic shared memory 76, correlation 92, address of the name 104
 *	copy	kind 4, bytes 8, start 16, end 24, device 32, context 36, stream 40, correlation 44
 *	... between devices: the same, but correlation 60
 *	memset	value 4, bytes 8, start 16, end 24, device 32, context 36, stream 40, correlation 44
 */
enum {
	RECORD_KERNEL_BYTES = 112,
	RECORD_COPY_BYTES = 48,
	RECORD_PEER_BYTES = 64,
	RECORD_MEMSET_BYTES = 48,
	RECORD_KIND_BYTES = 4,
};

static inline bool record_version_known(uint32_t version)
{
	return (version >= 12 && version <= 28) || (version >= 130000 && version <= 130001);
}

static inline uint32_t record_u32(const uint8_t *record, size_t at)
{
	uint32_t v;

	memcpy(&v, record + at, sizeof(v));
	return v;
}

static inline uint64_t record_u64(const uint8_t *record, size_t at)
{
	uint64_t v;

	memcpy(&v, record + at, sizeof(v));
	return v;
}

static inline void record_place(struct sb_device_event *out, const uint8_t *record, size_t device,
				size_t correlation)
{
	out->start = record_u64(record, 16);
	out->end = record_u64(record, 24);
	out->device = record_u32(record, device);
	out->context = record_u32(record, device + 4);
	out->stream = record_u32(record, device + 8);
	out->correlation = record_u32(record, correlation);
}

static inline void record_kernel(struct sb_device_event *out, const uint8_t *record, uint64_t *name)
{
	out->kind = SB_DEVICE_KERNEL;
	record_place(out, record, 40, 92);
	for (size_t i = 0; i < 3; i++) {
		out->grid[i] = record_u32(record, 52 + 4 * i);
		out->block[i] = record_u32(record, 64 + 4 * i);
	}
	out->shared = record_u32(record, 76) + record_u32(record, 80);
	*name = record_u64(record, 104);
}

static inline void record_sized(struct sb_device_event *out, const uint8_t *record,
				enum sb_device_kind kind, size_t correlation)
{
	out->kind = (uint8_t)kind;
	out->bytes = record_u64(record, 8);
	record_place(out, record, 32, correlation);
	if (kind == SB_DEVICE_COPY)
		out->copy = record[4];
	else
		out->value = record_u32(record, 4);
}

/*
 * Reads one record, of which `room` bytes may be read. name: the address of a kernel's name, in
 * this process; 0: none. False: its kind is unknown, it is shorter than its kind needs, or its
 * times are missing or run backwards (CUPTI writes 0 where it has none).
 */
static inline bool record_read(const uint8_t *record, size_t room, struct sb_device_event *out,
			       uint64_t *name)
{
	uint32_t kind = room >= RECORD_KIND_BYTES ? record_u32(record, 0) : 0;

	*out = (struct sb_device_event){ .size = sizeof(*out) };
	*name = 0;
	if ((kind == CUPTI_KIND_KERNEL || kind == CUPTI_KIND_CONCURRENT_KERNEL) &&
	    room >= RECORD_KERNEL_BYTES)
		record_kernel(out, record, name);
	else if (kind == CUPTI_KIND_COPY && room >= RECORD_COPY_BYTES)
		record_sized(out, record, SB_DEVICE_COPY, 44);
	else if (kind == CUPTI_KIND_PEER_COPY && room >= RECORD_PEER_BYTES)
		record_sized(out, record, SB_DEVICE_COPY, 60);
	else if (kind == CUPTI_KIND_MEMSET && room >= RECORD_MEMSET_BYTES)
		record_sized(out, record, SB_DEVICE_MEMSET, 44);
	else
		return false;
	return out->start && out->end >= out->start;
}

#endif
