# SPDX-License-Identifier: MIT
"""SPEED_BUMP_* for a plain `python bench.py`: run by sbinject.pth before the script's first line.

It starts sbinject, which attaches to this process, and Python continues when the hooks are in
force. sbinject follows all children of this process, so they must not start it again:
SPEED_BUMP_TARGETS is removed from the environment. Failures are reported on stderr and do not
prevent the program from running.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Optional

from ._find import find_program, let_trace, missing


def _say(text: str) -> None:
    print(f"sbinject: {text}", file=sys.stderr, flush=True)


def _traced() -> bool:
    """Is there a tracer already: sbinject, or a debugger? Only one is possible."""
    try:
        with open("/proc/self/status", "rb") as f:
            return any(
                line.startswith(b"TracerPid:") and line.split()[1] != b"0" for line in f
            )
    except OSError:
        return False


def _run(path: str, status: int) -> int:
    """Run sbinject until the hooks are in force; its exit status. Loads no module."""
    argv = [path, "--from-env", "-p", str(os.getpid()), "--daemon", "--status-fd", "3"]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, status, 3),
    ]
    let_trace(True)
    try:
        pid = os.posix_spawn(path, argv, os.environ, file_actions=actions)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        let_trace(False)


def _high_pipe() -> tuple[int, int]:
    """A pipe with numbers above 0 to 3, which may be closed in this process."""
    import fcntl

    ends = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends]
    for fd in ends:
        os.close(fd)
    return high[0], high[1]


def _attach(path: str) -> Optional[int]:
    """The pid of the attached sbinject, or None; its errors are on stderr already."""
    status, theirs = _high_pipe()
    try:
        try:
            code = _run(path, theirs)
        finally:
            os.close(theirs)
        word, _, number = os.read(status, 64).decode().partition(" ")
    finally:
        os.close(status)
    return int(number) if code == 0 and word == "attached" else None


def _detach(owner: int, tracer: int) -> None:
    """At the program's end: wait for the summary, so that it precedes the shell's prompt."""
    import signal
    import time

    if os.getpid() != owner:
        return
    try:
        with open(f"/proc/{tracer}/comm", "rb") as f:
            if f.read() != b"sbinject\n":
                return
        os.kill(tracer, signal.SIGTERM)
        for _ in range(500):
            os.kill(tracer, 0)
            time.sleep(0.01)
    except OSError:
        return


def main() -> None:
    if _traced():
        return
    path = find_program()
    if not path:
        _say(f"SPEED_BUMP_TARGETS is set, and nothing is slowed: {missing()}")
        return
    try:
        tracer = _attach(path)
    except OSError as e:
        _say(f"SPEED_BUMP_TARGETS is set, and nothing is slowed: {path}: {e}")
        return
    del os.environ["SPEED_BUMP_TARGETS"]
    if tracer:
        atexit.register(_detach, os.getpid(), tracer)


main()
