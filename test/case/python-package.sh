#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# limit: 300 s
# The Python package installs without a network and slows the process that uses it; SPEED_BUMP_*
# alone does so to a plain `python script.py` where it is installed, once a process tree.
. "$SRC/test/lib.sh"

cat >"$T/bench.py" <<'EOF'
import os, subprocess, sys
def f(): pass
def g(): f()
for _ in range(40): g()
print(os.environ.get("SPEED_BUMP_TARGETS"), "subprocess" in sys.modules and "args" in sys.argv)
if len(sys.argv) == 1:
    if not os.fork():
        g()
        sys.exit(0)
    os.wait()
    sys.stdout.flush()
    subprocess.run([sys.executable, *sys.orig_argv[1:], "child"], check=True)
    try: # sbinject is no child of the program's
        os.wait()
    except ChildProcessError:
        print("alone")
EOF
printf '__main__:f\n' >"$T/targets"

hook() { # ENV... -- the script in the venv, under the environment alone; $flags of the interpreter
	rc=0
	# shellcheck disable=SC2086 # words
	timeout 50 env "$@" "$T/venv/bin/python" ${flags:-} "$T/bench.py" >"$T/sb.out" 2>"$T/sb.err" || rc=$?
}

# A process that has another user's rights runs nothing that its environment names.
gained() { # PYTHON
	if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then return; fi
	for ids in '--ruid=65534' '--rgid=65534 --clear-groups'; do
		# shellcheck disable=SC2086 # words
		SPEED_BUMP_TARGETS="$T/targets" SBINJECT="$T/planted" setpriv $ids "$1" -c 'pass' \
			2>"$T/sb.err" || fail "$ids: status $?"
		told 'nothing is slowed: this process runs with other user or group ids'
		! grep 'it was run' "$T/sb.err" || fail "$ids: SBINJECT was run"
	done
}

each() {
	rm -rf "$T/venv"
	"$1" -m venv --without-pip "$T/venv" || fail "$1: no venv"
	PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 "$1" -m pip -q \
		--python "$T/venv/bin/python" install "$2" >"$T/sb.err" 2>&1 || fail "$1: pip install"
	export SBINJECT=$SB
	rc=0
	timeout 120 "$T/venv/bin/python" "$SRC/test/python/package.py" >"$T/sb.out" 2>"$T/sb.err" || rc=$?
	[ "$(cat "$T/sb.out")" = ok ] && [ $rc -eq 0 ] && [ ! -s "$T/sb.err" ] ||
		fail "$1: package.py: status $rc: $(cat "$T/sb.out")"

	hook SPEED_BUMP_TARGETS="$T/targets" SPEED_BUMP_DELAY_NS=2000
	ended 0
	same 'its output' "$(tr '\n' ' ' <"$T/sb.out")" 'None False None False alone '
	told 'SPEED_BUMP_TARGETS: 1 target .*delay 2us'
	grep -qE '^py:__main__:f +python +1 +[23] +81 ' "$T/sb.err" || fail "$1: not 81 hits"
	same 'summaries' "$(grep -c '^py:' "$T/sb.err")" 1

	# no site, no hook; nor where the environment is not to be believed, whatever program it names
	printf '#!/bin/sh\necho it was run >&2\n' >"$T/planted" && chmod 755 "$T/planted"
	for flags in -S -I -E; do
		hook SPEED_BUMP_TARGETS="$T/targets" SBINJECT="$T/planted"
		ended 0 "$flags"
		[ ! -s "$T/sb.err" ] || fail "$1 $flags: $(cat "$T/sb.err")"
	done
	flags=''
	gained "$T/venv/bin/python"
	flags=''

	hook SPEED_BUMP_TARGETS="$T/missing"
	ended 0
	told 'missing: No such file'
	grep -q '^alone' "$T/sb.out" || fail 'a missing file kept the program from running'
	hook SPEED_BUMP_TARGETS="$T/targets" SBINJECT="$T/missing"
	ended 0
	told 'nothing is slowed: SBINJECT=.*missing'
	hook SPEED_BUMP_TARGETS= SPEED_BUMP_DELAY_NS=x
	[ ! -s "$T/sb.err" ] || fail "$1: it speaks without SPEED_BUMP_TARGETS: $(cat "$T/sb.err")"

	# launched under sbinject nothing is done twice, wherever the targets come from
	SPEED_BUMP_TARGETS=$T/targets sb --json "$T/run.json" py:__main__:g 0 -- \
		"$T/venv/bin/python" "$T/bench.py"
	ended 0
	same 'hits' "$(j targets.0.hits)" 81
	same 'summaries' "$(grep -c '^py:' "$T/sb.err")" 1
	done=$((done + 1))
}

done=0 seen=' '
# The system's own first: its folders are laid out in another way. Then one of each other version.
for python in /usr/bin/python3 "$HOME"/.pyenv/versions/3.1[0-9]*/bin/python; do
	version=$(basename "$(readlink -f "$python")")
	[[ $seen != *" $version "* ]] || continue
	seen+="$version "
	"$python" -c 'import sys, venv, pip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
	"$SB" py:a:b 0 -- "$python" -c 0 2>&1 | grep -q 'without Python support' && skip 'built without Python'
	each "$python" "$SRC"
done
[ $done -gt 0 ] || skip 'no Python from 3.10 on with venv and pip'
each "$python" "$SRC/python"
