# SPDX-License-Identifier: MIT
"""The sbinject package, on the process that uses it. Run by test/case/python-package.sh."""

import doctest
import os
import subprocess
import sys
import threading
import time

import sbinject
from sbinject import native

GETPID = "libc.so.6:getpid"


def f():
    pass


def g():
    pass


def step():
    pass


def same(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


def refused(kind, text, call, *args, **keys):
    try:
        call(*args, **keys)
    except kind as e:
        assert text in str(e), f"{text!r} is not in {str(e)!r}"
        return e
    raise AssertionError(f"{call} {args} was not refused")


def untraced():
    with open("/proc/self/status") as status:
        return "TracerPid:\t0\n" in status.read()


def clean():
    """As before: nobody traces, no hook, page or descriptor is left, and no child."""
    for _ in range(200):
        if untraced():
            break
        time.sleep(0.02)
    assert untraced()
    same("descriptors", sorted(os.listdir("/proc/self/fd")), fds)
    with open("/proc/self/maps") as maps:
        assert "sbinject" not in maps.read()
    refused(ChildProcessError, "", os.wait)


def native_and_python():
    with sbinject.delay(GETPID, "5us") as run:
        assert not untraced() and run == {} and run.hits is None
        for _ in range(500):
            os.getpid()
    os.getpid()
    same("hits", (run.hits, run.delayed, run.outcome), (500, 500, "delayed"))
    assert run.given_ns >= 4900 and run.injected_ns >= 500 * 4900
    same("document", run["schema"], "sbinject.run/1")
    same("asked", run["targets"][0]["delay_ns"], 5000)
    clean()
    with sbinject.delay("py:__main__:f", "10us", every=2) as run:
        for _ in range(100):
            f()
            g()
    f()
    same("py hits", (run.hits, run.delayed), (100, 50))
    assert run.given_ns >= 9900
    clean()


def nested():
    with sbinject.delay("py:__main__:f", 0) as outer:
        f()
        with sbinject.delay("py:__main__:g", "1us") as inner:
            f()
            g()
        f()
        g()
    same("nested", (outer.hits, inner.hits), (3, 1))
    same("nested outcome", (outer.outcome, inner.outcome), ("counted", "delayed"))
    same("nested processes", sum(p["targets"][0]["hits"] for p in outer["processes"]), 3)


def timed():
    with sbinject.delay("libc.so.6:getloadavg", "1ms", time=True) as run:
        for _ in range(10):
            os.getloadavg()
        # A second target ends the first session: the figures are those of both.
        with sbinject.delay("py:__main__:g", 0) as other:
            g()
            os.getloadavg()
    same("timed", (run.spans["calls"], run.spans["missed"], run.delayed), (11, 0, 11))
    same("their histogram", sum(n for _, _, n in run.spans["histogram"]), 11)
    # The delays are not part of the times.
    assert 0 < run.spans["min_ns"] <= run.spans["max_ns"] <= run.spans["inclusive_ns"] < 11000000
    same("own", run.spans["exclusive_ns"], run.spans["inclusive_ns"])
    same("of two sessions", run.spans["p50_ns"], None)
    same("not timed", other.spans, None)
    clean()


def by_hand():
    same("add", sbinject.add(GETPID, 0).hits, None)
    assert sbinject.is_available()
    e = refused(sbinject.Error, "getpidd", sbinject.add, "libc.so.6:getpidd", "1us")
    same("status", e.status, 3)
    os.getpid()
    # a child that was forked meanwhile leaves the context that is its parent's
    with sbinject.delay("py:__main__:f", 0) as run:
        child = os.fork()
        if child:
            same("child", os.waitpid(child, 0)[1], 0)
        else:
            f()
    if not child:
        os._exit(0)
    same("run.hits", run.hits, 1)
    os.getpid()
    same("remove", sbinject.remove(GETPID).hits, 2)
    refused(LookupError, GETPID, sbinject.remove, GETPID)
    clean()


def children_and_threads():
    code = "import os\nfor i in range(7): os.getpid()"
    with sbinject.delay("libc.so.6:getpid", 0) as run:
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
        mine = threading.Thread(target=lambda: [os.getpid() for _ in range(5)])
        mine.start()
        mine.join()
    hits = [p["targets"][0]["hits"] for p in run["processes"] if p["pid"] == os.getpid()]
    same("this process", hits, [5])
    assert run.hits >= 12, run.hits
    clean()


def raising():
    try:
        with sbinject.delay("py:__main__:f", 0) as run:
            f()
            raise KeyError("mine")
    except KeyError as e:
        same("exception", str(e), "'mine'")
    same("hits", run.hits, 1)
    clean()


def bad_input():
    refused(TypeError, "unit", sbinject.delay(GETPID, 5).__enter__)
    refused(TypeError, "str", sbinject.delay(5, "5us").__enter__)
    refused(TypeError, "no key 'evry'", sbinject.add, GETPID, "5us", evry=1)
    for target, delay in (("getpid", "1us"), ("-p:1", "1us"), (GETPID, "--x"), (GETPID, ""),
                          (GETPID, "5"), (GETPID, "11s"), ("py:f", "1us"), (GETPID, "1lb")):
        same(target, refused(sbinject.Error, "", sbinject.add, target, delay).status, 2)
    same("pid", refused(sbinject.Error, "", sbinject.add, GETPID, 0, pid=2**22 + 1).status, 5)
    with sbinject.delay("py:nowhere:nothing", "1us") as run:
        pass
    same("nothing", (run.hits, run.outcome), (None, "no_match"))
    clean()


def probes():
    assert native.is_available()
    with native.probe("libc.so.6", "getpid", delay_ns=1500) as run:
        os.getpid()
    same("probe", (run.hits, run["targets"][0]["delay_ns"]), (1, 1500))
    native.add_probe("libc.so.6", "getpid", delay_ns=0)
    same("probe", native.remove_probe("libc.so.6", "getpid").outcome, "never_called")
    with native.probe("libc.so.6", "getpid") as run:
        os.getpid()
    same("default", (run.hits, run["targets"][0]["delay_ns"]), (1, 1000))
    refused(ValueError, "delay_ns", native.probe, "libc.so.6", "getpid", delay_ns=-1)
    clean()


def spin():
    assert 0 < sbinject.clock_overhead_ns <= sbinject.min_delay_ns
    for ns in (0, 1000, 50000, 2000000):
        start = time.perf_counter_ns()
        sbinject.spin_delay_ns(ns)
        assert time.perf_counter_ns() - start >= ns * 0.9
    refused(ValueError, "negative", sbinject.spin_delay_ns, -1)
    refused(TypeError, "float", sbinject.spin_delay_ns, 1.5)


def documented():
    """The examples of the docstrings, as they stand there."""
    examples = 0
    for module in (sbinject, sbinject._session, sbinject._spin, native):
        for test in doctest.DocTestFinder().find(module, globs={**globals(), "native": native}):
            result = doctest.DocTestRunner().run(test)
            same(test.name, result.failed, 0)
            examples += result.attempted
    assert examples >= 6, examples
    clean()


def availability():
    """What is no part of a delay is no obstacle: BPF, counters of the processor, other backends."""
    def row(key, name, ok):
        return {key: name, "ok": ok, "reason": None if ok else name, "remedy": None if ok else "do"}

    def found(inject=True, own=True, others=True):
        return sbinject._session._obstacle({
            "machine": [row("check", "thread= (FS base)", False), row("check", "own", own)],
            "backends": [row("backend", "inject", inject), row("backend", "kmod", False)],
            "evidence": [row("check", "capability for BPF", False)],
            "processes": [{"checks": [row("check", "others", others)],
                           "device": [row("check", "device times", False)]}],
        })

    same("fine", found(), None)
    same("ptrace", found(inject=False), "inject; do")
    same("machine", found(own=False), "own; do")
    same("process", found(others=False), "others; do")


fds = sorted(os.listdir("/proc/self/fd"))
availability()
assert sbinject.is_available(), sbinject.why_not_available()
for case in (native_and_python, nested, timed, by_hand, children_and_threads, raising, bad_input,
             probes, spin, documented):
    case()
sbinject.add("py:__main__:f", 0)  # left to the end of the process
print("ok")
