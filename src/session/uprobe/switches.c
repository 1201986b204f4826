/* SPDX-License-Identifier: MIT */
#include "switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

static const struct {
	const char *name;
	enum value_type type;
	int at; /* in the span */
} values_of[INTERRUPT_VALUES] = {
	{ "irq", VALUE_U32, KERNEL_INTERRUPT_NUMBER },
	{ "cpu", VALUE_U32, KERNEL_INTERRUPT_CPU },
	{ "result", VALUE_U32, KERNEL_INTERRUPT_RESULT },
};

static const char *const reasons[] = {
	[KERNEL_OFFCPU_RUNNABLE] = "off CPU: runnable",
	[KERNEL_OFFCPU_SLEEPS] = "off CPU: sleeping",
	[KERNEL_OFFCPU_WAITS] = "off CPU: uninterruptible",
	[KERNEL_OFFCPU_STOPPED] = "off CPU: stopped",
};

enum { REASONS = sizeof(reasons) / sizeof(*reasons), OTHERS = REASONS + HANDLERS_MOST };

void switches_values(struct trace_values *values)
{
	values->n = INTERRUPT_VALUES;
	for (size_t i = 0; i < INTERRUPT_VALUES; i++) {
		snprintf(values->value[i].name, sizeof(values->value[i].name), "%s",
			 values_of[i].name);
		values->value[i].type = values_of[i].type;
	}
}

static uint32_t declare(uint32_t number, const char *name, const char *module,
			struct trace_bytes *bytes)
{
	trace_put_function(bytes, &(struct trace_function){ SWITCHES_FROM + number, TRACE_KERNEL,
							    name, module });
	return SWITCHES_FROM + number;
}

static uint32_t handler_of(struct switches *s, const char name[KERNEL_DEVICE],
			   struct trace_bytes *bytes)
{
	size_t i = 0;

	while (i < s->n && strcmp(s->handler[i], name) != 0)
		i++;
	if (i < s->n)
		return SWITCHES_FROM + REASONS + (uint32_t)i;
	if (i == HANDLERS_MOST)
		return declare(OTHERS, "other handlers", "interrupt", bytes);
	s->handler = must_realloc(s->handler, (i + 1) * sizeof(*s->handler));
	memcpy(s->handler[s->n++], name, KERNEL_DEVICE);
	return declare(REASONS + (uint32_t)i, name, "interrupt", bytes);
}

uint32_t switches_interrupt(struct switches *s, const struct kernel_span *span,
			    struct trace_valued *to, char track[16], struct trace_bytes *bytes)
{
	char name[KERNEL_DEVICE];

	memcpy(name, &span->value[KERNEL_INTERRUPT_NAME], sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < INTERRUPT_VALUES; i++)
		to->value[i] = span->value[values_of[i].at];
	snprintf(track, 16, "CPU %u", (unsigned int)span->value[KERNEL_INTERRUPT_CPU]);
	return handler_of(s, name, bytes);
}

uint32_t switches_offcpu(struct switches *s, const struct kernel_span *span,
			 struct trace_bytes *bytes)
{
	uint32_t reason = span->value[KERNEL_OFFCPU_REASON] % REASONS;
	bool new = !(s->reasons >> reason & 1);

	s->reasons |= 1u << reason;
	return new ? declare(reason, reasons[reason], "sched", bytes) : SWITCHES_FROM + reason;
}

void switches_free(struct switches *s)
{
	free(s->handler);
	*s = (struct switches){ 0 };
}
