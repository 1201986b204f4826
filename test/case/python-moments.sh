#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 400 s
# An attach or a detach at any moment of an interpreter's short life, its start and its end among
# them: the program says what it always says, ends as it always ends, and no thread hangs.
. "$SRC/test/lib.sh"
need_python versions
ROUNDS=${ROUNDS:-12}
RANDOM=${SEED:-$RANDOM}

targets=('py:__main__:step 100ns' 'py:__main__:* 1us libc.so.6:getpid 1us' 'libc.so.6:getpid 1us'
	'py:__main__:work 1us')

# begin PYTHON: a program whose pid is there before, at or after the interpreter's start
begin() {
	local life=0.$((RANDOM % 4))$((RANDOM % 10))

	if [ $((RANDOM % 2)) -eq 0 ]; then
		sh -c "sleep 0.1$((RANDOM % 10)); exec '$1' '$SRC/test/victim/python/brief.py' 0.0$((RANDOM % 10))" \
			>"$T/brief.out" 2>"$T/brief.err" &
	else
		"$1" "$SRC/test/victim/python/brief.py" "$life" >"$T/brief.out" 2>"$T/brief.err" &
	fi
	pid=$!
	pids+=("$pid")
	sleep "0.0$((RANDOM % 7))$((RANDOM % 10))"
}

# round PYTHON
round() {
	local status=0 how=() what=${targets[RANDOM % ${#targets[@]}]} interrupt=$((RANDOM % 3))

	[ $((RANDOM % 3)) -eq 0 ] && how+=(--no-follow)
	[ $((RANDOM % 3)) -eq 0 ] && how+=(--for "$((1 + RANDOM % 40))ms")
	begin "$1"
	# shellcheck disable=SC2086 # words
	sb_start "${how[@]}" -p "$pid" $what
	[ $interrupt -eq 0 ] && sleep "0.$((RANDOM % 3))$((RANDOM % 10))" && kill -INT "$sb_pid" 2>/dev/null
	what="$1, ${how[*]} $what"
	wait_for 30 ended_both "$pid" "$sb_pid" || fail "$what: a hang: $(cat "/proc/$pid/task/"*/syscall)"
	wait "$pid" || status=$?
	sb_wait
	same "status of the program, $what" $status 7
	same "output of the program, $what" "$(cat "$T/brief.out" "$T/brief.err")" $'done\nat exit'
	[ "$rc" -lt 124 ] || [ "$rc" -eq 130 ] || fail "$what: status $rc of sbinject"
}

ended_both() { ! kill -0 "$1" 2>/dev/null && ! kill -0 "$2" 2>/dev/null; }

for ((i = 0; i < ROUNDS; i++)); do
	for p in "${python[@]}"; do
		round "$p"
	done
done
