#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Completion at a prompt: verbs and options are those of the programs, and a target is completed as a
# whole though bash takes its colon for the end of a word.
# beside others
# quick
. "$SRC/test/lib.sh"

sbctl() { # of a session that runs
	case $1 in
	list) printf '%s delay_ns=0 hits=1\n' :victim_work :victim_idle libc.so.6:getpid ;;
	*) command sbctl "$@" ;;
	esac
}
mkdir "$T/bin"
ln -s "$SB" "$T/bin/sbinject"
cat >"$T/bin/sbctl" <<'END'
#!/bin/sh
exec "$CTL" "$@"
END
chmod 755 "$T/bin/sbctl"
export CTL PATH=$T/bin:$PATH
. "$SRC/completion/sbinject.bash"
complete_as() { # FUNCTION WORD...: as readline has them; what is offered, in $offered
	COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMPREPLY=()
	"$1"
	offered=${COMPREPLY[*]}
}

line='sbctl remove '
complete_as _sbctl sbctl remove ''
same "$line" "$offered" ':victim_work :victim_idle libc.so.6:getpid'
line='sbctl remove :victim_i'
complete_as _sbctl sbctl remove : victim_i
same "$line" "$offered" victim_idle
line='sbctl --json update libc.so.6:g'
complete_as _sbctl sbctl --json update libc.so.6 : g
same "$line" "$offered" getpid
line='sbctl update libc'
complete_as _sbctl sbctl update libc
same "$line" "$offered" libc.so.6:getpid
line='sbctl update :victim_work '
complete_as _sbctl sbctl update : victim_work ''
same "$line" "$offered" ''

line='sbctl '
complete_as _sbctl sbctl ''
same verbs "$offered" "$("$CTL" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | tr '\n' ' ' | sed 's/ $//')"
line='sbctl --'
complete_as _sbctl sbctl --
for option in $("$CTL" --help | grep -o -- '--[a-z]*'); do
	[[ " $offered" == *" $option"* ]] || fail "sbctl $option is not offered"
done
keys=$("$SB" --help | sed -n 's/^  \([a-z]*=\).*/\1/p' | tr '\n' ' ')
[[ $keys == *resume=* ]] || fail "--help names no key resume=: $keys"
for key in $keys; do
	complete_as _sbinject sbinject :f "${key:0:2}"
	[[ " $offered " == *" $key "* ]] || fail "the key $key is not offered"
done
complete_as _sbinject sbinject trace :f ti
same 'keys of a trace' "$offered" time=
complete_as _sbinject sbinject list :f ti
same 'keys of other verbs' "$offered" ''
# What an option takes, as --help has it.
complete_as _sbinject sbinject --backend ''
same backends "$offered" 'auto inject uprobe kmod'
complete_as _sbinject sbinject sweep --lane t
same lanes "$offered" thread
complete_as _sbinject sbinject -p "$$"
[[ " $offered " == *" $$ "* ]] || fail "pids: $offered"
complete_as _sbinject sbinject --json "$SRC/READ"
same files "$offered" "$SRC/README.md"
complete_as _sbinject sbinject --delay ''
same 'a delay' "$offered" ''
complete_as _sbinject sbinject sw
same verbs "$offered" sweep
# Functions of the process that is named.
start calls "$V/calls" -p 2000
line="sbinject -p $pid :victim_w"
complete_as _sbinject sbinject -p "$pid" : victim_w
same "$line" "$offered" victim_work
line="sbinject list -p $pid libc.so.6:clock_nanos"
complete_as _sbinject sbinject list -p "$pid" libc.so.6 : clock_nanos
same "$line" "$offered" clock_nanosleep
line="sbinject -p $pid py:__main__:f"
complete_as _sbinject sbinject -p "$pid" py : __main__ : f
same "$line" "$offered" ''
finish calls "$pid"
line='sbinject --'
complete_as _sbinject sbinject --
for option in $("$SB" --help | sed -n 's/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p'); do
	[[ " $offered " == *" $option "* ]] || fail "sbinject $option is not offered"
done
