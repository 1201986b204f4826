#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbctl on the module's files, in a folder that stands for /sys/kernel/speed_bump: what it writes is
# the interface's, byte for byte, and what it prints is what is there.
# quick
. "$SRC/test/lib.sh"

export SBINJECT_KMOD_DIR=$T/speed_bump
ctl() { "$CTL" --kmod "$@" >"$T/ctl.out" 2>"$T/ctl.err"; }
wrote() { # FILE TEXT ARGS...: one write of exactly that, no newline of its own
	local file=$1 text=$2
	shift 2
	: >"$SBINJECT_KMOD_DIR/$file"
	ctl "$@" || fail "sbctl $*: $(cat "$T/ctl.err")"
	same "what sbctl $* writes" "$(cat "$SBINJECT_KMOD_DIR/$file")" "$text"
}
says() { ctl "${@:2}" || fail "sbctl ${*:2}: $(cat "$T/ctl.err")"; same "sbctl ${*:2}" "$(cat "$T/ctl.out")" "$1"; }
no() { # ERROR STATUS ARGS...
	local error=$1 want=$2 status=0
	shift 2
	ctl "$@" || status=$?
	same "status of sbctl $*" "$status" "$want"
	grep -q "^sbctl: $error" "$T/ctl.err" || fail "sbctl $*: not $error: $(cat "$T/ctl.err")"
}

no '.*not loaded' 1 list
mkdir "$SBINJECT_KMOD_DIR"
(cd "$SBINJECT_KMOD_DIR" && touch targets targets_list && echo 0 >enabled && echo 1000000 >default_delay_ns &&
	printf 'enabled: 0\ntargets: 0\ntotal_hits: 0\ntotal_delay_ns: 0\n' >stats)

wrote targets '+/usr/lib/libcuda.so:cudaLaunchKernel 10000' add /usr/lib/libcuda.so:cudaLaunchKernel 10000
same says "$(cat "$T/ctl.out")" 'Added target: /usr/lib/libcuda.so:cudaLaunchKernel'
wrote targets '+/usr/bin/python3:PyGILState_Ensure' add /usr/bin/python3:PyGILState_Ensure
wrote targets '+/usr/bin/python3:PyObject_GetAttr 1000 pid=77' add /usr/bin/python3:PyObject_GetAttr 1us --pid=77
wrote targets '+/bin/x:f 0' add /bin/x:f 0
wrote targets '=/usr/bin/myapp:process_request 50000' update /usr/bin/myapp:process_request 50000
same says "$(cat "$T/ctl.out")" 'Updated target: /usr/bin/myapp:process_request delay=50000 ns'
wrote targets '-/usr/lib/libcuda.so:cudaLaunchKernel' remove /usr/lib/libcuda.so:cudaLaunchKernel
same says "$(cat "$T/ctl.out")" 'Removed target: /usr/lib/libcuda.so:cudaLaunchKernel'
wrote targets '-*' clear
same says "$(cat "$T/ctl.out")" 'All targets cleared'
wrote default_delay_ns 1000000 delay 1ms
same says "$(cat "$T/ctl.out")" 'Default delay set to 1000000 ns'
says 1000000 delay
wrote enabled 1 enable
same says "$(cat "$T/ctl.out")" 'Probes enabled'
wrote enabled 0 disable
same says "$(cat "$T/ctl.out")" 'Probes disabled'

list='/bin/a:f delay_ns=10000 hits=12
/bin/b:g delay_ns=0 hits=9000000000 pid=77'
echo "$list" >"$SBINJECT_KMOD_DIR/targets_list"
says "$list" list
printf 'enabled: 1\ntargets: 2\ntotal_hits: 9000000012\ntotal_delay_ns: 120000\n' >"$SBINJECT_KMOD_DIR/stats"
says "$(cat "$SBINJECT_KMOD_DIR/stats")" status
ctl --json list
same 'the pid in JSON' "$("$TOOL/jget" "$T/ctl.out" targets.1.pid)" 77

# Lists of 64 long names are longer than a page.
for ((i = 0; i < 64; i++)); do
	printf '/%0250d:%0100d delay_ns=10000000000 hits=123456789012 pid=4194303\n' $i $i
done >"$SBINJECT_KMOD_DIR/targets_list"
ctl list
same 'lines of a long list' "$(wc -l <"$T/ctl.out")" 64
cmp -s "$T/ctl.out" "$SBINJECT_KMOD_DIR/targets_list" || fail 'a long list is changed'

no EINVAL 1 add /bin/x:f 5 every=2
no EINVAL 1 add "/$(printf '%0600d' 0):f" 5
no ERANGE 1 add /bin/x:f 10000000001
no ERANGE 1 delay 11s
no EINVAL 1 update /bin/x:f soon
no EINVAL 1 stop # a module cannot be stopped like a session

# What the kernel answers has its name: a device that is always full stands for one such answer.
rm "$SBINJECT_KMOD_DIR/targets"
no ENOENT 1 add /bin/x:f 5
ln -s /dev/full "$SBINJECT_KMOD_DIR/targets"
no ENOSPC 1 add /bin/x:f 5
