#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# start= and for= open and close a target, --start and --for the run; outside nothing counts.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
sb -p "$pid" :victim_work 0 start=1h :victim_other 0 --for 300ms --json "$T/run.json"
ended 0
same 'hits before the window' "$(j targets.0.hits)" 0
same outcome "$(j targets.0.outcome)" never_called
more 'hits of the other' "$(j targets.1.hits)" 0

sb -p "$pid" :victim_work 1ms start=300ms for=300ms --for 1s --json "$T/run.json"
ended 0
more 'hits in 300 ms' "$(j targets.0.hits)" 10
less 'hits in 300 ms' "$(j targets.0.hits)" 600

sb -p "$pid" :victim_work 1ms --start 700ms --for 1s --json "$T/run.json"
ended 0
more 'hits after --start' "$(j targets.0.hits)" 10
unchanged "$pid"
finish calls "$pid"
