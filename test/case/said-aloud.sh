#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Never called, pending, matched nothing: each is said; --require-hits makes it an error.
# quick
# beside others
. "$SRC/test/lib.sh"

sb :victim_idle 1us --json "$T/run.json" -- "$V/calls" -n 10
ended 0
same outcome "$(j targets.0.outcome)" never_called
told 'never called'
sb :victim_idle 1us --require-hits -- "$V/calls" -n 10
ended 125
sb no-such-lib.so:f 1us --json "$T/run.json" -- "$V/calls" -n 10
ended 0
same outcome "$(j targets.0.outcome)" pending
told 'no-such-lib.so'
sb :no_such_function 1us --json "$T/run.json" -- "$V/calls" -n 10
ended 0
same outcome "$(j targets.0.outcome)" no_match
told no_such_function
sb :no_such_function 1us --require-hits -- "$V/calls" -n 10
ended 125

start calls "$V/calls"
snapshot "$pid"
sb -p "$pid" :victim_idle 1us --for 200ms --require-hits
ended 125
sb -p "$pid" no-such-lib.so:f 1us --for 200ms
ended 3 'no target ever became active'
unchanged "$pid"
finish calls "$pid"
