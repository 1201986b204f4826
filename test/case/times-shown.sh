#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How long calls take (time=yes, trace) is the same in the summary, the JSON, sbctl list and the
# status line; functions that cannot be timed are named with the reason; what cannot be done is refused.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3

# The victim measures its calls itself, from outside: what is shown is a little less, never more.
about() { # NAME ROW: its own sum of the times of NAME, and targets.ROW of the JSON
	local own total
	own=$(sed -n "s/^took $1 //p" "$T/sb.out")
	total=$(j targets."$2".spans.inclusive_ns)
	same "$1: calls" "$(j targets."$2".spans.calls)" "$(calls sb "$1")"
	less "$1: total" "$total" "$own"
	more "$1: total" "$total" $((own * 3 / 4))
}
sb trace :span_outer :span_inner :span_left :span_ends later.so:span_none --json "$T/run.json" -- "$V/spans" 50
ended 0
grep -q '^self-check ok$' "$T/sb.out" || fail "$(cat "$T/sb.out")"
about span_outer 0
about span_inner 1
more 'shortest' "$(j targets.1.spans.min_ns)" 99000
more 'p50' "$(j targets.1.spans.p50_ns)" 97000
python3 - "$T/run.json" <<'P' || fail 'the figures do not agree'
import json, sys
outer, inner, left, ends, none = [t for t in json.load(open(sys.argv[1]))["targets"]]
for t in outer, inner, left, ends, none:
    assert t["timed"] is True and t["delay_ns"] == 0, t
    s = t["spans"]
    assert sum(n for _, _, n in s["histogram"]) == s["calls"], s
    assert not s["calls"] or s["min_ns"] <= s["p50_ns"] <= s["p90_ns"] <= s["p99_ns"] <= s["max_ns"]
o, i, l = outer["spans"], inner["spans"], left["spans"]
# Calls were left by longjmp(): in which of them others were made is not known.
assert o["exclusive_ns"] is None and i["exclusive_ns"] is None, (o, i)
assert (l["calls"], l["missed"], l["p50_ns"], l["min_ns"]) == (0, 5, None, None), l
(why,) = ends["sites_untimed"]
assert why["symbol"] == "span_ends" and "never returns" in why["reason"], why
assert "sites_untimed" not in outer
P
sb trace :span_outer :span_inner --json "$T/run.json" -- "$V/spans" 50
ended 0
python3 - "$T/run.json" <<'P' || fail 'the figures do not agree'
import json, sys
o, i = [t["spans"] for t in json.load(open(sys.argv[1]))["targets"]]
# span_inner runs twice in each span_outer, and once beside it.
inside = o["inclusive_ns"] - o["exclusive_ns"]
assert 2 * o["calls"] * 100000 <= inside < i["inclusive_ns"], (o, i)
assert i["exclusive_ns"] == i["inclusive_ns"], i
P
sb trace :span_outer :span_inner :span_left :span_ends later.so:span_none --json "$T/run.json" -- "$V/spans" 50
# The times come first, those that took the most before the others; unknown is not 0.
head -n 2 "$T/sb.err" | tail -n 1 | grep -q '^:span_outer  *50 ' || fail 'the table of trace'
told '^target  *calls  *mean  *p50  *p90  *p99  *max  *total  *own  *missed$'
told '^:span_left  *0\(  *-\)\{5\}  *0  *-  *5$'
told '^:span_ends  *0\(  *-\)\{5\}  *0  *-  *1$'
told '^later.so:span_none\(  *-\)\{9\}$'
told '^missed: calls of which no return was seen'
told '^not timed: 1 function of :span_ends:$'
told '^  span_ends: .*never returns'
same 'the words' "$(j argv.0) $(j argv.1) $(j argv.2)" 'sbinject trace :span_outer'

# Beside targets that are not timed: a table of its own below the first. Delays are not part of the
# times, whether before the call or behind it.
sb :span_inner 200us time=yes :span_outer 0 --json "$T/run.json" -- "$V/spans" 50
ended 0
same 'not timed' "$(j targets.1.timed)$(j targets.1.spans)" ''
head -n 1 "$T/sb.err" | grep -q '^target  *mechanism' || fail 'the first table'
same 'a row in both tables' "$(grep -c '^:span_inner' "$T/sb.err")" 2
same 'a row in the first' "$(grep -c '^:span_outer' "$T/sb.err")" 1
less 'without its delays' "$(j targets.0.spans.p50_ns)" 190000
sb trace :span_inner 200us at=exit :span_outer time=no --json "$T/run.json" -- "$V/spans" 50
less 'without those at exits' "$(j targets.0.spans.p50_ns)" 190000
more 'its delays' "$(j targets.0.injected_ns)" 29000000
same 'time=no' "$(j targets.1.timed)" ''
same 'no delay' "$(j targets.1.delay_ns)" 0
sb :span_inner 400us at=both time=yes --json "$T/run.json" -- "$V/spans" 50
less 'without their halves' "$(j targets.0.spans.p50_ns)" 190000
more 'two halves' "$(j targets.0.injected_ns)" 59000000

# The status line, a live session, options of a session.
start spans "$V/spans"
snapshot "$pid"
attach "$pid" :span_outer 0 time=yes :span_left 0 :span_ends 0 time=yes --interval 100ms
await_session
"$CTL" add :span_inner 0 time=yes >"$T/ctl" || fail 'sbctl add'
sleep 0.3
"$CTL" list >"$T/ctl" || fail 'sbctl list'
grep -qE '^:span_outer delay_ns=0 hits=[0-9]+ calls=[1-9][0-9]* missed=[01] inclusive_ns=[1-9][0-9]* exclusive_ns=[1-9][0-9]* min_ns=[6-9][0-9]{5} p50_ns=[0-9]+ p90_ns=[0-9]+ p99_ns=[0-9]+ max_ns=[0-9]+$' \
	"$T/ctl" || fail "sbctl list: $(cat "$T/ctl")"
grep -qE '^:span_inner .* calls=[1-9][0-9]* ' "$T/ctl" || fail "added: $(cat "$T/ctl")"
grep -qE '^:span_left delay_ns=0 hits=[0-9]+$' "$T/ctl" || fail "not timed: $(cat "$T/ctl")"
grep -qE '^:span_ends .* calls=0 .* p50_ns=- .* untimed=1$' "$T/ctl" || fail "untimed: $(cat "$T/ctl")"
"$CTL" --json list >"$T/run.json" || fail 'sbctl --json list'
more 'in its JSON' "$(j targets.0.spans.p50_ns)" 590000
same 'without buckets' "$(j targets.0.spans.histogram)" ''
TERM=dumb timeout 1 "$CTL" watch --interval 100ms </dev/null >"$T/ctl"
grep -qE '^target .* given +took$' "$T/ctl" || fail "watch: $(cat "$T/ctl")"
grep -qE '^:span_outer .* - +[0-9.]+[um]s ' "$T/ctl" || fail "watch: $(cat "$T/ctl")"
grep -qE '^:span_left .* - +- ' "$T/ctl" || fail "watch, not timed: $(cat "$T/ctl")"
sb_stop
ended 0
grep -qE ' :span_outer hits [0-9]+ [0-9.]+/s given - took [0-9.]+[um]s' "$T/sb.err" || fail 'the status line'
grep -qE ' :span_left hits [0-9]+ [0-9.]+/s given -( |$)' "$T/sb.err" || fail 'of a target that is not timed'
unchanged "$pid"
sb trace -p "$pid" :span_inner --start-on :span_outer --for 100ms --json "$T/run.json"
ended 0
more 'a trace of a process' "$(j targets.0.spans.calls)" 10
same 'what it waits for is not timed' "$(j targets.1.timed)" ''
unchanged "$pid"

# What is refused, with the reason and what helps.
refuses 2 'belongs to the name of a function' -p "$pid" :@spans.c:40 time=yes
refuses 2 'only calls of a function' trace -p "$pid" :@spans.c:40
refuses 2 'neither yes nor no' -p "$pid" :span_inner time=1
refuses 2 'exits of an inlined copy' -p "$pid" :span_inner time=yes inline=yes
refuses 2 'does not belong' trace --all :span_inner
refuses 2 'no target' trace -p "$pid"
rc=0
"$SB" trace -- "$V/spans" 1 >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 125 'trace without a target'
told 'no target'
many=()
for i in {1..253}; do many+=(":span_$i" 0 time=yes); done
refuses 1 'at most 252 targets' -p "$pid" "${many[@]}"
attach "$pid" :span_outer 0
await_session
! "$CTL" add :span_inner time=yes >"$T/ctl" 2>&1 || fail 'time=yes was added'
grep -q 'ENOSPC.*started without time=yes' "$T/ctl" || fail "sbctl add: $(cat "$T/ctl")"
sb_stop
unchanged "$pid"
finish spans "$pid"

# What can be timed: a function is one row, whatever the number of its exits.
"$SB" list ':span_*' time=yes -- "$V/spans" >"$T/list" || fail 'list'
same 'its rows' "$(grep -c '^:span_\* ' "$T/list")" 4
grep -q 'span_ends .*jump; not timed: .*never returns' "$T/list" || fail "$(cat "$T/list")"
grep -q 'span_outer .*  jump$' "$T/list" || fail "$(cat "$T/list")"
grep -qF ':span_*: 3 of 4 functions can be timed (75.0 %)' "$T/list" || fail "$(cat "$T/list")"

# It is what a session does: the same functions are not timed, for the same reasons.
sb 'libc.so.6:*[fm]*' 0 time=yes --json "$T/run.json" -- "$V/spans" 1
ended 0
"$SB" list 'libc.so.6:*[fm]*' time=yes --json "$T/list.json" -- "$V/spans" >"$T/list" || fail 'list'
python3 - "$T/run.json" "$T/list.json" <<'P' || fail 'list says otherwise than a session does'
import json, sys
run, look = [json.load(open(name))["targets"][0] for name in sys.argv[1:]]
key = lambda r: (r["symbol"], r["reason"])
assert sorted(map(key, run["sites_untimed"])) == sorted(map(key, look["sites_untimed"]))
reasons = {s["symbol"]: s["untimed"] for s in look["sites"] if "untimed" in s}
assert reasons == {s["symbol"]: s["reason"] for s in look["sites_untimed"]}
assert any("no space" in r for r in reasons.values()) and len(reasons) < len(look["sites"]) / 2
assert "spans" not in look and look["timed"] is True
P
