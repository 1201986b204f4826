# SPDX-License-Identifier: MIT
"""Finds the sbinject program. Imports only modules that Python's start has loaded anyway."""

from __future__ import annotations

import os
import sys
from typing import Iterator, Optional


def _candidates() -> Iterator[str]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder:
            yield os.path.join(folder, "sbinject")
    for folder in (os.path.dirname(sys.executable or ""), os.path.join(sys.prefix, "bin")):
        if folder:
            yield os.path.join(folder, "sbinject")
    # beside the package: pip install --target, and the source tree's own build
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(os.path.dirname(here), "bin", "sbinject")
    yield os.path.join(os.path.dirname(os.path.dirname(here)), "build", "sbinject")


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _named() -> Optional[str]:
    """The value of SBINJECT, unless Python ignores its environment (-E, -I)."""
    return None if sys.flags.ignore_environment else os.environ.get("SBINJECT")


def _gained() -> bool:
    """Does this process have the rights of another user or group than its parent's?"""
    return len(set(os.getresuid())) > 1 or len(set(os.getresgid())) > 1


def find_program() -> Optional[str]:
    """The path of the program, or None. A path in SBINJECT is used as it is."""
    if _gained():
        return None
    named = _named()
    if named:
        return os.path.abspath(named) if _runs(named) else None
    return next((os.path.abspath(p) for p in _candidates() if _runs(p)), None)


def missing() -> str:
    """The error text where there is none."""
    if _gained():
        return "this process runs with other user or group ids than those who started it"
    named = _named()
    if named:
        return f"SBINJECT={named}: there is no such program"
    return "the sbinject program was not found; put it on PATH, or its path into SBINJECT"


def yama_restricts() -> bool:
    """Yama allows tracing of descendants only, and sbinject must trace its parent."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", "rb") as f:
            return f.read().strip() == b"1"
    except OSError:
        return False


def let_trace(allow: bool) -> None:
    """Let the descendants of this process trace it under Yama, or withdraw that."""
    if not yama_restricts():
        return
    import ctypes

    whose = ctypes.c_ulong(os.getpid() if allow else 0)
    ctypes.CDLL(None).prctl(0x59616D61, whose, 0, 0, 0)  # PR_SET_PTRACER
