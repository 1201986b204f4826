#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh BUILD [CHECK...]: builds launches.cu, and runs the checks (README.md).
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1")
out=$build/test/gpu
shift
export PYTHONDONTWRITEBYTECODE=1

skip() {
	echo "skip gpu: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || skip 'no nvcc (the CUDA toolkit)'
nvidia-smi >/dev/null 2>&1 || skip 'no device that nvidia-smi finds'
mkdir -p "$out"
"$nvcc" -O2 -arch=native -o "$out/launches" "$here/launches.cu" || exit 1
"$nvcc" -O2 -arch=native --cudart shared -o "$out/launches-shared" "$here/launches.cu" || exit 1
exec python3 "$here/check.py" "$build/sbinject" "$out/launches" "$out/checks" "$@"
