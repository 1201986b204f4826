#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace --kernel: each ioctl() of the process tree on a device of NVIDIA's name is counted, timed and named, as the
# program's own books have it; alone, beside hooks, and in all formats of a trace. Others are not, and sbinject names what
# the kernel lacks.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
need_root
need_uprobe
need python3
export XDG_CONFIG_HOME="$T/none"
mkdir "$T/dev"
for name in nvidiactl nvidia-uvm nvidium; do
	mknod "$T/dev/$name" c 1 3 || skip 'no device can be made'
done
: <>"$T/dev/nvidiactl" || skip 'devices cannot be opened here'

cat >"$T/ioctls.py" <<'END'
import collections, json, sys
own, seen = collections.Counter(), collections.Counter()
for line in open(sys.argv[2]):
    word = line.split()
    if word[0] == "ioctl":
        own[" ".join(word[2:])] += int(word[1])
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X" or e["args"]["module"] != "ioctl":
        continue
    a = e["args"]
    assert e["type"] == "kernel" and a["result"] == -25 and e["dur_us"] > 0, e
    assert a["device"] == ("nvidia-uvm" if e["name"].startswith("UVM") else "nvidiactl"), e
    assert int(a["cmd"], 16), e
    name = {"0x20801303": "NV2080_CTRL_CMD_FB_GET_INFO_V2", "0xc86f": "HOPPER_CHANNEL_GPFIFO_A"}.get(a["detail"])
    assert a["detail_name"] == name, e
    seen["%s %s %s" % (e["name"], a["detail"] or "-", "-" if a["status"] is None else a["status"])] += 1
assert seen == own, (seen - own, own - seen)
print(sum(seen.values()))
END

# check WHO: the trace in $T/t.jsonl and the figures against what the program says.
check() {
	ended 0
	said "$1" '^self-check ok$' || fail "the program: $(cat "$T/$1.out")"
	same 'no call lost' "$(j trace.lost)" 0
	n=$(sed -n 's/^ioctls //p' "$T/$1.out")
	same ioctls "$(j cuda.ioctls)" "$n"
	more 'their time' "$(j cuda.ioctl_ns)" "$((n * 20))"
	same 'in the trace' "$(python3 "$T/ioctls.py" "$T/t.jsonl" "$T/$1.out" 2>&1)" "$n"
	grep -q "cuda: .*ioctls $n of " "$T/sb.err" || fail "the line: $(cat "$T/sb.err")"
}

sb trace --kernel -o "$T/t.jsonl" --json "$T/run.json" -- "$V/ioctls" -n 30 "$T/dev"
check sb
same 'no other figure' "$(j cuda.api_calls 2>/dev/null)" ''
cp "$T/sb.out" "$T/own.out"
for to in a.pftrace b.json; do
	"$SB" report "$T/t.jsonl" -o "$T/$to" >/dev/null || fail "conversion to $to"
	"$SB" report "$T/$to" -o "$T/again.jsonl" >/dev/null || fail "conversion of $to"
	same "in $to" "$(python3 "$T/ioctls.py" "$T/again.jsonl" "$T/own.out" 2>&1)" "$n"
done
"$SB" report "$T/t.jsonl" >"$T/report.out"
grep -qE ' 240 .* NV_ESC_RM_ALLOC +ioctl$' "$T/report.out" || fail "the report: $(cat "$T/report.out")"

# What else the set of --kernel has is hooked where this kernel has it, and named once where not; it is no error.
n=0
while [ "$(j targets.$n.spec)" != 'offcpu:*' ]; do n=$((n + 1)); done
same 'the set' "$(j targets.$n.preset)" nvidia.kernel
more 'times without a processor' "$(j targets.$n.hits)" 0
grep -q 'left out' "$T/sb.err" || fail "nothing is named as absent: $(cat "$T/sb.err")"
! grep -q 'pending' "$T/sb.err" || fail "as if a library could bring it: $(cat "$T/sb.err")"
[ "$(grep -c 'kernel:os_alloc_mem' "$T/sb.err")" -le 1 ] || fail "named twice: $(cat "$T/sb.err")"

# A running process, beside a hook; the ioctls are within the calls of the program.
start ioctls "$V/ioctls" -n 30 -g "$T/gate" "$T/dev"
snapshot "$pid"
sb_start trace --kernel libc.so.6:ioctl -p "$pid" -o "$T/t.jsonl" --json "$T/run.json" --status-fd 9 9>"$T/told"
wait_for 20 grep -q '^attached' "$T/told" || fail "no attach to $pid"
touch "$T/gate"
sb_wait
check ioctls
same 'calls of ioctl' "$(j targets.0.hits)" $((30 * 4 * 14))
same 'what it is' "$(j targets.1.spec)" 'ioctl:nvidia*'
"$SB" report "$T/t.jsonl" --json "$T/run.json" >/dev/null || fail 'report'

# From the first call of a function on, which only the hooks see.
sb trace 'ioctl:nvidia*' --start-on libc.so.6:ioctl --json "$T/run.json" -- "$V/ioctls" -n 30 "$T/dev"
ended 0
more 'from a call on' "$(j targets.1.hits)" 500

# Another name, and one that is the whole name.
sb trace 'ioctl:/dev/nvidium' 'ioctl:nvidia-u*' --json "$T/run.json" -- "$V/ioctls" -n 5 "$T/dev"
ended 0
same 'of nvidium' "$(j targets.0.hits)" 20
same 'of nvidia-uvm' "$(j targets.1.hits)" 40
sb trace 'ioctl:nvidi' --json "$T/run.json" -- "$V/ioctls" -n 5 "$T/dev"
same 'of no device' "$(j targets.0.hits)" 0

# A figure that was not asked for is unknown; a filter leaves records out and no figure.
sb trace cuda:launch --json "$T/run.json" -- "$V/cuda" -n 1 "$V/libcuda.so.1"
ended 0
same 'not asked for' "$(j cuda.ioctls_reason)" 'they were not asked for (--kernel)'
sb trace 'ioctl:nvidia*' for=10s --json "$T/run.json" -- "$V/ioctls" -n 5 "$T/dev"
ended 0
same 'in a window' "$(j cuda.ioctls_reason)" 'for= limits it'
sb trace 'ioctl:nvidia*' --min 1s -o "$T/t.jsonl" --json "$T/run.json" -- "$V/ioctls" -n 5 "$T/dev"
ended 0
same 'left out' "$(j trace.filtered) $(j cuda.ioctls)" '220 220'

refuses 125 'names no device' trace 'ioctl:' -- /bin/true
refuses 125 'names no device' trace 'ioctl:nv*dia' -- /bin/true
refuses 125 'names no device' trace 'ioctl:a-name-that-is-long' -- /bin/true
refuses 2 'never delayed' 'ioctl:nvidia*' 5us -p "$$"
refuses 125 'is not for ioctl' trace 'ioctl:nvidia*' arg=x:1 -- /bin/true

# sbinject names what is missing, and changes nothing.
if unshare -m true 2>/dev/null; then
	rc=0
	# shellcheck disable=SC2016 # it expands inside
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh "$SB" trace --kernel -- /bin/true \
		>"$T/sb.out" 2>"$T/sb.err" </dev/null || rc=$?
	[ "$rc" -ne 0 ] || fail 'traced without types'
	told 'BTF'
fi
