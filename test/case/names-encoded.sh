#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A name that is no UTF-8 has one form: in --json, in --events, in sbctl's answers and in metrics; and
# a request that has its bytes finds it.
# beside others
. "$SRC/test/lib.sh"
need python3

name=$'nomod\xff.so:f\xc3\xbc' form=$'nomod\xee\xbf\xbf.so:f\xc3\xbc' # U+EFFF, as sbinject(1) has it
ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }
same_name() { # WHERE FILE EXPRESSION: a name in a JSON document d
	python3 - "$2" "$3" "$form" <<'END' >"$T/names.out" || fail "$1: $(cat "$T/names.out")"
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
d = [json.loads(line) for line in text.splitlines()] if sys.argv[3] and sys.argv[1].endswith("l") else json.loads(text)
got = eval(sys.argv[2])
print(repr(got), "not", repr(sys.argv[3]))
sys.exit(got != sys.argv[3])
END
}

start calls "$V/calls" -p 2000
snapshot "$pid"
port=$(free_port)
attach "$pid" :victim_work 0 "$name" 0 --events "$T/events.jsonl" --metrics "$port"
await_session
ctl --json list
same_name 'sbctl list' "$T/ctl.out" 'd["targets"][1]["target"]'
ctl list
grep -aqF 'nomod\xff.so:fü delay_ns=0' "$T/ctl.out" || fail "sbctl list: $(cat "$T/ctl.out")"
curl -s "http://127.0.0.1:$port/metrics" >"$T/metrics" || fail 'no metrics'
grep -aqF "target=\"$form\"" "$T/metrics" || fail "metrics: $(grep -a nomod "$T/metrics")"
ctl update "$name" 5us
same_name '--events' "$T/events.jsonl" '[e for e in d if e["event"] == "update"][0]["target"]'
ctl --json remove "$name"
ctl --json add "$name" 0
same_name 'sbctl add' "$T/ctl.out" 'd["target"]'
! "$CTL" add "$name" 0 2>"$T/twice" || fail 'added twice'
grep -aq '^sbctl: EEXIST: ' "$T/twice" || fail "$(cat "$T/twice")"
sb_stop
grep -aqF "target 'nomod\\xff.so:fü' is pending" "$T/sb.err" || fail "the warning: $(cat "$T/sb.err")"
same_name --json "$T/run.json" 'd["targets"][1]["spec"]'
unchanged "$pid"
