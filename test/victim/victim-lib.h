/* SPDX-License-Identifier: MIT */
#ifndef VICTIM_LIB_H
#define VICTIM_LIB_H

/* How often victim-lib.so calls lib_fn() by itself, each time it is loaded and unloaded. */
enum { LIB_CONSTRUCTOR_CALLS = 7, LIB_DESTRUCTOR_CALLS = 3 };

#endif
