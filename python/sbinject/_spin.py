# SPDX-License-Identifier: MIT
"""A busy wait in Python that holds the GIL.

Its loop runs inside any(), in C, where the interpreter does not check for other threads that
wait for the GIL, nor for signals: so it acts like code that takes longer, as a hook's delay does.
One round of it is a reading of the clock and two calls, some 100 ns; a wait ends up to a round
late.
"""

from __future__ import annotations

from time import perf_counter_ns as _now
from typing import NamedTuple, Optional


class Measured(NamedTuple):
    clock_overhead_ns: int
    min_delay_ns: int
    entry_ns: int  # time of a wait beyond that between its readings of the clock


_measured: Optional[Measured] = None


def _spin(ns: int) -> None:
    any(map((_now() + ns).__le__, iter(_now, None)))


def _wait(ns: int, entry_ns: int) -> None:
    if not isinstance(ns, int):
        raise TypeError(f"ns must be an int, not {type(ns).__name__}")
    if ns < 0:
        raise ValueError("ns must not be negative")
    left = ns - entry_ns
    if left > 0:
        _spin(left)


def _costs(ns: int, rounds: int = 200) -> list[int]:
    """The costs of single waits, in order."""
    costs = []
    for _ in range(rounds):
        start = _now()
        _wait(ns, 0)
        costs.append(_now() - start)
    return sorted(costs)


def _clock_cost(rounds: int = 25) -> int:
    costs = []
    for _ in range(rounds):
        start = _now()
        for _ in range(20):
            _now()
        costs.append((_now() - start) // 20)
    return max(1, min(costs))


def measured() -> Measured:
    """The costs here; measured once, in about a millisecond."""
    global _measured
    if _measured is None:
        # The least time that a wait took beyond its set time: so none ends early, even if this
        # measurement was preempted most of the time.
        over = _costs(2000)[0] - 2000
        least = _costs(1)
        clock = _clock_cost()
        _measured = Measured(clock, max(clock, least[len(least) // 2]), max(0, over - clock))
    return _measured


def spin_delay_ns(ns: int) -> None:
    """Keep this thread, and the GIL, busy for ``ns`` nanoseconds.

    The wait's own cost is measured once and subtracted. A wait ends up to a round of its loop
    (100 ns) late; one shorter than ``sbinject.min_delay_ns`` takes about that long. No Python
    signal handler runs meanwhile.

    >>> sbinject.spin_delay_ns(1000)    # 1 us

    Raises TypeError for a value that is no integer, ValueError for a negative one.
    """
    _wait(ns, (_measured or measured()).entry_ns)
