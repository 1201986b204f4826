/* SPDX-License-Identifier: MIT */
#ifndef SB_DWARF_UNITS_H
#define SB_DWARF_UNITS_H

#include <elfutils/libdw.h>
#include "image-priv.h"

/*
 * Calls `unit` for each unit of an image's DWARF information, its own or that of its separate debug
 * file, until it returns false or the budget is spent. False: there is no DWARF.
 */
typedef bool dwarf_unit_fn(void *ctx, Dwarf_Die *unit);
bool dwarf_units(struct image *img, struct budget_run *run, dwarf_unit_fn *unit, void *ctx);

#define DWARF_DEPTH_MAX 256 /* of nested blocks; the file may be damaged */

#endif
