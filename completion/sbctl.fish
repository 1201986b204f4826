# SPDX-License-Identifier: MIT
# fish completion for sbctl(1). Options and verbs come from --help.

function __sbctl_options
    sbctl --help 2>/dev/null |
        sed -n 's/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\)\([ =][^ ][^ ]*\)\{0,1\}  *\([^ ].*\)/\2\t\4/p'
end

function __sbctl_verbs
    sbctl --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*   *\([^ ].*\)/\1\t\2/p'
end

function __sbctl_targets
    sbctl list 2>/dev/null | sed 's/ delay_ns=.*//'
end

function __sbctl_sessions
    sbctl sessions 2>/dev/null | sed -n 's/^\([0-9]*\) /\1\t/p'
end

function __sbctl_after
    set -l words (commandline -opc)
    contains -- $words[-1] $argv
end

complete -c sbctl -f
complete -c sbctl -n "not __fish_seen_subcommand_from (__sbctl_verbs | string replace -r '\t.*' ''); and not __sbctl_after -s --session" -a '(__sbctl_verbs)'
complete -c sbctl -n "string match -q -- '-*' (commandline -ct)" -a '(__sbctl_options)'
complete -c sbctl -l help -d 'what there is'
complete -c sbctl -l version -d 'the version'
complete -c sbctl -n '__sbctl_after remove update' -a '(__sbctl_targets)'
complete -c sbctl -n '__sbctl_after -s --session' -a '(__sbctl_sessions)'
