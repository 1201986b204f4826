#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Targets in other worlds: user and pid namespaces, a chroot with a C library of its own, a file
# system that is read-only. And a /proc that is not ours: said, before anything is done.
# limit: 90 s
# quick
# beside others
. "$SRC/test/lib.sh"

need_root
need unshare setpriv
unshare -m true 2>/dev/null || skip 'unshare is not permitted'

# inner: the pid of `calls`, whatever stands in front of it
inner() {
	local c
	for c in $(tr ' ' '\n' <"/proc/$pid/task/$pid/children") "$pid"; do
		[ "$(cat "/proc/$c/comm")" = calls ] && echo "$c" && return
	done
}

# hook WHAT [TARGET]: attach, effect, detach, with and without following
hook() {
	local target how
	target=$(inner)
	[ -n "$target" ] || fail "$1: where is it?"
	snapshot "$target" -t
	for how in '' --no-follow; do
		# shellcheck disable=SC2086 # no mode, no word
		sb -p "$target" :victim_work 2us "${2:-libc.so.6:nanosleep}" 0 --for 150ms $how \
			--json "$T/run.json"
		ended 0 "$1 $how"
		more "hits, $1 $how" "$(j targets.0.hits)" 100
	done
	unchanged "$target" -t
	kill -TERM "$target"
	wait "$pid"
	said calls '^self-check ok$' || fail "$1: the victim is not content"
}

if unshare -Ur true 2>/dev/null; then
	start calls unshare -Ur "$V/calls" -t 2
	hook 'a user namespace'
fi
start calls unshare -pf --mount-proc "$V/calls" -t 2
hook 'a pid namespace'

mkdir "$T/room"
cat >"$T/readonly.sh" <<-END
	mount -t tmpfs none "$T/room" && cp "$V/calls" "$T/room" && mount -o remount,ro "$T/room" &&
		exec "$T/room/calls" -t 2
END
start calls unshare -m sh "$T/readonly.sh"
hook 'a read-only file system'

root=${TEST_CHROOT:-/tmp/chroot-trixie}
if [ -e "$root/lib/x86_64-linux-gnu/libc.so.6" ]; then
	cat >"$T/chroot.sh" <<-END
		mount --bind "$V" "$root/mnt" && exec chroot "$root" /mnt/calls -t 2
	END
	start calls unshare -m sh "$T/chroot.sh"
	! cmp -s "/proc/$pid/root/lib/x86_64-linux-gnu/libc.so.6" /lib/x86_64-linux-gnu/libc.so.6 ||
		echo 'the libc inside is the one outside'
	hook 'a chroot with another libc'
fi

# Our own /proc is that of another pid namespace: its numbers are not ours.
start calls "$V/calls"
snapshot "$pid"
rc=0
unshare -pf "$SB" -p "$pid" :victim_work 1us --for 100ms >"$T/sb.out" 2>"$T/sb.err" || rc=$?
[ "$rc" -ne 0 ] || fail 'it attaches by numbers of another pid namespace'
told 'namespace'
told 'mount -t proc'
unchanged "$pid"
finish calls "$pid"
