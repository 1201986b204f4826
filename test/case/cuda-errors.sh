#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# report names what failed, by function: as often as the driver itself says, also after a conversion
# of the trace, and with the number alone where no file has a name for it. Kernels are counted by handle.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"

ROUNDS=30
sb trace cuda --json "$T/run.json" -o "$T/t.pftrace" -- "$V/cuda" -t 2 -n $ROUNDS -e "$V/libcuda.so.1"
ended 0
said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
same 'no call lost' "$(j trace.lost)" 0
calls=$(j cuda.api_calls)
failed() { awk -v n="${1:-}" '$1 == "failed" && (n == "" || $2 == n) { s += $3 } END { print s + 0 }' "$T/sb.out"; }
# by FUNCTION-STEM NAME CODE: calls with that code in the report
by() {
	python3 - "$T/run.json" "$1" "$2" "$3" <<'END'
import json, sys
cuda = json.load(open(sys.argv[1]))["cuda"]
name = None if sys.argv[3] == "-" else sys.argv[3]
print(sum(e["calls"] for e in cuda["errors"] if e["function"].startswith(sys.argv[2])
          and e["name"] == name and e["code"] == int(sys.argv[4])))
END
}
need python3

"$SB" report "$T/t.pftrace" >"$T/report.out" || fail 'report'
for format in pftrace json jsonl; do
	"$SB" report "$T/t.pftrace" -o "$T/again.$format" || fail "conversion to $format"
	"$SB" report "$T/again.$format" --json "$T/run.json" >/dev/null || fail "report of $format"
	same "$format: calls with a result" "$(j cuda.results)" "$calls"
	same "$format: failed" "$(j cuda.failed)" "$(failed)"
	same "$format: launches" "$(by cuLaunchKernel CUDA_ERROR_INVALID_VALUE 1)" "$(failed cuLaunchKernel)"
	same "$format: allocations" "$(by cuMemAlloc CUDA_ERROR_OUT_OF_MEMORY 2)" "$(failed cuMemAlloc)"
	same "$format: queries" "$(by cuEventQuery CUDA_ERROR_NOT_READY 600)" "$(failed cuEventQuery)"
	same "$format: a code without a name" "$(by cuMemFree - -77)" "$(failed cuMemFree)"
	same "$format: left out" "$(j cuda.errors_left_out)" 0
done
# Launches by the handle of the kernel.
for handle in 0x1000 0x2000 0x3000 0x4000 0x5000; do
	same "launches of $handle" "$(python3 -c 'import json, sys
print(sum(k["launches"] for k in json.load(open(sys.argv[1]))["cuda"]["kernels"] if k["kernel"] == sys.argv[2]))' \
		"$T/run.json" $handle)" "$(sed -n "s/^launches $handle //p" "$T/sb.out")"
done
same kernels "$(j cuda.kernels.#)" 5
same 'launches without a kernel' "$(j cuda.kernels_unknown)" 0
same 'failed queries' "$(failed cuEventQuery)" $((2 * (ROUNDS + ROUNDS / 3)))
grep -q "^errors: $(failed) of $calls calls returned another code than 0:" "$T/report.out" ||
	fail "errors in: $(cat "$T/report.out")"
grep -qE "^ *$((2 * ROUNDS)) +2 +CUDA_ERROR_OUT_OF_MEMORY +cuMemAlloc_v2\$" "$T/report.out" ||
	fail "the name in: $(cat "$T/report.out")"
grep -qE "^ *$((2 * ROUNDS)) +-77 +- +cuMemFree_v2\$" "$T/report.out" || fail "the number in: $(cat "$T/report.out")"

# The longest waits: ten, none of them longer than one before it, each with its sleep of 300 us.
grep -q '^longest waits ' "$T/report.out" || fail "no waits in: $(cat "$T/report.out")"
same waits "$(j cuda.longest_syncs.#)" 10
last=$(j cuda.longest_syncs.0.dur_ns)
for i in 0 1 2 3 4 5 6 7 8 9; do
	now=$(j cuda.longest_syncs.$i.dur_ns)
	((now <= last && now >= 290000)) || fail "wait $i: $now behind $last"
	last=$now
done

# A user's own names come first; a line that is no name is left out.
mkdir -p "$T/own/sbinject/presets"
printf '# mine\n-77 MY_ERROR\n2\nnonsense\n' >"$T/own/sbinject/presets/cuda.results"
chmod -R go-w "$T/own"
XDG_CONFIG_HOME="$T/own" "$SB" report "$T/t.pftrace" --json "$T/run.json" >/dev/null || fail 'own names'
same 'a name of the user' "$(by cuMemFree MY_ERROR -77)" "$(failed cuMemFree)"
same 'no name of the user' "$(by cuMemAlloc - 2)" "$(failed cuMemAlloc)"
