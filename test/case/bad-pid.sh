#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No such pid, kernel threads, zombies, itself: each its own error, with a remedy.
# quick
# beside others
. "$SRC/test/lib.sh"

none=4194000
while [ -d /proc/$none ]; do none=$((none - 1)); done
refuses 5 'no (such )?process' -p $none :main 1us
refuses 5 'no (such )?process' list -p $none :main
if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
	# not 5: it exists; the text must say what it is
	sb -p 2 :main 1us
	[ "$rc" -ne 0 ] && [ "$rc" -ne 2 ] || fail "a kernel thread: status $rc"
	told 'kernel thread'
fi
start zombie "$V/odd" zombie
sb -p "$(sed -n 's/^pid //p' "$T/zombie.out")" :main 1us
[ "$rc" -ne 0 ] && [ "$rc" -ne 2 ] || fail "a zombie: status $rc"
told zombie
finish zombie "$pid"
# itself: the shell execs it, so that $$ is its own pid
rc=0
timeout 20 sh -c 'exec "$0" -p $$ :main 1us --for 1s' "$SB" >"$T/sb.out" 2>"$T/sb.err" || rc=$?
[ "$rc" -ne 0 ] || fail 'it attached to itself'
told 'itself\|sbinject'
# An ancestor is fine: it leaves itself and its tracer out of the tree.
cat >"$T/ancestor.sh" <<'END'
timeout 20 "$SB" -p $$ bash:main 1us 'libc.so.6:read' 0 --for 400ms --json "$T/run.json" 2>"$T/sb.err" &
sb=$!
for i in 1 2 3 4 5 6 7 8 9 10; do x=$(echo $i); sleep 0.05; done
wait $sb
END
timeout 30 bash "$T/ancestor.sh" || fail "attached to its own parent: status $?"
for ((i = 0; i < $(j processes.#); i++)); do
	[[ $(j "processes.$i.exe") != */sbinject ]] || fail 'it hooked itself'
done
