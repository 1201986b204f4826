#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program in valgrind is refused with the reason, attached, listed or launched: what is mapped there
# is never run, and "never called" would be untrue.
# limit: 60 s
# beside others
. "$SRC/test/lib.sh"
need valgrind

start vg valgrind -q --tool=none "$V/calls" -p 50000
wait_for 20 said vg '^ready$' || fail 'the victim did not start'
refuses 3 'runs in valgrind' -p "$pid" :victim_work 0
refuses 3 'runs in valgrind' -p "$pid" calls:victim_work 0
sb list -p "$pid" calls:victim_work
told 'runs in valgrind'
kill -TERM "$pid"
sb calls:victim_work 0 --json "$T/run.json" -- valgrind -q --tool=none "$V/calls" -n 1000
told 'runs in valgrind'
same outcome "$(j targets.0.outcome)" refused
