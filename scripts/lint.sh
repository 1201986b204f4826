#!/bin/sh
# SPDX-License-Identifier: MIT
# lint.sh: style and static checks. A tool that is missing is named and skipped; status 1 when a
# tool that is there finds something.
set -u
failed=0 skipped=''

step() { # TOOL DESCRIPTION: false where the tool is missing
	if ! command -v "$1" >/dev/null 2>&1; then
		echo "lint: skipped: $2 ($1 is not installed)"
		skipped="$skipped $1"
		return 1
	fi
	echo "lint: $2"
}
judge() { "$@" || { failed=1; echo "lint: FAILED: $1"; }; }

ours=$(find src ctl inject elf sweep trace evidence python device test -name '*.[ch]' | sort)
# What runs in a kernel is compiled by other rules.
checked=$(find src ctl inject elf sweep trace evidence -name '*.c' ! -path 'inject/kmod/*' ! -name '*.bpf.c' | sort)
agent=$(find python device -name '*.c' | sort) include=$(scripts/find-python.sh)

# shellcheck disable=SC2086 # lists of files are words
{
	step clang-format 'the format of C' && judge clang-format --dry-run -Werror $ours
	step clang-tidy 'clang-tidy on the sources' &&
		judge clang-tidy -p . --quiet --warnings-as-errors='*' $checked 2>/dev/null
	[ -n "$include" ] && step clang-tidy 'clang-tidy on the agent' &&
		judge clang-tidy --quiet --warnings-as-errors='*' $agent -- -std=gnu11 -D_GNU_SOURCE \
			-iquote . "-Ipython/agent/arch/$(uname -m)" -isystem "$include" 2>/dev/null
	step cppcheck 'cppcheck on the sources' &&
		judge cppcheck --quiet --std=c11 --enable=warning,performance,portability \
			--inline-suppr --suppress=missingIncludeSystem \
			--suppress=autoVariables --suppress=uninitdata --suppress=ctuuninitvar \
			--error-exitcode=1 \
			-D__x86_64__ -D_GNU_SOURCE \
			--include=scripts/cppcheck.h -I. \
			$checked $agent
	pages=$(find man -name '*.[1-8]' | sort)
	[ -n "$pages" ] && step mandoc 'the man pages' && judge mandoc -Tlint -Wwarning $pages
	step shellcheck 'the scripts' && judge shellcheck -x -S warning .ci/run scripts/*.sh test/run \
		test/lib.sh test/emulator/*.bash test/emulator/*.sh test/python/pythons.sh test/bench/*.sh test/vllm/*.sh test/gpu/*.sh test/shapes.bash test/sweep.bash test/case/*.sh
}

# The limit of CONTRIBUTING: a function over 60 lines is two.
echo 'lint: the length of functions'
long=$(awk 'FNR == 1 { fn = 0 }
	/^{/ { fn = FNR }
	/^}/ && fn { if (FNR - fn - 1 > 60) print FILENAME ":" fn ": a function of " FNR - fn - 1 " lines"; fn = 0 }
' $ours)
[ -n "$long" ] && echo "$long" && failed=1

[ -n "$skipped" ] && echo "lint: not run:$skipped (make deps has the names: scripts/deps.sh -n lint)"
[ $failed -eq 0 ] && echo 'lint: clean'
exit $failed
