# SPDX-License-Identifier: MIT
"""The load in a process of its own, so that what a check does beside it does not hold it up."""
import json
import os
import subprocess
import sys

LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.py")


class Load:
    def __init__(self, server, rate, seconds, tokens=64):
        self.process = subprocess.Popen(
            [sys.executable, LOAD, str(server.port), str(rate), str(seconds), str(tokens)],
            stdout=subprocess.PIPE, text=True)

    def report(self):
        text = self.process.communicate()[0]
        if self.process.returncode:
            raise RuntimeError("the load ended with %d" % self.process.returncode)
        return json.loads(text)


def apply_load(server, rate, seconds):
    return Load(server, rate, seconds).report()
