/* SPDX-License-Identifier: MIT */
#include "write.h"

#include <string.h>

static const struct suffix {
	const char *suffix;
	enum trace_format format;
} suffixes[] = {
	{ ".pftrace", TRACE_PFTRACE },
	{ ".perfetto-trace", TRACE_PFTRACE },
	{ ".json", TRACE_CHROME },
	{ ".jsonl", TRACE_JSONL },
};

static const char *const names[] = {
	[TRACE_PFTRACE] = "pftrace",
	[TRACE_CHROME] = "json",
	[TRACE_JSONL] = "jsonl",
};

const char *trace_format_name(enum trace_format format)
{
	return names[format];
}

static int by_name(const char *name, enum trace_format *format, struct sb_err *err)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i])) {
			*format = (enum trace_format)i;
			return 0;
		}
	err_set(err, SB_EUSAGE, "--format '%s': no format of a trace", name);
	err_hint(err, "pftrace (Perfetto), json (Chrome) or jsonl");
	return -SB_EUSAGE;
}

int trace_format_of(const char *path, const char *name, enum trace_format *format,
		    struct sb_err *err)
{
	size_t len = strlen(path);

	if (name)
		return by_name(name, format, err);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t n = strlen(suffixes[i].suffix);

		if (len > n && !strcmp(path + len - n, suffixes[i].suffix)) {
			*format = suffixes[i].format;
			return 0;
		}
	}
	err_set(err, SB_EUSAGE, "'%s': the name does not say the format of the trace", path);
	err_hint(err, "end it in .pftrace, .json or .jsonl, or give --format");
	return -SB_EUSAGE;
}
