/* SPDX-License-Identifier: MIT */
#ifndef SB_PYFRAMES_LAYOUT_H
#define SB_PYFRAMES_LAYOUT_H

#include "page-abi.h"

/*
 * How the CPythons that are known keep the frames of a thread: offsets in their structures, which
 * do not change within one version. Of `key` and `ending`, offsets from _PyRuntime; the addresses
 * of the types are 0. version: PY_VERSION_HEX >> 16. NULL: not known.
 */
const struct sb_page_python *pyframes_layout(uint32_t version);

#endif
