#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# All of libc hooked at once under a shell that forks and execs.
. "$SRC/test/lib.sh"

cat >"$T/loop.sh" <<'END'
echo ready
while [ ! -e stop ]; do
	set -- $(echo a b c | tr a-z A-Z)
	[ "$*" = "A B C" ] || echo "wrong: $*"
done
echo self-check ok
END
start sh sh "$T/loop.sh"
for what in 'libc.so.6:str*' 'libc.so.6:*alloc*' 'libc.so.6:*'; do
	sb -p "$pid" "$what" 0 --for 1s --json "$T/run.json"
	ended 0 "$what"
	more "hits of $what" "$(j targets.0.hits)" 100
	let_go "$pid"
done
more sites "$(j targets.0.sites.#)" 1000
touch "$T/stop"
wait "$pid" || fail 'the shell failed'
! grep -q wrong "$T/sh.out" || fail "$(grep wrong "$T/sh.out" | head -n 3)"
