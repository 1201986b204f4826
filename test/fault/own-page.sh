#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each step by which a fork gets a page of its own fails, or sbinject is killed in it: the fork and its
# parent run on to their end, and are restored, by the process that is left or by `recover`.
# limit: 300 s
. "$SRC/test/lib.sh"
need_root

SB=$BUILD-fault/sbinject
[ -x "$SB" ] || skip "$SB is not built (make FAULT=1)"

clean() { ! grep -qs memfd:sbinject /proc/"$parent"/maps /proc/"$worker"/maps; }
ours() { find "/proc/$1/fd" -lname '/memfd:sbinject*' 2>/dev/null; }
found() {
	parent=$(cat "$T/pid" 2>/dev/null) && worker=$(pgrep -P "$parent") && [ -n "$worker" ]
}
over() { grep -qsx 'self-check ok' "$T/out"; }
# On a busy machine it may be over before it was seen.
seen() { found || over; }

# try POINT:N ACTION
try() {
	rm -f "$T/pid" "$T/out"
	cat >"$T/go.sh" <<-END
		echo \$\$ >"$T/pid"
		exec "$V/dropped" own >"$T/out" 2>&1
	END
	# shellcheck disable=SC2016
	SBINJECT_FAULT=$1=$2 timeout 30 "$SB" dropped:dropped_fn 1us -- sh "$T/go.sh" \
		>"$T/sb.out" 2>"$T/sb.err" </dev/null &
	sb_pid=$!
	wait_for 10 seen || fail "$1=$2: no worker: $(cat "$T/sb.err")"
	if [ "$2" = kill-both ] && ! over; then
		wait "$sb_pid" 2>/dev/null
		sleep 0.1
		# It may have ended by itself, with its hooks in.
		if timeout 30 "$SB" recover -p "$parent" -p "$worker" >"$T/rec" 2>&1; then
			clean || fail "$1=$2: recover left something"
			[ -z "$(ours "$worker")" ] || fail "$1=$2: a file is open: $(ours "$worker")"
		else
			wait_for 5 over || fail "$1=$2: recover: $(cat "$T/rec")"
		fi
	fi
	wait_for 20 over || fail "$1=$2: the program went wrong: $(tail -n 3 "$T/out" "$T/sb.err")"
	! [ "$2" = error ] || ! grep -qx shared "$T/out" || fail "$1=$2: it was not tried again"
	rc=0
	[ "$2" = kill-both ] || { wait "$sb_pid" || rc=$?; } 2>/dev/null
	[ "$rc" -lt 126 ] || [ "$2" != error ] || fail "$1=$2: sbinject ended with status $rc"
	echo "$1=$2: status $rc"
}

for action in error kill-tracer kill-client kill-both; do
	for point in part-files part-rear part-front part-done setup-move:1 setup-move:2; do
		try "$point" "$action"
	done
done
