#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace --stacks: the callers of slow calls are those that the program itself finds: recursion, two
# callers of one function, the C library in between, threads, signal handlers on this stack and on
# another one, coroutines, a fork, C++ exceptions; with the unwinder's tables and with frame pointers.
# Calls that are not recorded copy nothing.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need python3
need nm

checked() { # VICTIM CALLS WAYS MORE...: of $T/calls.jsonl
	read -r calls whole ways missing < <(python3 "$SRC/test/tool/stacks.py" "$T/calls.jsonl" "$T/truth" \
		"$V/$1" "${@:4}" 2>&1 | tee "$T/compared") || true
	[ "$calls $ways $missing" = "$2 $3 0" ] || fail "$1: $(cat "$T/compared")"
}

traced() { # VICTIM ROUNDS OPTIONS...
	rm -f "$T/truth"
	sb trace :slow arg=id:1:i64 --stacks --min 1ms -o "$T/calls.jsonl" --json "$T/run.json" "${@:3}" -- \
		"$V/$1" "$T/truth" "$2"
	ended 0 "$1"
	same "$1: calls with stacks" "$(j trace.stacks)" "$(j trace.calls)"
	same "$1: stacks lost" "$(j trace.stacks_lost)" 0
	grep -q 'self-check ok' "$T/sb.out" || fail "$1: no self-check"
}

traced stacks 4 --stack-size 32K
checked stacks $((13 * 4 + 1)) 8
same 'whole stacks' "$whole" $((calls - 2 * 4)) # not those on another stack
same 'calls that are not recorded' "$(j trace.filtered)" $((50 * 4))

# The frames of libraries without frame pointers have tables.
traced stacks-pointers 2 --stack-size 32K
checked stacks-pointers $((13 * 2 + 1)) 8 partly

traced stacks-throw 0
checked stacks-throw 15 3
same 'whole stacks of C++' "$whole" 15

# A copy that is too small: what there is of it is right, and says why there is no more.
traced stacks 1 --stack-size 512
checked stacks 14 8 short
less 'whole stacks in 512 bytes' "$whole" 14
grep -q '"stack_end":"truncated: the copy of the stack ends here: 512 bytes"' "$T/calls.jsonl" ||
	fail 'no word about the end of the copy'

# All formats say the same, and are read back.
for format in pftrace json; do
	sb report "$T/calls.jsonl" -o "$T/calls.$format"
	ended 0 "to $format"
	sb report "$T/calls.$format" -o "$T/again.jsonl"
	ended 0 "from $format"
	for file in calls again; do
		grep -o '"stack":.*' "$T/$file.jsonl" | sort >"$T/$file.stacks"
	done
	same "stacks in $format" "$(wc -l <"$T/again.stacks")" 14
	cmp -s "$T/calls.stacks" "$T/again.stacks" || fail "$format: other stacks"
done
sb report "$T/calls.pftrace" --slowest 30
ended 0
for line in 'which took .* was called by' '^  stacks:recurse+0x' \
	'^  \.\.\. truncated: the copy of the stack ends here'; do
	grep -q -- "$line" "$T/sb.out" || fail "the report does not say '$line'"
done
sb report "$T/calls.pftrace" --slowest 30 --json "$T/report.json"
python3 - "$T/report.json" <<'END' || fail 'stacks in the report as JSON'
import json, sys
slowest = json.load(open(sys.argv[1]))["slowest"]
assert len(slowest) == 14 and all(call["stack"] for call in slowest)
assert any(call.get("stack_end", "").startswith("truncated") for call in slowest)
END

refuses 125 'all are' trace :slow --stacks -o "$T/x.jsonl" -- "$V/stacks" "$T/truth"
refuses 125 '--stacks needs -o FILE' trace :slow --stacks --every 3 -- "$V/stacks" "$T/truth"
refuses 125 'not a size from 512 to 64K' trace :slow --stack-size 100 -o "$T/x.jsonl" -- "$V/stacks" "$T/truth"
