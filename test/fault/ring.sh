#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An interpreter that ends while its doorbell is answered: the session sees its end when it borrows
# the thread that rings, and goes on with what it held of the process, which has been forgotten. And
# one that ends, and is started again, while the tracer has no processor: the second start is seen.
# limit: 300 s
. "$SRC/test/fault/walk.bash"
need_python

# its libpython; nothing where it has none
library() {
	env -u PYTHONHOME "$1" -c 'import os, sysconfig
get = sysconfig.get_config_var
path = os.path.join(get("LIBDIR") or "", get("INSTSONAME") or "")
print(path if ".so" in path and os.path.exists(path) else "")'
}

n=0
for p in "${python[@]}"; do
	lib=$(library "$p")
	[ -n "$lib" ] || continue
	n=$((n + 1))
	for nth in 1 2 3; do
		PYTHONHOME=$("$p" -c 'import sys; print(sys.base_prefix)') \
			run "carried-out:$nth=stall" py:__main__:step 0 --json "$T/run.json" -- \
			"$V/embed" "$lib" - beside beside
		[ "$rc" -eq 0 ] || fail "$p: stall $nth: status $rc: $(cat "$T/sb.err")"
		same "hits of $p, stall $nth" "$(j targets.0.hits)" 2000
	done
done
[ $n -gt 0 ] || echo 'no interpreter here has a shared library'

for point in call-start call-entered call-left room-map ring; do
	for nth in 1 3 6 9 12 15; do
		run "$point:$nth=kill-target" py:__main__:nothing 0 -- "${python[0]}" -c 'pass'
		! grep 'tracer died' "$T/sb.err" || fail "$point:$nth: the tracer died"
		[ "$rc" -eq 137 ] || [ "$rc" -eq 0 ] || fail "$point:$nth: status $rc: $(cat "$T/sb.err")"
		[ "$rc" -ne 0 ] || break
	done
done
