# SPDX-License-Identifier: MIT
"""How pip builds the `sbinject` package: a build backend (PEP 517, 660) that needs nothing but Python.

So `pip install .` works without a network, and where there is no setuptools. The wheel has the
package, the hook file that lets SPEED_BUMP_* work (sbinject.pth), and the programs, which `make`
builds first where that was not done yet. Without them nothing works: where they cannot be built the
installation is refused with the command that helps.
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
PROGRAMS = [os.path.join(TREE, "build", name) for name in ("sbinject", "sbctl")]
# Where a make or a test runs pip: what they set is theirs.
NOT_OURS = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD", "SAN", "FAULT", "DESTDIR")


def _version():
    with open(os.path.join(HERE, "sbinject", "__init__.py"), encoding="utf-8") as f:
        return re.search(r'^__version__ = "(.*)"$', f.read(), re.M).group(1)


def _metadata():
    with open(os.path.join(TREE, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    return (
        "Metadata-Version: 2.1\n"
        "Name: sbinject\n"
        f"Version: {_version()}\n"
        "Summary: Slow functions of live processes by an exact time, and see what of it matters\n"
        "License: MIT\n"
        "Requires-Python: >=3.10\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Typing :: Typed\n"
        "Description-Content-Type: text/markdown\n\n" + readme
    )


def _built():
    return all(os.access(program, os.X_OK) for program in PROGRAMS)


def _build():
    """Both programs are there afterwards, or the installation has ended."""
    if _built():
        return
    env = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    make = ["make", "-s", f"-j{os.cpu_count() or 1}", "-C", TREE, "BUILD=build", "all"]
    try:
        done = subprocess.run(make, env=env, stdin=subprocess.DEVNULL).returncode == 0
    except OSError as e:
        print(f"make: {e.strerror}", file=sys.stderr)
        done = False
    if not done or not _built():
        sys.stdout.flush()
        sys.exit(
            "sbinject: the program could not be built. Run this first, as root where it installs "
            f"packages:\n    make -C {TREE} deps && make -C {TREE}"
        )


def _tag(program):
    return f"py3-none-linux_{platform.machine()}" if program else "py3-none-any"


class _Wheel:
    def __init__(self, folder, program):
        self.tag = _tag(program)
        self.info = f"sbinject-{_version()}.dist-info"
        self.name = f"sbinject-{_version()}-{self.tag}.whl"
        self.zip = zipfile.ZipFile(
            os.path.join(folder, self.name), "w", compression=zipfile.ZIP_DEFLATED
        )
        self.record = []

    def add(self, name, data, mode=0o644):
        data = data.encode() if isinstance(data, str) else data
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as f:
            self.add(name, f.read(), mode)

    def close(self):
        self.add(f"{self.info}/METADATA", _metadata())
        self.add_file(f"{self.info}/LICENSE", os.path.join(TREE, "LICENSE"))
        self.add(
            f"{self.info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: sbinject\nRoot-Is-Purelib: true\n"
            f"Tag: {self.tag}\n",
        )
        self.zip.writestr(
            f"{self.info}/RECORD", "".join(self.record) + f"{self.info}/RECORD,,\n"
        )
        self.zip.close()
        return self.name


def _add_presets(wheel):
    """Beside the program, where it looks for them: bin/sbinject, share/sbinject/presets."""
    folder = os.path.join("share", "sbinject", "presets")
    for name in sorted(os.listdir(os.path.join(TREE, folder))):
        if name.endswith(".preset"):
            to = f"sbinject-{_version()}.data/data/{folder}/{name}"
            wheel.add_file(to, os.path.join(TREE, folder, name))


def _add_hook(wheel):
    wheel.add_file("sbinject.pth", os.path.join(HERE, "sbinject.pth"))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build()
    wheel = _Wheel(wheel_directory, True)
    package = os.path.join(HERE, "sbinject")
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".typed")):
            wheel.add_file(f"sbinject/{name}", os.path.join(package, name))
    _add_hook(wheel)
    for program in PROGRAMS:
        scripts = f"sbinject-{_version()}.data/scripts"
        wheel.add_file(f"{scripts}/{os.path.basename(program)}", program, 0o755)
    _add_presets(wheel)
    return wheel.close()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays in the tree; the program is the tree's own build."""
    _build()
    wheel = _Wheel(wheel_directory, False)
    wheel.add("__editable__.sbinject.pth", HERE + "\n")
    _add_hook(wheel)
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("sbinject is installed from its tree, or from a wheel of it")


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel
