/* SPDX-License-Identifier: MIT */
/* The versions of one function in libraries that put them into its name: cuMemAlloc_v2. */
#include "symbol.h"

#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *name, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && memcmp(name + len - n, suffix, n) == 0;
}

/* The length without "_v" and digits at the end. */
static size_t without_number(const char *name, size_t len)
{
	size_t at = len;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return at < len && ends_in(name, at, "_v") ? at - 2 : len;
}

/* The length without one suffix. */
static size_t without_suffix(const char *name, size_t len)
{
	static const char *const suffixes[] = { "_ptsz", "_ptds", "_64" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (ends_in(name, len, suffixes[i]))
			return len - strlen(suffixes[i]);
	return without_number(name, len);
}

size_t symbol_version_stem(const char *name)
{
	size_t len = strlen(name), shorter;

	while ((shorter = without_suffix(name, len)) < len)
		len = shorter;
	return len;
}

bool symbol_is_version(const char *function, const char *name)
{
	size_t len = symbol_version_stem(name);
	char *stem;
	bool is;

	if (glob_match(function, name))
		return true;
	if (!name[len])
		return false;
	stem = strndup(name, len);
	is = stem && glob_match(function, stem);
	free(stem);
	return is;
}
