# SPDX-License-Identifier: MIT
"""Sessions: an sbinject program attached to a process, with the current list of targets.

A process has one tracer, so all targets of a process are in one session. A change of the list ends
it and starts the next one; a target's counts of all sessions are added up in its Run.
"""

from __future__ import annotations

import atexit
import functools
import json
import keyword
import os
import re
import select
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, Optional, Union

from ._find import find_program, let_trace, missing

Key = Union[str, int, bool]


class Error(Exception):
    """A refusal or failure of sbinject; its text has the reason and the remedy.

    ``status`` is sbinject's exit status: 2 usage, 3 no such function, 4 not permitted, 5 no such
    process, 1 anything else (sbinject(1)).
    """

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Run(dict[str, Any]):
    """The result of one target: sbinject's JSON document (sbinject(1), JSON), with its row alone.

    Empty until the context has ended or the target was removed. Where other targets were added or
    removed meanwhile it is the sum over the sessions; then quantiles are None.
    """

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    @property
    def row(self) -> dict[str, Any]:
        """The target's entry of ``targets``; empty before the end."""
        rows = self.get("targets") or [{}]
        row: dict[str, Any] = rows[0]
        return row

    @property
    def hits(self) -> Optional[int]:
        """Calls, exactly; None if the function was never found, or before the end."""
        return self.row.get("hits")

    @property
    def delayed(self) -> Optional[int]:
        """Calls that were delayed."""
        return self.row.get("delayed")

    @property
    def injected_ns(self) -> Optional[int]:
        """The sum of the measured delays, without preemption."""
        return self.row.get("injected_ns")

    @property
    def given_ns(self) -> Optional[float]:
        """The measured mean of a delay; None if there was none."""
        given = self.row.get("given_ns") or {}
        mean: Optional[float] = given.get("mean")
        return mean

    @property
    def spans(self) -> Optional[dict[str, Any]]:
        """How long the calls took (``calls``, ``missed``, ``p50_ns`` and so on); None without
        ``time=True``, or before the end."""
        return self.row.get("spans")

    @property
    def outcome(self) -> Optional[str]:
        """delayed, counted, never_called, pending, no_match or refused; None before the end."""
        return self.row.get("outcome")

    def _take(self, doc: dict[str, Any], index: int) -> None:
        """One session's document, in which this target is number ``index``."""
        doc = dict(doc)
        doc["targets"] = [doc["targets"][index]]
        doc["processes"] = [
            {**p, "targets": [t for t in p["targets"] if t["spec"] == self.target]}
            for p in doc["processes"]
        ]
        if self:
            doc = _sum_documents(self, doc)
        self.clear()
        self.update(doc)


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


_COUNTS = ("hits", "delayed", "injected_ns", "overrun_ns", "active_s")
# The outcome that applies to the whole: the first of these that occurred.
_OUTCOMES = ("delayed", "counted", "refused", "never_called", "pending", "no_match")


def _sum_spans(a: Optional[dict[str, Any]], b: Optional[dict[str, Any]]) -> Any:
    if not a or not b:
        return a or b
    row = {**b}
    for name in ("calls", "missed", "inclusive_ns"):
        row[name] = a[name] + b[name]
    own = a["exclusive_ns"], b["exclusive_ns"]
    row["exclusive_ns"] = None if None in own else sum(own)
    for name, choose in ("min_ns", min), ("max_ns", max):
        row[name] = choose((s[name] for s in (a, b) if s[name] is not None), default=None)
    row.update(p50_ns=None, p90_ns=None, p99_ns=None)
    calls: dict[tuple[int, int], int] = {}
    for start, end, n in a["histogram"] + b["histogram"]:
        calls[start, end] = calls.get((start, end), 0) + n
    row["histogram"] = [[*edges, n] for edges, n in sorted(calls.items())]
    return row


def _sum_rows(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    row = {**a, **b}
    for name in _COUNTS:
        row[name] = _plus(a.get(name), b.get(name))
    known = [r["outcome"] for r in (a, b) if r.get("outcome") in _OUTCOMES]
    row["outcome"] = min(known, key=_OUTCOMES.index) if known else b.get("outcome")
    if row["outcome"] in ("delayed", "counted", "never_called"):
        row["reason"] = ""
    if "given_ns" in row:
        mean = row["injected_ns"] / row["delayed"] if row.get("delayed") else None
        row["given_ns"] = {"mean": mean, "p50": None, "p99": None, "max": None}
    spans = _sum_spans(a.get("spans"), b.get("spans"))
    if spans:
        row["spans"] = spans
    for name in ("sites", "sites_untimed"):
        if name in row:
            old = a.get(name, [])
            row[name] = old + [s for s in b.get(name, []) if s not in old]
    return row


def _sum_documents(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    doc = {**b, "started": a["started"]}
    for name in ("wall_s", "lease_lapsed_hits"):
        doc[name] = _plus(a.get(name), b.get(name))
    doc["warnings"] = a["warnings"] + [w for w in b["warnings"] if w not in a["warnings"]]
    doc["targets"] = [_sum_rows(a["targets"][0], b["targets"][0])]
    processes = {(p["pid"], p["generation"]): p for p in a["processes"]}
    for p in b["processes"]:
        old = processes.get((p["pid"], p["generation"]))
        if old:
            p = {**p, "targets": [_sum_counts(x, y) for x, y in zip(old["targets"], p["targets"])]}
        processes[p["pid"], p["generation"]] = p
    doc["processes"] = list(processes.values())
    return doc


def _sum_counts(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {**b, **{n: _plus(a.get(n), b[n]) for n in _COUNTS if n in b}}


class _Program:
    """One sbinject, attached to ``pid``. It is no child of this process: it detaches."""

    def __init__(self, pid: int, words: list[str]) -> None:
        path = find_program()
        if not path:
            raise Error(missing())
        # The output of sbinject; read only once it has ended, so nothing can block it.
        self.out, self.err = os.memfd_create("sbinject-out"), os.memfd_create("sbinject-err")
        self.status, status = os.pipe()
        self.pid = 0
        try:
            self._start(path, pid, words, status)
        except BaseException:
            self._close()
            raise

    def _start(self, path: str, pid: int, words: list[str], status: int) -> None:
        argv = [path, *words, "-p", str(pid), "-q", "--json", "-", "--daemon"]
        let_trace(True)
        try:
            try:
                waiter = subprocess.Popen(
                    [*argv, "--status-fd", str(status)],
                    stdin=subprocess.DEVNULL,
                    stdout=self.out,
                    stderr=self.err,
                    pass_fds=(status,),
                )
            finally:
                os.close(status)
            try:
                code = waiter.wait()
            except BaseException:
                self._abandon(waiter)
                raise
        finally:
            let_trace(False)
        line = self._line() if code == 0 else ""
        if not line.startswith("attached "):
            raise Error(self._read(self.err) or f"{path} ended with status {code}", code)
        self.pid = int(line.split()[1])

    def _abandon(self, waiter: subprocess.Popen[bytes]) -> None:
        """Interrupted in the middle: wait for the program, and end it if it has attached."""
        code = waiter.wait()
        if code == 0:
            self.pid = int(self._line().split()[1])
            self._end()

    def _line(self) -> str:
        """The next line of --status-fd, each of which is one write; "" if the program is gone."""
        while self.pid:
            # A fork elsewhere in this process may keep the pipe open: no end of file then.
            if select.select([self.status], [], [], 1)[0]:
                break
            if not os.path.exists(f"/proc/{self.pid}"):
                return ""
        return os.read(self.status, 64).decode()

    @staticmethod
    def _read(fd: int) -> str:
        os.lseek(fd, 0, os.SEEK_SET)
        with open(fd, "rb", closefd=False) as f:
            text = f.read().decode("utf-8", "replace").strip()
        return text.replace("sbinject: ", "")

    def _close(self) -> None:
        for fd in (self.out, self.err, self.status):
            os.close(fd)

    def forget(self) -> None:
        """In a forked child: the program belongs to the parent."""
        self._close()

    def _end(self) -> str:
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        return self._line()

    def stop(self) -> dict[str, Any]:
        """Detach and return the document."""
        try:
            line = self._end()
            os.lseek(self.out, 0, os.SEEK_SET)
            with open(self.out, "rb", closefd=False) as f:
                text = f.read()
            try:
                doc: dict[str, Any] = json.loads(text)
                return doc
            except ValueError:
                status = int(line.split()[1]) if line else 1
                raise Error(self._read(self.err) or "sbinject was killed", status) from None
        finally:
            self._close()


class _Wanted:
    def __init__(self, words: list[str], run: Run) -> None:
        self.words, self.run = words, run


class _Session:
    """All targets of one process. Callers hold the lock."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.wanted: list[_Wanted] = []
        self.program: Optional[_Program] = None

    def _start(self) -> None:
        if self.wanted:
            self.program = _Program(self.pid, [w for t in self.wanted for w in t.words])

    def _stop(self) -> None:
        program, self.program = self.program, None
        if not program:
            return
        doc = program.stop()
        for index, wanted in enumerate(self.wanted):
            wanted.run._take(doc, index)

    def add(self, wanted: _Wanted) -> None:
        self._stop()
        self.wanted.append(wanted)
        try:
            self._start()
        except BaseException:
            self.wanted.remove(wanted)
            self._start()
            raise

    def remove(self, wanted: _Wanted) -> None:
        try:
            self._stop()
        finally:
            self.wanted.remove(wanted)
            self._start()


_lock = threading.RLock()
_sessions: dict[int, _Session] = {}
# Not read again while hooks are in force: getpid() may be the target.
_pid = os.getpid()
_forks = 0  # forks between the process that imported this and the present one


def _own_pid() -> int:
    global _pid
    _pid = _pid or os.getpid()
    return _pid


def _forget() -> None:
    """In a forked child: its parent's sessions continue, and they cover it."""
    global _lock, _pid, _forks
    _lock = threading.RLock()
    _pid = 0
    _forks += 1
    for session in _sessions.values():
        if session.program:
            session.program.forget()
    _sessions.clear()


def _stop_all() -> None:
    with _lock:
        for session in _sessions.values():
            try:
                session._stop()
            except Error as e:
                print(f"sbinject: {e}", file=sys.stderr)
        _sessions.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(_stop_all)


@functools.lru_cache(maxsize=None)
def _keys() -> tuple[str, ...]:
    """The keys of targets that the program supports, from its --help, except pid."""
    program = find_program()
    if program is None:
        raise Error(missing())
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return tuple(k for k in re.findall(r"^  ([a-z]+)=", text, re.M) if k != "pid")


def _words(target: str, delay: Union[str, int, None], keys: dict[str, Key]) -> list[str]:
    if not isinstance(target, str):
        raise TypeError(f"a target is a str as 'libc.so.6:getpid', not {type(target).__name__}")
    if ":" not in target or target.startswith("-"):
        raise Error(f"target '{target}' is not MODULE:SYMBOL nor py:MODULE:QUALNAME", 2)
    words = [target]
    if isinstance(delay, int) and delay != 0:
        raise TypeError(f"a delay has a unit: '{delay}ns', '{delay}us'")
    if delay is not None and not isinstance(delay, (str, int)):
        raise TypeError(f"a delay is a str as '5us', not {type(delay).__name__}")
    if delay is not None:
        words.append(str(delay))
    if isinstance(delay, str) and (delay[:1] not in "0123456789." or not delay):
        raise Error(f"delay '{delay}' is not a number with its unit, as 5us", 2)
    for name, value in keys.items():
        name = name.rstrip("_")  # for_=
        if name not in _keys():
            known = ", ".join(k + "_" * keyword.iskeyword(k) for k in _keys())
            raise TypeError(f"there is no key '{name}'; there are {known}")
        if isinstance(value, bool):
            value = "yes" if value else "no"
        words.append(f"{name}={value}")
    return words


def _add(target: str, delay: Union[str, int, None], pid: Optional[int], keys: dict[str, Key]) -> Run:
    words, run = _words(target, delay, keys), Run(target)
    pid = _own_pid() if pid is None else pid
    with _lock:
        session = _sessions.setdefault(pid, _Session(pid))
        try:
            session.add(_Wanted(words, run))
        finally:
            if not session.wanted:
                del _sessions[pid]
    return run


def _remove(pid: int, target: str, run: Optional[Run]) -> Run:
    with _lock:
        session = _sessions.get(pid)
        found = [
            w
            for w in (session.wanted if session else [])
            if w.run is run or (run is None and w.run.target == target)
        ]
        if not session or not found:
            raise LookupError(f"target '{target}' is not there")
        try:
            session.remove(found[0])
        finally:
            if not session.wanted:
                _sessions.pop(pid, None)
        return found[0].run


def add(
    target: str, delay: Union[str, int, None] = None, *, pid: Optional[int] = None, **keys: Key
) -> Run:
    """Delay each call of ``target`` by ``delay`` until ``remove`` or the end of the process.

    On return the hooks are in force. ``delay`` has its unit (``"5us"``); 0 only counts; without
    one it is 1us. ``pid`` is another process than this one, with its descendants. Keys are those
    of sbinject-targets(5): ``every=10``, ``start="1s"``, ``for_="5s"``, ``thread="worker-*"``,
    ``resume=True``, ``inline=True``, ``at="exit"``, ``time=True`` (see ``Run.spans``). Returns
    the Run, filled by ``remove``.

    >>> run = sbinject.add("py:__main__:step", "10us")
    >>> step()
    >>> sbinject.remove("py:__main__:step").hits
    1

    Raises Error where sbinject refuses, with its reason; earlier targets stay in
    force. A function that has not been called yet, or a module that is not loaded yet, is no
    error: see ``Run.outcome``.
    """
    return _add(target, delay, pid, keys)


def remove(target: str, *, pid: Optional[int] = None) -> Run:
    """End the delay that ``add`` began; ``target`` as it was given there. Returns its Run, filled.

    Raises LookupError if there is no such target.
    """
    return _remove(_own_pid() if pid is None else pid, target, None)


class delay:
    """A context in which each call of ``target`` takes ``delay`` longer.

    >>> with sbinject.delay("libc.so.6:getpid", "5us") as run:
    ...     pid = os.getpid()
    >>> run.hits, run.outcome
    (1, 'delayed')

    Parameters as ``add``. The hooks are in force when the block begins and gone when it has
    ended, however it ends. Contexts may be nested and overlap in time, also on several threads;
    all of them count and delay the calls of every thread of the process. Where one begins or
    ends within another, the hooks are removed for a moment (some 100 ms) while the calling thread
    waits.

    Calls by this package itself at the edges of the block count too: a read(2), a poll(2), a
    kill(2).
    """

    def __init__(
        self, target: str, delay: Union[str, int, None] = None, *, pid: Optional[int] = None,
        **keys: Key,
    ) -> None:
        self._args = (target, delay, pid, keys)
        self._run: Optional[Run] = None

    def __enter__(self) -> Run:
        if self._run is not None:
            raise RuntimeError("this context has been entered already")
        self._forks = _forks
        self._run = _add(*self._args)
        return self._run

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        run, self._run = self._run, None
        # A child that was forked inside the block leaves it too; the hooks belong to the parent.
        if run is not None and self._forks == _forks:
            _remove(self._args[2] or _own_pid(), run.target, run)


# Checks of `sbinject doctor` that do not matter to a process that attaches to itself.
_OTHERS = ("processes of the same user", "processes under seccomp", "thread=")


def _obstacle(report: dict) -> Optional[str]:
    """The first failed check of a document of `sbinject doctor`, with its remedy. Evidence and
    device times are no obstacle to delays, and these need but one backend."""
    rows = list(report["machine"])
    rows += [row for row in report["backends"] if row["backend"] == "inject"]
    for process in report["processes"]:
        rows += process["checks"]
    for row in rows:
        if not row["ok"] and not row.get("check", "").startswith(_OTHERS):
            return "; ".join(text for text in (row["reason"], row["remedy"]) if text)
    return None


def why_not_available(pid: Optional[int] = None) -> Optional[str]:
    """Why delays are impossible in this process (or ``pid``); None: they are possible."""
    pid = _own_pid() if pid is None else pid
    path = find_program()
    if not path:
        return missing()
    with _lock:
        if pid in _sessions:
            return None
        let_trace(True)
        try:
            said = subprocess.run(
                [path, "doctor", "--json", "-", "-p", str(pid)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=30,
            )
            return _obstacle(json.loads(said.stdout))
        except ValueError:  # no document
            return f"{path}: {said.stderr.strip()}"
        except (OSError, subprocess.SubprocessError) as e:
            return f"{path}: {e}"
        finally:
            let_trace(False)


def is_available(pid: Optional[int] = None) -> bool:
    """Whether delays are possible in this process (or ``pid``); see ``why_not_available``."""
    return why_not_available(pid) is None
