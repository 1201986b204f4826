# SPDX-License-Identifier: MIT
"""Another frame evaluation function, before the agent's or after it: each sees every call."""
import ctypes
import os
import sys

from driver import APPLY, COUNT, OFF, STOP, Agent
from state import clean, f, recursive, times


def main():
    chain = ctypes.PyDLL(os.environ["CHAIN"])
    seen = ctypes.c_long.in_dll(chain, "chain_seen")
    a = Agent(("__main__", "run"), ("state", "f"))

    def check(there):
        before, hits = seen.value, a.hits(1)
        times(f, 10)
        assert a.hits(1) == hits + (10 if there == "agent" else 0)
        return seen.value - before
    chain.chain_in()
    assert check("none") >= 10
    a.apply()
    assert check("agent") >= 10
    a.state(OFF)
    assert check("none") >= 10
    a.state(COUNT)
    assert check("agent") >= 10
    a.stop()
    assert check("none") >= 10
    chain.chain_out()
    clean()
    # After the agent: it cannot leave, is still, and can come back.
    a.apply()
    chain.chain_in()
    assert check("agent") >= 10
    assert a.ask(STOP) == -5 and b"frame" in a.mailbox.reason, a.mailbox.reason
    assert check("none") >= 10
    a.apply()
    assert check("agent") >= 10
    a.state(OFF)
    assert check("none") >= 10
    a.state(COUNT)
    assert check("agent") >= 10
    assert a.ask(STOP) == -5
    assert a.ask(STOP) == -5
    chain.chain_out()
    assert check("none") == 0
    a.stop()
    clean()
    a.apply()
    assert check("agent") == 0
    a.stop()
    clean()
    times(f, 10), recursive(10)


if __name__ == "__main__":
    if sys.version_info < (3, 12):
        main()
    print("ok")
