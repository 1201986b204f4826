/* SPDX-License-Identifier: MIT */
#ifndef SB_MICROHTTPD_H
#define SB_MICROHTTPD_H

#include <microhttpd.h>
#include "src/base/err.h"

/* libmicrohttpd, which is loaded when microhttpd_load() is called: src/base/library.h. */
struct microhttpd {
	typeof(MHD_start_daemon) *start_daemon;
	typeof(MHD_stop_daemon) *stop_daemon;
	typeof(MHD_get_connection_info) *get_connection_info;
	typeof(MHD_lookup_connection_value) *lookup_connection_value;
	typeof(MHD_create_response_from_buffer) *create_response_from_buffer;
	typeof(MHD_add_response_header) *add_response_header;
	typeof(MHD_queue_response) *queue_response;
	typeof(MHD_destroy_response) *destroy_response;
};

extern struct microhttpd microhttpd;

int microhttpd_load(struct sb_err *err); /* SB_EFILE */

#endif
