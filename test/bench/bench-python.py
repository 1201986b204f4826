# SPDX-License-Identifier: MIT
"""What the agent costs in this interpreter, beside the interpreter without it. All variants take
turns in short rounds; medians, in ns a call. One row, for test/bench/bench-python.sh."""
import os
import statistics
import sys
from time import perf_counter_ns as now

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from driver import COUNT, DELAY, OFF, SLOW, Agent  # noqa: E402


def matched():
    pass


def other():
    pass


def ticks_per_ns(agent):
    """The clock of the page against the interpreter's: one long delay."""
    cell = agent.cell(0)
    cell.state, cell.flags, cell.delay_ticks, cell.overrun_limit = SLOW, DELAY, 40000000, 1 << 60
    agent.apply()
    rates = []
    for _ in range(9):
        given, start = agent.sum("injected_ticks"), now()
        matched()
        rates.append((agent.sum("injected_ticks") - given) / (now() - start))
    return statistics.median(rates)


def main():
    agent = Agent(("__main__", "matched"))
    rate = ticks_per_ns(agent)
    agent.stop()
    agent.mailbox.page.tsc_hz = int(rate * 1e9)
    cell = agent.cell(0)
    cell.overrun_limit, cell.pause_above = int(20000 * rate), int(200 * rate)

    def settings(state, delay_ns=None):
        cell.state, cell.flags = state, 0
        if delay_ns is not None:
            cell.flags, cell.delay_ticks = DELAY, round(delay_ns * rate)
            cell.residual_max = cell.delay_ticks // 2 + 100
        agent.apply()

    def plain():
        agent.stop()

    variants = [  # name, function, settings, calls a round
        ("plain", matched, plain, 1000), ("plain other", other, lambda: None, 1000),
        ("other", other, lambda: settings(COUNT), 1000),
        ("off", matched, lambda: settings(OFF), 1000),
        ("count", matched, lambda: settings(COUNT), 1000),
        ("delay 0", matched, lambda: settings(SLOW, 0), 1000),
        ("1us", matched, lambda: settings(SLOW, 1000), 100),
        ("10us", matched, lambda: settings(SLOW, 10000), 10)]
    rounds = {v[0]: [] for v in variants}
    for _ in range(int(os.environ.get("ROUNDS", 100))):
        for name, function, prepare, calls in variants:
            prepare()
            for turns in ((None,) * 8, (None,) * calls):  # the first is not counted
                start = now()
                for _ in turns:
                    function()
                spent = (now() - start) / len(turns)
            rounds[name].append(spent)
    ns = {name: statistics.median(v) for name, v in rounds.items()}
    base, other_base = ns["plain"], ns["plain other"]
    print("%-10s %8.1f %10.1f %8.1f %8.1f %8.1f %10.1f %10.1f" % (
        sys.version.split()[0], base, ns["other"] - other_base, ns["off"] - base,
        ns["count"] - base, ns["delay 0"] - base, ns["1us"] - base, ns["10us"] - base))


main()
