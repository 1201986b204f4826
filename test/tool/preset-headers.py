#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""preset-headers.py PRESET INCLUDE_DIR...: checks a preset's arguments against C headers.

For each row with arg=NAME:N:TYPE, the headers must declare a function that the row's glob matches, and
each such function must have an Nth argument in an integer register whose type has that size and whose
declaration fits the name. Prints what differs, and the number of arguments checked; exits with 1 if one
differs, or if there is none to check.
"""
import fnmatch
import re
import subprocess
import sys

HEADERS = {
    "cuda": ["cuda.h"],
    "cudart": ["cuda_runtime_api.h"],
    "nccl": ["nccl.h"],
    "cudnn": ["cudnn.h"],
    "cublas": ["cublas_v2.h", "cublasLt.h"],
    "opencl": ["CL/cl.h"],
}
SIZES = {"u32": 4, "i32": 4, "u64": 8, "i64": 8, "ptr": 8}
# What the declaration of an argument holds, by the argument's name in the preset.
FITS = {
    "bytes": r"count|size|bytes|\bcb\b", "count": r"count", "stream": r"stream", "event": r"event",
    "type": r"datatype", "kind": r"kind", "graph": r"graph", "function": r"func|\bf\b", "address": r"ptr",
    "grid_x": r"grid", "grid_y": r"grid", "block_x": r"block", "kernel": r"kernel", "queue": r"queue",
    "dimensions": r"dim", "blocking": r"blocking", "handle": r"handle", "plan": r"plan",
}
VERSION = re.compile(r"(_v\d+|_ptsz|_ptds|_64)+$")


def prototypes(text):
    """{name: [parameter]} of preprocessed C."""
    found = {}
    for name, parameters in re.findall(r"\b(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*(?:__attribute__[^;]*)?;", text):
        parameters = re.sub(r"\s+", " ", parameters).strip()
        found[name] = [p.strip() for p in parameters.split(",")] if parameters not in ("", "void") else []
    return found


def type_of(parameter):
    parameter = re.sub(r"\bconst\b|\b__restrict\b", "", parameter)
    if "*" in parameter or "[" in parameter:
        return "void *"
    words = parameter.split()
    plain = {"unsigned", "int", "long", "char", "short", "size_t"}
    if len(words) > 1 and words[-1] not in plain:
        words = words[:-1]
    return " ".join(words)


def rows(path):
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            yield words[1], [w[4:].split(":") for w in words[3:] if w.startswith("arg=")]


def registers(parameters):
    """The C type in each integer register: a dim3 takes two."""
    for parameter in parameters:
        kind = type_of(parameter)
        if kind in ("float", "double"):
            continue
        yield ("unsigned int", parameter) if kind == "dim3" else (kind, parameter)
        if kind == "dim3":
            yield "unsigned int", parameter


def main():
    preset, includes = sys.argv[1], [f"-I{d}" for d in sys.argv[2:]]
    headers = HEADERS[re.sub(r".*/|\.preset$", "", preset)]
    source = "".join(f"#include <{h}>\n" for h in headers)
    text = subprocess.run(["cc", "-E", "-P", "-x", "c", *includes, "-"], input=source,
                          capture_output=True, text=True, check=True).stdout
    known = prototypes(text)
    checks, bad = [], 0
    for glob, args in rows(preset):
        matching = {f: p for f, p in known.items() if fnmatch.fnmatchcase(VERSION.sub("", f), glob)}
        if args and not matching:
            print(f"no header declares {glob}, whose row has arguments")
            bad = 1
        for name, position, kind in args:
            for function, parameters in matching.items():
                in_register = list(registers(parameters))
                if len(in_register) < int(position):
                    print(f"{function} has no argument {position} ({name})")
                    bad = 1
                    continue
                checks.append((function, name, kind, *in_register[int(position) - 1]))
    lines = [f'_Static_assert(sizeof({c}) == {SIZES[k]}, "{f}: {n} is {k} and not: {p}");'
             for f, n, k, c, p in checks]
    done = subprocess.run(["cc", "-fsyntax-only", "-x", "c", *includes, "-"],
                          input=source + "\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        print(done.stderr)
        bad = 1
    for function, name, _, _, parameter in checks:
        if name not in FITS or not re.search(FITS[name], parameter, re.I):
            print(f"{function}: {name} is '{parameter}'")
            bad = 1
    functions = {function for function, *_ in checks}
    print(f"{len(checks)} arguments of {len(functions)} functions")
    sys.exit(bad or not checks)


if __name__ == "__main__":
    main()
