#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Launch mode keeps the command's status, streams and end; 125, 126, 127 are its own.
# quick
# beside others
. "$SRC/test/lib.sh"

sb :main 0 -- sh -c 'echo out; echo err >&2; exit 9'
ended 9
same stdout "$(cat "$T/sb.out")" out
grep -q '^err$' "$T/sb.err" || fail 'the stderr of the command is lost'
sb :main 0 -- sh -c 'kill -KILL $$'
ended 137
sb :main 0 -- "$T/nowhere"
ended 127
told nowhere
echo text >"$T/plain"
sb :main 0 -- "$T/plain"
ended 126
sb :main 0xyz -- true
ended 125
sb -- "$V/chain" 1 0
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail 'a launch without target did not run its command'

echo input | "$SB" :main 0 -- cat >"$T/cat.out" 2>/dev/null
same stdin "$(cat "$T/cat.out")" input
# after --for the command runs on unhooked to its end
sb :victim_work 10us --for 200ms --json "$T/run.json" -- "$V/calls" -n 200000
ended 0
grep -q '^calls victim_work 200000$' "$T/sb.out" || fail 'the command did not run to its end'
less hits "$(j targets.0.hits)" 200000
more hits "$(j targets.0.hits)" 0
