#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 300 s
# torch.compile owns the interpreter's frame evaluation too: both work, launched and attached, and
# what it compiles is counted as what it leaves alone. PYTHONS may name interpreters that have torch.
. "$SRC/test/lib.sh"
need_python
VICTIM=$SRC/test/victim/python/compiled.py

in_force() { grep -q 'targets in force' "$T/sb.err"; }

launched() { # PYTHON
	sb py:__main__:step 1us py:__main__:compiled 1us --json "$T/run.json" -- "$1" -W ignore "$VICTIM" -
	ended 0 "$1"
	grep -q '^self-check ok$' "$T/sb.out" || fail "$1: the program is not content"
	same "hits of step on $1" "$(j targets.0.hits)" "$(sed -n 's/^calls step //p' "$T/sb.out")"
	same "hits of compiled on $1" "$(j targets.1.hits)" \
		"$(sed -n 's/^calls compiled //p' "$T/sb.out")"
}

# With PEP 523 the compiler may take the agent's place at the moment of the attach: calls until it
# is put back are not seen, and that is told.
attached() { # PYTHON
	local status=0

	mkdir -p "$T/w"
	rm -f "$T/w/stop"
	start compiled "$1" -W ignore "$VICTIM" "$T/w"
	sb_start -v -p "$pid" py:__main__:step 1us py:__main__:compiled 1us --json "$T/run.json"
	wait_for 15 in_force || fail "$1: the agent did not get in"
	sleep 0.5
	sb_stop
	ended 0 "$1"
	let_go "$pid"
	more "hits of step on $1" "$(j targets.0.hits)" 100
	more "hits of compiled on $1" "$(j targets.1.hits)" 100
	same "delayed of step on $1" "$(j targets.0.delayed)" "$(j targets.0.hits)"
	touch "$T/w/stop"
	wait "$pid" || status=$?
	[ $status -eq 0 ] && said compiled '^self-check ok$' || fail "$1: it went wrong: $(tail "$T/compiled.err")"
}

tried=0
for p in "${python[@]}"; do
	"$p" -c 'import torch, torch._dynamo' 2>/dev/null || continue
	launched "$p"
	attached "$p"
	tried=$((tried + 1))
done
[ $tried -gt 0 ] || skip 'no interpreter here has torch (PYTHONS names more)'
echo "$tried interpreters with torch"
