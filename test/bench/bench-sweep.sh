#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench-sweep.sh BUILD [SWEEPS [TIME]]: live sweeps of the victims whose kappa is known: how often the
# 95 % interval holds it, and what was said. A row a victim.
set -u
build=${1:-build}
sweeps=${2:-5}
time=${3:-8s}
t=$(mktemp -d)
victim=''
trap '[ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null; rm -rf "$t"' EXIT

# row NAME KAPPA FUNCTION [ARGS...] -- SHAPE [PARAMETER...]
row() {
	local name=$1 kappa=$2 function=$3 args=() held=0 said='' half=0 i lo hi est v

	shift 3
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	"$build/test/victim/sweep-shapes" "$@" >"$t/out" &
	victim=$!
	sleep 0.5
	for ((i = 1; i <= sweeps; i++)); do
		"$build/sbinject" sweep -q -p "$victim" ":$function" --progress :item --time "$time" \
			--seed "$i" --json "$t/json" ${args[@]+"${args[@]}"} >/dev/null
		lo=$("$build/test/tool/jget" "$t/json" targets.0.kappa_ci.0)
		hi=$("$build/test/tool/jget" "$t/json" targets.0.kappa_ci.1)
		est=$("$build/test/tool/jget" "$t/json" targets.0.kappa)
		v=$("$build/test/tool/jget" "$t/json" targets.0.verdict)
		said="$said$v"$'\n'
		[ "$est" != null ] || continue
		held=$((held + $(awk -v l="$lo" -v h="$hi" -v k="$kappa" \
			'BEGIN { print (l <= k && k <= h) ? 1 : 0 }')))
		half=$(awk -v s="$half" -v l="$lo" -v h="$hi" 'BEGIN { print s + (h - l) / 2 }')
	done
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
	victim=''
	printf 'sweep   %-52s %8s    +- %.3f  %s\n' "$name: 95 % interval holds kappa $kappa" \
		"$held of $sweeps" "$(awk -v s="$half" -v n="$sweeps" 'BEGIN { print s / n }')" \
		"$(sort <<<"$said" | sed '/^$/d' | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2 }')"
}

echo
echo "live sweeps of $time on this machine, $(nproc) processors; expected: at least 17 of 20"
row serial 1 crit -- serial
row 'drift of 3 % and AR(1)' 1 crit -- drift
row 'hidden, slack above the doses' 0 hid -- hidden item=2000 slack=1400
row 'partial, a quarter' 0.25 part -- partial
row 'convoy of 2' 2 crit -- convoy
row '2 processes side by side' 1 crit -- ranks
row '2 threads side by side' 1 crit -- threads
row 'pipeline, the bottleneck' 1 stage_b -- pipeline
row 'pipeline, before it' 0 stage_a -- pipeline
row 'adaptive batcher' 1.25 crit -- batch
row 'open loop, saturated' 1 crit -- open every=150
