# SPDX-License-Identifier: MIT
"""What the other victims call: functions that are counted, wherever they are called.

work(n) calls hit() n times and getsid(2) n times, and says so in a line of its own:
	calls PID N
All of a process's lines add up to its calls.
"""
import os


def hit():
    return 1


def work(n):
    done = 0
    for _ in range(n):
        done += hit()
        os.getsid(0)
    os.write(1, b"calls %d %d\n" % (os.getpid(), done))
    return done
