# SPDX-License-Identifier: MIT
"""ways.py [WAY...]: calls counted.hit() in children made in every way that Python has."""
import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import counted  # noqa: E402

CHILD = "import sys; sys.path.insert(0, %r); import counted; counted.work(7)" % here


def work(n):
    """Of the script itself, which a child that is spawned imports under another name."""
    return counted.work(n)


def own():
    counted.work(1000)


def threads():
    many = [threading.Thread(target=counted.work, args=(500,)) for _ in range(4)]
    for t in many:
        t.start()
    for t in many:
        t.join()


def fork():
    for deeper in (False, True):
        pid = os.fork()
        if pid == 0:
            counted.work(11)
            if deeper and os.fork() == 0:
                counted.work(13)
                os._exit(0)
            if deeper:
                os.wait()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0


def run(**how):
    subprocess.run([sys.executable, "-c", CHILD], check=True, **how)


def subprocesses():
    run()
    run(close_fds=False)
    run(start_new_session=True)
    run(preexec_fn=lambda: None)
    subprocess.run("%s -c '%s'" % (sys.executable, CHILD.replace("'", '"')), shell=True, check=True)
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", CHILD], os.environ)
    assert os.waitpid(pid, 0)[1] == 0


def execs():
    pid = os.fork()
    if pid == 0:
        counted.work(3)
        os.execv(sys.executable, [sys.executable, "-c", CHILD])
    assert os.waitpid(pid, 0)[1] == 0


def pool(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as workers:
        assert workers.map(work, [5] * 20) == [5] * 20
    child = context.Process(target=work, args=(17,))
    child.start()
    child.join()
    assert child.exitcode == 0


def executor():
    with concurrent.futures.ProcessPoolExecutor(2) as workers:
        assert list(workers.map(work, [4] * 10)) == [4] * 10


WAYS = {
    "own": own,
    "threads": threads,
    "fork": fork,
    "subprocess": subprocesses,
    "exec": execs,
    "pool-fork": lambda: pool("fork"),
    "pool-spawn": lambda: pool("spawn"),
    "pool-forkserver": lambda: pool("forkserver"),
    "executor": executor,
}

if __name__ == "__main__":
    for way in sys.argv[1:] or WAYS:
        WAYS[way]()
    sys.stdout.flush()
    os.write(1, b"self-check ok\n")
