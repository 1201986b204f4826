/* SPDX-License-Identifier: MIT */
#include "backend.h"

#include <stdio.h>
#include <string.h>

static const struct backend *const backends[] = {
	&backend_inject,
};

enum { BACKENDS = sizeof(backends) / sizeof(*backends) };

static void list_names(char *buf, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < BACKENDS && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "",
					backends[i]->name);
}

const struct backend *backend_choose(const char *name, struct sb_err *err)
{
	bool any = !name || !strcmp(name, "auto");
	char names[128];

	for (size_t i = 0; i < BACKENDS; i++) {
		if (!any && strcmp(name, backends[i]->name))
			continue;
		if (backends[i]->probe(err) == 0)
			return backends[i];
		if (!any)
			return NULL;
	}
	if (any)
		return NULL;
	list_names(names, sizeof(names));
	err_set(err, SB_EUSAGE, "--backend: there is no '%s' in this build", name);
	err_hint(err, "it has: auto, %s", names);
	return NULL;
}
