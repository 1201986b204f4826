#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""object-circles.py FOLDER...: prints each circle of object files that use each other's symbols.

What an object defines and what it lacks is read by nm. Exits with 1 if there is a circle.
"""
import os
import subprocess
import sys


def read_objects(folders):
    """{object: set of objects that it uses}."""
    defined, lacking = {}, {}
    for folder in folders:
        for at, _, names in os.walk(folder):
            lacking.update((os.path.join(at, n), set()) for n in sorted(names) if n.endswith(".o"))
    if not lacking:
        return {}
    for line in subprocess.check_output(["nm", "-gA", *lacking], text=True).splitlines():
        path, _, symbol = line.partition(":")
        words = symbol.split()
        if words[-2] == "U":
            lacking[path].add(words[-1])
        elif words[-2] in "TDBRVWC":
            defined[words[-1]] = path
    return {o: {defined[s] for s in names if defined.get(s, o) != o} for o, names in lacking.items()}


def circles(uses):
    """The strongly connected parts of more than one object (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []

    def visit(o):
        number[o] = low[o] = len(number)
        stack.append(o)
        for other in uses[o]:
            if other not in number:
                visit(other)
                low[o] = min(low[o], low[other])
            elif other in stack:
                low[o] = min(low[o], number[other])
        if low[o] == number[o]:
            part = stack[stack.index(o) :]
            del stack[stack.index(o) :]
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for o in uses:
        if o not in number:
            visit(o)
    return found


def main():
    uses = read_objects(sys.argv[1:])
    if not uses:
        sys.exit("no object file found")
    found = circles(uses)
    for part in found:
        print("a circle:", " ".join(part))
        for o in part:
            for other in sorted(uses[o] & set(part)):
                print(f"    {o} uses {other}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
