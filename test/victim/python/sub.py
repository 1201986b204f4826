# SPDX-License-Identifier: MIT
"""
sub.py FOLDER: a main thread that sleeps in a subinterpreter until FOLDER/back is there, calls step()
in its own after that until FOLDER/stop is, and goes into the other once more.
"""
import os
import sys
import time

try:
    import _interpreters as sub
    run = sub.exec
except ImportError:
    import _xxsubinterpreters as sub
    run = sub.run_string

folder = sys.argv[1]
inner = """
import os, time
def step(): pass
for i in range(300):
    exec("def step%d(): pass\\nstep%d()" % (i, i))
while not os.path.exists(FOLDER + "/back"):
    step()
    time.sleep(0.1)
"""


def step():
    return 1


other = sub.create()
os.write(1, b"ready\n")
run(other, inner.replace("FOLDER", repr(folder)))
calls = 0
while not os.path.exists(os.path.join(folder, "went")):
    time.sleep(0.01)
for _ in range(500):
    calls += step()
os.write(1, b"called\n")
while not os.path.exists(os.path.join(folder, "stop")):
    time.sleep(0.05)
run(other, "for i in range(300): exec('def step%d(): pass' % i)")
sub.destroy(other)
os.write(1, b"calls step %d\nself-check ok\n" % calls)
