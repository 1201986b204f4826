# SPDX-License-Identifier: MIT
"""tool_ids.py N: N tools of sys.monitoring, each of which counts the calls of step(), until SIGTERM."""
import os
import signal
import sys
import time

m = sys.monitoring
E = m.events
seen = [0] * 6
stop = []


def step():
    return 1


def tool(i):
    def start(code, offset):
        if code is not step.__code__:
            return m.DISABLE
        seen[i] += 1

    m.use_tool_id(i, "tool %d" % i)
    m.register_callback(i, E.PY_START, start)
    m.set_events(i, E.PY_START)


signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
mine = range(int(sys.argv[1]))
for i in mine:
    tool(i)
others = [m.get_tool(i) for i in range(6)]
calls = 0
os.write(1, b"ready\n")
while not stop:
    calls += step()
    time.sleep(0.0005)
assert [m.get_tool(i) for i in range(6)] == others, "tool ids were changed"
assert all(m.get_events(i) == E.PY_START for i in mine), "events were changed"
assert all(seen[i] == calls for i in mine), (seen, calls)
os.write(1, b"calls step %d\nself-check ok\n" % calls)
