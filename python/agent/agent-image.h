/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_IMAGE_H
#define SB_AGENT_IMAGE_H

/*
 * The agent as a file, inside of the sbinject binary: a shared object for every CPython from
 * 3.10 on, ordinary or free-threaded. Empty (both are one address) where sbinject was built
 * without a Python.h.
 */
extern const unsigned char agent_image[], agent_image_end[];

#endif
