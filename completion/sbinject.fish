# SPDX-License-Identifier: MIT
# fish completion for sbinject(1). Options and verbs come from --help.

function __sbinject_verb
    set -l words (commandline -opc)
    if set -q words[2]; and contains -- $words[2] (__sbinject_verbs | string replace -r '\t.*' '')
        echo $words[2]
    end
end

# Of the verb that is typed: "--name", a tab, what it does.
function __sbinject_options
    sbinject (__sbinject_verb) --help 2>/dev/null |
        sed -n 's/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\)\(\[=[A-Z]*\]\)\{0,1\}\( [^ ][^ ]*\)\{0,1\}  *\([^ ].*\)/\2\t\5/p'
end

function __sbinject_verbs
    sbinject --help 2>/dev/null | sed -n 's/^  sbinject \([a-z]*\)  *\(.*\)/\1\t\2/p'
end

function __sbinject_first
    test (count (commandline -opc)) -eq 1
end

function __sbinject_at_option
    string match -q -- '-*' (commandline -ct)
end

# Keys of a target: "name=", a tab, what it does.
function __sbinject_keys
    sbinject --help 2>/dev/null | sed -n 's/^  \([a-z]*=\)[^ ]*  *\(.*\)/\1\t\2/p'
end

# What the option before the cursor takes, as --help has it: FILE, PID, a|b|c.
function __sbinject_arg
    set -l words (commandline -opc)
    set -l option (string replace -r '^-p$' -- --pid $words[-1])
    string match -q -- '--?*' $option; or return
    sbinject (__sbinject_verb) --help 2>/dev/null |
        sed -n "s/^  *\\(-[a-z], \\)\\{0,1\\}$option \\([^ ][^ ]*\\)  *.*/\\2/p"
end

function __sbinject_takes
    __sbinject_arg | string match -qr -- $argv[1]
end

# Of the process behind -p, what begins as the word does. py: targets would change it.
function __sbinject_symbols
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l i (contains -i -- -p $words; or contains -i -- --pid $words)
    set -q i[1]; and string match -qr '^[^*?[]*:' -- $word; or return
    string match -qr '^py:|:@' -- $word; and return
    set -l module (string replace -r ':.*' ':' -- $word)
    timeout 3 sbinject list -p (string replace -r ',.*' '' -- $words[(math $i[1] + 1)]) "$word*" 2>/dev/null |
        awk -v module=$module 'NR > 1 && $3 ~ /^[A-Za-z_][A-Za-z0-9_.]*$/ && !seen[$3]++ { print module $3 }'
end

# The command that it starts: everything after --.
function __sbinject_command
    contains -- -- (commandline -opc)
end

function __sbinject_subcommand
    set -l words (commandline -opc)
    set -l i (contains -i -- -- $words)
    set -e words[1..$i]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c sbinject -n __sbinject_command -x -a '(__sbinject_subcommand)'
complete -c sbinject -n 'not __sbinject_command; and __sbinject_first' -f -a '(__sbinject_verbs)'
complete -c sbinject -n 'not __sbinject_command; and __sbinject_at_option' -f -a '(__sbinject_options)'
complete -c sbinject -n 'not __sbinject_command; and string match -q "*:*" -- (commandline -ct)' -f -a '(__sbinject_symbols)'
complete -c sbinject -n 'not __sbinject_command; and test (count (commandline -opc)) -gt 1; and begin; test -z (__sbinject_verb); or test (__sbinject_verb) = trace; end; and not __sbinject_takes .' -f -a '(__sbinject_keys)'
complete -c sbinject -n '__sbinject_takes "^PID"' -x -a '(__fish_complete_pids)'
complete -c sbinject -n '__sbinject_takes FILE' -r -F
complete -c sbinject -n '__sbinject_takes "^[a-z0-9]+([|][a-z0-9]+)+\$"' -x -a '(__sbinject_arg | string split "|")'
