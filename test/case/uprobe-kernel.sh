#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A kernel without uprobes, or without a description of its types, as a mount namespace shows it: the
# backend is refused with the reason and the remedy, doctor says it, and inject is taken all the same.
. "$SRC/test/lib.sh"
need_root
need unshare mount
unshare -m true 2>/dev/null || skip 'no mount namespace'
need_uprobe

# without FOLDER ARGS...: sbinject where that folder is empty
without() {
	local folder=$1
	shift
	rc=0
	# shellcheck disable=SC2016 # it expands inside
	timeout 50 unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$folder" "$SB" "$@" \
		>sb.out 2>sb.err </dev/null || rc=$?
}

start calls "$V/calls"
snapshot "$pid"
for what in '/sys/bus/event_source/devices no.uprobes CONFIG_UPROBE_EVENTS' \
	'/sys/kernel/btf types.(BTF) CONFIG_DEBUG_INFO_BTF'; do
	read -r folder reason remedy <<<"$what"
	without "$folder" -p "$pid" --backend uprobe :victim_work 1us --for 1ms
	ended 4 "$folder"
	told "$reason"
	told "$remedy"
	without "$folder" doctor
	grep -A1 'uprobe .*no:' sb.out | grep -q "$remedy" || fail "doctor: $(cat sb.out)"
	without "$folder" -p "$pid" :victim_work 1us --for 50ms --json "$T/run.json"
	ended 0 "$folder"
	same backend "$(j backend)" inject
done
unchanged "$pid"
finish calls "$pid"
