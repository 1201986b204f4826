#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The preset cuda is attached and detached while four threads call the driver: each time all is as
# before, and the program finds every result right. CUDA_ROUNDS=200 is for a long look.
# limit: 300 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"

start cuda "$V/cuda" -t 4 "$V/libcuda.so.1"
snapshot "$pid" -t
hits=0
for round in $(seq "${CUDA_ROUNDS:-10}"); do
	case $((round % 4)) in
	0) words='cuda 0' ;;
	1) words='cuda:launch 1us' ;;
	2) words='cuda:sync 1us cuda 0 time=yes' ;;
	3) words='cuda:memcpy 500ns cuda:alloc 0 --no-follow' ;;
	esac
	# shellcheck disable=SC2086 # words
	sb -p "$pid" $words --for 50ms --json "$T/run.json"
	ended 0 "round $round: $words"
	unchanged "$pid" -t
	for i in 0 1; do
		hits=$((hits + $(j targets.$i.hits | sed 's/null/0/')))
	done
done
more 'hits of all rounds' "$hits" 0
finish cuda "$pid"
