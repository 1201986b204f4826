#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh BUILD [NAME...]: sets vLLM up where that has not been done, and runs the checks (README.md).
here=$(cd "$(dirname "$0")" && pwd)
SB=$(realpath "$1/sbinject") TOOL=$(realpath "$1/test/tool")
export SB TOOL PYTHONDONTWRITEBYTECODE=1
folder=${VLLM_ENV:-${XDG_CACHE_HOME:-$HOME/.cache}/sbinject-vllm}
shift

why=$(mktemp) || exit 2
trap 'rm -f "$why"' EXIT
python=$("$here/setup.sh" "$folder" 2> >(tee "$why" >&2))
case $? in
0) "$python" "$here/check.py" "$folder" "$@" ;;
77)
	echo "skip vllm: $(tail -n 1 "$why")"
	echo '0 passed, 0 failed, 1 skipped'
	;;
*) exit 1 ;;
esac
