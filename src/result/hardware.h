/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_HARDWARE_H
#define SB_RESULT_HARDWARE_H

#include <jansson.h>
#include "evidence/evidence.h"
#include "evidence/hardware.h"

/* How the counters of the processor came about. */
struct result_hardware {
	bool there;  /* they were asked for */
	char *limit; /* why there are none; NULL: there are */
	struct hardware_about about;
};

/* out: all zero; its limit is the caller's to free. */
void hardware_tell(const struct evidence *e, struct result_hardware *out);

/* null: they were not asked for. False of reading: it is something else. */
json_t *hardware_json(const struct result_hardware *hardware);
bool hardware_read_json(const json_t *object, struct result_hardware *hardware);

#endif
