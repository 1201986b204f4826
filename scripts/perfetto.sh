#!/bin/sh
# SPDX-License-Identifier: MIT
#
# perfetto.sh [DIR]: makes a Python environment with Perfetto's package, by which a test reads traces
# as Perfetto's own tools do. What is there already is left alone. Without DIR: $SBINJECT_PERFETTO,
# else ~/.cache/sbinject/perfetto, where the test looks for it.
set -u
dir=${1:-${SBINJECT_PERFETTO:-$HOME/.cache/sbinject/perfetto}}

[ -x "$dir/bin/python3" ] && "$dir/bin/python3" -c 'import perfetto.protos' 2>/dev/null && exit 0
command -v python3 >/dev/null || { echo 'perfetto: python3 is not installed' >&2; exit 1; }
rm -rf "${dir:?}"
mkdir -p "${dir%/*}"
python3 -m venv "$dir" && timeout 300 "$dir/bin/python3" -m pip install -q --disable-pip-version-check \
	perfetto protobuf && exit 0
rm -rf "${dir:?}"
echo 'perfetto: the package could not be installed (pip install perfetto protobuf)' >&2
exit 1
