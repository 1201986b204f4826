#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 120 s
# A forked worker with the user and group id 65534, which writes anything into the page that it shares with
# its parent, spoils counts, and no more: root's parent neither dies nor hangs nor has its memory written to nor
# its delays changed, while targets are added and changed in it. There is no way to write the
# settings, for root either.
. "$SRC/test/lib.sh"
need_root

# In the last two of its periods; on a busy machine one may pass without a call.
calls_again() { [ "$(tail -n 2 "$T/$1.out" | sed -n 's/^rate //p' | sort -n | tail -n 1)" -gt 0 ]; }
runs_on() { # it still calls its functions
	local was

	was=$(grep -c '^rate' "$T/$1.out")
	wait_for 10 more_lines "$1" $((was + 3)) || fail "$1 does not run any more: $(tail -n 3 "$T/$1.out" "$T/$1.err")"
	wait_for 10 calls_again "$1" || fail "$1 hangs in a call"
}
more_lines() { [ "$(grep -c '^rate' "$T/$1.out")" -gt "$2" ]; }
ctl() { "$CTL" "$@" >"$T/ctl.out" 2>"$T/ctl.err"; }

# Delays of 1 and 2 us leave a third of the calls that a second of processor time had before them; a
# delay that the worker wrote, years, leaves none. Not by the clock: other tests run beside this one.
steady() { # NAME: while it is hooked, a call costs what it did before, and its delay
	local fast slow

	fast=$(sed -n "s/^a processor's second //p" "$T/$1.out" | head -n 4 | tail -n 1)
	slow=$(sed -n "s/^a processor's second //p" "$T/$1.out" | tail -n 2 | sort -n | tail -n 1)
	[ "$slow" -gt $((fast / 20)) ] || fail "$1: $fast calls in a second of processor time became $slow"
}

native() { # HOW TARGET...
	local how=$1

	rm -rf "$SBINJECT_RUNTIME_DIR"
	start "$how" "$V/dropped" "$how"
	snapshot "$pid"
	runs_on "$how"
	attach "$pid" "${@:2}"
	await_session
	kill -USR1 "$pid"
	wait_for 20 said "$how" '^scribbled$' || fail "$how: nothing was overwritten"
	runs_on "$how"
	ctl add :dropped_other 1us || fail "$how: add: $(cat "$T/ctl.err")"
	runs_on "$how"
	ctl update :dropped_other 2us || fail "$how: update: $(cat "$T/ctl.err")"
	runs_on "$how"
	steady "$how"
	sb_stop
	# What was counted makes no sense, and a document of it may not.
	[ "$rc" -le 1 ] || fail "$how: sbinject ended with status $rc"
	unchanged "$pid"
	runs_on "$how"
	finish "$how" "$pid"
}

native noise :dropped_fn 1us
native tables :dropped_fn 1us thread='dropp*'
native delays :dropped_fn 1us
native settings :dropped_fn 1us
! grep '^open' "$T/settings.out" || fail 'the settings can be written'
