# SPDX-License-Identifier: MIT
"""threads.py N CALLS: N threads, begun together, call work() so often each. CALLS 0: until SIGTERM,
and what it saw of itself then is checked as a victim's is."""
import signal
import sys
import threading
import time

N, CALLS = int(sys.argv[1]), int(sys.argv[2])
begin = threading.Barrier(N)
stop = []  # not an Event: its set() in a handler waits for the lock that an interrupted wait() holds
done = [0] * N


def work(i):
    return i


def run(i):
    total = 0
    begin.wait()
    while total < CALLS if CALLS else not stop:
        assert work(i) == i
        total += 1
        if total % 256 == 0:
            space = {}
            exec("def made(n): return n + 1", space)
            assert space["made"](total) == total + 1
    done[i] = total


threads = [threading.Thread(target=run, args=(i,)) for i in range(N)]
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
[t.start() for t in threads]
print("ready", flush=True)
while not CALLS and not stop:
    time.sleep(0.02)
[t.join() for t in threads]
assert all(done) and (not CALLS or sum(done) == N * CALLS), done
print("self-check ok", flush=True)
