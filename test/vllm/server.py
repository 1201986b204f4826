# SPDX-License-Identifier: MIT
"""A vLLM server on a loopback port: started (also by a command in front of it), waited for, asked
for its metrics, ended."""
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

READY_S = 600
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    """The process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir("/proc/%d/task" % parent):
                with open("/proc/%d/task/%s/children" % (parent, task)) as f:
                    found.extend(map(int, f.read().split()))
        except OSError:
            pass  # it has ended
    return found


class Server:
    def __init__(self, model, log, prefix=(), options=()):
        self.port = free_port()
        self.log = log
        command = [*prefix, os.path.join(os.path.dirname(sys.executable), "vllm"), "serve", model,
                   "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(self.port),
                   "--load-format", "dummy", "--dtype", "float32", "--max-model-len", "1024",
                   "--max-num-seqs", "16", "--enforce-eager", *options]
        self.start = time.monotonic()
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True,
                                            stdin=subprocess.DEVNULL,
                                            env={**os.environ, **ENVIRONMENT})

    def get(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path), timeout=30) as r:
            return r.read().decode()

    def wait(self):
        """Until it answers; the seconds from its start."""
        while time.monotonic() - self.start < READY_S:
            if self.process.poll() is not None:
                break
            try:
                self.get("/health")
                return time.monotonic() - self.start
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start: see " + self.log)

    def pids(self):
        return children(self.process.pid)

    def python_pid(self):
        """The API server itself, where another command stands in front of it."""
        for pid in self.pids():
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if len(words) > 2 and words[1].endswith(b"/vllm"):
                return pid
        return self.process.pid

    def metrics(self):
        """Sums over all labels, by name: vllm:generation_tokens_total, ..._count."""
        sums = {}
        for line in self.get("/metrics").splitlines():
            m = re.match(r"(vllm:\w+)(?:\{[^}]*\})? (\S+)$", line)
            if m:
                sums[m.group(1)] = sums.get(m.group(1), 0) + float(m.group(2))
        return sums

    def stop(self):
        """As a user does: Ctrl-C. Its status."""
        for sig, patience in ((signal.SIGINT, 60), (signal.SIGTERM, 20), (signal.SIGKILL, 20)):
            if self.process.poll() is None:
                os.kill(self.process.pid, sig)
            try:
                return self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        raise RuntimeError("the server does not end")
