# SPDX-License-Identifier: MIT
"""What a victim looks at in its own interpreter, before and after: nothing may have changed it."""
import gc
import os
import signal
import sys
import threading
import time


def settings():
    s = {
        "trace": sys.gettrace(),
        "profile": sys.getprofile(),
        "threads": threading.active_count(),
        "tasks": len(os.listdir("/proc/self/task")),
        "fds": sorted(os.listdir("/proc/self/fd")),
        "gc": (gc.isenabled(), gc.get_debug(), gc.get_threshold()),
        "gc callbacks": len(gc.callbacks),
        "modules": "sbinject" in sys.modules,
        "path": list(sys.path),
        "switch": sys.getswitchinterval(),
        "recursion": sys.getrecursionlimit(),
        "signals": [signal.getsignal(n) for n in range(1, 32)],
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "environment": dict(os.environ),
    }
    if hasattr(sys, "monitoring"):
        s["tools"] = [sys.monitoring.get_tool(n) for n in range(6)]
    return s


def no_events():
    """Every tool id can be had, and is told of nothing; none has a callback left."""
    m = getattr(sys, "monitoring", None)
    if not m:
        return
    for tool in range(6):
        if m.get_tool(tool):
            continue
        m.use_tool_id(tool, "look")
        assert m.get_events(tool) == 0, "tool %d has events" % tool
        for event in range(15):
            try:
                left = m.register_callback(tool, 1 << event, None)
            except ValueError:
                continue
            assert left is None, "tool %d has a callback for event %d" % (tool, event)
        m.free_tool_id(tool)


def same(before):
    end = time.monotonic() + 5
    after = settings()
    while after["tasks"] > before["tasks"] and time.monotonic() < end:
        time.sleep(0.01)  # a joined thread is gone a little later
        after = settings()
    for key in before:
        assert before[key] == after[key], "%s: %r, was %r" % (key, after[key], before[key])
    no_events()
