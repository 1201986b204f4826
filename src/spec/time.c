/* SPDX-License-Identifier: MIT */
/*
 * Delays and spans of time: text to nanoseconds and back, in integers only. In floating point 2.5us
 * would be 2499 ns on one machine and 2500 on another.
 */
#include "spec.h"

#include <stdio.h>
#include <string.h>
#include "src/base/text.h"

struct unit {
	const char *name;
	uint64_t ns;
	bool for_delay;
};

static const struct unit units[] = {
	{ "ns", 1, true },	     { "us", 1000, true },
	{ "\xc2\xb5s", 1000, true }, /* U+00B5 micro sign, from keyboards */
	{ "\xce\xbcs", 1000, true }, /* U+03BC Greek mu, from input methods */
	{ "ms", 1000000, true },     { "s", 1000000000, true },
	{ "m", 60000000000, false }, { "h", 3600000000000, false },
};

/* What a text may be, and the message for anything else. */
struct span {
	const char *noun, *hint, *above;
	uint64_t max;
	bool delay;
};

static const struct span delay_span = {
	.noun = "delay",
	.hint = "write 500ns, 5us, 2.5ms ...: a delay needs its unit (ns us ms s) and is at "
		"most 10s; only 0 stands without one",
	.above = "is above 10s",
	.max = SPEC_DELAY_MAX_NS,
	.delay = true,
};

static const struct span duration_span = {
	.noun = "time",
	.hint = "write 500ms, 30s, 5m ...: a time needs its unit (ns us ms s m h); only 0 stands "
		"without one",
	.above = "is above 100 years",
	.max = 3155760000ull * 1000000000ull, /* now + start + for must fit in 64 bits */
};

struct number {
	uint64_t whole;
	uint64_t frac; /* the digits after the point, without trailing zeros */
	unsigned int digits;
	bool huge; /* the whole part is out of range */
	bool fine; /* more digits than any unit has nanoseconds */
};

/*
 * An hour is 2^13 * 3^2 * 5^11 ns, so a fraction of more than 13 digits (the last one not 0)
 * is never a whole number of ns, whatever the unit.
 */
#define FRAC_DIGITS 13

static int span_refuse(const struct span *span, const char *text, const char *why,
		       struct sb_err *err)
{
	enum sb_code code = why == span->above ? SB_ERANGE : SB_ESPEC;
	char word[TEXT_QUOTE_SIZE];
	int rc = err_set(err, code, "the %s '%s' %s", span->noun,
			 text_quote(text, word, sizeof(word)), why);

	err_hint(err, "%s", span->hint);
	return rc;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *number_whole(const char *s, struct number *num)
{
	for (; is_digit(*s); s++) {
		num->huge |= __builtin_mul_overflow(num->whole, 10, &num->whole);
		num->huge |= __builtin_add_overflow(num->whole, (uint64_t)(*s - '0'), &num->whole);
	}
	return s;
}

static const char *number_frac(const char *s, struct number *num)
{
	unsigned int digits = 0;

	for (; is_digit(*s); s++) {
		digits++;
		if (*s == '0')
			continue;
		num->fine |= digits > FRAC_DIGITS;
		for (; num->digits < digits && !num->fine; num->digits++)
			num->frac *= 10;
		num->frac += (uint64_t)(*s - '0');
	}
	return s;
}

/* Reads digits, with or without a fraction. Returns their end, or NULL if there are none. */
static const char *number_read(const char *text, struct number *num)
{
	const char *s = number_whole(text, num), *point = s;

	if (*point != '.')
		return s == text ? NULL : s;
	s = number_frac(point + 1, num);
	return s == point + 1 ? NULL : s;
}

static const struct unit *unit_find(const char *name, bool delay)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(name, units[i].name) && (units[i].for_delay || !delay))
			return &units[i];
	return NULL;
}

/* Converts num from units of unit_ns to ns. NULL, or the reason for a failure. */
static const char *number_scale(const struct number *num, uint64_t unit_ns, const struct span *span,
				uint64_t *ns)
{
	unsigned __int128 frac = (unsigned __int128)num->frac * unit_ns;
	unsigned __int128 sum = (unsigned __int128)num->whole * unit_ns;
	uint64_t tens = 1;

	for (unsigned int i = 0; i < num->digits && !num->fine; i++)
		tens *= 10;
	if (num->fine || frac % tens)
		return "is not a whole number of nanoseconds";
	sum += frac / tens;
	if (num->huge || sum > span->max)
		return span->above;
	*ns = (uint64_t)sum;
	return NULL;
}

static int span_read(const struct span *span, const char *text, uint64_t *ns, struct sb_err *err)
{
	struct number num = { 0 };
	const struct unit *unit;
	const char *end, *why;

	if (*text == '-')
		return span_refuse(span, text, "is negative", err);
	end = number_read(text, &num);
	if (!end)
		return span_refuse(span, text, "is not a number", err);
	if (!*end && !num.whole && !num.frac && !num.huge) {
		*ns = 0;
		return 0;
	}
	if (!*end)
		return span_refuse(span, text, "has no unit", err);
	unit = unit_find(end, span->delay);
	if (!unit)
		return span_refuse(span, text, "is not a number and a unit", err);
	why = number_scale(&num, unit->ns, span, ns);
	return why ? span_refuse(span, text, why, err) : 0;
}

int spec_delay(const char *text, uint64_t *ns, struct sb_err *err)
{
	return span_read(&delay_span, text, ns, err);
}

int spec_duration(const char *text, uint64_t *ns, struct sb_err *err)
{
	return span_read(&duration_span, text, ns, err);
}

/* ns in one unit, without trailing zeros: "1.2345". */
static void format_in(uint64_t ns, uint64_t unit_ns, const char *name, char out[32])
{
	char frac[16] = "";
	uint64_t rest = ns % unit_ns;
	int width = 0;

	if (rest) {
		for (uint64_t u = unit_ns; u > 1; u /= 10)
			width++;
		snprintf(frac, sizeof(frac), ".%0*u", width, (unsigned int)rest);
		for (char *end = frac + strlen(frac) - 1; *end == '0'; end--)
			*end = '\0';
	}
	snprintf(out, 32, "%llu%s%s", (unsigned long long)(ns / unit_ns), frac, name);
}

char *spec_format_ns(uint64_t ns, char *buf, size_t size)
{
	static const struct unit shown[] = {
		{ "s", 1000000000, true },
		{ "ms", 1000000, true },
		{ "us", 1000, true },
		{ "ns", 1, true },
	};
	char best[32] = "", form[32];

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		if (ns < shown[i].ns)
			continue;
		format_in(ns, shown[i].ns, shown[i].name, form);
		if (!best[0] || strlen(form) < strlen(best))
			strcpy(best, form);
	}
	snprintf(buf, size, "%s", best[0] ? best : "0");
	return buf;
}
