/* SPDX-License-Identifier: MIT */
#ifndef SB_SOCK_H
#define SB_SOCK_H

#include <stdbool.h>
#include <stddef.h>

/* Sends all bytes on a stream socket; false: the other end is closed, or takes no more in time. A
 * signal does not interrupt it, and there is no SIGPIPE. */
bool sock_send_all(int fd, const void *bytes, size_t len);

#endif
