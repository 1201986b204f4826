# SPDX-License-Identifier: MIT
"""threads.py N CALLS: N threads, begun together, call work() so often each. CALLS 0: until SIGTERM,
and what it saw of itself then is checked as a victim's is."""
import signal
import sys
import threading

N, CALLS = int(sys.argv[1]), int(sys.argv[2])
begin, stop = threading.Barrier(N), threading.Event()
done = [0] * N


def work(i):
    return i


def run(i):
    total = 0
    begin.wait()
    while total < CALLS if CALLS else not stop.is_set():
        assert work(i) == i
        total += 1
        if total % 256 == 0:
            space = {}
            exec("def made(n): return n + 1", space)
            assert space["made"](total) == total + 1
    done[i] = total


threads = [threading.Thread(target=run, args=(i,)) for i in range(N)]
signal.signal(signal.SIGTERM, lambda *_: stop.set())
[t.start() for t in threads]
print("ready", flush=True)
while not CALLS and not stop.wait(0.02):
    pass
[t.join() for t in threads]
assert all(done) and (not CALLS or sum(done) == N * CALLS), done
print("self-check ok", flush=True)
