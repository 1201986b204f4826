#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A target that crashes while it is hooked writes a core about as large as without hooks: what is
# mapped and never touched, the most of the control page, neither fills the file nor memory.
. "$SRC/test/lib.sh"

grep -q '^[^|/]' /proc/sys/kernel/core_pattern || skip 'core dumps do not go to the working directory'

# size NAME [ARGS...]: MiB of the core of a victim, hooked with ARGS
size() {
	local name=$1 core
	shift
	mkdir "$T/$name" && cd "$T/$name" || exit 2
	ulimit -S -c "$(ulimit -H -c)" || skip 'no core dumps'
	start "$name" "$V/calls"
	cd "$T" || exit 2
	[ $# -eq 0 ] || attach "$pid" "$@"
	kill -ABRT "$pid"
	wait "$pid" 2>/dev/null
	[ $# -eq 0 ] || sb_wait
	core=$(find "$T/$name" -type f | head -n 1)
	[ -n "$core" ] || skip 'no core was written'
	mib=$(($(stat -c %s "$core") >> 20))
	rm "$core"
}
size alone
alone=$mib
size hooked :victim_work 1us
more 'hits' "$(j targets.0.hits)" 1
less 'MiB of core more than without' $((mib - alone)) 16
