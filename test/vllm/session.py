# SPDX-License-Identifier: MIT
"""A session of sbinject on a running process."""
import json
import os
import signal
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("SB", "build/sbinject")
PATIENCE_S = 60

# What vLLM counts in its metrics is counted where it happens: in the API server and in the worker.
ITERATIONS = "py:vllm.*:IterationStats.__init__"
TOKENS = "py:vllm.*:IterationStats.update_from_output"
REQUESTS = "py:vllm.*:IterationStats.update_from_finished_request"
SCHEDULE = "py:vllm.*:Scheduler.schedule"
FORWARD = "libtorch_cpu.so:at::_ops::embedding::call(*"
METRICS = {
    ITERATIONS: "vllm:iteration_tokens_total_count", TOKENS: "vllm:generation_tokens_total",
    REQUESTS: "vllm:request_success_total", FORWARD: "vllm:iteration_tokens_total_count",
}


def words(targets):
    """(TARGET, DELAY) pairs as arguments."""
    return [word for pair in targets for word in pair]


class Session:
    def __init__(self, pid, targets, *options, verb=()):
        self.json = tempfile.NamedTemporaryFile(suffix=".json")
        self.log = tempfile.TemporaryFile("w+")
        read, write = os.pipe()
        self.status = os.fdopen(read)
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            [PROGRAM, *verb, "-p", str(pid), *words(targets), "--json", self.json.name,
             "--status-fd", str(write), *options],
            pass_fds=[write], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(write)

    def wait_in_force(self):
        """Seconds until every target is in force."""
        line = self.status.readline()
        if not line.startswith("attached"):
            raise RuntimeError("the attach failed: " + self.text())
        return time.monotonic() - self.start

    def stop(self):
        """Detaches; the result document."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)
        with open(self.json.name, encoding="utf-8") as f:
            return json.load(f)

    def tracer(self):
        """Its other process, or 0."""
        try:
            with open("/proc/{0}/task/{0}/children".format(self.process.pid)) as f:
                pids = f.read().split()
        except OSError:
            return 0
        return int(pids[0]) if pids else 0

    def text(self):
        self.log.seek(0)
        return self.log.read()


def hits(result):
    """Of each target, by its text."""
    return {target["spec"]: target["hits"] for target in result["targets"]}


def recover(pid):
    """Its status and what it said."""
    done = subprocess.run([PROGRAM, "recover", "-p", str(pid)], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr
