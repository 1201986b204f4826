/* SPDX-License-Identifier: MIT */
#ifndef SB_DRIVER_H
#define SB_DRIVER_H

#include "spec.h"

/*
 * The targets of --kernel: those of the file nvidia.kernel beside the presets, which has the form
 * of a targets file. Each is `optional`: kernels differ in what they have.
 */
#define DRIVER_TARGETS "nvidia.kernel" /* RESULT_DRIVER */

/* Appends those that the list does not have. SB_EFILE, SB_ESPEC: the file is missing, not to be
 * trusted or wrong, or has a target that is not in the kernel. */
int driver_targets(struct spec_list *list, struct sb_err *err);

#endif
