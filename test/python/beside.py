# SPDX-License-Identifier: MIT
"""The agent beside other users of sys.monitoring, of profile and trace functions and of audit hooks."""
import cProfile
import pstats
import sys

from driver import APPLY, COUNT, OFF, RESUME, STOP, Agent, monitoring
from state import MONITORING, clean, f, g, gen, main, times


def check_left_by_others():
    """Another tool has had our id, and has disabled the event in a function."""
    if not MONITORING:
        return
    m = sys.monitoring
    for i in range(6):
        m.use_tool_id(i, "other")
        m.register_callback(i, m.events.PY_START, lambda *_: m.DISABLE)
        m.set_events(i, m.events.PY_START)
    f(), g(), list(gen())
    for i in range(6):
        m.set_events(i, 0)
        m.register_callback(i, m.events.PY_START, None)
        m.free_tool_id(i)
    a = Agent(("state", "f"), ("state", "gen", RESUME)).apply()
    times(f, 3), list(gen())
    assert (a.hits(0), a.hits(1)) == (3, 3), (a.hits(0), a.hits(1))
    a.stop()
    clean()


def check_one_tool():
    if not MONITORING:
        return
    m = sys.monitoring
    for i in range(5):
        m.use_tool_id(i, f"other{i}")
    a = Agent(("state", "f"), ("state", "gen", RESUME)).apply()
    assert a.mailbox.flags & 2
    times(f, 5), list(gen())
    exec("def f(): pass\nf(); f()", {"__name__": "state"})
    assert (a.hits(0), a.hits(1)) == (7, 3), (a.hits(0), a.hits(1))
    a.state(OFF)
    times(f, 5), list(gen())
    a.state(COUNT)
    times(f, 5), list(gen()), times(g, 3)
    assert (a.hits(0), a.hits(1)) == (12, 6), (a.hits(0), a.hits(1))
    a.set_targets(("state", "g", 0, 2), ("state", "f", 0, 0))
    a.apply()
    times(f, 5), times(g, 4), list(gen())
    assert (a.hits(0), a.hits(1), a.hits(2)) == (17, 6, 4), [a.hits(i) for i in range(3)]
    a.stop()
    assert monitoring() == [(f"other{i}", 0) for i in range(5)] + [(None, 0)]
    m.use_tool_id(5, "other5")
    assert a.ask(APPLY) == -3 and b"tool" in a.mailbox.reason
    for i in range(6):
        m.free_tool_id(i)
    a.apply()
    times(f, 3)
    a.stop()
    assert a.hits(0) == 20
    clean()


def check_other_tools():
    """Each sees what it sees alone."""
    def with_tool():
        a = Agent(("state", "f"), ("state", "gen")).apply()
        times(f, 10)
        p = cProfile.Profile()
        p.enable()
        times(f, 10), list(gen())
        a.state(OFF)
        a.state(COUNT)
        p.disable()
        stats = {k[2]: v[1] for k, v in pstats.Stats(p).stats.items()}
        assert stats["f"] == 10 and stats["gen"] in (1, 3), stats
        assert not any("sbinject" in str(k) and "test" not in str(k[0])
                       for k in pstats.Stats(p).stats if k[0] == "<sbinject>")
        lines = []

        def trace(frame, event, arg):
            if frame.f_code in (f.__code__, gen.__code__):
                lines.append((event, frame.f_lineno))
            return trace
        sys.settrace(trace)
        times(f, 3)
        sys.settrace(None)
        first = f.__code__.co_firstlineno
        assert lines == [("call", first), ("line", first + 1), ("return", first + 1)] * 3, lines
        assert a.hits(0) == 23 and a.hits(1) == 1, (a.hits(0), a.hits(1))
        a.stop()
        clean()
    for _ in range(3):
        with_tool()
    # The other one first, the agent while it runs.
    calls = []
    sys.setprofile(lambda frame, event, arg: event == "call" and calls.append(frame.f_code))
    a = Agent(("state", "f")).apply()
    times(f, 5)
    a.stop()
    sys.setprofile(None)
    assert calls.count(f.__code__) == 5 and a.hits() == 5
    assert not any(c.co_filename == "<sbinject>" for c in calls)


def check_monitoring_shared():
    if not MONITORING:
        return
    m, seen = sys.monitoring, []
    E = m.events

    def start(code, offset):
        if code in (f.__code__, g.__code__):
            seen.append(code.co_name)
            return m.DISABLE if code is g.__code__ else None

    def line(code, number):
        if code is f.__code__:
            seen.append(number)
        return m.DISABLE
    m.use_tool_id(m.COVERAGE_ID, "other")
    m.register_callback(1, E.PY_START, start)
    m.register_callback(1, E.LINE, line)
    m.set_events(1, E.PY_START | E.LINE)
    times(f, 2), times(g, 2)
    a = Agent(("state", "f"), ("state", "g")).apply()
    times(f, 3), times(g, 3)
    assert (a.hits(0), a.hits(1)) == (3, 3)
    m.restart_events()
    times(f, 3), times(g, 3)
    assert (a.hits(0), a.hits(1)) == (6, 6)
    a.state(OFF)
    times(f, 3), times(g, 3)
    a.state(COUNT)
    a.stop()
    first = f.__code__.co_firstlineno + 1
    assert seen == ["f", first, "f", "g"] + ["f"] * 3 + ["f", first, "f", "f", "g"] + ["f"] * 3, seen
    assert monitoring()[1] == ("other", E.PY_START | E.LINE)
    m.set_events(1, 0)
    m.register_callback(1, E.PY_START, None), m.register_callback(1, E.LINE, None)
    m.free_tool_id(1)
    clean()


def check_freed_by_others():
    """Somebody frees our tool ids and takes them: theirs they are."""
    if not MONITORING:
        return
    m = sys.monitoring
    a = Agent(("state", "f")).apply()
    ours = [i for i in range(6) if m.get_tool(i) == "sbinject"]
    for i in ours:
        m.set_events(i, 0)
        m.free_tool_id(i)
        m.use_tool_id(i, "theirs")
        m.set_events(i, m.events.PY_RETURN)
    f()
    a.ask(APPLY), a.ask(STOP)
    for i in ours:
        assert m.get_tool(i) == "theirs" and m.get_events(i) == m.events.PY_RETURN
        m.set_events(i, 0)
        m.register_callback(i, m.events.PY_START, None)
        m.register_callback(i, m.events.PY_RESUME, None)
        m.free_tool_id(i)
    a.ask(STOP)


def check_zz_audit():
    """Hooks of sys.addaudithook() cannot be taken out: last of all."""
    heard = []
    sys.addaudithook(lambda event, args: heard.append(event))
    a = Agent(("state", "f")).apply()
    f()
    exec("def f(): pass\nf()", {"__name__": "state"})
    assert a.hits() == 2
    a.stop()
    assert heard.count("object.__getattr__") < 10, heard.count("object.__getattr__")


if __name__ == "__main__":
    main(globals())
