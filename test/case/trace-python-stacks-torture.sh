#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace --stacks of Python programs that leave nothing as it was: functions that are made, called once
# and freed, exceptions, threads, forks, an interpreter that ends beside its threads, frames that are
# none; SIGKILL of the tracer, of the command line and of both, and detaches in the middle. No program
# is harmed, and no call has a frame that it did not have.
# limit: 300 s
# beside others, as live idle work
. "$SRC/test/lib.sh"
need_python versions

lib='victim-pycall.so'
program=$SRC/test/victim/python/callers.py

known() { # PYTHON
	"$1" -c 'import ctypes, sys
sys.exit(sys.version_info >= (3, 14) or "t" in sys.abiflags)' 2>/dev/null
}

traced() { # PYTHON WAY EVERY ARGS...
	rm -f "$T/truth"
	sb trace "$lib:pycall_fast" arg=id:1:i32 --every "$3" --stacks --stack-size 32K -o "$T/calls.jsonl" \
		--json "$T/run.json" -- "$1" "$program" "$V/$lib" "$T/truth" "$2" "${@:4}"
	ended 0 "$1 $2"
	grep -q 'self-check ok' "$T/sb.out" || fail "$1 $2: no self-check: $(cat "$T/sb.out")"
}

kept_on() { # PYTHON: it is attached to, left, and killed, and goes on
	local who victim tracer

	start python "$1" "$program" "$V/$lib" "$T/truth" endless
	victim=$pid
	for who in detach tracer command both detach; do
		rm -f "$T/calls.jsonl"
		sb_start trace -p "$victim" "$lib:pycall_fast" --every 2 --stacks -o "$T/calls.jsonl"
		wait_for 20 grep -qs '"py:throw_away' "$T/calls.jsonl" || fail "$1: $who: no stack: $(cat "$T/sb.err")"
		tracer=$(sed -n 's/^TracerPid:\t//p' "/proc/$victim/status")
		case $who in
		detach) kill -INT "$sb_pid" ;;
		tracer) kill -KILL "$tracer" ;;
		command) kill -KILL "$sb_pid" ;;
		both) kill -KILL "$sb_pid" "$tracer" ;;
		esac
		sb_wait
		await_untraced "$victim"
		[ "$who" != both ] || sb recover -p "$victim"
		wait_for 10 "$TOOL/textcheck" "$victim" || fail "$1: $who: the program has changed"
	done
	kill -TERM "$victim"
	wait "$victim" || fail "$1: the program ended with $?: $(cat "$T/python.err")"
	grep -q 'self-check ok' "$T/python.out" || fail "$1: no self-check"
}

for p in "${python[@]}"; do
	known "$p" || continue
	traced "$p" torture 3 "$(rounds 600 6000)"
	python3 "$SRC/test/tool/pycallers.py" "$T/calls.jsonl" "$T/truth" some >"$T/compared" ||
		fail "$p: $(cat "$T/compared")"
	read -r calls _ unknown _ <"$T/compared"
	same "$p: calls" "$((calls + unknown))" "$(j trace.stacks)"
	less "$p: stacks that are not complete" "$unknown" $((calls / 20 + 1))

	# What the thread's state says are no frames: neither is the program harmed, nor is anything guessed.
	traced "$p" nonsense 3
	more "$p: calls" "$(j trace.stacks)" 500
	grep -q '"stack_end":"[^"]*Python frames are not known: they could not be read"' "$T/calls.jsonl" ||
		fail "$p: nothing could not be read: $(grep -c "\"py:" "$T/calls.jsonl") with frames, $(grep -o "\"stack_end\":\"[^\"]*\"" "$T/calls.jsonl" | sort | uniq -c)"
	grep -q '"py:[^"]*" *,[^]]*"stack_end":"[^"]*they could not be read' "$T/calls.jsonl" &&
		fail "$p: frames of what could not be read"

	for _ in 1 2 3; do
		sb trace "$lib:pycall_slow" --min 1ms --stacks -o "$T/calls.jsonl" -- "$p" "$program" "$V/$lib" "$T/truth" daemons
		ended 0 "$p: threads that outlive the interpreter"
	done
	kept_on "$p"
done
