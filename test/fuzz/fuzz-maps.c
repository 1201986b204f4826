/* SPDX-License-Identifier: MIT */
/* libFuzzer: any text as /proc/PID/maps, whose paths the target chooses. */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "src/base/maps.h"

static void check_gap(const struct maps *maps, uint64_t near, uint64_t len)
{
	uint64_t lo = near > 1ull << 31 ? near - (1ull << 31) : 0, hi = near + (1ull << 31);
	uint64_t at = maps_find_gap(maps, near, lo, hi, len);

	if (!at)
		return;
	CHECK(at % 4096 == 0 && at >= lo && at + len <= hi && at + len > at);
	for (size_t i = 0; i < maps->count; i++)
		CHECK(maps->entry[i].end <= at || maps->entry[i].start >= at + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_err err = { 0 };
	struct maps maps;

	if (maps_parse((const char *)data, size, &maps, &err)) {
		CHECK(err.code == SB_EFILE && *err.what && !maps.entry);
		return 0;
	}
	for (size_t i = 0; i < maps.count; i++) {
		const struct map_entry *e = &maps.entry[i];

		CHECK(e->path && e->start < e->end && (!i || e->start >= e[-1].end));
		CHECK(maps_find(&maps, e->start) == e && maps_find(&maps, e->end - 1) == e);
		check_gap(&maps, e->start, 4096);
		check_gap(&maps, e->end, 1 << 20);
		if (i > 64)
			break;
	}
	maps_free(&maps);
	return 0;
}
