/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_DEVICE_H
#define SB_SESSION_DEVICE_H

#include "priv.h"
#include "device-read.h"

/*
 * --device-times: a device agent (inject/device-abi.h) in each process that uses CUDA, and what is
 * known of it. The agent is loaded once the process has CUPTI's library and has opened the driver's
 * device: before that CUPTI might initialize CUDA in a program that forks afterwards, and CUDA does
 * not work in its children then. For the same reason it never enters a child that has inherited the
 * device.
 *
 * device_step() goes on in each process; true: something is under way, call it again soon. It
 * dispatches events, and stops single threads for a moment. device_stop() ends and unmaps the
 * agents, for at most ten seconds; an agent that does not end by then stays, and ends by itself.
 * device_reap() adds up what is known of processes that have ended, before their records go: no
 * caller may hold a struct device. device_close() adds up the rest.
 */
struct device;

bool device_step(struct inject_session *s, uint64_t now);
void device_stop(struct inject_session *s);
void device_reap(struct inject_session *s);
void device_close(struct inject_session *s);

#endif
