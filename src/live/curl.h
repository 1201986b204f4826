/* SPDX-License-Identifier: MIT */
#ifndef SB_CURL_H
#define SB_CURL_H

#include <curl/curl.h>
#include "src/base/err.h"

/* libcurl, which is loaded when curl_load() is called: src/base/library.h. */
struct curl_library {
	typeof(curl_global_init) *global_init;
	typeof(curl_easy_init) *easy_init;
	/* Without the parentheses it is the function, not the macro that checks types. */
	typeof(curl_easy_setopt) *easy_setopt;
	typeof(curl_easy_getinfo) *easy_getinfo;
	typeof(curl_easy_perform) *easy_perform;
	typeof(curl_easy_strerror) *easy_strerror;
};

extern struct curl_library curl_library;

int curl_load(struct sb_err *err); /* SB_EFILE */

#endif
