# SPDX-License-Identifier: MIT
"""
waits.py WAIT FOLDER: a main thread that waits, in one of many ways, over and over.

When FOLDER/go appears, step() is called 3000 times and FOLDER/went is made; when FOLDER/stop does,
it looks whether any wait was cut short, prolonged or disturbed, and ends. Where the main thread
waits for good, another one does all that.
"""
import asyncio
import ctypes
import hashlib
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import state

CALLS = 3000
NAP = 0.25
LATE = 20.0  # of one wait: nothing that a busy machine does, but a wait begun anew forever
folder = sys.argv[2]
stop = threading.Event()


def step():
    return 1


def at(name):
    return os.path.join(folder, name)


def look():
    """Once: does what FOLDER asks for."""
    if os.path.exists(at("go")) and not os.path.exists(at("went")):
        n = 0
        for _ in range(CALLS):
            n += step()
        assert n == CALLS
        open(at("went"), "w").close()
    if os.path.exists(at("stop")):
        stop.set()
    return not stop.is_set()


def timed(wait):
    """A wait of NAP seconds, over and over."""

    def loop():
        while look():
            begin = time.monotonic()
            wait(NAP)
            took = time.monotonic() - begin
            assert NAP - 0.002 < took < NAP + LATE, "%r took %.3f s" % (wait, took)

    return loop


def for_good(make):
    """A wait that another thread ends: make() returns the wait and what ends it."""

    def loop():
        wait, end = make()

        def other():
            while look():
                time.sleep(0.01)
            end()

        t = threading.Thread(target=other)
        t.start()
        wait()
        t.join()

    return loop


def busy():
    while look():
        for _ in range(20000):
            pass


def bare():
    """At work in a function without builtins, as a namedtuple's __new__ is one, and without gc."""
    gc = sys.modules.pop("gc", None)
    space = {"__builtins__": {}}
    exec("def work(turns):\n for _ in turns: pass", space)
    work, turns = space["work"], bytes(400000)
    while look():
        work(turns)
    if gc:
        sys.modules["gc"] = gc


def crowded():
    """More threads at work than there are processors, most of them without the GIL."""
    data = bytes(1 << 22)

    def work():
        while not stop.is_set():
            hashlib.sha256(data).digest()

    others = [threading.Thread(target=work) for _ in range(2 * os.cpu_count())]
    for t in others:
        t.start()
    busy()
    for t in others:
        t.join()


def lock():
    it = threading.Lock()
    it.acquire()
    return it.acquire, it.release


def rlock_timeout(seconds):
    it = threading.Lock()
    it.acquire()
    assert not it.acquire(timeout=seconds)


def a_queue():
    q = queue.Queue()
    return lambda: q.get(), lambda: q.put(1)


def queue_timeout(seconds):
    try:
        queue.Queue().get(timeout=seconds)
    except queue.Empty:
        return
    raise AssertionError("something was in the queue")


def condition():
    c = threading.Condition()
    done = []

    def wait():
        with c:
            while not done:
                c.wait()

    def end():
        with c:
            done.append(1)
            c.notify()

    return wait, end


def joined():
    enough = threading.Event()

    def worker():
        while not enough.wait(0.005):
            sum(range(500))

    workers = [threading.Thread(target=worker) for _ in range(3)]
    for w in workers:
        w.start()

    def wait():
        for w in workers:
            w.join()

    return wait, enough.set


def read_pipe():
    r, w = os.pipe()

    def wait():
        assert os.read(r, 2) == b"x"
        os.close(r)
        os.close(w)

    return wait, lambda: os.write(w, b"x")


def accept():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()

    def wait():
        server.accept()[0].close()
        server.close()

    return wait, lambda: socket.create_connection(server.getsockname()).close()


def poll(seconds):
    r, w = os.pipe()
    p = select.poll()
    p.register(r, select.POLLIN)
    assert p.poll(seconds * 1000) == []
    os.close(r)
    os.close(w)


def epoll(seconds):
    r, w = os.pipe()
    with select.epoll() as p:
        p.register(r, select.EPOLLIN)
        assert p.poll(seconds) == []
    os.close(r)
    os.close(w)


def a_select(seconds):
    assert select.select([], [], [], seconds) == ([], [], [])


def sigwait(seconds):
    assert signal.sigtimedwait([signal.SIGUSR2], seconds) is None


def child(seconds):
    assert subprocess.run(["sleep", str(seconds)]).returncode == 0


def asleep_in_c(seconds):
    assert ctypes.CDLL(None).usleep(int(seconds * 1e6)) == 0


def asleep_with_gil(seconds):
    """No thread may run Python meanwhile, and none may be made to."""
    assert ctypes.PyDLL(None).usleep(int(seconds * 1e6)) == 0


def server():
    """asyncio, with clients in the same loop that keep it at work."""

    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    async def client(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        n = 0
        while not stop.is_set():
            writer.write(b"%d\n" % n)
            await writer.drain()
            assert await reader.readline() == b"%d\n" % n
            n += 1
            await asyncio.sleep(0.001)
        writer.close()
        await writer.wait_closed()

    async def main():
        s = await asyncio.start_server(serve, "127.0.0.1", 0)
        clients = [asyncio.create_task(client(s.sockets[0].getsockname()[1])) for _ in range(4)]
        while look():
            await asyncio.sleep(0.02)
        await asyncio.gather(*clients)
        s.close()

    asyncio.run(main())


WAITS = {
    "busy": busy,
    "bare": bare,
    "crowded": crowded,
    "sleep": timed(time.sleep),
    "lock": for_good(lock),
    "lock-timeout": timed(rlock_timeout),
    "queue": for_good(a_queue),
    "queue-timeout": timed(queue_timeout),
    "condition": for_good(condition),
    "join": for_good(joined),
    "read": for_good(read_pipe),
    "accept": for_good(accept),
    "poll": timed(poll),
    "epoll": timed(epoll),
    "select": timed(a_select),
    "sigwait": timed(sigwait),
    "child": timed(child),
    "c-call": timed(asleep_in_c),
    "gil-held": timed(asleep_with_gil),
    "asyncio": server,
}

if __name__ == "__main__":
    if sys.argv[1] == "names":
        print("\n".join(WAITS))
        sys.exit(0)
    before = state.settings()
    os.write(1, b"ready\n")
    WAITS[sys.argv[1]]()
    state.same(before)
    os.write(1, b"self-check ok\n")
