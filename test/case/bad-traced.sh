#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that is traced already: say by whom, and leave it alone.
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
target=$pid
start tracer "$V/odd" tracer "$target"
"$TOOL/procstate" "$target" >"$T/$target.before"
sb --backend inject -p "$target" :victim_work 1us --for 200ms
[ "$rc" -ne 0 ] || fail 'it was let in'
told traced
told "$pid"
told odd
"$TOOL/procstate" "$target" >"$T/$target.after"
diff "$T/$target.before" "$T/$target.after" || fail 'the target was changed'
finish tracer "$pid"
finish calls "$target"
