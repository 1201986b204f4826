# SPDX-License-Identifier: MIT
"""Calls in several threads at once, during commands and beside collections: the counts are exact.
An interpreter with a GIL passes, too; where there is none, delays are given in parallel."""
import ctypes
import gc
import os
import sys
import threading
import time

from driver import COUNT, DELAY, OFF, SLOW, TIMED, Agent, monitoring
from state import clean

N = 4
SCALE = int(os.environ.get("SCALE", 1))
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
FREE_THREADED = 1  # of mailbox.flags
MAIN = "__main__"


def together(work, beside=None):
    """work(i) in every thread, begun at the same time; beside() in this one until all are done."""
    begin, failed = threading.Barrier(N), []

    def run(i):
        begin.wait()
        try:
            work(i)
        except BaseException as e:
            failed.append(e)
            raise
    threads = [threading.Thread(target=run, args=(i,)) for i in range(N)]
    [t.start() for t in threads]
    while beside and any(t.is_alive() for t in threads):
        beside()
    [t.join() for t in threads]
    assert not failed, failed


def ticks_per_s():
    """Of the clock that the agent reads."""
    a = Agent((MAIN, "nap", TIMED), cells=1).apply().time(True)
    nap(0.001)
    begin, seconds = a.times().ticks, time.perf_counter()
    nap(0.02)
    rate = (a.times().ticks - begin) / (time.perf_counter() - seconds)
    a.stop()
    return rate


def nap(seconds):
    time.sleep(seconds)


def slow(a, seconds, i=0):
    c = a.cell(i)
    c.delay_ticks, c.overrun_limit = int(seconds * RATE), 1 << 60
    c.pause_above, c.residual_max = 1 << 62, 0
    c.flags |= DELAY
    a.state(SLOW, i)


def fresh(name, body="pass"):
    space = {"__name__": MAIN}
    exec(f"def {name}(): {body}", space)
    return space[name]


def check_first_calls(tools=0):
    """The first call of a function in all threads at the same time; no call is counted twice, or
    never. tools: how many ids others have, so that one is left for us."""
    for i in range(tools):
        sys.monitoring.use_tool_id(i, "another")
    a = Agent((MAIN, "first"), cells=1).apply()
    rounds, calls = 10 * SCALE, 3

    for _ in range(rounds):
        first = fresh("first")

        def work(_):
            for _ in range(calls):
                first()
        together(work)
    assert a.hits() == rounds * calls * N, (a.hits(), rounds * calls * N)
    a.stop()
    for i in range(tools):
        sys.monitoring.free_tool_id(i)
    clean()


def check_one_tool():
    """The same with one free id, which both finds and watches."""
    check_first_calls(5)


def check_churn():
    """Functions made and freed in all threads, with a collection now and then."""
    a = Agent((MAIN, "hit"), cells=1).apply()
    rounds = 30 * SCALE

    def work(_):
        for _ in range(rounds):
            hit, miss = fresh("hit"), fresh("miss")
            hit(), miss(), hit()
    together(work, gc.collect)
    assert a.hits() == rounds * 2 * N, (a.hits(), rounds * 2 * N)
    a.stop()
    clean()


def steady():
    pass


def other():
    pass


def check_commands():
    """New lists and settings while all threads call: what is in all lists misses no call."""
    a = Agent((MAIN, "steady"), cells=4).apply()
    lists = [((MAIN, "steady"), (MAIN, "other")), ((MAIN, "st*"),),
             ((MAIN, "steady"), ("*", "fresh.*")), ((MAIN, "steady"), (MAIN, "steady"))]
    calls, turn = [0] * N, 0

    def work(i):
        while turn < 8:
            steady(), steady(), other()
            calls[i] += 2

    def beside():
        nonlocal turn
        a.set_targets(*lists[turn % len(lists)])
        a.apply()
        turn += 1
    together(work, beside)
    assert a.hits() == sum(calls), (a.hits(), sum(calls))
    a.stop()
    clean()


def check_switching():
    """Watched, not watched, timed, not timed, with a function that is called all the time."""
    a = Agent((MAIN, "steady", TIMED), cells=1).apply()
    stop = time.monotonic() + 0.4

    def work(_):
        while time.monotonic() < stop:
            steady()

    def beside():
        for state in OFF, COUNT:
            a.state(state)
            a.time(state == COUNT)
    together(work, beside)
    a.time(False)
    a.state(COUNT)
    before = a.hits()
    together(lambda _: [steady() for _ in range(1000)])
    assert a.hits() - before == N * 1000, a.hits() - before
    a.stop()
    clean()


def check_cycles():
    """Comes and goes while functions are called, made and freed."""
    cycles = 0

    def work(_):
        while cycles < 2 * SCALE:
            steady(), other(), fresh("steady")()

    def beside():
        nonlocal cycles
        a = Agent((MAIN, "steady"), cells=1).apply()
        slow(a, 1e-5)
        assert a.mailbox.flags & FREE_THREADED == (0 if GIL else FREE_THREADED)
        a.cell(0).state = OFF
        a.stop()
        cycles += 1
    together(work, beside)
    clean()


def timed(calls_each, n):
    """Seconds of so many delayed calls in each of n threads."""
    begin, end = threading.Barrier(n + 1), threading.Barrier(n + 1)

    def run():
        begin.wait()
        for _ in range(calls_each):
            steady()
        end.wait()
    threads = [threading.Thread(target=run) for _ in range(n)]
    [t.start() for t in threads]
    begin.wait()
    start = time.perf_counter()
    end.wait()
    seconds = time.perf_counter() - start
    [t.join() for t in threads]
    return seconds


def check_delays():
    """Two threads' at the same time: as long as one thread's, where nobody else is in their way."""
    a = Agent((MAIN, "steady"), cells=1).apply()
    steady()
    slow(a, 0.003)
    before, calls, best = a.sum("injected_ticks"), 0, [1.0, 1.0]
    for _ in range(20 if GIL else 300):
        best = [min(best[0], timed(2, 1)), min(best[1], timed(1, 2))]
        calls += 4
        if not GIL and best[1] < 0.8 * best[0]:
            break
    given = (a.sum("injected_ticks") - before) / RATE
    assert given > 0.95 * 0.003 * calls, (given, calls)
    if os.cpu_count() > 1:
        assert (best[1] > 0.9 * best[0]) == GIL, best
    a.stop()
    clean()


def check_collection():
    """One does not wait for a thread that is delayed."""
    if GIL:
        return
    a = Agent((MAIN, "steady"), cells=1).apply()
    steady()
    slow(a, 0.3)
    took = []
    for _ in range(20):
        thread = threading.Thread(target=steady)
        thread.start()
        time.sleep(0.02)
        begin = time.perf_counter()
        gc.collect()
        took.append(time.perf_counter() - begin)
        thread.join()
        if took[-1] < 0.15:
            break
    assert took[-1] < 0.15, took
    a.stop()
    clean()


def check_leaving():
    """Told to go while others spin: they leave first."""
    a = Agent((MAIN, "steady"), cells=1).apply()
    steady()
    slow(a, 0.3)
    threads = [threading.Thread(target=steady) for _ in range(N)]
    [t.start() for t in threads]
    time.sleep(0.02)
    a.cell(0).state = OFF
    a.stop()
    [t.join() for t in threads]
    clean()


def check_forks():
    """A child of one thread while the others are anywhere in the agent."""
    a = Agent((MAIN, "hit"), cells=1).apply()
    stop = time.monotonic() + 0.5

    def work(i):
        while time.monotonic() < stop:
            fresh("hit")()
            if i:
                continue
            pid = os.fork()
            if not pid:
                fresh("hit")()
                a.process = 1
                os._exit(a.ask(3))
            assert os.waitpid(pid, 0)[1] == 0
    together(work)
    a.stop()
    clean()


RATE = 1.0
if __name__ == "__main__":
    if not hasattr(sys, "monitoring"):
        print("ok")
        raise SystemExit
    RATE = ticks_per_s()
    for check in (check_collection, check_first_calls, check_one_tool, check_churn, check_commands,
                  check_switching, check_cycles, check_delays, check_leaving, check_forks):
        begin = time.perf_counter()
        check()
        print(check.__name__, round(time.perf_counter() - begin, 2), flush=True)
    print("ok")
