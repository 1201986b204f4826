#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guide's server and what the guide says of it: the cold function sets the pace.
# beside others
. "$SRC/test/lib.sh"
guide=$(command -v python3) || skip 'python3 is not installed'
# the interpreter itself, not a wrapper: it is attached to by its pid
guide=$("$guide" -c 'import sys; print(sys.executable); sys.exit(sys.version_info < (3, 10))') ||
	skip 'python3 is older than 3.10'
"$SB" py:a:b 0 -- "$guide" -c 0 2>&1 | grep -q 'without Python support' && skip 'built without Python'

"$guide" "$SRC/docs/example/server.py" 0 >"$T/server.out" 2>"$T/server.err" &
pid=$!
pids+=("$pid")
wait_for 20 said server '^pid ' || fail "no server: $(cat "$T/server.err")"
port=$(sed -n 's/.* port //p' "$T/server.out")

answered() { # TARGET DELAY: under it, in three seconds
	sb -p "$pid" --json "$T/run.json" "$1" "$2" -- "$guide" "$SRC/docs/example/load.py" "$port" 3
	ended 0
	requests=$(sed 's/ .*//' "$T/sb.out")
}
sb list -p "$pid" 'py:__main__:*'
grep -q 'Engine.schedule' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"
# Those that wait are found without any name given, and the cold one is among them.
"$guide" "$SRC/docs/example/load.py" "$port" 9 >"$T/load.out" 2>&1 &
pids+=($!)
sb find -p "$pid" --dry-run --json "$T/find.json"
ended 0
wait "${pids[-1]}" || fail "the load: $(cat "$T/load.out")"
if "$guide" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' &&
	[ "$("$TOOL/jget" "$T/find.json" explain.looks)" != null ]; then
	seen=$("$TOOL/jget" "$T/find.json" explain.waits.0.samples)
	for name in device_run Engine.schedule; do
		[ $name = device_run ] || [ "$seen" -ge 130 ] || break # too few looks for a tenth of the time
		[[ $("$TOOL/jget" "$T/find.json" commands.count) == *" py:__main__:$name 0"* ]] ||
			fail "find does not see $name: $(cat "$T/sb.out")"
	done
fi

answered py:__main__:Audit.record 0
same 'records' "$(j targets.0.hits)" "$requests"
plain=$requests
answered py:__main__:Engine.schedule 60ms # half of the speed would be 40 ms
less "requests, of $plain" $((requests * 10)) $((plain * 7))
wait_for 10 grep -q '^TracerPid:	0$' "/proc/$pid/status" || fail 'still traced'
! grep sbinject "/proc/$pid/maps" || fail 'something stayed'
