/* SPDX-License-Identifier: MIT */
#ifndef SB_FUZZ_CHECK_H
#define SB_FUZZ_CHECK_H

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for any input. */
#define CHECK(COND)              \
	do {                     \
		if (!(COND))     \
			abort(); \
	} while (0)

#endif
