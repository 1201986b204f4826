#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A targets file that is missing, empty or has a bad line, which is numbered.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid"
refuses 1 'missing-file' -p "$pid" --targets "$T/missing-file"
: >"$T/empty"
refuses 2 'empty' -p "$pid" --targets "$T/empty"
printf '# only\n\n  # comments\n' >"$T/comments"
refuses 2 'comments' -p "$pid" --targets "$T/comments"
printf ':victim_work 1us\n\n:victim_other 7\n' >"$T/bad"
refuses 2 'bad:3' -p "$pid" --targets "$T/bad"
printf ':victim_work 1us\n"unfinished\n' >"$T/quote"
refuses 2 'quote:2' -p "$pid" --targets "$T/quote"
head -c 4096 /dev/urandom >"$T/noise"
sb -p "$pid" --targets "$T/noise"
ended 2
sb -p "$pid" --targets "$T"
[ "$rc" -ne 0 ] || fail 'a folder passed for a targets file'
unchanged "$pid"
finish calls "$pid"
