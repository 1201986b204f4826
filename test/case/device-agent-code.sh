#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the device agent must be so that it can be loaded anywhere and stay: no library needed, no
# versioned symbol, never unloaded; sbinject finds its function by the entry point in its header.
# quick
# beside others
. "$SRC/test/lib.sh"
need readelf nm

file=$BUILD/device/agent.so.stripped
[ -s "$file" ] || fail 'there is no device agent'
! readelf -d "$file" | grep -E 'NEEDED|INIT|FINI|SONAME|TEXTREL' || fail 'it needs or runs something'
readelf -d "$file" | grep -q NODELETE || fail 'it could be unloaded under the callbacks that CUPTI keeps'
! readelf -V "$file" | grep -q 'Name:' || fail "it asks for versions: $(readelf -V "$file")"
same 'what it exports' "$(nm -D --defined-only "$file" | awk '{ print $3 }')" sb_agent
same 'its entry point' "$((16#$(nm -D "$file" | awk '/ sb_agent$/ { print $1 }')))" \
	"$(($(readelf -h "$file" | awk '/Entry point/ { print $NF }')))"
# Of the C library alone, and nothing that is newer than glibc 2.17.
for s in $(nm -D --undefined-only "$file" | awk '{ print $2 }'); do
	case $s in
	__cxa_atexit | clock_gettime | dlerror | dlopen | dlsym | getpid | mmap | munmap | nanosleep) ;;
	prctl | pthread_create | pthread_detach | sched_yield | strnlen | syscall | mem*) ;;
	*) fail "it calls $s" ;;
	esac
done
