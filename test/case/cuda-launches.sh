#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a launch asks for, in each recorded call: grid, blocks, shared memory and stream, from registers,
# from the stack and from a configuration in memory, as the driver itself has them. A configuration
# that is not on the thread's stack is unknown, and no address is followed that may not be read.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
need python3

cat >"$T/shapes.py" <<'END'
import collections, json, sys
NAMES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared", "stream")
counts, unknown = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X" or not e["name"].startswith("cuLaunchKernel"):
        continue
    a = e["args"]
    shape = [a[n] for n in NAMES]
    if None in shape:
        assert shape == [None] * 8, a
        unknown[int(a["function"], 16)] += 1
        continue
    counts[(int(a["function"], 16), *shape[:7], int(shape[7], 16))] += 1
own = collections.Counter()
for line in open(sys.argv[2]):
    if line.startswith("shape "):
        _, f, grid, block, shared, stream, n = line.split()
        number = lambda p: 0 if p == "(nil)" else int(p, 16)
        own[(number(f), *map(int, grid.split(",")), *map(int, block.split(",")), int(shared),
             number(stream))] += int(n)
elsewhere = (0x4000, 5, 5, 5, 6, 6, 6, 7, 0x8000)
assert unknown == {0x4000: own.pop(elsewhere)}, unknown
assert counts == own, (counts - own, own - counts)
assert len(own) > 9
print(sum(counts.values()), sum(unknown.values()))
END

ROUNDS=90
for threads in 1 4; do
	sb trace cuda:launch --json "$T/run.json" -o "$T/t.jsonl" -- "$V/cuda" -t $threads -n $ROUNDS -e "$V/libcuda.so.1"
	ended 0
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	same 'no call lost' "$(j trace.lost)" 0
	python3 "$T/shapes.py" "$T/t.jsonl" "$T/sb.out" >"$T/shapes" || fail "$threads threads: $(cat "$T/shapes")"
	read -r known unknown <"$T/shapes"
	same "$threads: launches" $((known + unknown)) "$(j cuda.launches)"
	same "$threads: configurations elsewhere" "$unknown" $((threads * ROUNDS / 5))
done
