#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Completion in zsh and in fish: verbs, options and targets are those of the programs.
# beside others
# quick
. "$SRC/test/lib.sh"
need zsh fish

mkdir "$T/bin"
ln -s "$SB" "$T/bin/sbinject"
printf '#!/bin/sh\ncase $1 in\nlist) printf "%%s delay_ns=0 hits=1\\n" :victim_work libc.so.6:getpid ;;\n*) exec %s "$@" ;;\nesac\n' \
	"$CTL" >"$T/bin/sbctl"
chmod 755 "$T/bin/sbctl"
export PATH=$T/bin:$PATH HOME=$T XDG_CONFIG_HOME=$T
options=$("$SB" --help | sed -n 's/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p')
verbs=$("$CTL" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | sort | tr '\n' ' ')
[ "$(echo "$options" | wc -l)" -gt 20 ] || fail "options: $options"

# in_fish LINE: what is offered at its end, without what is said of it
in_fish() {
	fish --no-config -c "source $SRC/completion/sbinject.fish; source $SRC/completion/sbctl.fish
complete -C '$1'" | sed 's/\t.*//'
}
# in_zsh WORD...: the last one is at the cursor; completion's own functions only say what they get
in_zsh() {
	zsh -fc 'service=$1 words=("$@") CURRENT=$#
		_describe() {
			local list=$3 offer
			[[ $1 == -t ]] && list=$4
			for offer in "${(@P)list}"; do
				offer=${offer//\\:/$'"'\001'"'}
				print -r -- "${${offer%%:*}//$'"'\001'"'/:}"
			done
		}
		_values() { print -rl -- "${@:2}"; }
		_files() { print files; }
		_normal() { print -r -- "command: $words at $CURRENT"; }
		source '"$SRC"'/completion/_sbinject' - "$@"
}

for option in $options; do
	in_fish "sbinject $option" | grep -qx -- "$option" || fail "fish: $option is not offered"
done
for option in $options; do
	in_zsh sbinject -- | grep -qx -- "$option" || fail "zsh: $option is not offered"
done
in_zsh sbinject sweep --d | grep -qx -- --doses || fail 'zsh: options of a sweep'
in_fish 'sbinject sweep --d' | grep -qx -- --doses || fail 'fish: options of a sweep'
for shell in zsh fish; do
	case $shell in
	zsh) at() { in_zsh "$@"; } ;;
	fish) at() { in_fish "$*"; } ;;
	esac
	same "$shell: verbs of sbctl" "$(at sbctl '' | sort | tr '\n' ' ')" "$verbs"
	same "$shell: verbs of sbinject" "$(at sbinject '' | sort | tr '\n' ' ')" 'compare doctor explain find list recover report sweep trace '
	same "$shell: targets" "$(at sbctl update '' | sort | tr '\n' ' ')" ':victim_work libc.so.6:getpid '
	same "$shell: backends" "$(at sbinject --backend '' | sort | tr '\n' ' ')" 'auto inject kmod uprobe '
done
keys=$("$SB" --help | sed -n 's/^  \([a-z]*=\).*/\1/p' | sort | tr '\n' ' ')
[ "$(echo "$keys" | wc -w)" -gt 5 ] || fail "keys: $keys"
same 'zsh: keys' "$(in_zsh sbinject :f 5us '' | sort | tr '\n' ' ')" "$keys"
same 'fish: keys' "$(in_fish 'sbinject :f 5us ' | sort | tr '\n' ' ')" "$keys"
same 'zsh: keys of a trace' "$(in_zsh sbinject trace :f '' | sort | tr '\n' ' ')" "$keys"
same 'fish: keys of a trace' "$(in_fish 'sbinject trace :f ' | sort | tr '\n' ' ')" "$keys"
same 'zsh: lanes' "$(in_zsh sbinject sweep --lane '' | tr '\n' ' ')" 'auto process thread all '
same 'fish: lanes' "$(in_fish 'sbinject sweep --lane ' | sort | tr '\n' ' ')" 'all auto process thread '
start calls "$V/calls" -p 2000
for shell in zsh fish; do
	case $shell in
	zsh) at() { in_zsh "$@"; } ;;
	fish) at() { in_fish "$*"; } ;;
	esac
	same "$shell: functions of a process" "$(at sbinject -p "$pid" :victim_w)" :victim_work
	same "$shell: of a library in it" "$(at sbinject -p "$pid" libc.so.6:clock_nanos)" libc.so.6:clock_nanosleep
	same "$shell: of Python" "$(at sbinject -p "$pid" py:__main__:f)" ''
done
finish calls "$pid"
same 'zsh: the command' "$(in_zsh sbinject :f 5us -- env -)" 'command: env - at 2'
in_fish 'sbinject :f 5us -- cat /etc/passw' | grep -q '^/etc/passwd' || fail 'fish: the command'
