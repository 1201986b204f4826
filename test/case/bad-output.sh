#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A place that cannot be written is found before the target is touched.
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
refuses 2 'nowhere|No such' -p "$pid" :victim_work 1us --for 5s --json "$T/nowhere/run.json"
refuses 2 'nowhere|No such' -p "$pid" :victim_work 1us --for 5s --jsonl "$T/nowhere/run.jsonl"
unchanged "$pid"
# A full disk is said aloud, and the detach is clean all the same.
sb -p "$pid" :victim_work 1us --for 100ms --json /dev/full
[ "$rc" -ne 0 ] || fail 'a full disk passed for success'
unchanged "$pid"
finish calls "$pid"
