#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A hooked process changes who it is: not dumpable any more, another user, a set-user-ID program.
# It is let go as any other, by root and by its own user.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"

need_root
need setpriv
mkdir -m 777 "$T/open"
cp "$SB" "$V/lives" "$T/open/"
chmod 755 "$T/open/"*
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'

# changes WHAT MODE COMMAND...: started by COMMAND..., hooked, changed, let go
changes() {
	local what=$1 mode=$2
	shift 2
	start "$mode" "$@" "$T/open/lives" "$mode"
	snapshot "$pid"
	for follow in '' --no-follow; do
		# shellcheck disable=SC2086 # words
		attach "$pid" :lives_fn 1us $follow
		if [ -z "$follow" ]; then
			kill -USR1 "$pid"
			wait_for 5 said "$mode" '^changed$' || fail "$what: it does not change"
		fi
		sleep 0.2
		sb_stop
		ended 0 "$what $follow"
		more "hits, $what $follow" "$(j targets.0.hits)" 100
		! grep -q warning "$T/sb.err" || fail "$what: $(cat "$T/sb.err")"
	done
	unchanged "$pid"
	finish "$mode" "$pid"
}
changes 'not dumpable, by root' nodump
changes 'another user, by root' setuid

# Its own user: hooked while it was dumpable, let go when it is not. A second attach is refused.
# shellcheck disable=SC2086 # words
start nodump $nobody "$T/open/lives" nodump
snapshot "$pid"
for follow in --no-follow ''; do
	rm -f "$T/open/run.json"
	# shellcheck disable=SC2086 # words
	env --default-signal=INT $nobody "$T/open/sbinject" -p "$pid" :lives_fn 1us $follow \
		--json "$T/open/run.json" >"$T/sb.out" 2>"$T/sb.err" </dev/null &
	sb_pid=$!
	pids+=("$sb_pid")
	wait_for 20 hooked "$pid" || fail "no hook was planted in $pid"
	[ -n "$follow" ] || kill -USR1 "$pid"
	[ -n "$follow" ] || wait_for 5 said nodump '^changed$' || fail 'it does not change'
	sleep 0.2
	sb_stop
	ended 0 "by its own user $follow"
	wait_for 5 test -s "$T/open/run.json" || fail 'no JSON'
	more "hits, own user $follow" "$("$TOOL/jget" "$T/open/run.json" targets.0.hits)" 100
done
unchanged "$pid"
finish nodump "$pid"

# A set-user-ID program started by a hooked process becomes what it would without us.
cp "$V/lives" "$T/open/root"
chown root "$T/open/root"
chmod 4755 "$T/open/root"
for follow in '' --no-follow; do
	# shellcheck disable=SC2086 # words
	start become $nobody "$T/open/root" become
	# shellcheck disable=SC2086 # words
	attach "$pid" root:lives_fn 1us $follow
	kill -USR1 "$pid"
	wait_for 5 said become '^euid' || fail 'it does not exec'
	same "euid $follow" "$(sed -n 's/^euid //p' "$T/become.out")" 0
	sleep 0.2
	sb_stop
	ended 0
	let_go "$pid"
	finish become "$pid"
done
