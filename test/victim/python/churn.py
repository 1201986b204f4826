# SPDX-License-Identifier: MIT
"""
churn.py FOLDER: threads that allocate, import, collect, raise, start threads and fork, without end.

While FOLDER/still exists all of that pauses, and FOLDER/quiet is there; FOLDER/stop ends it. Each
kind of work checks its own results, so a disturbed one is seen.
"""
import gc
import importlib
import linecache  # noqa: F401 (what fork() imports to warn of threads must not meet imports() there)
import os
import sys
import threading
import time
import tokenize  # noqa: F401

import state

folder = sys.argv[1]
errors = []
names = ("colorsys", "this_is_not_there", "fractions", "sndhdr_not", "wave", "chunk_not")


def step(n):
    return n + 1


def at(name):
    return os.path.exists(os.path.join(folder, name))


def allocate():
    tree = [{"n": [step(i)] * 3, "s": str(i) * 7} for i in range(200)]
    tree.append(tree)
    assert sum(t["n"][0] for t in tree[:-1]) == 20100


def raises():
    def deep(n):
        if n == 0:
            raise KeyError(step(1))
        deep(n - 1)

    for _ in range(20):
        try:
            deep(30)
        except KeyError as e:
            assert e.args == (2,)


def imports():
    for name in names:
        sys.modules.pop(name, None)
        try:
            importlib.import_module(name)
        except ImportError:
            assert "not" in name


def collect():
    gc.collect(0)
    step(0)


def generate():
    def numbers(n):
        for i in range(n):
            yield step(i)

    assert sum(numbers(300)) == 45150
    scope = {}
    exec("def made(x):\n return x * 2", scope)
    assert scope["made"](21) == 42


def short_threads():
    done = []
    t = threading.Thread(target=lambda: done.append(step(1)))
    t.start()
    t.join()
    assert done == [2]


def forks():
    pid = os.fork()
    if pid == 0:
        os._exit(step(6))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 7, "a child ended with %d" % code
    time.sleep(0.01)


def worker(kind):
    try:
        while not at("stop"):
            if at("still"):
                quiet.add(kind)
                time.sleep(0.01)
            else:
                quiet.discard(kind)
                kind()
    except BaseException as e:
        errors.append((kind.__name__, e))
        raise


KINDS = (allocate, raises, imports, collect, generate, short_threads)
quiet = set()

if __name__ == "__main__":
    before = state.settings()
    workers = [threading.Thread(target=worker, args=(kind,)) for kind in KINDS]
    for w in workers:
        w.start()
    os.write(1, b"ready\n")
    mark = os.path.join(folder, "quiet")
    while not at("stop") and not errors:
        if at("still"):
            if len(quiet) == len(KINDS) and not at("quiet"):
                gc.collect()
                # By a rename: it is there only once the descriptor is closed again.
                open(mark + ".new", "w").close()
                os.rename(mark + ".new", mark)
            time.sleep(0.01)
        else:
            if at("quiet"):
                os.remove(mark)
            forks()
    for w in workers:
        w.join()
    assert not errors, errors
    state.same(before)
    os.write(1, b"self-check ok\n")
