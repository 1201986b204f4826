#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# limit: 180 s
# No file calls another that calls it back, directly or around: read from the objects, not from what
# includes what.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3 nm cc

# A copy: an object of a file that is no longer there does not count.
objects() { # FOLDER...
	local file files=()
	for file in $(cd "$SRC" && find "$@" -name '*.c' -o -name '*.S'); do
		[ ! -f "$BUILD/${file%.*}.o" ] || files+=("${file%.*}.o")
	done
	mkdir -p "$T/o"
	[ ${#files[@]} -eq 0 ] || (cd "$BUILD" && cp --parents -t "$T/o" "${files[@]}")
}
objects src inject elf sweep
[ "$(find "$T/o" -name '*.o' | wc -l)" -gt 100 ] || fail 'too few objects'
python3 "$SRC/test/object-circles.py" "$T/o" >"$T/out" || fail "$(cat "$T/out")"
rm -rf "$T/o"
objects python/agent
if [ -n "$(ls "$T/o")" ]; then
	python3 "$SRC/test/object-circles.py" "$T/o" >"$T/out" || fail "$(cat "$T/out")"
fi
# It finds one where there is one.
mkdir -p "$T/bad"
echo 'int a(void); int b(void); int a(void) { return b(); }' >"$T/a.c"
echo 'int a(void); int c(void); int b(void); int b(void) { return c(); }' >"$T/b.c"
echo 'int a(void); int c(void); int c(void) { return a(); }' >"$T/c.c"
for name in a b c; do
	cc -c -o "$T/bad/$name.o" "$T/$name.c" || fail "cc $name.c"
done
! python3 "$SRC/test/object-circles.py" "$T/bad" >"$T/out" || fail 'a circle of three is not found'
grep -q 'a circle: .*/a.o .*/b.o .*/c.o' "$T/out" || fail "$(cat "$T/out")"
