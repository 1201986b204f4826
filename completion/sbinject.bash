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

_sbinject() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' opts i whole pid=''
	# COMP_WORDBREAKS holds '=' and ':': keys and targets arrive in pieces.
	COMPREPLY=()

	case ${COMP_WORDS[1]} in
	list | recover | doctor | sweep | compare) verb=${COMP_WORDS[1]} ;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] || continue
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		else
			COMPREPLY=($(compgen -c -f -- "$cur"))
		fi
		return
	done

	case $prev in
	-p | --pid)
		COMPREPLY=($(compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$cur"))
		return
		;;
	--mechanism)
		COMPREPLY=($(compgen -W 'auto jump int3' -- "$cur"))
		return
		;;
	--backend)
		COMPREPLY=($(compgen -W 'auto inject uprobe kmod' -- "$cur"))
		return
		;;
	--lane)
		COMPREPLY=($(compgen -W 'process thread all' -- "$cur"))
		return
		;;
	--progress)
		COMPREPLY=($(compgen -W 'prom: file: cmd: stdout:' -- "$cur"))
		compopt -o nospace 2>/dev/null
		return
		;;
	--csv | --html | --plot | --targets | --json | --jsonl | --start-on | --metrics-file | --events)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	--match | --delay | --every | --start | --for | --max-slowdown | --tag | --interval | --status-fd | --metrics | --response | --doses | --time | --runs | --guard | --threshold | --seed)
		return
		;;
	esac

	opts='--pid --match --quiet --verbose --help'
	case $verb in
	'')
		opts="$opts --all --no-children --no-follow --targets --delay --every --start --start-on
			--for --mechanism --backend --max-slowdown --require-hits --hits-by-function --by-process --json --jsonl
			--tag --interval --version --from-env --daemon --status-fd --metrics
			--metrics-file --metrics-by-pid --events"
		;;
	list) opts="$opts --no-children --targets --mechanism --backend --json" ;;
	doctor) opts="$opts --json" ;;
	sweep)
		opts="$opts --no-children --targets --every --mechanism --backend --max-slowdown --json
			--tag --progress --response --doses --time --runs --guard --threshold --lane
			--self-check --seed --csv --html --plot --events"
		;;
	compare)
		opts=--help
		compopt -o filenames 2>/dev/null
		[[ $cur == -* ]] || COMPREPLY=($(compgen -f -- "$cur"))
		;;
	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "-p $opts --" -- "$cur")) ;;
	*)
		[ "$COMP_CWORD" -eq 1 ] && COMPREPLY=($(compgen -W 'list recover doctor sweep compare' -- "$cur"))
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
		[ -z "$verb" ] && [ "$COMP_CWORD" -gt 1 ] && [ -n "$cur" ] && {
			COMPREPLY=($(compgen -W 'every= start= for= pid= thread= resume= inline=' -- "$cur"))
			compopt -o nospace 2>/dev/null
		}
		;;
	esac
}

complete -F _sbinject sbinject

_sbctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i verb=''
	local verbs='add remove update clear delay enable disable list status watch stop sessions'
	local line=${COMP_LINE:0:COMP_POINT} whole known
	COMPREPLY=()

	# A target's pieces are put together again; what is offered is the rest of it.
	whole=${line##*[[:space:]]}
	known=${whole%"${whole##*[:=]}"}
	line=${line%"$whole"}
	line=${line%"${line##*[![:space:]]}"}

	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ " $verbs " == *" ${COMP_WORDS[i]} "* ]] && verb=${COMP_WORDS[i]}
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
	-*) COMPREPLY=($(compgen -W '-s --session --pid= --json --kmod --interval --hits-by-function --help --version' -- "$cur")) ;;
	*) [ -z "$verb" ] && COMPREPLY=($(compgen -W "$verbs" -- "$cur")) ;;
	esac
}

complete -F _sbctl sbctl
