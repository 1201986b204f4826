#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The agent is a library, too, and is loaded with the interpreter's lock held: its thread does not ring the
# doorbell for it, and so waits for no look for other targets in all libraries of a large process.
# beside idle work
# limit: 120 s
. "$SRC/test/lib.sh"
need_python

libraries=300
echo 'int small(void) { return 1; }' >"$T/small.c"
cc -shared -fPIC -o "$T/small.so" "$T/small.c" || fail 'no library is built'
for ((i = 0; i < libraries; i++)); do cp "$T/small.so" "$T/small$i.so"; done
cat >"$T/large.py" <<'P'
import ctypes, sys, time
loaded = [ctypes.CDLL("%s/small%d.so" % (sys.argv[1], i)) for i in range(int(sys.argv[2]))]
def step():
    return 1
print('ready', flush=True)
end = time.time() + 100
while time.time() < end:
    step()
P
targets=()
for ((i = 0; i < 7; i++)); do targets+=("libnone$i.so.*:none" 0); done

best() { # TARGET...: the longest hold in the best of some attaches, microseconds
	local i held

	us=1000000000
	for ((i = 0; i < 6; i++)); do
		sb -p "$pid" py:__main__:step 0 "$@" --for 100ms --json "$T/run.json" -q
		ended 0
		more hits "$(j targets.0.hits)" 0
		held=$(j gil_held_us.attach)
		[ "$held" -ge "$us" ] || us=$held
	done
}

start large "${python[-1]}" "$T/large.py" "$T" $libraries
best
alone=$us
best "${targets[@]}"
echo "a hold of $alone us alone, of $us us beside $((${#targets[@]} / 2)) native targets"
[ "$us" -lt $((alone * 3 + 1000)) ] || fail "$us us beside native targets, $alone us alone"
kill "$pid"
