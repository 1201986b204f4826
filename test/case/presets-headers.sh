#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Arguments of presets are where the public headers have them, and the functions of a real library are
# found: where the headers and the library are installed.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
need python3 cc

# Every preset that comes with the program can be read, and fits the number of targets with times.
for file in "$SRC"/share/sbinject/presets/*.preset; do
	name=$(basename "$file" .preset)
	sb list -p $$ "$name"
	case $name in
	locks) ended 0 "$name: $(cat "$T/sb.err")" ;; # every program has these
	*) ended 3 "$name: $(cat "$T/sb.err")" ;;
	esac
	rows=$(grep -cvE '^(#|$)' "$file")
	[ "$rows" -le 252 ] || fail "$name has $rows rows"
	[ -z "$(grep -vE '^(#|$)' "$file" | awk '{ print $2 }' | sort | uniq -d)" ] || fail "$name has a row twice"
done

includes=()
for dir in /usr/local/cuda*/include /usr/local/include; do
	[ ! -d "$dir" ] || includes+=("$dir")
done
compared=''
for pair in cuda:cuda.h cudart:cuda_runtime_api.h nccl:nccl.h cudnn:cudnn.h opencl:CL/cl.h locks:pthread.h; do
	for dir in "${includes[@]}" /usr/include; do
		[ -e "$dir/${pair#*:}" ] || continue
		python3 "$SRC/test/tool/preset-headers.py" "$SRC/share/sbinject/presets/${pair%%:*}.preset" \
			"${includes[@]}" >"$T/headers" || fail "${pair%%:*}: $(cat "$T/headers")"
		compared="$compared ${pair%%:*} ($(tail -n 1 "$T/headers"))"
		break
	done
done
echo "compared with headers:${compared:- none, there are none}"

lib=''
for file in /usr/local/cuda*/lib*/libcudart.so.[0-9]* /usr/lib/*/libcudart.so.[0-9]*; do
	[ ! -e "$file" ] || lib=$file
done
[ -n "$lib" ] || skip "no libcudart here; compared with headers:${compared:- none}"
start runtime python3 -c "
import ctypes, time
ctypes.CDLL('$lib')
print('ready', flush=True)
time.sleep(60)"
snapshot "$pid" -t
sb list -p "$pid" cudart
ended 0
grep -qE '^cudart:cudaLaunchKernel +.* cudaLaunchKernel_ptsz +.*jump$' "$T/sb.out" || fail "no version: $(cat "$T/sb.out")"
grep -qE '^cudart:cudaMalloc +.* cudaMalloc +.*jump$' "$T/sb.out" || fail "no cudaMalloc: $(cat "$T/sb.out")"
more functions "$(grep -c 'jump$' "$T/sb.out")" 200
sb trace -p "$pid" cudart --for 100ms --json "$T/run.json"
ended 0
same 'calls of a program that waits' "$(j targets.0.hits)" 0
unchanged "$pid" -t

# __cudaLaunchKernel of CUDA 13 jumps to cudaLaunchKernel: a launch was counted twice.
! grep -qE '^launch +__cuda' "$SRC/share/sbinject/presets/cudart.preset" || fail 'a launch of cudart counts twice'
