/* SPDX-License-Identifier: MIT */
#include "copies.h"

#include <string.h>

static const char *const names[COPIES_DIRECTIONS] = {
	[COPIES_TO_DEVICE] = "to device",    [COPIES_TO_HOST] = "to host",
	[COPIES_ON_DEVICE] = "on a device",  [COPIES_ON_HOST] = "on the host",
	[COPIES_PEER] = "to another device", [COPIES_UNKNOWN] = "unknown",
};

const char *copies_name(enum copies_direction direction)
{
	return names[direction];
}

static const struct trace_value *value_of(const struct trace_span *span, const char *name)
{
	for (uint32_t i = 0; i < span->n_values; i++)
		if (!strcmp(span->value[i].name, name) && span->value[i].known)
			return &span->value[i];
	return NULL;
}

/* what: the function's name behind "Memcpy". H is the host, D a device, A an array on one. */
static enum copies_direction direction_of(const char *what, const struct trace_span *span)
{
	static const enum copies_direction kinds[] = { COPIES_ON_HOST, COPIES_TO_DEVICE,
						       COPIES_TO_HOST, COPIES_ON_DEVICE };
	const struct trace_value *kind = value_of(span, "kind");

	if (strstr(what, "Peer"))
		return COPIES_PEER;
	if (strchr("HDA", what[0]) && what[0] && !strncmp(what + 1, "to", 2) && what[3] &&
	    strchr("HDA", what[3]))
		return what[0] == 'H' ? COPIES_TO_DEVICE :
		       what[3] == 'H' ? COPIES_TO_HOST :
					COPIES_ON_DEVICE;
	return kind && kind->value < sizeof(kinds) / sizeof(*kinds) ? kinds[kind->value] :
								      COPIES_UNKNOWN;
}

void copies_add(struct copies *c, const char *function, const struct trace_span *span)
{
	const char *what = function ? strstr(function, "Memcpy") : NULL;
	const struct trace_value *bytes = value_of(span, "bytes");
	const struct trace_value *result = value_of(span, "result");
	struct copies_sum *sum;

	/* cuGraphAddMemcpyNode and the like copy nothing themselves. */
	if (!what || (what != function + 2 && what != function + 4) || (result && result->value))
		return;
	sum = &c->of[direction_of(what + 6, span)];
	sum->n++;
	sum->total_ns += span->dur_ns;
	sum->bytes += bytes ? bytes->value : 0;
	sum->unsized += !bytes;
}
