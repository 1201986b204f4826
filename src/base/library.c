/* SPDX-License-Identifier: MIT */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

int library_load(const char *soname, const struct library_function *functions, struct sb_err *err)
{
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL), *at;

	if (!library) {
		err_set(err, SB_EFILE, "a library cannot be loaded: %.200s", dlerror());
		err_hint(err, "install the package that has %s", soname);
		return -SB_EFILE;
	}
	for (; functions->name; functions++) {
		at = dlsym(library, functions->name);
		if (!at)
			return err_set(err, SB_EFILE, "%s has no %s: it is of another version",
				       soname, functions->name);
		memcpy(functions->at, &at, sizeof(at));
	}
	return 0;
}
