# SPDX-License-Identifier: MIT
"""suite.py MODE MODULE...: modules of the interpreter's own tests with every function watched
(count), while windows open and close (flip), while calls are timed now and then (time), or without the agent (plain); prints their results."""
import os
import sys
import threading
import unittest

from driver import COUNT, OFF, RESUME, TIMED, Agent


def main(mode, *modules):
    agent = Agent(("*", "*", TIMED), ("*", "*", RESUME), ("test*", "*.test_*"))
    done = threading.Event()
    if mode != "plain":
        agent.apply()

    def flip():
        while not done.wait(0.02):
            agent.state(OFF)
            done.wait(0.02)
            agent.state(COUNT)

    def times():
        while not done.wait(0.02):
            agent.time(True, 0)
            done.wait(0.2)
            agent.time(False, 0)
    beside = {"flip": flip, "time": times}.get(mode)
    thread = threading.Thread(target=beside, daemon=True)
    if beside:
        thread.start()
    for module in modules:
        tests = unittest.defaultTestLoader.loadTestsFromName("test." + module)
        with open(os.devnull, "w") as null:
            result = unittest.TextTestRunner(stream=null, verbosity=0).run(tests)
        bad = [str(test) for test, _ in result.failures + result.errors]
        print("result", module, result.testsRun, len(result.skipped), *bad, flush=True)
    done.set()
    if beside:
        thread.join()
    if mode != "plain":
        agent.stop()
        assert agent.hits(0) > 1000 and agent.hits(1) >= agent.hits(0)
        assert mode == "flip" or agent.hits(2) > 10
        assert mode != "time" or agent.times().calls > 100, agent.times()


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("ok")
