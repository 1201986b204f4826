#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Ctrl-C while `list` asks an interpreter ends it when nothing of ours is in the target any more;
# Ctrl-Z does not leave a thread of the target standing.
. "$SRC/test/lib.sh"
need_python

interrupted() { # SIGNAL STATUS
	sb_start list -p "$pid" 'py:__main__:*'
	wait_for 10 grep -q memfd:sbinject "/proc/$pid/maps" || fail "$1: it did not get to the interpreter"
	kill "-$1" "$sb_pid"
	[ "$1" != TSTP ] || { sleep 0.5 && kill -CONT "$sb_pid"; }
	sb_wait
	ended "$2" "list and SIG$1"
	let_go "$pid"
	! find "/proc/$pid/fd" -lname '*memfd*' | grep . || fail "$1: a descriptor is left"
}

start held "${python[0]}" "$SRC/test/victim/python/held.py" "$T"
interrupted INT 130
interrupted TERM 143
interrupted TSTP 0
touch "$T/stop"
wait "$pid" || fail "status $?"
said held '^self-check ok$' || fail 'the program went wrong'
