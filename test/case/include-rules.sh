#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which folder may include which: the table of folders in ARCHITECTURE.md, checked.
# quick
# beside others
. "$SRC/test/lib.sh"

cd "$SRC" || exit 2
py3=$(command -v python3) || skip 'no python3'
"$py3" test/include-rules.py ARCHITECTURE.md || exit 1

# The check finds what it is there for: an include upwards, one of a file that is not there, one
# that the compiler would find in another folder than the reader does.
mkdir -p "$T/tree"
cp -r ARCHITECTURE.md src elf inject sweep ctl python "$T/tree"
cd "$T/tree" || exit 2
refused() { # FILE INCLUDE WORDS
	cp "$1" "$T/kept"
	printf '#include "%s"\n' "$2" >>"$1"
	"$py3" "$SRC/test/include-rules.py" ARCHITECTURE.md >"$T/out" &&
		fail "$1 may include $2"
	grep -q "$3" "$T/out" || fail "$1 with $2: $(cat "$T/out")"
	cp "$T/kept" "$1"
}
refused src/session/session.h src/run/client.h 'src/session may not include src/run/client.h'
refused elf/view.h inject/page.h 'elf may not include'
refused inject/page-abi.h src/base/err.h 'page-abi.h'
refused src/run/client.c ../session/session.h 'path from the root'
refused sweep/stat.c src/base/nothing.h 'no such file'
printf '#include <unistd.h>\n' >>sweep/stat.c
"$py3" "$SRC/test/include-rules.py" ARCHITECTURE.md >"$T/out" && fail 'sweep/ may do I/O'
exit 0
