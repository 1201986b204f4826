#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter that lets no one in for two seconds, as a loaded one may: `--for` and a COMMAND beside -p
# begin when its functions are watched, and not before.
. "$SRC/test/lib.sh"

need_python
cat >"$T/late.py" <<'P'
import ctypes, os, sys, time
libc = ctypes.PyDLL(None)          # calls hold the GIL
def step():
    return 1
print('ready', flush=True)
end = time.time() + 60
while not os.path.exists(sys.argv[1]) and time.time() < end:
    time.sleep(0.01)
libc.usleep(900000), libc.usleep(900000), libc.usleep(700000)
while not os.path.exists(sys.argv[2]) and time.time() < end:
    step()
P

late() { # the interpreter is let go, and holds its lock
	rm -f "$T/go" "$T/end"
	start late "$1" "$T/late.py" "$T/go" "$T/end"
	touch "$T/go"
	sleep 0.1
}

while read -r p; do
	late "$p"
	sb -p "$pid" py:__main__:step 0 --for 500ms --json "$T/run.json"
	ended 0 "$p"
	more "$p: hits" "$(j targets.0.hits)" 0
	touch "$T/end"
	wait "$pid" || fail "$p: the program ended with $?"

	late "$p"
	sb -p "$pid" py:__main__:step 0 --json "$T/run.json" -- sleep 0.5
	ended 0 "$p"
	more "$p: hits while the command ran" "$(j targets.0.hits)" 0
	touch "$T/end"
	wait "$pid" || fail "$p: the program ended with $?"
done < <(pythons | tail -n 1)
