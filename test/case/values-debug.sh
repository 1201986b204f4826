#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# args=yes: the arguments that the debug information names are those of each call; what it does not
# say for sure is refused, or left out with a word.
# beside others
. "$SRC/test/lib.sh"
need python3 objcopy

[ -x "$V/arguments" ] || skip 'there is no C++ compiler'
cat >"$T/check.py" <<'END'
import collections, json, sys
seen = collections.Counter()
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X":
        continue
    a, name = e["args"], e["name"]
    seen[name] += 1
    n = seen[name]
    a = {k: v for k, v in a.items() if k not in ("module", "thread")}
    if name == "a_kinds":
        assert a == {"i": n % 100 - 50, "c": n % 3, "n": -n, "odd": n % 2 == 1}, a
    elif name == "a_names":
        r, arg2 = int(a.pop("r"), 16), int(a.pop("arg2"), 16)
        assert a == {"module_": n} and r and arg2, a
    elif name == "a_returned":
        assert a == {"n": n}, a
    else:
        assert name.startswith("holder::method("), name
        assert a.keys() == {"this", "low", "text", "ret"} and a["low"] == n * 3 % 65536, a
        assert int(a["this"], 16) and int(a["text"], 16), a
assert len(seen) == 4 and len(set(seen.values())) == 1, seen
print(*set(seen.values()))
END
sb trace :a_kinds args=yes :a_names args=yes :a_returned args=yes :holder::method args=yes ret \
	-o "$T/calls.jsonl" --ring 16M --json "$T/run.json" -- "$V/arguments" 2000
ended 0
same 'calls' "$(python3 "$T/check.py" "$T/calls.jsonl")" 2000 || fail 'a wrong value'
same 'a value of the sums' "$(j targets.0.spans.values.1.name)" c
same 'its type' "$(j targets.0.spans.values.1.type)" u8
same 'its argument' "$(j targets.0.spans.values.1.argument)" 2

sb list :a_kinds args=yes -- "$V/arguments"
ended 0
grep -qF ':a_kinds: of each call that is timed: i (argument 1, i8), c (argument 2, u8), n (argument 3, i64), odd (argument 4, bool)' \
	"$T/sb.out" || fail "list: $(cat "$T/sb.out")"
told 'a_kinds: argument 2 (d) is in no integer register'

# refused_as REASON TARGET [KEY...]: not hooked; the program runs as it does without
refused_as() {
	local reason=$1
	shift
	sb "$@" 0 -- "$V/arguments" 1
	told "$reason"
	[ "$rc" -ne 0 ] || grep -q '^calls 1$' "$T/sb.out" || fail "$*: the program did not run"
}
refused_as 'args=yes: a_object: argument 1 (p) is an object passed by value' :a_object args=yes
refused_as 'args=yes: a_float: argument 1 (d) is in no integer register' :a_float args=yes
refused_as 'args=yes: a_none: it has no arguments' :a_none args=yes
clone=$(nm "$V/arguments" | sed -n 's/.* t \(_ZL7a_clone.*\.\(isra\|constprop\)\..*\)/\1/p' | head -n 1)
[ -z "$clone" ] || refused_as 'the compiler changed how its arguments are passed' ":$clone" args=yes
refused_as 'and arg= exclude each other' :a_kinds arg=i:1 args=yes
refused_as 'and args=yes exclude each other' :a_kinds args=yes arg=i:1
refused_as 'is neither yes nor no' :a_kinds args=maybe
refused_as 'native function' py:a:b args=yes

# Functions of one pattern: those with the arguments of the first are taken.
sb list ':a_*' args=yes --json "$T/list.json" -- "$V/arguments"
ended 0
grep -q 'its arguments are not those of the first function of the target' "$T/sb.out" "$T/list.json" ||
	fail "list: $(cat "$T/sb.out")"

# A function is searched for once, in however many processes.
sb trace arguments:a_kinds args=yes --json "$T/run.json" -- \
	bash -c 'for i in {1..40}; do "$1" 10 >/dev/null || exit; done' - "$V/arguments"
ended 0
same 'calls in 40 processes' "$(j targets.0.spans.calls)" 400
same 'its first value' "$(j targets.0.spans.values.0.name)" i

# Without debug information nothing is guessed.
objcopy --strip-debug "$V/arguments" "$T/bare"
sb :a_kinds 0 args=yes -- "$T/bare" 1
told 'args=yes: a_kinds: its file has no debug information'
sb -p $$ libc.so.6:getpid 0 args=yes --for 10ms
[ "$rc" -ne 0 ] || fail 'without debug information: attached'
told 'arg=NAME:N'
