# SPDX-License-Identifier: MIT
"""suite.py MODE MODULE...: modules of the interpreter's own tests with every function watched
(count), while windows open and close (flip), or without the agent (plain); prints their results."""
import os
import sys
import threading
import unittest

from driver import COUNT, OFF, RESUME, Agent


def main(mode, *modules):
    agent = Agent(("*", "*"), ("*", "*", RESUME), ("test*", "*.test_*"))
    done = threading.Event()
    if mode != "plain":
        agent.apply()

    def flip():
        while not done.wait(0.02):
            agent.state(OFF)
            done.wait(0.02)
            agent.state(COUNT)
    thread = threading.Thread(target=flip, daemon=True)
    if mode == "flip":
        thread.start()
    for module in modules:
        tests = unittest.defaultTestLoader.loadTestsFromName("test." + module)
        with open(os.devnull, "w") as null:
            result = unittest.TextTestRunner(stream=null, verbosity=0).run(tests)
        bad = [str(test) for test, _ in result.failures + result.errors]
        print("result", module, result.testsRun, len(result.skipped), *bad, flush=True)
    done.set()
    if mode == "flip":
        thread.join()
    if mode != "plain":
        agent.stop()
        assert agent.hits(0) > 1000 and agent.hits(1) >= agent.hits(0)
        assert mode == "flip" or agent.hits(2) > 10


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("ok")
