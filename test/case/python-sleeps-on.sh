#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter whose only thread sleeps for long in poll(): once a piece of work has been done on
# it, that sleep goes on as another system call, and the other pieces find their way in all the same.
. "$SRC/test/lib.sh"

need_python
cat >"$T/polls.py" <<'P'
import os, select, time
def step():
    return 1
read, write = os.pipe()
p = select.poll()
p.register(read, select.POLLIN)
print('ready', flush=True)
begin = time.monotonic()
p.poll(60000)
print('slept %d' % (time.monotonic() - begin), flush=True)
P

in_force() { grep -q 'targets in force' "$T/sb.err"; }

while read -r p; do
	start polls "$p" "$T/polls.py"
	snapshot "$pid"
	sb_start -v -p "$pid" py:__main__:step 0 --json "$T/run.json"
	wait_for 8 in_force || fail "$p: not in force while it sleeps: $(cat "$T/sb.err")"
	begin=$EPOCHSECONDS
	sb_stop
	ended 0 "$p"
	less "$p: seconds to detach" $((EPOCHSECONDS - begin)) 8
	unchanged "$pid"
	said polls '^slept' && fail "$p: its sleep was cut short"
	kill "$pid"
	wait "$pid" || true
done < <(pythons | grep -v '[0-9]t/bin' | tail -n 2)
