#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No such module or symbol, an ambiguous one, data: status, near names, target untouched.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -l "$V/victim-lib.so"
snapshot "$pid" -t
refuses 3 'victim_work' -p "$pid" :victim_wokr 1us # suggests the near name
refuses 3 'victim_none' -p "$pid" :victim_none_such 1us
refuses 3 'lib_fn' -p "$pid" calls:lib_fn_ 1us
# a symbol of another module is suggested with that module
refuses 3 'victim-lib' -p "$pid" libc.so.6:lib_fn 1us
# of several modules that all lack it, the near name of any
refuses 3 'none of the [0-9]+ modules' -p "$pid" '*:nanoslep' 1us
told "'nanosleep'"
refuses 3 'GLIBC_2' -p "$pid" libc.so.6:memcpy@GLIBC_9 1us # the versions that are there
refuses 3 'shorter' -p "$pid" libc.so.6:strlen+0x100000 1us
refuses 3 'kernel' -p "$pid" '[vdso]:__vdso_time' 1us
refuses 3 'data|not a function' -p "$pid" :victim_data 1us
sb -p "$pid" :twin 1us
[ "$rc" -ne 0 ] || fail 'two functions of one name were taken for one'
told '0x' # the addresses that can be typed
unchanged "$pid" -t
refuses 3 'victim_nothing' -p "$pid" ':victim_nothing*' 1us
# one good and one bad target: nothing is hooked
refuses 3 'bogus_fn' -p "$pid" :victim_work 1us :bogus_fn 1us
unchanged "$pid" -t
sb -p "$pid" libnope.so:f 1us --for 200ms
ended 3
told libnope
unchanged "$pid" -t
finish calls "$pid"
