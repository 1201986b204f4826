#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# By uprobes: a library that comes later is noticed by the loader's own notice of it; a target that is
# added later is found in a fork whose parent has gone, and in one that has loaded what its parent
# has not; also where another session's hook in the loader takes that notice away.
# beside idle work
. "$SRC/test/lib.sh"
need python3
need_uprobe

which=()
ctl() { "$CTL" "${which[@]}" "$@" >"$T/ctl.out" 2>"$T/ctl.err" || fail "sbctl $*: $(cat "$T/ctl.err")"; }
counted() { "$CTL" "${which[@]}" list >"$T/ctl.out" && grep -q '^victim-lib.so:lib_fn .* hits=[1-9]' "$T/ctl.out"; }

start later "$V/later" "$V/victim-lib.so" 1000000 0 "$T/gate"
attach_told "$pid" --backend uprobe victim-lib.so:lib_fn 0
ctl --json list
same 'before it is loaded' "$("$TOOL/jget" "$T/ctl.out" targets.0.state)" pending
touch "$T/gate"
wait_for 10 counted || fail 'a library that came later is not noticed'
sb_stop
ended 0
let_go "$pid"
finish later "$pid"
more 'hits' "$(j targets.0.hits)" 0
more 'calls, of which the first are missed' "$(calls later lib_fn)" "$(($(j targets.0.hits) - 1))"

cat >"$T/fork.py" <<'P'
import ctypes, os, sys, time

def gate(name):
    while not os.path.exists(sys.argv[2] + "/" + name):
        time.sleep(0.01)

print("ready", flush=True)
gate("fork") # after the attach: what is known of the child is that it is one
if os.fork():
    gate("orphan")
    os._exit(0)
gate("load")
lib = ctypes.CDLL(sys.argv[1])
print("loaded", flush=True)
gate("call")
for _ in range(300):
    lib.lib_fn(1)
    os.getppid()
gate("end")
P
for how in parent orphan deaf; do
	rm -f "$T"/{fork,orphan,load,call,end}
	if [ $how = deaf ]; then
		start hooked "$V/calls"
		attach "$pid" later.so:fn 0
		hooked=$pid
	fi
	start "$how" python3 "$T/fork.py" "$V/victim-lib.so" "$T"
	sb --backend uprobe --daemon -p "$pid"
	ended 0 "$how"
	which=(-s "$(sed -n 's/.*kill \([0-9]*\) detaches.*/\1/p' "$T/sb.err")")
	touch "$T/fork"
	two() { "$CTL" "${which[@]}" --json status >"$T/ctl.out" && [ "$("$TOOL/jget" "$T/ctl.out" pids.#)" = 2 ]; }
	wait_for 10 two || fail "$how: the fork is not seen"
	[ $how != orphan ] || { touch "$T/orphan" && wait "$pid"; }
	touch "$T/load"
	wait_for 10 said "$how" '^loaded$' || fail "$how: not loaded"
	ctl add libc.so.6:getppid 0
	ctl add victim-lib.so:lib_fn 0
	touch "$T/call"
	all() { "$CTL" "${which[@]}" list >"$T/ctl.out" && [ "$(grep -c ' hits=300$' "$T/ctl.out")" = 2 ]; }
	wait_for 10 all || fail "$how: $(cat "$T/ctl.out")"
	touch "$T/end" "$T/orphan"
	wait_for 10 test ! -e "/proc/${which[1]}" || fail "$how: the session does not end with its processes"
done
sb_stop
ended 3 # of its library nothing came
finish hooked "$hooked"
