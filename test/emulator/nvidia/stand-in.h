/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STAND_IN_H
#define STAND_IN_H

/* uvm.c: calls a function that has the name of one in stand-in.c, as two modules of the driver
 * have. */
void uvm_enter(void);

#endif
