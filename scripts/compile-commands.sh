#!/bin/sh
# SPDX-License-Identifier: MIT
# compile-commands.sh COMPILER FLAG... -- FILE...: prints compile_commands.json
set -eu
quote() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }
args='' sep=''
while [ "$1" != -- ]; do
	args="$args$(quote "$1"), "
	shift
done
shift
dir=$(quote "$(pwd)")
echo "["
for file; do
	name=$(quote "$file")
	printf '%s\t{ "directory": %s, "file": %s,\n\t  "arguments": [%s"-c", %s] }' \
		"$sep" "$dir" "$name" "$args" "$name"
	sep=",
"
done
printf '\n]\n'
