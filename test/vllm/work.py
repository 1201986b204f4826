# SPDX-License-Identifier: MIT
"""The load in a process of its own, so that what a check does beside it does not hold it up."""
import json
import os
import subprocess
import sys

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")


class Load:
    """Of so many requests a second (an open loop), or of so many clients (a closed one)."""

    def __init__(self, server, rate=None, seconds=0, tokens=64, clients=None):
        kind = ["--clients", str(clients), str(server.port)] if clients else [str(server.port),
                                                                              str(rate)]
        self.process = subprocess.Popen([sys.executable, LOAD, *kind, str(seconds), str(tokens)],
                                        stdout=subprocess.PIPE, text=True)

    def report(self):
        text = self.process.communicate()[0]
        if self.process.returncode:
            raise RuntimeError("the load ended with %d" % self.process.returncode)
        return json.loads(text)


def apply_load(server, rate, seconds):
    return Load(server, rate, seconds).report()
