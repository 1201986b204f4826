#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A launched command has to start before its file or its page can be read: the progress source is tested after the
# launch, and that it does not answer yet, or has an old number, is no error. An error comes at once, not when the
# command ends. Ctrl-C ends the wait.
# beside others
# limit: 60 s
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"

echo 1000000000 >"$T/published" # of a run before
sb sweep -q :crit --progress "file:$T/published" --time 3s --json "$T/sweep.json" -- \
	"$V/sweep-shapes" serial publish=20 n=13000
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc"
awk -v n="$(sj windows.0.items)" -v s="$(sj time_s)" 'BEGIN { exit !(n > 0 && s > 1) }' ||
	fail "nothing was measured: $(cat "$T/sb.out")"
grep -q '^self-check ok$' "$T/sb.out" || fail 'the command did not end as it should'

# What never answers is an error, of the source; it comes before the command's end.
sb_start sweep -q libm.so.6:sin --progress "file:$T/never" --time 4s -- sleep 6
wait_for 4 grep -qi 'no such file' "$T/sb.err" || fail 'the error comes late'
kill -0 "$sb_pid" || fail 'sbinject does not wait for the command'
sb_wait
ended 1

# At a prompt the command gets the signal, too.
sb_start sweep -q libm.so.6:sin --progress "file:$T/never" --time 100s -- sh -c 'echo $$ >command; exec sleep 40'
wait_for 20 test -s "$T/command" || fail 'the command did not start'
nap 0.5
from=$SECONDS
kill -INT "$(cat "$T/command")"
sb_stop
ended 6
less 'seconds until the end' $((SECONDS - from)) 10
