# SPDX-License-Identifier: MIT
"""Slow functions of this very process by an exact time, and see what of it reaches the result.

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
process, the children that it has and those that it makes are covered.

The work is done by the ``sbinject`` program, which attaches to this process from outside: it is
the file that the environment variable SBINJECT names, else the one on PATH, else the one
installed beside this package. ``is_available()`` says whether that can work here.

Times are in nanoseconds wherever a name ends in ``_ns``. Whatever goes wrong is an
``sbinject.Error`` whose text is sbinject's own: what is wrong, and the remedy.
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

#: What one reading of the clock costs here, measured when it is first asked for.
clock_overhead_ns: int
#: The shortest time that ``spin_delay_ns()`` can take here, measured when it is first asked for.
#: Delays of functions go well below it: they are not given by Python code.
min_delay_ns: int


def __getattr__(name: str) -> int:
    if name in ("clock_overhead_ns", "min_delay_ns"):
        from . import _spin

        value = int(getattr(_spin.measured(), name))
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
