#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# arg=, ret, sum=: the values of each recorded call are those of one call, in threads, in a signal
# handler, beside exceptions and longjmp(); sums and missed calls are the program's own. What a
# jump to another function returns is unknown, and an argument that the first instruction changes is
# as it was before.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"
need python3

[ -x "$V/values" ] || skip 'there is no C++ compiler'
cat >"$T/check.py" <<'END'
import collections, json, sys
n = collections.Counter()
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X" or e["type"] == "delay":
        continue
    a, name = e["args"], e["name"]
    n[name] += 1
    if name == "v_call":
        assert int(a["p"], 16) == a["n"] * 16 + 4096, a
        assert a["ret"] == (a["n"] * 3 + a["fd"] if a["n"] % 5 else -a["n"]), a
    elif name == "v_tail":
        assert a["ret"] is None, a
    else:
        assert a["ret"] == a["x"] + 7 + a["y"], a
print(*(n[name] for name in ("v_call", "v_tail", "v_first")))
END
call=(:v_call 'arg=fd:1:i32' 'arg=p:2:ptr' 'arg=n:3:u32' 'sum=n' 'ret' 'sum=ret')
tail=(:v_tail 'arg=x:1' 'ret' 'sum=ret' 'sum=x')
first=(:v_first 'arg=x:1' 'arg=y:2:i64' 'ret')

own() { sed -n "s/^$1 //p" "$T/sb.out"; }
value() { j "targets.$1.spans.values.$2.$3"; } # TARGET VALUE FIELD

check() { # after a run
	ended 0 "$1"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$1: the victim is not as it was"
	same "$1: hits" "$(j targets.0.hits)" "$(own 'calls v_call')"
	same "$1: calls" "$(j targets.0.spans.calls)" "$(own 'returned v_call')"
	same "$1: missed" "$(j targets.0.spans.missed)" \
		$(($(own 'calls v_call') - $(own 'returned v_call')))
	same "$1: n" "$(value 0 2 sum)" "$(own 'sum v_call n')"
	same "$1: of calls" "$(value 0 2 sum_calls)" "$(own 'returned v_call')"
	same "$1: ret" "$(value 0 3 sum)" "$(own 'sum v_call ret')"
	same "$1: not negative" $(($(value 0 3 sum_calls) < $(own 'returned v_call'))) 1
	same "$1: a jump's" "$(value 1 1 sum_calls)" 0
	same "$1: its argument's" "$(value 1 0 sum_calls)" "$(own 'calls v_tail')"
}

sb trace "${call[@]}" "${tail[@]}" "${first[@]}" -o "$T/calls.jsonl" --ring 64M --json "$T/run.json" -- \
	"$V/values" 4 3000
check recorded
read -r v_call v_tail v_first < <(python3 "$T/check.py" "$T/calls.jsonl") || fail 'a wrong value'
same 'recorded: all' "$((v_call + v_tail + v_first + $(j trace.lost)))" \
	"$(($(own 'returned v_call') + $(own 'calls v_tail') + $(own 'calls v_first')))"
more 'recorded: v_call' "$v_call" 100
more 'recorded: v_tail' "$v_tail" 100
more 'recorded: v_first' "$v_first" 100
told 'v_call'

# Sums alone, and with a delay.
sb trace "${call[@]}" "${tail[@]}" --json "$T/run.json" -- "$V/values" 2 500
check summed
sb "${call[@]}" 2us "${tail[@]}" 0 --json "$T/run.json" -- "$V/values" 2 500
check delayed
more 'delayed' "$(j targets.0.delayed)" 100
