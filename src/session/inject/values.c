/* SPDX-License-Identifier: MIT */
/* Arguments and return values of timed calls: from a target's keys to its cells, and back. */
#include <string.h>
#include "priv.h"
#include "src/base/log.h"
#include "src/session/trace-pipe.h"

_Static_assert((int)VALUE_MAX == SB_PAGE_VALUES, "values of a call");
_Static_assert((int)SPEC_ARGUMENTS == SPEC_REGISTERS + SB_PAGE_STACKED, "arguments of a call");
_Static_assert((int)SPEC_MEMORY == 8 * SB_PAGE_STACKED, "memory of an argument");

/* Where a function that writes a text has succeeded, by what is recorded of its return. */
static enum sb_page_text text_mode(const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_values; i++)
		if (!spec->value[i].position)
			return spec->value[i].type == VALUE_PTR ? SB_TEXT_POINTER :
								  SB_TEXT_POSITIVE;
	return SB_TEXT_ZERO;
}

static uint16_t descriptor(const struct spec *spec, const struct spec_value *v)
{
	unsigned int d = v->position ? v->position : SB_VALUE_RETURNED;

	if (v->text)
		d = SB_VALUE_STACKED | (unsigned int)text_mode(spec) << SB_VALUE_TEXT;
	else if (v->memory)
		d = SB_VALUE_STACKED + v->offset / 8u;
	else if (v->position == SPEC_CALLER)
		d = SB_VALUE_CALLER;
	else if (v->position > SPEC_REGISTERS)
		d = SB_VALUE_STACKED + v->position - SPEC_REGISTERS - 1u;
	d |= v->offset % 8 ? SB_VALUE_UPPER : 0;
	d |= (64 - value_bits(v->type)) << SB_VALUE_SHIFT;
	d |= v->sum ? SB_VALUE_SUM : 0;
	d |= value_signed(v->type) ? SB_VALUE_SIGNED : 0;
	d |= v->type == VALUE_BOOL ? SB_VALUE_BOOL : 0;
	return (uint16_t)d;
}

void values_setting(const struct spec *spec, uint16_t value[SB_PAGE_VALUES])
{
	for (size_t i = 0; i < spec->n_values; i++)
		value[i] = descriptor(spec, &spec->value[i]);
}

void values_measure(struct inject_session *s, const struct spec *spec)
{
	struct value_cost cost;

	if (!(spec->n_values || spec->arguments) || s->value_cost_known || s->cfg->look_only)
		return;
	s->value_cost_known = true;
	if (clock_value_cost(s->cfg->by_function, s->cfg->trace_fd, &s->cost, &cost) < 0)
		return;
	s->value_cost[0] = (uint64_t)(cost.within + 0.5);
	s->value_cost[1] = (uint64_t)(cost.cost + 0.5);
	log_debug("values of a call: %.1f ns, %.1f ns of them in its own time",
		  clock_to_ns(&s->clk, cost.cost), clock_to_ns(&s->clk, cost.within));
}

void values_times(const struct spec *spec, const struct page_spans *spans, struct result_times *out)
{
	target_values(spec, out);
	for (size_t i = 0; i < spec->n_values; i++) {
		struct result_value *to = &out->value[i];

		to->sum = spans->sum[i];
		to->sum_known = spans->sum[i] != UINT64_MAX;
		to->sum_calls = spans->summed[i];
	}
}

void values_trace(struct tracing *tracing, uint8_t bit, const struct spec *spec)
{
	struct trace_values values = { .n = (uint32_t)spec->n_values };
	uint32_t returned = 0, stacked = 0;

	for (size_t i = 0; i < spec->n_values && i < VALUE_MAX; i++) {
		memcpy(values.value[i].name, spec->value[i].name, sizeof(values.value[i].name));
		values.value[i].type = spec->value[i].type;
		returned |= (uint32_t)!spec->value[i].position << i;
		stacked |= (uint32_t)(descriptor(spec, &spec->value[i]) % 16 >= SB_VALUE_STACKED)
			   << i;
	}
	/* The driver has handles alone: no map is read then. */
	tracing_values(tracing, bit, &values,
		       &(struct tracing_masks){
			       returned, stacked, spec->row,
			       spec->row && strcmp(spec->row->preset->name, "cuda") != 0 });
}
