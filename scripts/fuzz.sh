#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh SECONDS HARNESS.c...: builds each libFuzzer harness and runs it for SECONDS.
set -eu
seconds=$1
shift
build='build-fuzz'
flags='-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'

if [ $# -eq 0 ]; then
	echo "fuzz: no harness in test/fuzz/"
	exit 0
fi
if ! command -v clang >/dev/null || ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n);
int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n == -1; }' |
	clang -x c -fsanitize=fuzzer -o /dev/null - 2>/dev/null; then
	echo "fuzz: skipped: no clang with libFuzzer (Debian: clang, libclang-rt-dev)"
	exit 0
fi

make --no-print-directory BUILD=$build CC=clang CFLAGS="$flags" $build/libsb.a
for harness; do
	name=$(basename "$harness" .c)
	make --no-print-directory BUILD=$build CC=clang CFLAGS="$flags" $build/test/fuzz/"$name".o
	# shellcheck disable=SC2046 # flags are words
	clang -fsanitize=fuzzer,address,undefined -o $build/"$name" $build/test/fuzz/"$name".o \
		$build/libsb.a $(pkg-config --libs libelf libdw capstone jansson) -liberty -lpthread -lm
	mkdir -p "$build/corpus/$name"
	seeds="test/fuzz/corpus/$name"
	maker="test/fuzz/make-corpus-${name#fuzz-}.sh" # seeds that are made, not kept
	if [ -x "$maker" ]; then
		seeds="$build/seeds/$name"
		"$maker" "$PWD/$seeds" || seeds=''
	fi
	[ -d "$seeds" ] || seeds=''
	echo "fuzz: $name for $seconds s"
	# shellcheck disable=SC2086 # no seeds, no word
	$build/"$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
		-verbosity=0 -artifact_prefix=$build/"$name"- "$build/corpus/$name" $seeds
done
