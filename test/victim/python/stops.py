# SPDX-License-Identifier: MIT
"""stops.py N: the main thread and N others make the interpreter stop all threads, over and over, and
call work(); without a GIL each waits for the others' lock for that. Until SIGTERM."""
import signal
import sys
import threading

stop = threading.Event()
done = []


class A:
    pass


class B:
    pass


def work(i):
    return i


def run():
    thing, total = A(), 0
    while not stop.is_set():
        thing.__class__ = B if type(thing) is A else A
        assert work(total) == total
        total += 1
    done.append(total)


others = [threading.Thread(target=run) for _ in range(int(sys.argv[1]))]
signal.signal(signal.SIGTERM, lambda *_: stop.set())
[t.start() for t in others]
print("ready", flush=True)
run()
[t.join() for t in others]
assert len(done) == len(others) + 1 and all(done), done
print("self-check ok", flush=True)
