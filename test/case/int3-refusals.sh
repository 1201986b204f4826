#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# int3 needs its tracer: refused with --no-follow and --no-children; its floor is said.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -p 100000
snapshot "$pid"
refuses 2 'int3|no-follow' -p "$pid" :victim_work 1ms --mechanism int3 --no-follow --for 1s
refuses 2 'int3|no-children' -p "$pid" :victim_work 1ms --mechanism int3 --no-children --for 1s
unchanged "$pid"
sb -p "$pid" :victim_work 100ns --mechanism int3 --for 300ms --json "$T/run.json"
ended 0
told 'warning'
more hits "$(j targets.0.hits)" 10
same mechanism "$(j targets.0.sites.0.mechanism)" int3
unchanged "$pid"
sb -p "$pid" :victim_work 1ms --mechanism int3 --for 500ms --json "$T/run.json"
ended 0
mean=$(j targets.0.given_ns.mean)
more 'mean given' "${mean%.*}" 980000
unchanged "$pid"
finish calls "$pid"
