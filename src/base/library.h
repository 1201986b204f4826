/* SPDX-License-Identifier: MIT */
#ifndef SB_LIBRARY_H
#define SB_LIBRARY_H

#include "err.h"

/*
 * A shared library that few runs use is loaded by the first that needs it: libcurl and
 * libmicrohttpd bring thirty others, and took two thirds of the time in which the program starts.
 * A function of it is a member of a struct, as `typeof(curl_easy_init) *easy_init`.
 */
struct library_function {
	const char *name;
	void *at; /* of the member */
};

/*
 * soname: the name that the dynamic linker looks for. functions: the last one has no name. Loads
 * it for as long as the process lives; one that is loaded already costs nothing. SB_EFILE: it, or a
 * function of it, is not there.
 */
int library_load(const char *soname, const struct library_function *functions, struct sb_err *err);

#endif
