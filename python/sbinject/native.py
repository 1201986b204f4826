# SPDX-License-Identifier: MIT
"""Probes on native functions, with the interface of Speed Bump.

    from sbinject import native

    with native.probe("/usr/bin/python3", "PyObject_GetAttr", delay_ns=1000):
        run_benchmark()

No kernel module is needed, nor root for a process of the same user. All functions here are short
forms of ``sbinject.delay``, ``add`` and ``remove``.
"""

from __future__ import annotations

from typing import Optional

from . import _session
from ._session import Run, is_available

__all__ = ["add_probe", "is_available", "probe", "remove_probe"]


def _delay(delay_ns: int) -> str:
    if not isinstance(delay_ns, int) or delay_ns < 0:
        raise ValueError(f"delay_ns is a number of nanoseconds from 0 on, not {delay_ns!r}")
    return f"{delay_ns}ns"


def probe(
    binary_path: str, symbol: str, delay_ns: int = 1000, pid: Optional[int] = None
) -> _session.delay:
    """A context in which each call of ``symbol`` in ``binary_path`` takes ``delay_ns`` longer.

    ``delay_ns`` of 0 only counts. ``pid`` is another process than this one. The context's value
    is the ``sbinject.Run``, filled at its end. Raises ``sbinject.Error``.
    """
    return _session.delay(f"{binary_path}:{symbol}", _delay(delay_ns), pid=pid)


def add_probe(
    binary_path: str, symbol: str, delay_ns: int = 1000, pid: Optional[int] = None
) -> Run:
    """As ``probe``, until ``remove_probe`` or the end of this process."""
    return _session.add(f"{binary_path}:{symbol}", _delay(delay_ns), pid=pid)


def remove_probe(binary_path: str, symbol: str, pid: Optional[int] = None) -> Run:
    """Remove a probe; returns its counts. Raises LookupError if there is none."""
    return _session.remove(f"{binary_path}:{symbol}", pid=pid)
