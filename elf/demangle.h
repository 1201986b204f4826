/* SPDX-License-Identifier: MIT */
#ifndef SB_DEMANGLE_H
#define SB_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include "glob.h"

/*
 * C++ and Rust names. Demangling costs about 1 us, so only symbols whose mangled name contains a
 * text required by the pattern are demangled: identifiers are the same in both forms.
 */
enum demangle_form {
	DEMANGLE_NO_RETURN, /* ns::max<int>(int, int), as it is usually written */
	DEMANGLE_FULL,	    /* int ns::max<int>(int, int), as c++filt and perf print it */
};

/* True if the name has a mangled form at all (the cheap test). */
bool demangle_is_mangled(const char *name);

/* To be freed; NULL if it is not mangled, damaged or too long. A @VERSION at the end is ignored. */
char *demangle_name(const char *name, enum demangle_form form);

/*
 * Cuts off the parameter list and what follows it ("f(int) const [clone .part.0]" becomes
 * "f"), in place. Names of operators and lambdas keep their own parentheses.
 */
void demangle_cut_parameters(char *demangled);

/*
 * An identifier that every mangled name must contain whose demangled form matches the pattern
 * (glob: it is one, else it is a plain name); len 0 where none is required.
 */
void demangle_required(const char *pattern, bool glob, struct glob_literal *required);

/* True if a text with wildcards may be a demangled name itself: f(int*), operator[]. */
bool demangle_may_be_name(const char *pattern);

#endif
