#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Who may know whom: the design by #include, checked.
# quick
. "$SRC/test/lib.sh"

cd "$SRC" || exit 2
bad=0
forbid() { # WHAT PATTERN FILE...: no file may have the pattern
	local what=$1 pattern=$2 hits
	shift 2
	hits=$(grep -nE "$pattern" "$@" 2>/dev/null) || return
	echo "$what:"
	echo "$hits"
	bad=1
}

shopt -s nullglob globstar
elf=(elf/*.[ch]) inject=(inject/**/*.[chS]) python=(python/**/*.[chS]) sweep=(sweep/*.[ch])
all=({src,elf,inject,python,sweep}/**/*.[chS])
[ ${#all[@]} -gt 20 ] || fail "only ${#all[@]} source files found"

forbid 'elf/ knows no ptrace and nothing of inject/' \
	'#include.*(inject/|sys/ptrace|page-abi)' "${elf[@]}"
# From src/ the lower rooms take errors, log lines and the reader of /proc/PID/maps only.
for file in "${elf[@]}" "${inject[@]}"; do
	hits=$(grep -nE '#include "(\.\./)+src/' "$file" | grep -vE 'src/(err|log|maps)\.h"')
	[ -n "$hits" ] && echo "$file takes more than err.h, log.h and maps.h from src/:" && echo "$hits" && bad=1
done
forbid 'inject/ knows no names: it receives addresses' '#include.*elf/' "${inject[@]}"

others=$(grep -nE '#include "(\.\./)+' "${sweep[@]}" | grep -vE '"\.\./src/(err|log|text)\.h"')
[ -n "$others" ] && echo 'sweep/ takes err.h, log.h and text.h, and nothing else:' && echo "$others" && bad=1
forbid 'sweep/ does no I/O: it is asked and told' \
	'#include <(sys/|unistd|fcntl|pthread|signal|time\.h|poll)' "${sweep[@]}"

others=$(grep -nE '#include "(\.\./)+' "${python[@]}" | grep -vE '"(\.\./)+inject/page-abi\.h"')
[ -n "$others" ] && echo 'the agent shares page-abi.h and nothing else:' && echo "$others" && bad=1

others=$(grep -nE '#include' inject/page-abi.h | grep -vE '<(stdint|assert|stddef)\.h>')
[ -n "$others" ] && echo "page-abi.h includes more than <stdint.h>:" && echo "$others" && bad=1

plain=()
for file in "${all[@]}"; do
	case $file in inject/arch/* | python/arch/*) ;; *) plain+=("$file") ;; esac
done
forbid 'only inject/arch/ may ask for an architecture' '__(x86_64|aarch64|amd64|i386)(__)?' \
	"${plain[@]}"
exit $bad
