# SPDX-License-Identifier: MIT
"""The agent comes, changes its mind and goes, and leaves nothing behind."""
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import weakref

from driver import (COUNT, DELAY, OFF, RESUME, SLOW, TABLE, TABLES, THREADS, APPLY, LIST, STOP,
                    Agent, mapped, monitoring, u64)

V = sys.version_info
MONITORING = V >= (3, 12)


def f():
    return 1


def g():
    return 2


def gen():
    yield 1
    yield 2


def recursive(n):
    return n and recursive(n - 1)


def times(fn, n):
    for _ in range(n):
        fn()


def local_events(fn):
    m = sys.monitoring
    return [m.get_local_events(i, fn.__code__) for i in range(6) if m.get_tool(i)]


def eval_frame_is_default():
    """Calls of 3.11 are made without the C stack only while no frame evaluation function is set."""
    api = ctypes.pythonapi
    get = api._PyInterpreterState_GetEvalFrameFunc
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    return get(api.PyInterpreterState_Get()) == ctypes.cast(api._PyEval_EvalFrameDefault,
                                                            ctypes.c_void_p).value


def clean():
    if MONITORING:
        assert monitoring() == [(None, 0)] * 6, monitoring()
    else:
        assert eval_frame_is_default()


def check_again():
    """A function that was judged and not called between two attaches is seen by the second."""
    for i in range(8):
        a = Agent(("__main__", "nothing"), ("__main__", "g")).apply()
        f(), g()
        a.stop()
        clean()
        b = Agent(("__main__", "f"), ("__main__", "gen")).apply()
        f(), list(gen())
        assert b.hits(0) == 1 and b.hits(1) == 1, (i, b.hits(0), b.hits(1))
        b.stop()
        assert a.hits(1) == 1
        clean()


def check_collector():
    """A program that counts its garbage collector's objects does not find the agent's among them."""
    space = {"__name__": "__main__"}
    exec("".join(f"def fresh{i}(): pass\ndef other{i}(): pass\n" for i in range(50)), space)
    call = [space[n + str(i)] for i in range(50) for n in ("fresh", "other")]
    a = Agent(("__main__", "fresh*")).apply()
    before = after = 0
    gc.collect()
    before = len(gc.get_objects())
    for fn in call:
        fn()
    after = len(gc.get_objects())
    assert after - before < 10, after - before
    gc.collect()
    assert a.hits(0) == 50, a.hits(0)
    del call, fn, space
    gc.collect()
    a.stop()
    clean()


def check_many_attaches():
    a = Agent(("__main__", "f"))
    for i in range(60):
        a.apply()
        f()
        a.stop()
    assert a.hits() == 60
    clean()


def check_windows():
    a = Agent(("__main__", "f"), ("__main__", "*"), cells=4).apply()
    expected = 0
    for i in range(200):
        a.state(COUNT, 0)
        times(f, 3)
        expected += 3
        a.state(OFF, 0)
        times(f, 3)
    assert a.hits(0) == expected
    assert a.hits(1) > 1200
    a.state(OFF)
    if MONITORING:
        assert not any(local_events(f)), local_events(f)
    else:
        assert eval_frame_is_default()
    exec("def f2(): pass\nf2()", {"__name__": "__main__"})
    a.state(COUNT)
    times(f, 2)
    assert a.hits(0) == expected + 2
    a.stop()
    clean()


def check_off_at_first_call():
    a = Agent(("__main__", "fresh"))
    a.cell(0).state = OFF
    a.apply()
    space = {"__name__": "__main__"}
    exec("def fresh(): pass", space)
    times(space["fresh"], 5)
    assert a.hits() == 0
    a.state(COUNT)
    times(space["fresh"], 5)
    assert a.hits() == 5, a.hits()
    a.stop()


def check_list_change():
    a = Agent(("__main__", "f"), cells=8).apply()
    times(f, 3), times(g, 3)
    for i in range(10):
        a.set_targets(("__main__", "g", 0, 1))
        a.apply()
        times(f, 3), times(g, 4)
        if MONITORING:
            assert not any(local_events(f))
        a.set_targets(("__main__", "f", 0, 0), ("__main__", "g*", RESUME, 2))
        a.apply()
        times(f, 5), times(g, 2), list(gen())
    assert (a.hits(0), a.hits(1), a.hits(2)) == (53, 40, 10 * (2 + 3)), \
        (a.hits(0), a.hits(1), a.hits(2))
    a.set_targets()
    a.apply()
    times(f, 5)
    assert a.hits(0) == 53 and a.mailbox.matched == 0
    a.stop()
    clean()


def check_not_held():
    def make():
        space = {"__name__": "__main__"}
        exec("def held(): pass\ndef other(): pass\nheld(); other()", space)
        return weakref.ref(space["held"].__code__), weakref.ref(space["other"].__code__)
    count = sys.getrefcount(f.__code__)
    a = Agent(("__main__", "held"), ("__main__", "f")).apply()
    refs = make()
    f()
    gc.collect()
    assert [r() for r in refs] == [None, None]
    assert sys.getrefcount(f.__code__) == count
    a.stop()
    assert not weakref.getweakrefs(f.__code__)


def check_unload():
    a = Agent(("__main__", "f"))
    for depth in range(2):
        a.apply()
        f()

        def within(n):
            if n:
                return within(n - 1)
            a.stop()
        within(20)  # stopped with frames of its time on the stack
        clean()
    name = os.environ["AGENT"]
    assert mapped(name)
    a.apply()
    threads = [threading.Thread(target=times, args=(f, 2000)) for _ in range(4)]
    [t.start() for t in threads]
    a.stop()
    a.unload()
    assert not mapped(name), mapped(name)
    times(f, 100), recursive(50), list(gen())
    [t.join() for t in threads]
    gc.collect()


def check_busy():
    """While somebody has got hold of a callback the agent may not be unloaded."""
    if not MONITORING:
        return
    a = Agent(("__main__", "f")).apply()
    mine = [o for o in gc.get_objects() if type(o).__name__ == "builtin_function_or_method"
            and o.__name__ == "sbinject"]
    assert len(mine) == 5
    assert a.ask(STOP) == -5, a.mailbox.reason
    clean()
    f()
    for m in mine:
        assert m(f.__code__, 0) in (None, sys.monitoring.DISABLE)
    assert a.hits() == 0
    del mine, m
    a.stop()
    a.apply()
    f()
    a.stop()
    assert a.hits() == 1


def check_every_and_threads():
    a = Agent(("__main__", "f"), ("__main__", "g"))
    c = a.cell(0)
    c.flags, c.state, c.every, c.delay_ticks, c.overrun_limit = DELAY, SLOW, 4, 1000, 1 << 60
    a.apply()
    times(f, 40)
    assert a.hits() == 40 and sum(sum(s.bucket) for s in a.counts().slot) == 10
    # Only threads of the table: first none, then this one.
    slots = TABLE // 8
    table = (u64 * slots).from_address(a.base + a.threads_off + 5 * TABLE)
    d = a.cell(1)
    d.threads, d.flags, d.state = 5, THREADS, SLOW
    times(g, 10)
    assert a.hits(1) == 0
    me = threading.get_ident()  # glibc: the thread's FS base
    table[(me >> 6) % slots] = me
    times(g, 10)
    t = threading.Thread(target=times, args=(g, 10))
    t.start(), t.join()
    assert a.hits(1) == 10, a.hits(1)
    for bad in (1 << 62, a.header.size - 8, 4, 3, TABLES):
        d.threads = bad
        g()
    assert a.hits(1) == 10
    # A number beyond the tables is one of theirs; a search ends, though nothing in a table does.
    d.threads = 3 * TABLES + 5
    g()
    assert a.hits(1) == 11
    for i in range(slots):
        table[i] = 1
    g()
    assert a.hits(1) == 11
    a.stop()


def check_bounded():
    """No delay is longer than the process's own record allows, whatever the page says."""
    a = Agent(("__main__", "f"))
    c = a.cell(0)
    c.flags, c.state, c.delay_ticks, c.overrun_limit = DELAY, SLOW, 1 << 62, 1 << 60
    u64.from_address(a.record_addr + 16).value = 20
    a.apply()
    times(f, 3)
    c.delay_ticks, c.residual_max = 1000, 1 << 62
    for s in a.counts().slot:
        s.residual_ticks = -1 << 61
    times(f, 3)
    a.stop()
    assert a.hits() == 6


def check_threads_share():
    """Threads whose slot is taken lose nothing."""
    a = Agent(("__main__", "f")).apply()
    start = threading.Barrier(24)

    def run():
        start.wait()
        times(f, 3000)
    threads = [threading.Thread(target=run) for _ in range(24)]
    [t.start() for t in threads]
    for i in range(20):
        a.state(OFF if i % 2 else COUNT)
        a.state(COUNT)
    [t.join() for t in threads]
    a.stop()
    assert 0 < a.hits() <= 24 * 3000
    b = Agent(("__main__", "f")).apply()
    threads = [threading.Thread(target=run) for _ in range(24)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    b.stop()
    assert b.hits() == 24 * 3000, b.hits()


def check_delay():
    """The delay is in the time that is given, and lapsed or cut hits are distinguished."""
    a = Agent(("__main__", "f"))
    c = a.cell(0)
    c.state, c.flags, c.delay_ticks, c.overrun_limit = SLOW, DELAY, 10000000, 1 << 60
    a.apply()
    f()
    assert c.delay_ticks <= a.sum("injected_ticks") < 100 * c.delay_ticks
    assert a.sum("max_ticks") >= c.delay_ticks
    a.header.lease_until = 1
    times(f, 5)
    assert a.sum("lapsed") == 5 and a.hits() == 6
    a.header.lease_until = 1 << 62
    # A spin ends when told: the GIL is held by it, so a process must do it.
    c.delay_ticks = 1 << 50
    pid = os.fork()
    if not pid:
        time.sleep(0.2)
        a.header.generation += 1
        os._exit(0)
    f()
    os.waitpid(pid, 0)
    assert a.counts().cuts == 1 and a.counts().cut_ticks > 0
    c.delay_ticks, c.flags = 0, 0
    times(f, 3)
    a.stop()


def check_fork():
    a = Agent(("__main__", "f")).apply()
    for p in range(4):
        a.cell(0, p).state = COUNT
    times(f, 2)
    pid = os.fork()
    if not pid:
        times(f, 5)
        a.record.value = 2 * a.block
        times(f, 7)
        a.record.value = 1 << 60  # of nobody: not counted
        times(f, 7)
        a.record.value = a.block + 8
        times(f, 7)
        a.record.value = 2 * a.block
        os._exit(0 if a.ask(STOP) == 0 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    f()
    a.stop()
    assert [a.hits(0, p) for p in range(4)] == [5, 3, 7, 0], [a.hits(0, p) for p in range(4)]


def check_damaged():
    a = Agent(("__main__", "f"))
    mailbox, layout = a.mailbox, a.mailbox.page

    def bad(thing, field, *values):
        good = getattr(thing, field)
        for v in values:
            setattr(thing, field, v)
            assert a.ask(APPLY) == -6, (field, v, mailbox.reason)
            setattr(thing, field, good)
    bad(mailbox, "magic", 0)
    bad(mailbox, "version", 0, 9, 11)
    bad(mailbox, "size", 0, 100, 0xffffffff)
    bad(mailbox, "page_addr", 0, a.base + 8)
    bad(mailbox, "record_addr", 0, 3)
    bad(mailbox, "n_targets", 0xffffffff, 1 << 16)
    bad(mailbox, "targets_off", 1, 0xfffffff0, 1 << 16)
    for field in ("slots", "targets_max", "procs_max", "cell_size", "block_size"):
        bad(layout, field, 0, (1 << 32) - 1)
    bad(layout, "slots", 3, 1 << 20)
    bad(layout, "blocks_off", 1 << 63, layout.size)
    bad(layout, "threads_off", 1 << 63, layout.size, 4)
    bad(layout, "notes_off", 1 << 63, layout.size, 4)
    bad(layout, "notes_size", 1 << 63)
    bad(layout, "counters_off", 1 << 63, layout.size, 4)
    bad(layout, "spans_off", 1 << 63, layout.size, 4)
    bad(layout, "span_blocks", 3, 1 << 17, 1 << 63, layout.span_blocks * 2)
    bad(layout, "chunks", 3, 1 << 20, 1 << 25, 1 << 63)
    bad(layout, "size", 0, 100, 1 << 63)
    # The page's header can be written by others: nothing depends on it.
    for field in ("magic", "version", "header_size", "session", "size", "targets_max", "procs_max",
                  "slots", "cell_size", "block_size", "procs_off", "blocks_off", "threads_off",
                  "notes_off", "notes_size", "tsc_hz", "counters_off", "spans_off", "span_blocks",
                  "trace_off", "chunks_off", "chunks"):
        setattr(a.header, field, (1 << 32) - 1)
    for at in (1024, 1032, 1036):  # cell, module, name of the first target
        keep = a.mailbox_memory[at:at + 4]
        a.mailbox_memory[at:at + 4] = b"\xff\xff\xff\x7f"
        assert a.ask(APPLY) == -6, at
        a.mailbox_memory[at:at + 4] = keep
    assert a.ask(17) == -6 and a.ask(0) == -6
    clean()
    a.apply()
    f()
    a.stop()
    assert a.hits() == 1
    # Notes that do not fit are not written; nothing else is.
    b = Agent(("*", "*"))
    b.mailbox.page.notes_size = 1000
    b.must(LIST)
    used = b.told.notes_used
    b.apply()
    times(f, 3)
    b.stop()
    assert 0 < used <= 1000 + 4096 and b.hits() >= 3 and b.notes()


def check_exception_kept():
    a = Agent(("__main__", "f"))
    try:
        raise KeyError("mine")
    except KeyError:
        a.apply()
        f()
        assert sys.exc_info()[0] is KeyError
        a.stop()
        assert sys.exc_info()[0] is KeyError
    ctypes.set_errno(7)
    try:
        a.apply().stop()
        f.missing
    except AttributeError:
        pass


def check_signals():
    """A handler that raises while the agent measures itself: the program gets its exception."""
    class Ring(Exception):
        pass

    def handler(*_):
        raise Ring
    def wait():  # 3.13.0 loses what is raised by a handler at a loop's end inside of a try
        end = time.monotonic() + 5
        while time.monotonic() < end:
            f()
    signal.signal(signal.SIGALRM, handler)
    rung, begun = 0, time.monotonic()
    a = Agent(("__main__", "f"))
    for i in range(60):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.00005 * i)
                a.ask(APPLY)
                a.ask(STOP)
                wait()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Ring:
            rung += 1
            if os.environ.get("VERBOSE"):
                print(i, time.monotonic() - begun)
                begun = time.monotonic()
    assert rung == 60, rung
    a.ask(STOP)
    clean()


def check_gc():
    """What collects or freezes garbage does not hide functions, and its state is kept."""
    gc.disable()
    a = Agent(("__main__", "f")).apply()
    assert not gc.isenabled()
    a.stop()
    gc.enable()
    a.apply()
    assert gc.isenabled()
    a.stop()
    gc.freeze()
    a = Agent(("__main__", "f"), ("__main__", "Frozen.*")).must(LIST)
    assert a.names(0) == ["f"], a.notes()
    assert a.names(1) == ["Frozen.a", "Frozen.b", "Frozen.c", "Frozen.d"], a.names(1)
    gc.unfreeze()
    a.stop()


class Frozen:
    def a(self):
        pass

    @classmethod
    def b(cls):
        pass

    @staticmethod
    def c():
        pass

    @property
    def d(self):
        pass


def check_deep_recursion():
    """What ran without the agent runs with it."""
    def deep(n):
        return n and 1 + deep(n - 1)
    sys.setrecursionlimit(200000)
    depth = 150000 if V >= (3, 11) else 900
    if V >= (3, 11):
        assert deep(depth) == depth
    a = Agent(("__main__", "f")).apply()
    assert deep(depth) == depth
    times(f, 5)
    assert a.hits() == 5

    def deeper(n):
        if n:
            return deeper(n - 1)
        return a.ask(STOP), a.mailbox.flags, a.apply(), f()
    if (3, 11) <= V < (3, 12):
        assert deeper(100000)[:2] == (-5, 4)
    assert deep(depth) == depth
    times(f, 5)
    assert a.hits() in (10, 11)
    a.stop()
    sys.setrecursionlimit(1000)


def main(checks):
    """Runs every check_NAME() of a module's namespace, or those whose NAME the command line has."""
    which = sys.argv[1:]
    for name, fn in list(checks.items()):
        if name.startswith("check_") and (not which or name[6:] in which):
            if os.environ.get("VERBOSE"):
                print(name, flush=True)
            fn()
    clean()
    print("ok")


if __name__ == "__main__":
    main(globals())
