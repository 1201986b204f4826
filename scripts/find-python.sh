#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the folder of a Python.h of CPython 3.10 or later, the newest that is found; nothing when
# there is none. A free-threaded one will not do: it has no limited API.

minor() { # DIR: the minor version of the Python 3 whose headers lie there
	[ -r "$1/Python.h" ] && [ -r "$1/patchlevel.h" ] || return 1
	sed -n 's/^#define[ \t]*PY_MINOR_VERSION[ \t]*\([0-9]*\).*/\1/p' "$1/patchlevel.h"
}

found='' newest=9
for dir in /usr/include/python3.* /usr/local/include/python3.* /opt/*/include/python3.* \
	"${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/include/python3.* \
	$(command -v python3 >/dev/null && python3 -c \
		'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null); do
	case $dir in *t) continue ;; esac
	n=$(minor "$dir") || continue
	[ "${n:-0}" -gt "$newest" ] && newest=$n found=$dir
done
[ -z "$found" ] || printf '%s\n' "$found"
