#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions of a Go program: those that check their stack, whose way back from morestack must not
# count twice, and leaves, which check nothing and have whatever stack is left. Counts are exact while
# stacks grow, goroutines are preempted and collected, stripped or not; the program runs on through
# attach after attach of all that can be hooked.
# limit: 180 s
# beside others
. "$SRC/test/lib.sh"
need go

export GOCACHE=$T/cache GOFLAGS=-buildvcs=false GOTOOLCHAIN=local HOME=$T
(cd "$SRC/test/victim/go" && go build -o "$T/plain" . && go build -ldflags='-s -w' -o "$T/stripped" .) ||
	skip 'this Go cannot build the victim'

# What begins by pushing its frame pointer, as from Go 1.21 on, is refused where it checks nothing.
names=(leaf checked deep)
start plain "$T/plain"
sb list -p "$pid" ':main.*'
! grep -E 'main.(leaf|checked|deep) .* no: ' "$T/sb.out" || fail 'it cannot be hooked'
! grep -q 'framed.* jump$' "$T/sb.out" || names+=(framed)

others=()
for name in "${names[@]:1}"; do others+=(":main.$name" 0); done

for program in plain stripped; do
	for delay in 0 1us; do
		start "$program" "$T/$program"
		attach "$pid" :main.leaf "$delay" "${others[@]}"
		kill -USR1 "$pid"
		sleep 1
		kill -TERM "$pid"
		wait_for 10 said "$program" '^self-check ok$' || fail "$program: it went wrong"
		sb_wait
		ended 0
		for i in "${!names[@]}"; do
			same "$program, $delay: ${names[i]}" "$(j "targets.$i.hits")" \
				"$(calls "$program" "${names[i]}")"
		done
	done
done

# What the runtime does for a function counts for that one, as a candidate to be slowed.
start plain "$T/plain"
kill -USR1 "$pid"
sb explain -p "$pid" --time 2s --json "$T/run.json"
ended 0
if [ "$(j candidates)" != null ]; then
	python3 - "$T/run.json" <<'P' || fail "candidates: $(cat "$T/run.json")"
import json, sys
share = {c["target"]: c["share"] for c in json.load(open(sys.argv[1]))["candidates"]}
assert any(t.startswith(":main.") for t in share), share
for name in "mallocgc", "growslice", "makeslice", "newstack", "copystack", "newobject", "makechan":
    assert ":runtime." + name not in share, share
P
fi

# All of it, again and again.
for round in {1..6}; do
	sb -q -p "$pid" ':*' 0 --for 200ms
	[ "$rc" -eq 0 ] || fail "round $round: status $rc"
done
kill -TERM "$pid"
wait_for 10 said plain '^self-check ok$' || fail 'it died of it'

# Most of the rest, too, but for the runtime's.
start plain "$T/plain"
sb list -p "$pid" ':*'
more 'functions that can be hooked' "$(grep -c ' jump$' "$T/sb.out")" \
	$(($(grep -c ' no: ' "$T/sb.out") * 2))
