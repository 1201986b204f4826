/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_IMAGE_H
#define SB_AGENT_IMAGE_H

/*
 * The agent as a file, embedded in the sbinject binary: a shared object for every CPython since
 * 3.10, ordinary or free-threaded. Empty (both symbols have one address) where sbinject was built
 * without a Python.h.
 */
extern const unsigned char agent_image[], agent_image_end[];

#endif
