#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""include-rules.py ARCHITECTURE.md: checks every include of the tree against its table of folders.

The tree is the current folder. Prints a line for each include that the table does not allow and
exits with 1 if there is one.
"""
import glob
import os
import re
import sys

CELL = re.compile(r"`([^`]+)`")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
ARCHITECTURE = re.compile(r"__(x86_64|aarch64|amd64|i386)(__)?")
INPUT_OUTPUT = re.compile(r"^(sys/|unistd|fcntl|pthread|signal|time\.h|poll)")


def read_table(path):
    """The table of folders: {folder: [what it may include]}."""
    rules = {}
    for line in open(path):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4 and os.path.isdir(CELL.findall(cells[0])[0]):
            rules[CELL.findall(cells[0])[0]] = CELL.findall(cells[3])
    return rules


def row_of(path, rules):
    """The row that a file belongs to: that of the nearest folder above it; None: there is none."""
    folder = os.path.dirname(path)
    while folder and folder not in rules:
        folder = os.path.dirname(folder)
    return folder or None


def flaw(path, row, included, rules):
    """What is wrong with an include in quotes, or None."""
    if "/" not in included:
        here = os.path.dirname(path)
        found = [os.path.join(here, included), *glob.glob(f"{here}/arch/*/{included}")]
        return None if any(map(os.path.exists, found)) else "no such file"
    if included.startswith("."):
        return "an include of another folder is written by its path from the root"
    if os.path.exists(os.path.join(os.path.dirname(path), included)):
        return "the compiler takes it from the folder of the file"
    if not os.path.exists(included):
        return "no such file"
    to = row_of(included, rules)
    if to == row or to in rules[row] or included in rules[row]:
        return None
    return f"{row} may not include {included}"


def flaws_of(path, row, rules):
    text = open(path).read()
    for kind, included in INCLUDE.findall(text):
        if kind == '"':
            wrong = flaw(path, row, included, rules)
            if wrong:
                yield f'"{included}": {wrong}'
            if path == "inject/page-abi.h":
                yield f'"{included}": page-abi.h is included by the agent and has no include of its own'
        elif path == "inject/page-abi.h" and included not in ("stdint.h", "stddef.h", "assert.h"):
            yield f"<{included}>: page-abi.h is for code without a C library, too"
        elif row == "sweep" and INPUT_OUTPUT.match(included):
            yield f"<{included}>: sweep does no I/O and has no clock"
    if "/arch/" not in path and ARCHITECTURE.search(text):
        yield "asks for an architecture, which only inject/arch and python/agent/arch may do"


def main():
    rules = read_table(sys.argv[1])
    files, bad = 0, 0
    for top in sorted({folder.split("/")[0] for folder in rules}):
        for folder, _, names in sorted(os.walk(top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not name.endswith((".c", ".h", ".S")) or path.startswith("inject/kmod/"):
                    continue
                files += 1
                row = row_of(path, rules)
                wrong = ["no row of the table"] if not row else flaws_of(path, row, rules)
                for what in wrong:
                    print(f"{path}: {what}")
                    bad = 1
    if files < 100 or len(rules) < 10:
        print(f"only {files} source files and {len(rules)} rows of the table found")
        bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
