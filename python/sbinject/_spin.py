# SPDX-License-Identifier: MIT
"""A busy wait in Python that holds the GIL.

Its loop runs inside of any(), in C, where the interpreter does not look for other threads that
want the GIL, nor for signals: so it stands for code that takes longer, as a hook's delay does.
One round of it is a reading of the clock and two calls, some 100 ns; a wait ends up to a round
late.
"""

from __future__ import annotations

from time import perf_counter_ns as _now
from typing import NamedTuple, Optional


class Measured(NamedTuple):
    clock_overhead_ns: int
    min_delay_ns: int
    entry_ns: int  # of a wait's cost, what lies outside of its two readings of the clock


_measured: Optional[Measured] = None


def _spin(ns: int) -> None:
    any(map((_now() + ns).__le__, iter(_now, None)))


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]


def _cost(ns: int, calls: int = 20, rounds: int = 25) -> int:
    costs = []
    for _ in range(rounds):
        start = _now()
        for _ in range(calls):
            _spin(ns)
        costs.append((_now() - start) // calls)
    return _median(costs)


def _clock_cost(rounds: int = 25) -> int:
    costs = []
    for _ in range(rounds):
        start = _now()
        for _ in range(20):
            _now()
        costs.append((_now() - start) // 20)
    return max(1, _median(costs))


def measured() -> Measured:
    """The costs here; measured once, in some hundred microseconds."""
    global _measured
    if _measured is None:
        # What a long wait takes beyond its time: its entry, and on average half a round.
        over = _cost(20_000) - 20_000
        _measured = Measured(_clock_cost(), max(1, _cost(0)), max(0, over))
    return _measured


def spin_delay_ns(ns: int) -> None:
    """Keep this thread, and the GIL, busy for ``ns`` nanoseconds.

    The wait's own cost is measured once and taken off. Waits are right to about a round of its
    loop (100 ns); one shorter than ``sbinject.min_delay_ns`` takes that long. No signal handler
    of Python's runs meanwhile.

    >>> sbinject.spin_delay_ns(1000)    # 1 us

    Raises TypeError for what is no integer, ValueError for a negative one.
    """
    if not isinstance(ns, int):
        raise TypeError(f"ns must be an int, not {type(ns).__name__}")
    if ns < 0:
        raise ValueError("ns must not be negative")
    left = ns - (_measured or measured()).entry_ns
    if left > 0:
        _spin(left)
