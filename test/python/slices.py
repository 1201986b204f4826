# SPDX-License-Identifier: MIT
"""A command in as many pieces as it can be cut into, and in between whatever a program may do."""
import gc
import itertools
import os
import sys
import types
import weakref

from driver import APPLY, COUNT, ERRORS, OFF, STOP, Agent, monitoring
from state import clean

AGAIN = -8
serial = itertools.count()
SOURCE = """
def wrapped(f):
    def inside(): return f()
    return inside
@wrapped
def hidden(): pass
def called(): pass
class C:
    def method(self): return (lambda: 1)()
    @staticmethod
    def static(): pass
    @property
    def attribute(self): return 2
"""


def load(name):
    module = types.ModuleType(name)
    exec(compile(SOURCE, name, "exec"), module.__dict__)
    sys.modules[name] = module
    return module


def unload(module):
    del sys.modules[module.__name__]


def call(module):
    module.called()
    module.hidden()
    c = module.C()
    c.method(), c.static(), c.attribute


def pieces(a, command, between=lambda n: None, most=None):
    """Asks until it is done; or, where there are more, until `most` pieces are. How many it were."""
    a.mailbox.asked += 1
    a.mailbox.slice_ticks = 1
    n, rc = 0, AGAIN
    while rc == AGAIN and n != most:
        rc = a.ask(command)
        n += 1
        if rc == AGAIN:
            between(n)
    a.mailbox.slice_ticks = 0
    assert rc == 0 or (rc == AGAIN and n == most), (ERRORS.get(rc, rc), a.mailbox.reason)
    return n


def agent():
    return Agent(("pieces.*", "called"), ("pieces.*", "hidden"), ("pieces.*", "C.*"))


def counted(a, modules):
    """Exact from here on, of all modules, whenever they came."""
    before = [a.hits(i) for i in range(3)]
    for module in modules:
        call(module)
    after = [a.hits(i) for i in range(3)]
    assert [y - x for x, y in zip(before, after)] == [
        len(modules), len(modules), 4 * len(modules)], (before, after)


def check_churn():
    """What there is comes and goes in between."""
    modules = [load("pieces.m%d" % i) for i in range(20)]
    a = agent()

    def between(n):
        if n > 400:
            return  # or there would always be more to do
        if n % 7 == 0:
            modules.append(load("pieces.new%d" % next(serial)))
        if n % 11 == 0:
            unload(modules.pop(0))
        if n % 5 == 0:
            call(modules[n % len(modules)])
        if n % 50 == 0:
            gc.collect()
    n = pieces(a, APPLY, between)
    assert n > 100, n
    counted(a, modules)
    more = [load("pieces.later%d" % i) for i in range(5)]
    counted(a, modules + more)

    # Another list, while the first counts on.
    a.set_targets(("pieces.*", "called"), ("pieces.*", "hidden"), ("pieces.*", "C.*"),
                  ("pieces.*", "wrapped"))
    hits = a.hits(0)
    calls = 0

    def count(n):
        nonlocal calls
        modules[n % len(modules)].called()
        calls += 1
    pieces(a, APPLY, count)
    assert a.hits(0) - hits == calls, (a.hits(0) - hits, calls)
    counted(a, modules + more)
    pieces(a, STOP, between)
    clean()
    # A second one, which meets what the first has left.
    a = agent()
    pieces(a, APPLY, between)
    counted(a, modules)
    a.stop()
    for module in [m for name, m in sys.modules.items() if name.startswith("pieces.")]:
        unload(module)
    a.unload()


def check_stop_in_between():
    """After each number of pieces: nothing is held, nothing is left."""
    modules = [load("pieces.m%d" % i) for i in range(3)]
    a = agent()
    whole = pieces(a, APPLY)
    a.stop()
    for most in list(range(1, 40)) + list(range(40, whole, 23)):
        pieces(a, APPLY, most=most)
        pieces(a, STOP, lambda n: call(modules[n % 3]))
        clean()
    pieces(a, APPLY, most=whole // 2)
    refs = [weakref.ref(m.called) for m in modules] + [weakref.ref(m.C) for m in modules]
    pieces(a, STOP)
    for module in modules:
        unload(module)
    del module, modules
    gc.collect()
    assert not any(r() for r in refs), refs
    a.unload()


def check_another_command():
    """A list that comes before the last one has been taken over takes its place."""
    modules = [load("pieces.m%d" % i) for i in range(3)]
    for most in (1, 5, 20, 50, 80, 120):
        a = Agent(("pieces.*", "called"))
        pieces(a, APPLY, most=most)
        a.set_targets(("pieces.*", "called"), ("pieces.*", "hidden"), ("pieces.*", "C.*"))
        pieces(a, APPLY)
        counted(a, modules)
        a.stop()
        clean()
    for module in modules:
        unload(module)


def check_fork():
    """In between: both go on, or the child stops."""
    modules = [load("pieces.m%d" % i) for i in range(3)]
    for most in (1, 10, 30, 60, 100):
        for then in (APPLY, STOP):
            a = agent()
            pieces(a, APPLY, most=most)
            child = os.fork()
            if not child:
                try:
                    a.record.value = 2 * a.block
                    a.process = 2
                    for i in range(3):
                        a.cell(i).state = COUNT
                    a.mailbox.asked -= 1  # the same command
                    pieces(a, then) if then == STOP else pieces(a, APPLY)
                    if then == APPLY:
                        counted(a, modules)
                    pieces(a, STOP)
                    clean()
                    os._exit(0)
                finally:
                    os._exit(1)
            a.mailbox.asked -= 1
            pieces(a, APPLY)
            counted(a, modules)
            assert os.waitpid(child, 0)[1] == 0, (most, then)
            a.stop()
            clean()
    for module in modules:
        unload(module)


def check_end():
    """The interpreter ends in between, with the agent in it."""
    for most in (1, 10, 30, 60, 100):
        child = os.fork()
        if not child:
            load("pieces.m")
            pieces(agent(), APPLY, most=most)
            sys.exit(0)  # not os._exit(): all is taken down
        assert os.waitpid(child, 0)[1] == 0, most


if __name__ == "__main__":
    for name, fn in list(globals().items()):
        if name.startswith("check_") and (len(sys.argv) < 2 or sys.argv[1] in name):
            fn()
    print("ok")
