/* SPDX-License-Identifier: MIT */
#include "microhttpd.h"

#include "src/base/library.h"

#ifndef SB_LIBMICROHTTPD /* the Makefile has the name that this machine's has */
#define SB_LIBMICROHTTPD "libmicrohttpd.so.12"
#endif

struct microhttpd microhttpd;

int microhttpd_load(struct sb_err *err)
{
	struct microhttpd *m = &microhttpd;
	const struct library_function functions[] = {
		{ "MHD_start_daemon", &m->start_daemon },
		{ "MHD_stop_daemon", &m->stop_daemon },
		{ "MHD_get_connection_info", &m->get_connection_info },
		{ "MHD_lookup_connection_value", &m->lookup_connection_value },
		{ "MHD_create_response_from_buffer", &m->create_response_from_buffer },
		{ "MHD_add_response_header", &m->add_response_header },
		{ "MHD_queue_response", &m->queue_response },
		{ "MHD_destroy_response", &m->destroy_response },
		{ NULL, NULL },
	};

	return library_load(SB_LIBMICROHTTPD, functions, err);
}
