# SPDX-License-Identifier: MIT
"""Hits are the calls that the program counted itself, for everything that is a function."""
import asyncio
import functools
import gc
import importlib
import os
import sys
import tempfile
import threading
import types

from driver import FILE, RESUME, Agent, monitoring

V = sys.version_info
made = {}  # name -> calls made


def called(name):
    made[name] = made.get(name, 0) + 1


def plain(a=1, *b, c=2, **d):
    called("plain")


class Base:
    def method(self):
        called("Base.method")

    @classmethod
    def klass(cls):
        called("Base.klass")

    @staticmethod
    def static():
        called("Base.static")

    @property
    def prop(self):
        called("Base.prop")

    def __getitem__(self, i):
        called("Base.__getitem__")

    def __getattr__(self, name):
        called("Base.__getattr__")
        return 1

    def __call__(self):
        called("Base.__call__")

    def __init__(self):
        called("Base.__init__")

    def __eq__(self, other):
        called("Base.__eq__")
        return True

    def __add__(self, other):
        called("Base.__add__")

    def __enter__(self):
        called("Base.__enter__")

    def __exit__(self, *exc):
        called("Base.__exit__")

    def __iter__(self):
        called("Base.__iter__")
        yield 1

    def __private(self):
        called("Base.__private")

    class Inner:
        def deep(self):
            called("Base.Inner.deep")

    def run(self):
        called("Base.run")
        self.__private()


class Derived(Base):
    def method(self):
        called("Derived.method")
        super().method()


def decorate(fn):
    @functools.wraps(fn)
    def wrapper(*a, **k):
        called("decorate.<locals>.wrapper")
        return fn(*a, **k)
    return wrapper


@decorate
def decorated():
    called("decorated")


def outer(n):
    def inner():
        called("outer.<locals>.inner")
        return n

    class Local:
        called("outer.<locals>.Local")

        def meth(self):
            called("outer.<locals>.Local.meth")
            return n
    Local().meth()
    return inner


lam = lambda: called("<lambda>")  # noqa: E731


def generator(n):
    called("generator")
    for i in range(n):
        yield i


def delegating(n):
    called("delegating")
    yield from generator(n)


async def coroutine():
    called("coroutine")
    await asyncio.sleep(0)


async def agen(n):
    called("agen")
    for i in range(n):
        yield i


async def use_async():
    called("use_async")
    for _ in range(3):
        await coroutine()
    async for _ in agen(4):
        pass


def recursive(n):
    called("recursive")
    return n and recursive(n - 1)


def raising():
    called("raising")
    raise ValueError


def with_comp(n):
    called("with_comp")
    [plain() for _ in range(n)]
    {plain() for _ in range(n)}
    list(plain() for _ in range(n))


NAMES = """plain Base.method Base.klass Base.static Base.prop Base.__getitem__ Base.__getattr__
Base.__call__ Base.__init__ Base.__eq__ Base.__add__ Base.__enter__ Base.__exit__ Base.__iter__
Base.__private Base.Inner.deep Derived.method decorate.<locals>.wrapper decorated
outer.<locals>.inner outer.<locals>.Local outer.<locals>.Local.meth <lambda> generator delegating
coroutine agen use_async recursive raising with_comp made_up""".split()


def body():
    b = Base()
    for i in range(300):  # often enough to be specialised
        plain()
        plain(1, 2, 3, c=4, d=5)
        plain(*(1, 2), **{"c": 3})
        b.method(), b.klass(), b.static(), Base.klass(), Base.static()
        b.prop, b[1], b.missing, b(), b == b, b + b
        with b:
            pass
        list(b)
        b.run()
        Base.Inner().deep()
        Derived().method()
        decorated()
        outer(1)()
        lam()
        list(generator(3))
        for _ in generator(2):
            pass
        list(delegating(2))
        generator(2)  # never started: none
        generator(2).close()
        try:
            generator(2).throw(ValueError)
        except ValueError:
            pass
        g = generator(5)
        next(g)
        try:
            g.throw(KeyError)
        except KeyError:
            pass
        recursive(3)
        try:
            raising()
        except ValueError:
            pass
        with_comp(2)
        sorted([3, 1, 2], key=lambda x: plain() or x)
        map(plain, [1])
        list(map(lambda x: plain(), [1, 2]))
        functools.partial(plain, 1)()
        made_up()
    asyncio.run(use_async())
    c = coroutine()
    c.close()
    for k in range(3):
        ts = [threading.Thread(target=plain) for _ in range(5)]
        [t.start() for t in ts]
        [t.join() for t in ts]


space = {"called": called, "__name__": "__main__"}
exec("def made_up(): called('made_up')", space)
made_up = space["made_up"]


def compare(agent, name, cell):
    got = agent.hits(cell)
    assert got == made.get(name, 0), (name, got, made.get(name, 0))


def check_kinds():
    a = Agent(*[("__main__", n.replace("[", "\\[")) for n in NAMES], cells=64).apply()
    for _ in range(2):
        body()
    a.stop()
    wrong = [(n, a.hits(i), made.get(n, 0)) for i, n in enumerate(NAMES)
             if n != "<lambda>" and a.hits(i) != made.get(n, 0)]  # of <lambda> there are others
    assert not wrong, wrong
    assert made["plain"] > 4000 and made["agen"] and made["outer.<locals>.Local"], made
    before = [a.hits(i) for i in range(len(NAMES))]
    body()
    assert before == [a.hits(i) for i in range(len(NAMES))], "hits after STOP"


def check_globs():
    made.clear()
    a = Agent(("__main__", "Base.*"), ("__ma*", "*.method"), ("*", "plain"), ("__main__", "*"),
              ("nowhere*", "*"), ("*/counts.py", "plain", FILE), ("/nowhere/*", "plain", FILE),
              ("__main__", "[x-z]*in?"), cells=16).apply()
    body()
    a.stop()
    base = sum(n for k, n in made.items() if k.startswith("Base."))
    assert a.hits(0) == base, (a.hits(0), base)
    assert a.hits(1) == made["Base.method"] + made["Derived.method"]
    compare(a, "plain", 2)
    assert a.hits(3) > sum(made.values())  # and called(), body(), comprehensions
    assert a.hits(4) == 0 and a.hits(6) == 0
    compare(a, "plain", 5)
    assert a.hits(7) == 0, a.names(7)
    assert "Base.method" in a.names(0) and "Derived.method" not in a.names(0), a.names(0)
    lines = {n[2]: n for n in a.notes(2)}
    assert lines["plain"][1] == "__main__" and lines["plain"][3].endswith("counts.py")
    assert lines["plain"][4] == plain.__code__.co_firstlineno


def check_resume():
    def run():
        list(generator(3))
        g = generator(5)
        next(g), next(g)
        try:
            g.throw(KeyError)
        except KeyError:
            pass
        list(delegating(2))
        asyncio.run(use_async())
        plain()

    a = Agent(("__main__", "generator", RESUME), ("__main__", "generator"),
              ("__main__", "coroutine", RESUME), ("__main__", "agen", RESUME),
              ("__main__", "delegating", RESUME), ("__main__", "plain", RESUME)).apply()
    for _ in range(5):
        run()
    a.stop()
    # 3 + its end, twice next, 2 + its end; started: 3
    assert a.hits(0) == 5 * (4 + 2 + 3), a.hits(0)
    assert a.hits(1) == 5 * 3, a.hits(1)
    assert a.hits(2) == 5 * 6, a.hits(2)  # three coroutines: start, one resumption
    assert a.hits(3) == 5 * 5, a.hits(3)
    assert a.hits(4) == 5 * 3, a.hits(4)
    assert a.hits(5) == 5, a.hits(5)


def immortal():
    """Whether codes live forever: so on free-threaded 3.13 once a thread was started."""
    return sys.version_info < (3, 14) and not getattr(sys, "_is_gil_enabled", lambda: True)()


def check_churn():
    """Functions made and freed: none is missed, none is taken for another one."""
    made.clear()
    a = Agent(("__main__", "hit"), ("*", "other.*"), cells=4).apply()
    space = {"called": called, "__name__": "__main__"}
    for i in range(3000):
        exec("def hit(): called('hit')\ndef miss(): pass\nhit(); miss(); miss()", space)
        exec("def miss(): pass\nmiss()", space)
        if i % 3 == 0:
            exec("def hit(): called('hit')\nhit(); hit()", space)
    compare(a, "hit", 0)
    for i in range(300):
        exec(f"class other{i}:\n def m(self): called('none')\nother{i}().m()", space)
        exec("class other:\n def m(self): called('other.m')\nother().m()", space)
    compare(a, "other.m", 1)
    gc.collect()
    a.apply()
    if not immortal():
        assert a.mailbox.matched < 50, a.mailbox.matched  # those that died are not held
    # Closures: one code object, many functions.
    for i in range(10000):
        outer(i)
    a.stop()


def check_modules():
    made.clear()
    with tempfile.TemporaryDirectory() as d:
        sys.path.insert(0, d)
        path = os.path.join(d, "sbmod.py")
        with open(path, "w") as f:
            f.write("import counts_called\ndef fn():\n counts_called.called('fn')\n"
                    "class K:\n def m(self): counts_called.called('K.m')\n"
                    "counts_called.called('body')\n")
        sys.modules["counts_called"] = types.SimpleNamespace(called=called)
        a = Agent(("sbmod", "fn"), ("sbmod", "K.m"), ("sbmod", "<module>"), (path, "fn", FILE),
                  ("sbmod", "K")).apply()
        import sbmod
        for i in range(20):
            sbmod.fn(), sbmod.K().m()
        old = sbmod.fn
        for i in range(5):
            importlib.reload(sbmod)
            sbmod.fn(), sbmod.K().m(), old()
        a.stop()
        for i, name in enumerate(["fn", "K.m", "body", "fn"]):
            compare(a, name, i)
        assert a.hits(4) == 6, a.hits(4)  # class bodies
        del sys.modules["sbmod"], sys.modules["counts_called"]
        sys.path.remove(d)


def check_names():
    """Names of what is run once, or is called like what it wraps; __main__ by its other name."""
    made.clear()
    names = ["K", "K.In", "K.In.In", "late.<locals>.L", "late.<locals>.L.In", "late.<locals>.__P",
             "same.<locals>.w", "w", "late.<locals>.<lambda>"]
    a = Agent(*[("fresh", n) for n in names], ("__main__", "spawned"), ("__mp_main__", "spawned"),
              ("__m?in__", "spawned"), ("__mai", "spawned"), cells=16).apply()
    exec("""
class K:
    "Text"
    called("K")
    class In:
        called("K.In")
        class In: called("K.In.In")
def late():
    class L:
        called("late.<locals>.L")
        class In: called("late.<locals>.L.In")
    class __P:
        called("late.<locals>.__P")
    (lambda: called("late.<locals>.<lambda>"))()
def same(fn):
    @functools.wraps(fn)
    def w():
        called("same.<locals>.w")
        fn()
    return w
@same
def w(): called("w")
for i in range(4):
    late(), w()
""", {"called": called, "__name__": "fresh", "functools": functools})
    space = {"called": called, "__name__": "__mp_main__"}
    exec("def spawned(): called('spawned')\nspawned(); spawned()", space)
    a.stop()
    for i, name in enumerate(names):
        compare(a, name, i)
    assert [a.hits(i) for i in range(9, 13)] == [2, 2, 2, 0], [a.hits(i) for i in range(9, 13)]
    assert made["K.In"] == 1 and made["w"] == made["late.<locals>.L"] == 4, made


def check_list():
    a = Agent(("__main__", "Base.*"), ("nowhere", "*"), ("*/counts.py", "outer*", FILE))
    before = monitoring()
    a.must(2)
    assert monitoring() == before
    plain()
    names = a.names(0)
    assert "Base.method" in names and "Base.__init__" in names, names
    assert a.names(1) == [] and "outer" in a.names(2), a.names(2)
    assert "outer.<locals>.inner" in a.names(2), a.names(2)
    assert a.hits(0) == a.hits(2) == 0
    a.must(2)
    assert a.names(0) == names  # no note twice
    a.stop()


def check_refused():
    """At a first call the interpreter may refuse the watch (it is at its limit of recursion): the
    call counts, and so do those that follow."""
    if sys.version_info < (3, 12):
        return
    a = Agent(("__main__", "refused")).apply()
    space = {"__name__": "__main__"}
    exec("def refused(): pass", space)
    own, sys.monitoring.set_local_events = sys.monitoring.set_local_events, int  # it raises
    try:
        space["refused"]()
        space["refused"]()
    finally:
        sys.monitoring.set_local_events = own
    for _ in range(5):
        space["refused"]()
    assert a.hits(0) == 7, a.hits(0)
    a.stop()


def check_argv():
    which = sys.argv[1:]
    for name, fn in list(globals().items()):
        if name.startswith("check_") and name != "check_argv" and (not which or name[6:] in which):
            fn()


if __name__ == "__main__":
    check_argv()
    assert monitoring() is None or monitoring() == [(None, 0)] * 6, monitoring()
    print("ok")
