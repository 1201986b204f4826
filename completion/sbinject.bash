# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2207 # words of our own, without blanks
# bash completion for sbinject(1)

# _sbinject_symbols PID MODULE:PREFIX: targets of a process, a line each. Nothing in it is changed;
# py: targets are left out, for which a process would be.
_sbinject_symbols() {
	[[ $1 == [0-9]* && $2 == *:* && $2 != *[*?[]* && $2 != py:* && $2 != *:@* ]] || return
	timeout 3 sbinject list -p "$1" "$2*" 2>/dev/null |
		awk -v module="${2%%:*}:" 'NR > 1 && $3 ~ /^[A-Za-z_][A-Za-z0-9_.]*$/ && !seen[$3]++ { print module $3 }'
}

# _sbinject_rows VERB: its options as "--NAME ARG" and the keys as "NAME= ARG", a line each. Like the
# verbs they come from --help, which has the tables of the program.
_sbinject_rows() {
	sbinject $1 --help 2>/dev/null | sed -n '
		s/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\)\(\[=[A-Z]*\]\)\{0,1\}\( [^ ]*\)\{0,1\}  *[^ ].*/\2\4/p
		s/^  \([a-z]*=\)\([^ ]*\)  *[^ ].*/\1 \2/p'
}

_sbinject_verbs() {
	sbinject --help 2>/dev/null | sed -n 's/^  sbinject \([a-z]*\) .*/\1/p'
}

# _sbinject_value ARG: what can stand there, by the word that --help has for it. False: anything.
_sbinject_value() {
	case $1 in
	PID*) COMPREPLY=($(compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$cur")) ;;
	*FILE*)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
		;;
	SOURCE)
		COMPREPLY=($(compgen -W 'prom: file: cmd: stdout:' -- "$cur"))
		compopt -o nospace 2>/dev/null
		;;
	*[A-Z]* | '') return 1 ;;
	*) COMPREPLY=($(compgen -W "${1//|/ }" -- "$cur")) ;;
	esac
}

_sbinject() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' rows verbs i whole pid=''
	# COMP_WORDBREAKS holds '=' and ':': keys and targets arrive in pieces.
	COMPREPLY=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] || continue
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		else
			COMPREPLY=($(compgen -c -f -- "$cur"))
		fi
		return
	done
	verbs=$(_sbinject_verbs)
	[[ $COMP_CWORD -gt 1 && " ${verbs//$'\n'/ } " == *" ${COMP_WORDS[1]} "* ]] && verb=${COMP_WORDS[1]}
	rows=$(_sbinject_rows "$verb")
	[[ $prev == -p ]] && prev=--pid
	if [[ $prev == --?* ]] && i=$(sed -n "s/^$prev \\([^ ]\\)/\\1/p" <<<"$rows") && [ "$i" ]; then
		_sbinject_value "$i"
		return
	fi
	case $cur in
	-*) COMPREPLY=($(compgen -W "-p -- $(sed -n 's/^\(--[^ ]*\).*/\1/p' <<<"$rows")" -- "$cur")) ;;
	*)
		[ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W "$verbs" -- "$cur"))
		if [[ $verb == compare || $verb == report ]]; then
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$cur"))
			return
		fi
		# Bash takes a colon for the end of a word: what is offered is the rest.
		whole=${COMP_LINE:0:COMP_POINT}
		whole=${whole##*[[:space:]]}
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} != -p && ${COMP_WORDS[i]} != --pid ]] || pid=${COMP_WORDS[i + 1]}
		done
		if [[ $whole == *:* && $pid ]]; then
			COMPREPLY=($(_sbinject_symbols "${pid%%,*}" "$whole"))
			COMPREPLY=("${COMPREPLY[@]#"${whole%%:*}:"}")
			return
		fi
		[[ -z $verb || $verb == trace ]] && [ "$COMP_CWORD" -gt 1 ] && [ -n "$cur" ] && {
			COMPREPLY=($(compgen -W "$(sed -n 's/^\([a-z]*=\) .*/\1/p' <<<"$rows")" -- "$cur"))
			compopt -o nospace 2>/dev/null
		}
		;;
	esac
}

complete -F _sbinject sbinject

_sbctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i verb=''
	local verbs
	local line=${COMP_LINE:0:COMP_POINT} whole known
	COMPREPLY=()
	verbs=$(sbctl --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')

	# A target's pieces are put together again; what is offered is the rest of it.
	whole=${line##*[[:space:]]}
	known=${whole%"${whole##*[:=]}"}
	line=${line%"$whole"}
	line=${line%"${line##*[![:space:]]}"}

	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ " ${verbs//$'\n'/ } " == *" ${COMP_WORDS[i]} "* ]] && verb=${COMP_WORDS[i]}
	done
	case $prev in
	-s | --session)
		COMPREPLY=($(compgen -W "$(sbctl sessions 2>/dev/null | sed 's/ .*//')" -- "$cur"))
		return
		;;
	esac
	case ${line##*[[:space:]]} in
	remove | update)
		COMPREPLY=($(compgen -W "$(sbctl list 2>/dev/null | sed 's/ .*//')" -- "$whole"))
		COMPREPLY=("${COMPREPLY[@]#"$known"}")
		return
		;;
	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "-s $(sbctl --help 2>/dev/null | grep -o -- '--[a-z-]*=\{0,1\}' | sort -u)" -- "$cur")) ;;
	*) [ -z "$verb" ] && COMPREPLY=($(compgen -W "$verbs" -- "$cur")) ;;
	esac
}

complete -F _sbctl sbctl
