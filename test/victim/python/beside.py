# SPDX-License-Identifier: MIT
"""
beside.py WAY FOLDER [TOOL...]: a program under tools that share the interpreter's hooks, each
of which must see what it sees alone.

WAY rounds: each tool in turn, over and over; throughout: all at once, from start to end; put-out:
a frame evaluator that leaves when FOLDER/go is there, and is in and out until FOLDER/on is. When
FOLDER/go appears every tool has its turn over calls of step(), and FOLDER/went is made with the
number of those calls in it; FOLDER/stop ends it. Without a FOLDER (-) it goes at once.
"""
import bdb
import cProfile
import ctypes
import gc
import os
import profile
import pstats
import sys
import threading
import time
import trace

import state

HERE = os.path.abspath(__file__)
folder = sys.argv[2]
made = 0


# ---- what the tools look at ----


def warm(n):
    return n + 1


def step(n):
    global made
    made += 1
    return n + 1


def numbers(call, n):
    for i in range(n):
        yield call(i)


def raising(call):
    try:
        call(0)
        raise KeyError
    except KeyError:
        return 1


class Thing:
    def __init__(self, call):
        self.call = call

    def __getitem__(self, key):
        return self.call(key)


def work(call):
    total = sum(numbers(call, 5)) + raising(call) + Thing(call)[4]
    for i in range(10):
        total += call(i)
    done = []
    thread = threading.Thread(target=lambda: done.append(call(1)))
    thread.start()
    thread.join()
    assert total == 15 + 1 + 5 + 55 and done == [2]


WORK = (numbers, raising, Thing.__init__, Thing.__getitem__, work)
CODES = {f.__code__: f.__name__ for f in WORK}
CODES[warm.__code__] = CODES[step.__code__] = "call"
STEP_LINES = {step.__code__.co_firstlineno + 2: 1, step.__code__.co_firstlineno + 3: 2}


def name_of(code):
    return CODES.get(code)


# ---- the tools: begin(), and end() returns what was seen, in a form that can be compared ----


def functions(it):
    """What a profiler saw of ours: calls, and those that were no recursion."""
    seen = {}
    for (file, _, name), row in pstats.Stats(it).stats.items():
        assert "sbinject" not in (file, name), (file, name)
        name = "call" if name in ("warm", "step") else name
        if os.path.abspath(file) == HERE and name in CODES.values():
            seen[name] = row[:2]
    return seen


class Profile:
    def begin(self):
        self.it = cProfile.Profile()
        self.it.enable()

    def end(self):
        self.it.disable()
        return functions(self.it)


class OldProfile:
    """sys.setprofile() in Python; it does not bear to begin in the middle."""

    def turn(self, call):
        it = profile.Profile()
        it.runcall(work, call)
        return functions(it)


class Trace:
    """A debugger's sys.settrace(), in every thread; what one thread sees has an order, no more."""

    def begin(self):
        self.seen = []
        self.main = threading.get_ident()
        threading.settrace(self.on)
        sys.settrace(self.on)

    def on(self, frame, event, arg):
        name = name_of(frame.f_code)
        assert frame.f_code.co_filename != "<sbinject>"
        main = threading.get_ident() == self.main
        if name and name != "call":
            self.seen.append((main, event, name, frame.f_lineno - frame.f_code.co_firstlineno))
        elif name and event != "line":
            self.seen.append((main, event, name))
        return self.on if name else None

    def end(self):
        sys.settrace(None)
        threading.settrace(None)
        return [e[1:] for e in sorted(self.seen, key=lambda e: e[0])]


class Setprofile:
    def begin(self):
        self.seen = []
        sys.setprofile(self.on)

    def on(self, frame, event, arg):
        name = name_of(frame.f_code)
        if name:
            self.seen.append((event, name))
        assert frame.f_code.co_filename != "<sbinject>"

    def end(self):
        sys.setprofile(None)
        return self.seen


class Breakpoints(bdb.Bdb):
    """A debugger with a breakpoint, stopping there and going on."""

    def __init__(self):
        super().__init__()

    def begin(self):
        self.clear_all_breaks()
        self.stops = 0
        for code in (warm.__code__, step.__code__):
            line = code.co_firstlineno + (1 if code is warm.__code__ else 3)
            assert not self.set_break(HERE, line)
        self.reset()
        self.set_continue()
        threading.settrace(self.trace_dispatch)
        sys.settrace(self.trace_dispatch)

    def user_line(self, frame):
        if self.break_here(frame):
            self.stops += 1
        self.set_continue()
        sys.settrace(self.trace_dispatch)

    def end(self):
        sys.settrace(None)
        threading.settrace(None)
        return self.stops


class Lines:
    """trace.py: counts of lines."""

    def begin(self):
        self.it = trace.Trace(count=1, trace=0)
        sys.settrace(self.it.globaltrace)

    def end(self):
        sys.settrace(None)
        first, last = numbers.__code__.co_firstlineno, work.__code__.co_firstlineno + 9
        return {k[1]: n for k, n in self.it.results().counts.items()
                if os.path.abspath(k[0]) == HERE and first <= k[1] <= last}


class Monitoring:
    """Starts and returns of all, each line once."""

    def begin(self):
        m, E = sys.monitoring, sys.monitoring.events
        self.seen, self.lines = [], set()
        m.use_tool_id(m.COVERAGE_ID, "beside")
        m.register_callback(m.COVERAGE_ID, E.PY_START, self.on("start"))
        m.register_callback(m.COVERAGE_ID, E.PY_RETURN, self.on("return"))
        m.register_callback(m.COVERAGE_ID, E.LINE, self.line)
        m.restart_events()
        m.set_events(m.COVERAGE_ID, E.PY_START | E.PY_RETURN | E.LINE)

    def on(self, event):
        def seen(code, *_):
            assert code.co_filename != "<sbinject>"
            if name_of(code):
                self.seen.append((event, name_of(code)))
            else:
                return sys.monitoring.DISABLE
        return seen

    def line(self, code, line):
        if name_of(code) and name_of(code) != "call":
            self.lines.add(line)
        return sys.monitoring.DISABLE

    def end(self):
        m, E = sys.monitoring, sys.monitoring.events
        m.set_events(m.COVERAGE_ID, 0)
        for e in (E.PY_START, E.PY_RETURN, E.LINE):
            m.register_callback(m.COVERAGE_ID, e, None)
        m.free_tool_id(m.COVERAGE_ID)
        return self.seen, sorted(self.lines)


class Evaluator:
    """A frame evaluation function (PEP 523), as a compiler of Python code has one."""

    def __init__(self):
        self.chain = ctypes.PyDLL(os.environ["CHAIN"])
        self.frames = ctypes.c_long.in_dll(self.chain, "chain_seen")

    def begin(self):
        self.before = self.frames.value
        self.chain.chain_in()

    def end(self):
        self.chain.chain_out()
        return self.frames.value > self.before + 20


class Coverage:
    def begin(self):
        import coverage
        self.it = coverage.Coverage(data_file=None, branch=True, include=[HERE])
        self.it.start()

    def end(self):
        self.it.stop()
        data = self.it.get_data()
        lines = [n for n in data.lines(HERE) or () if n not in STEP_LINES]
        first, last = numbers.__code__.co_firstlineno, work.__code__.co_firstlineno + 9
        return (sorted(n for n in lines if first <= n <= last),
                sorted(a for a in data.arcs(HERE) or () if first <= abs(a[0]) <= last))


TOOLS = {"cprofile": Profile, "profile": OldProfile, "setprofile": Setprofile, "trace": Trace,
         "bdb": Breakpoints, "lines": Lines}
if hasattr(sys, "monitoring"):
    TOOLS["monitoring"] = Monitoring
if "CHAIN" in os.environ:
    TOOLS["evaluator"] = Evaluator
try:
    import coverage  # noqa: F401
    TOOLS["coverage"] = Coverage
except ImportError:
    pass


def at(name):
    return folder != "-" and os.path.exists(os.path.join(folder, name))


def turn(tool, call):
    if hasattr(tool, "turn"):
        return tool.turn(call)
    tool.begin()
    work(call)
    return tool.end()


def rounds(tools):
    expected = {name: turn(tool, warm) for name, tool in tools.items()}

    def once(call):
        for name, tool in tools.items():
            seen = turn(tool, call)
            assert seen == expected[name], "%s saw %s, not %s" % (name, seen, expected[name])

    once(warm)
    once(step) if folder == "-" else None
    os.write(1, b"ready\n")
    while not at("go") and folder != "-":
        once(warm)
    before = made
    for _ in range(3):
        once(step)
    went(made - before if folder != "-" else made)
    while not at("stop") and folder != "-":
        once(warm)


def throughout(tools):
    for tool in tools.values():
        tool.begin()
        work(warm)
        tool.end()
    for tool in tools.values():
        tool.begin()
    os.write(1, b"ready\n")
    n = 0
    while not at("go") and folder != "-":
        work(warm)
        n += 1
    for _ in range(5):
        work(step)
        n += 1
    went(made)
    while not at("stop") and folder != "-":
        work(warm)
        n += 1
    for name, tool in reversed(tools.items()):
        check(name, tool.end(), n)


def put_out(tools):
    """The evaluator was there first, and what it takes out with it when it goes must come back."""
    evaluator = tools["evaluator"]
    evaluator.begin()
    os.write(1, b"ready\n")
    while not at("go"):
        work(warm)
    evaluator.end()
    end = None
    while not end or time.monotonic() < end:
        evaluator.begin()
        for _ in range(20):
            work(warm)
        evaluator.end()
        work(warm)
        end = end or (at("on") and time.monotonic() + 2)
    for _ in range(20):
        evaluator.begin()
        work(step)
        assert evaluator.end()
        work(step)
    went(made)
    while not at("stop"):
        work(warm)


def check(name, seen, n):
    """After n rounds of work() all of which it saw."""
    if name == "cprofile":
        assert seen["work"] == (n, n) and seen["raising"] == (n, n), (n, seen)
    elif name == "trace":
        calls = [e[1] for e in seen if e[0] == "call"]
        assert calls.count("call") == 18 * n and calls.count("work") == n, (n, len(calls))
    elif name == "monitoring":
        assert seen[0].count(("start", "call")) == 18 * n == seen[0].count(("return", "call"))
    elif name == "coverage":
        assert len(seen[0]) > 15, seen


def went(n):
    os.write(1, b"calls step %d\n" % n)
    if folder != "-":
        open(os.path.join(folder, "went"), "w").close()


if __name__ == "__main__":
    names = sys.argv[3:] or list(TOOLS)
    before = state.settings()
    {"rounds": rounds, "throughout": throughout, "put-out": put_out}[sys.argv[1]](
        {name: TOOLS[name]() for name in names if name in TOOLS})
    gc.collect()
    if "coverage" not in names:  # it leaves a hook for the process's end
        state.same(before)
    os.write(1, b"self-check ok\n")
