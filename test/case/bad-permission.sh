#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Another user's process: status 4, and the remedy.
# beside others
. "$SRC/test/lib.sh"

need_root
need setpriv
mkdir -m 777 "$T/open"
cp "$SB" "$T/open/"
start calls "$V/calls"
snapshot "$pid" -t
rc=0
setpriv --reuid=65534 --regid=65534 --clear-groups "$T/open/sbinject" -p "$pid" :victim_work 1us \
	--for 200ms >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 4
told 'root\|CAP_SYS_PTRACE'
unchanged "$pid" -t
# root without the capability
rc=0
setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$SB" -p "$pid" :victim_work 1us \
	--for 200ms >"$T/sb.out" 2>"$T/sb.err" || rc=$?
ended 4
told 'SYS_PTRACE'
unchanged "$pid" -t
finish calls "$pid"
