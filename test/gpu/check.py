#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py SBINJECT LAUNCHES OUT [CHECK...]: sbinject on programs that use a real GPU.

LAUNCHES is the built launches.cu, OUT a folder for what the checks leave. Prints a line for each check and
ends with `N passed, N failed, N skipped`; the exit status is 1 if one failed.
"""
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sbinject, launches, out = (os.path.abspath(a) for a in sys.argv[1:4])


class Failed(Exception):
    """What did not hold."""


class Skipped(Exception):
    """What the machine lacks."""


def path(name):
    """Return the path of a file in OUT."""
    return os.path.join(out, name)


def hold(fact, what):
    """Fail with `what` unless the fact is true."""
    if not fact:
        raise Failed(what)


def sb(name, *args, limit=60, want=(0,)):
    """Run sbinject to its end; return its JSON, or its output where it has none."""
    doc = path(name + ".json")
    verb = [] if args[0].startswith("-") else [args[0]]
    as_json = ["--json", doc] if verb in ([], ["trace"], ["sweep"]) else []
    command = [sbinject, *verb, *as_json, *args[len(verb):]]
    if os.path.exists(doc):
        os.unlink(doc)
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    with open(path(name + ".log"), "w", encoding="utf-8") as log:
        log.write(" ".join(command) + "\n" + done.stdout + done.stderr)
    hold(done.returncode in want, f"{name}: exit status {done.returncode}: {done.stderr[-300:]}")
    if os.path.exists(doc):
        with open(doc, encoding="utf-8") as file:
            return json.load(file)
    return done.stdout


class Program:
    """A program that works behind a gate, with what it prints."""

    def __init__(self, name, command, env=None):
        self.gate, self.log = path(name + ".gate"), path(name + ".out")
        with open(self.log, "w", encoding="utf-8") as log:
            self.proc = subprocess.Popen(command(self.gate), stdout=log, stderr=log, env=env)

    def text(self):
        """Return what it has printed."""
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def start(self):
        """Open the gate."""
        with open(self.gate, "w", encoding="ascii"):
            pass

    def rates(self):
        """Return the ns of a round that it has printed, in order."""
        return [int(r) for r in re.findall(r"^rate (\d+)$", self.text(), re.M)]

    def end(self, sig=signal.SIGTERM):
        """End it; return the numbers of its last line."""
        if self.proc.poll() is None and sig:
            self.proc.send_signal(sig)
        hold(self.proc.wait(timeout=30) == 0, f"the program: {self.text()[-300:]}")
        words = self.text().strip().splitlines()[-1].split()
        return dict(zip(words[1::2], map(int, words[2::2]))) if words[0] == "did" else {}


def launching(name, *args, program=launches):
    """Start the program of launches.cu, past its warm-up."""
    p = Program(name, lambda gate: [program, "-g", gate, *args], env=cudart())
    time.sleep(3)
    hold(p.proc.poll() is None, f"the program: {p.text()[-300:]}")
    return p


def cudart():
    """Return an environment in which a program finds the shared runtime."""
    places = glob.glob("/usr/local/cuda*/lib64")
    return dict(os.environ, LD_LIBRARY_PATH=":".join(places)) if places else None


def rows(doc, pattern):
    """Return the sum of the hits of the targets that match."""
    return sum(t["hits"] or 0 for t in doc["targets"] if re.search(pattern, t["spec"]))


def check_machine():
    """What the machine is, and what sbinject finds of it."""
    smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True, check=False)
    if smi.returncode:
        raise Skipped("no device: " + (smi.stdout + smi.stderr).strip()[:100])
    try:
        sb("doctor", "doctor")
    except Failed:
        pass  # it lists what the machine lacks, and its rows are in the log
    return f"{smi.stdout.strip()}, Linux {os.uname().release}"


def check_list():
    """Functions of the driver that can be hooked."""
    p = launching("list")
    doc = sb("list-cuda", "list", "-p", str(p.proc.pid), "cuda", limit=60)
    with open(path("list.txt"), "w", encoding="utf-8") as file:
        file.write(doc)
    every = sb("list-libcuda", "list", "-p", str(p.proc.pid), "libcuda.so*:cu*", "time=yes", limit=60)
    p.start()
    p.end()
    return every.strip().splitlines()[-1]


def check_counts():
    """Counts and bytes of a run, attached and detached in mid-life."""
    p = launching("counts", "-t", "4", "-n", "500")
    run = subprocess.Popen([sbinject, "trace", "cuda", "-p", str(p.proc.pid), "--json", path("counts.json")],
                           stderr=open(path("counts.log"), "w", encoding="utf-8"))
    time.sleep(3)
    p.start()
    did = p.end(sig=0)
    run.wait(timeout=30)
    with open(path("counts.json"), encoding="utf-8") as file:
        doc = json.load(file)
    cuda = doc["cuda"]
    for of, key in (("launches", "launches"), ("transfers", "transfers"), ("bytes", "transferred_bytes"),
                    ("allocations", "allocations"), ("syncs", "syncs")):
        hold(cuda[key] == did[of], f"{key}: {cuda[key]} of {did[of]}")
    return f"{did['launches']} launches, {did['transfers']} copies, {did['bytes']} bytes: equal"


def check_delay():
    """A delay of a launch, in the time of a round by the program's own clock."""
    p = launching("delay", "-l", "50")
    p.start()
    time.sleep(3)
    before = len(p.rates())
    sb("delay", "-p", str(p.proc.pid), "cuda:launch", "20us", "--for", "4s")
    after = len(p.rates())
    time.sleep(3)
    did = p.end()
    rate = p.rates()
    was, during = statistics.median(rate[1:before]), statistics.median(rate[before + 2:after - 2])
    then = statistics.median(rate[after + 1:])
    added = (during - was) / 50 / 1e3
    hold(18 < added < 23, f"{added:.2f} us a launch of 20 (a round {was} ns, {during} ns, {then} ns after)")
    hold(then < 1.1 * was, f"after: {then} ns a round, {was} before")
    return f"{added:.2f} us a launch of 20 us; a round {was / 1e3:.0f} us, {then / 1e3:.0f} us after; {did['rounds']}"


def sweep_of(name, *args):
    """Return the verdict, kappa and interval of launches in a program."""
    p = launching(name, *args)
    p.start()
    doc = sb(name, "sweep", "cuda:launch", "-p", str(p.proc.pid), "--progress", ":round_done", "--time", "15s",
             limit=60, want=(0, 6))
    p.end()
    t = doc["targets"][0]
    return t["verdict"], t["kappa"], t["kappa_ci"]


def check_sweep_launch():
    """Where the host is the limit, launches are critical."""
    verdict, kappa, ci = sweep_of("sweep-launch", "-l", "100")
    hold(verdict == "CRITICAL", f"{verdict} {kappa} {ci}")
    return f"{verdict} {kappa:.2f} {ci}"


def check_sweep_device():
    """Where the device is the limit, they are not felt."""
    verdict, kappa, ci = sweep_of("sweep-device", "-l", "50", "-w", "50000")
    hold(verdict in ("HIDDEN", "SLACK", "PARTIAL") and kappa < 0.3, f"{verdict} {kappa} {ci}")
    return f"{verdict} {kappa:.2f} {ci}"


def check_cost():
    """ns that a counted, a timed and a recorded launch takes more."""
    p = launching("cost", "-l", "200")
    p.start()
    had, what = [], (("off", None), ("counted", ["-p"]), ("timed", ["trace"]),
                     ("recorded", ["trace", "-o", path("cost.pftrace")]))
    for _ in range(3):
        for name, how in what:
            begin = len(p.rates())
            if not how:
                time.sleep(2)
            elif how[0] == "-p":
                sb("cost", "-p", str(p.proc.pid), "cuda:cuLaunchKernel", "0", "--for", "2s")
            else:
                sb("cost", *how, "cuda:cuLaunchKernel", "-p", str(p.proc.pid), "--for", "2s")
            had.append((name, statistics.median(p.rates()[begin + 1:-1])))
    p.end()
    off = min(ns for n, ns in had if n == "off")
    return ", ".join(f"{n} {(min(ns for m, ns in had if m == n) - off) / 200:.0f} ns" for n, _ in what[1:]) + \
        f" of {off / 200:.0f} ns a launch"


def check_churn():
    """Attach and detach while four threads launch."""
    p = launching("churn", "-t", "4")
    p.start()
    times = 30
    for _ in range(times):
        sb("churn", "-p", str(p.proc.pid), "cuda:launch", "1us", "cuda:memcpy", "--for", "100ms")
    did = p.end()
    return f"{times} times, {did['launches']} launches, no error"


def check_names():
    """Names of kernels, where the runtime is linked into the program and where it is a library."""
    said = []
    for name, program in (("static", launches), ("shared", launches + "-shared")):
        if not os.path.exists(program):
            continue
        trace = path(f"names-{name}.jsonl")
        sb("names-" + name, "trace", "cuda", "cudart", "-o", trace, "--", program, "-n", "200")
        text = sb("report-" + name, "report", trace)
        with open(path(f"report-{name}.txt"), "w", encoding="utf-8") as file:
            file.write(text)
        had = {w for w in ("add_one", "scale") if w in text}
        said.append(f"{name}: {', '.join(sorted(had)) or 'no name'}")
        hold(had == {"add_one", "scale"}, f"{name}: only {had}")
    return "; ".join(said)


def has_torch():
    """Skip where python3 has no PyTorch that finds a device."""
    try:
        probe = subprocess.run(["python3", "-c", "import torch; print(torch.cuda.is_available())"],
                               capture_output=True, text=True, check=False, timeout=60)
    except OSError as e:
        raise Skipped(str(e)) from e
    if probe.stdout.strip() != "True":
        raise Skipped("no torch with CUDA: " + probe.stderr[-100:])


def check_torch():
    """Counts of a PyTorch program against torch.profiler's, and a trace with Python."""
    has_torch()
    p = Program("torch", lambda gate: ["python3", os.path.join(HERE, "loop.py"), gate, "50"])
    for _ in range(600):
        if os.path.exists(p.gate + ".ready") or p.proc.poll() is not None:
            break
        time.sleep(0.1)
    hold(p.proc.poll() is None, f"the program: {p.text()[-500:]}")
    trace = path("torch.pftrace")
    run = subprocess.Popen([sbinject, "trace", "cudart", "cuda", "nccl", "py:__main__:step", "-p", str(p.proc.pid),
                            "--json", path("torch.json"), "-o", trace],
                           stderr=open(path("torch.log"), "w", encoding="utf-8"))
    time.sleep(8)
    p.start()
    while '"calls"' not in p.text() and p.proc.poll() is None:
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    run.wait(timeout=30)
    os.unlink(p.gate)
    hold(p.proc.wait(timeout=30) == 0, p.text()[-500:])
    with open(path("torch.json"), encoding="utf-8") as file:
        doc = json.load(file)
    theirs = json.loads(next(line for line in p.text().splitlines() if '"calls"' in line))
    with open(path("torch-report.txt"), "w", encoding="utf-8") as file:
        file.write(sb("torch-report", "report", trace))
    # Libraries with the runtime linked into them (cuBLAS, NCCL) call the driver, and the profiler names the
    # runtime's functions: the driver's calls are compared.
    calls, compared = theirs["calls"], []
    for name, ours, functions in (
            ("launches", doc["cuda"]["launches"], ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel",
                                                   "cuLaunchKernelEx")),
            ("launches of the runtime library", rows(doc, r"^cudart:.*Launch"), ("cudaLaunchKernel",)),
            ("copies", doc["cuda"]["transfers"], ("cudaMemcpyAsync",)),
            ("graphs", rows(doc, r"^cuda:cuGraphLaunch$"), ("cudaGraphLaunch",)),
            ("waits", doc["cuda"]["syncs"], ("cudaStreamSynchronize", "cudaDeviceSynchronize")),
            ("steps", rows(doc, "^py:__main__"), None), ("ncclAllReduce", rows(doc, "ncclAllReduce$"), None)):
        true = sum(calls.get(f, 0) for f in functions) if functions else theirs["rounds"]
        compared.append((name, ours, true))
    text = f"torch {theirs['torch']}: " + ", ".join(f"{n} {a} of {b}" for n, a, b in compared)
    hold(all(a == b for _, a, b in compared), text)
    return text


def await_text(p, text):
    """Wait until the program has printed it; return the line."""
    for _ in range(600):
        if text in p.text():
            return json.loads(next(line for line in p.text().splitlines() if text in line))
        hold(p.proc.poll() is None, f"the program: {p.text()[-500:]}")
        time.sleep(0.1)
    raise Failed(f"no {text}: {p.text()[-500:]}")


def traced_on_device(name, p, until):
    """Trace a program with device times, from before its gate opens; return the object `cuda`."""
    with open(path(name + ".log"), "w", encoding="utf-8") as log:
        run = subprocess.Popen([sbinject, "trace", "cuda:launch", "cuda:memcpy", "--device-times", "-v", "-p",
                                str(p.proc.pid), "-o", path(name + ".jsonl"), "--json", path(name + ".json")],
                               stderr=log)
        time.sleep(6)
        p.start()
        until()
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
    with open(path(name + ".json"), encoding="utf-8") as file:
        cuda = json.load(file)["cuda"]
    device = cuda["device"]
    hold(device["kernels"] is not None, f"{name}: {device.get('reason')}")
    hold(device["records"] == device["written"], f"{name}: {device}")
    return cuda


def check_device_counts():
    """Device times: as many kernels, copies and bytes on the device as the program asked for."""
    shared = launches + "-shared"
    if not os.path.exists(shared):
        raise Skipped("no program with the shared runtime")
    p = launching("device-counts", "-t", "4", "-n", "500", program=shared)
    did = {}
    cuda = traced_on_device("device-counts", p, lambda: did.update(p.end(sig=0)))
    device = cuda["device"]
    text = (f"kernels {device['kernels']} of {did['launches']}, copies {device['copies']} of {did['transfers']}, "
            f"bytes {device['copied_bytes']} of {did['bytes']}; clock within {device['clock_error_ns']} ns")
    hold((device["kernels"], device["copies"], device["copied_bytes"]) ==
         (did["launches"], did["transfers"], did["bytes"]), text)
    return text


def check_device_times():
    """Device times against the device's own events; torch.profiler works after the detach."""
    has_torch()
    p = Program("device", lambda gate: ["python3", os.path.join(HERE, "products.py"), gate, "300"])
    for _ in range(600):
        if os.path.exists(p.gate + ".ready") or p.proc.poll() is not None:
            break
        time.sleep(0.1)
    hold(p.proc.poll() is None, f"the program: {p.text()[-500:]}")
    device = traced_on_device("device-times", p, lambda: await_text(p, '"elapsed_ns"'))["device"]
    theirs = await_text(p, '"elapsed_ns"')
    busy, kernel_ns = device["busy"][0]["busy_ns"], device["kernel_ns"]
    text = (f"busy {busy} ns, kernels {device['kernels']} of {kernel_ns} ns, events {theirs['elapsed_ns']} ns "
            f"for {theirs['products']} products")
    os.unlink(p.gate)
    after = await_text(p, '"profiled"')["profiled"]
    hold(p.proc.wait(timeout=60) == 0, p.text()[-500:])
    hold(device["kernels"] >= theirs["products"] and 0.9 < busy / theirs["elapsed_ns"] < 1.02, text)
    hold(after >= 10, f"torch.profiler saw {after} kernels after the detach; {text}")
    return f"{text}; torch.profiler after the detach: {after} kernels"


CHECKS = ("machine", "list", "counts", "delay", "names", "torch", "device_counts", "device_times",
          "churn", "cost", "sweep_launch", "sweep_device")


def main():
    """Run the checks in turn."""
    tally = {"passed": 0, "failed": 0, "skipped": 0}
    os.makedirs(out, exist_ok=True)
    for name in sys.argv[4:] or CHECKS:
        begin = time.monotonic()
        try:
            how, text = "ok", globals()["check_" + name]()
            tally["passed"] += 1
        except Skipped as e:
            how, text = "skip", str(e)
            tally["skipped"] += 1
        except (Failed, OSError, KeyError, ValueError, statistics.StatisticsError,
                subprocess.TimeoutExpired) as e:
            how, text = "FAIL", f"{type(e).__name__}: {e}"
            tally["failed"] += 1
        print(f"{how:4} {name:14} {time.monotonic() - begin:5.1f} s  {text}", flush=True)
        if name == "machine" and how != "ok":
            break
    print(", ".join(f"{n} {what}" for what, n in tally.items()))
    return 1 if tally["failed"] else 0


if __name__ == "__main__":
    shutil.rmtree(out, ignore_errors=True)
    sys.exit(main())
