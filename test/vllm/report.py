# SPDX-License-Identifier: MIT
"""What the checks found: a line each, as test/run prints them, and the figures beneath."""
import time


class Skip(Exception):
    pass


class Report:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.wrong = []

    def figure(self, text):
        print("    | " + text, flush=True)

    def must(self, holds, text):
        """What has to be true: the check fails at its end, so that all figures are seen."""
        self.figure(("" if holds else "WRONG: ") + text)
        if not holds:
            self.wrong.append(text)

    def run(self, name, check, *args):
        begin, self.wrong, word, note = time.monotonic(), [], "ok", ""
        print("... vllm/%s" % name, flush=True)
        try:
            check(self, *args)
        except Skip as why:
            word, note = "skip", str(why)
        except Exception as why:  # one check must not keep the others from running
            self.wrong.append(repr(why))
            self.figure("WRONG: %r" % why)
        if self.wrong:
            word = "FAIL"
        self.passed += word == "ok"
        self.failed += word == "FAIL"
        self.skipped += word == "skip"
        print("%-4s %-44s %8.3f s  %s" % (word, "vllm/" + name, time.monotonic() - begin, note),
              flush=True)

    def end(self):
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return 1 if self.failed else 0
