/* SPDX-License-Identifier: MIT */
#ifndef SB_CLI_SWEEP_H
#define SB_CLI_SWEEP_H

#include "src/base/err.h"

/*
 * Sweeps as the words of the command line say; word[0] is the verb. Returns the exit status. *err
 * (empty before): what the caller prints, also of a sweep that gave its result. After an interrupt
 * before the first window it is SB_EINTERRUPTED, and there is no result.
 */
int sweep_by_words(int argc, char **word, struct sb_err *err);

#endif
