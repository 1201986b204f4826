#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --match finds processes by their command line, lists them, and hooks them.
# quick
# beside others
. "$SRC/test/lib.sh"

cp "$V/calls" "$T/odd-name-here"
start one "$T/odd-name-here" -t 1
one=$pid
start two "$T/odd-name-here" -t 1
snapshot "$one"
snapshot "$pid"
sb --match "$T/odd-name-here -t*" :victim_work 1us --for 300ms --json "$T/run.json"
ended 0
same processes "$(j processes.#)" 2
told "$one"
told "$pid"
unchanged "$one"
unchanged "$pid"
finish one "$one"
finish two "$pid"
refuses 5 'match' --match '*no-such-command-line*' :victim_work 1us
