# SPDX-License-Identifier: MIT
"""Slow functions of this process by an exact time, and see how much of it reaches the result.

    import sbinject

    with sbinject.delay("libc.so.6:getpid", "5us") as run:
        serve_requests()
    print(run.hits, run.injected_ns, run.given_ns)

    with sbinject.delay("py:vllm.*:Scheduler.schedule", "10us", every=10):
        serve_requests()

A target is written as on sbinject's command line (sbinject-targets(5)): ``MODULE:SYMBOL`` for a
native function, ``py:MODULE:QUALNAME`` for a Python one, both sides globs. A delay is a text with
its unit (``"500ns"``, ``"2.5us"``, ``"1ms"``), or 0, which only counts. The delay is spent on the
thread that makes the call, a Python function's with the GIL held where the interpreter has one. The
hooks cover the process, its existing children and its later ones.

The ``sbinject`` program does the work and attaches to this process from outside: it is
the file that the environment variable SBINJECT names, else the one on PATH, else the one
installed beside this package. ``is_available()`` checks whether that works here.

Times are in nanoseconds wherever a name ends in ``_ns``. Every failure raises
``sbinject.Error`` with sbinject's own text: the reason and the remedy.
"""

from __future__ import annotations

from ._session import Error, Run, add, delay, is_available, remove, why_not_available
from ._spin import spin_delay_ns

__version__ = "0.1.0"

__all__ = [
    "Error",
    "Run",
    "add",
    "clock_overhead_ns",
    "delay",
    "is_available",
    "min_delay_ns",
    "remove",
    "spin_delay_ns",
    "why_not_available",
]

#: The cost of one reading of the clock here, measured at first use.
clock_overhead_ns: int
#: The shortest time that ``spin_delay_ns()`` can take here, measured at first use.
#: Delays of functions can be much shorter: they do not run in Python code.
min_delay_ns: int


def __getattr__(name: str) -> int:
    if name in ("clock_overhead_ns", "min_delay_ns"):
        from . import _spin

        value = int(getattr(_spin.measured(), name))
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
