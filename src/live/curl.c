/* SPDX-License-Identifier: MIT */
#include "curl.h"

#include "src/base/library.h"

#ifndef SB_LIBCURL /* the Makefile has the name that this machine's has */
#define SB_LIBCURL "libcurl.so.4"
#endif

struct curl_library curl_library;

int curl_load(struct sb_err *err)
{
	struct curl_library *c = &curl_library;
	const struct library_function functions[] = {
		{ "curl_global_init", &c->global_init },
		{ "curl_easy_init", &c->easy_init },
		{ "curl_easy_setopt", &c->easy_setopt },
		{ "curl_easy_getinfo", &c->easy_getinfo },
		{ "curl_easy_perform", &c->easy_perform },
		{ "curl_easy_strerror", &c->easy_strerror },
		{ NULL, NULL },
	};

	return library_load(SB_LIBCURL, functions, err);
}
