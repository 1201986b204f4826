#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Under the heaviest delay, 10 s in every thread: SIGINT, SIGTERM and the terminal's end let go at
# once; a stopped or stalled command line holds no thread beyond the delay. The projection warns.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

# The delays are a hundred times what is allowed here: it is no matter of load.
AT_MOST_MS=2000
ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
free() { "$TOOL/textcheck" "$pid" && grep -q '^TracerPid:	0$' "/proc/$pid/status"; }

for signal in INT TERM HUP; do
	start calls "$V/calls" -t 6 -r
	snapshot "$pid" -t
	attach "$pid" :victim_work 10s
	sleep 0.3
	begin=$(ms)
	sb_stop $signal
	took=$(($(ms) - begin))
	ended 0 "$signal"
	less "ms from SIG$signal to the end" $took $AT_MOST_MS
	echo "SIG$signal: $took ms"
	unchanged "$pid" -t
	sleep 0.7
	more 'calls a second afterwards' "$(rate calls)" 10000
	finish calls "$pid"
done

# The command line is killed or stopped: the tracer goes on, or lets go, by itself.
start calls "$V/calls" -t 3 -r
snapshot "$pid" -t
attach "$pid" :victim_work 10s
sleep 0.2
begin=$(ms)
kill -KILL "$sb_pid"
wait_for 10 free || fail 'not let go after SIGKILL of the command line'
less 'ms from SIGKILL of the command line' $(($(ms) - begin)) $AT_MOST_MS
echo "SIGKILL of the command line: $(($(ms) - begin)) ms"
unchanged "$pid" -t
attach "$pid" :victim_work 1s --for 1500ms
kill -STOP "$sb_pid"
wait_for 20 free || fail 'a stopped command line holds its target beyond --for'
kill -CONT "$sb_pid"
sb_wait
ended 0 'continued'
unchanged "$pid" -t
finish calls "$pid"

start calls "$V/calls" -t 2
sb -p "$pid" :victim_work 100us --for 1500ms
ended 0
grep -qiE 'warning: .*(%|slow)' "$T/sb.err" || fail 'no projection warning'
finish calls "$pid"
