#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Help comes from the table of verbs; what is unknown is refused with status 2.
# quick
# beside others
. "$SRC/test/lib.sh"

sb --version
ended 0
grep -qE '^sbinject [0-9]+\.[0-9]+' "$T/sb.out" || fail "--version: $(cat "$T/sb.out")"
sb --help
ended 0
for word in list recover doctor --pid --targets --delay --every --start-on --for --mechanism \
	--max-slowdown --require-hits --json --jsonl --tag --interval --no-follow --no-children --match \
	--from-env --daemon --status-fd --metrics --metrics-file --report --metrics-by-pid --events --perf-map \
	--perf-map-keep sweep explain find compare report trace --evidence every= start= for= pid= thread= resume= inline= at= time=; do
	grep -q -- "$word" "$T/sb.out" || fail "--help does not name $word"
done
refuses 2 'bogus' --bogus
sb
ended 2
sb -p $$
ended 2
sb doctor
[ "$rc" -le 1 ] || fail "doctor: status $rc"
grep -q inject "$T/sb.out" || fail 'doctor does not name a backend'
# Quotes that a manual page opens it closes: a nested list of them swallows what follows.
if command -v mandoc >/dev/null; then
	for page in "$SRC"/man/*; do
		! mandoc -Tascii "$page" 2>/dev/null | sed 's/.\x08//g' | grep '"""' || fail "$page: quotes"
	done
fi
# no one-letter option for delay or targets
sb -d 5us -p $$ :main
ended 2
sb -f "$T/x" -p $$
ended 2
