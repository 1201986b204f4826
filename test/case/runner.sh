#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test/run runs what its arguments name, and nothing else; a case ends what it started, and no other process.
# beside others
. "$SRC/test/lib.sh"

# A tree of its own, with three cases.
tree=$T/tree
mkdir -p "$tree/test/case" "$tree/build/test/tool"
cp "$SRC/test/run" "$SRC/test/lib.sh" "$tree/test/"
cp "$TOOL/guard" "$tree/build/test/tool/"
a_case() { # NAME: its body comes from standard input
	{
		printf '#!/usr/bin/env bash\n. "$SRC/test/lib.sh"\n'
		cat
	} >"$tree/test/case/$1.sh"
	chmod 755 "$tree/test/case/$1.sh"
}
run() { # STATUS ARGS...
	local want=$1 status=0
	shift
	TMPDIR=$T "$tree/test/run" "$@" >"$T/run.out" 2>&1 || status=$?
	[ $status -eq "$want" ] || fail "test/run $*: status $status: $(cat "$T/run.out")"
}
says() { grep -qE -- "$1" "$T/run.out" || fail "test/run does not say '$1': $(cat "$T/run.out")"; }
names() { sed -n 's/^\(ok\|FAIL\|skip\) *case\/\([^ ]*\).*/\2/p' "$T/run.out" | sort | tr '\n' ' '; }

for name in apple pear plum; do echo : | a_case $name; done
run 0
same 'all of them' "$(names)" 'apple pear plum '
run 0 pear
same 'one by its name' "$(names)" 'pear '
run 0 -n 2 apple plu
same 'two by parts of their names' "$(names)" 'apple plum '
run 0 -k pear 'pl[ue]m'
same 'a glob' "$(names)" 'pear plum '
same 'the last line' "$(tail -n 1 "$T/run.out")" '2 passed, 0 failed, 0 skipped'
run 2 cherry
says "no test's name holds: cherry"
run 2 pear -n 2 # an option behind a name
says '^usage: '

# What is skipped has its reason, and the line before the last says what would run it.
printf '#!/bin/sh\necho apt-get install -y a-package\n' >"$tree/deps.sh"
mkdir "$tree/scripts"
mv "$tree/deps.sh" "$tree/scripts/"
chmod 755 "$tree/scripts/deps.sh"
echo 'skip "a-program is not installed"' | a_case skips
run 0 skips apple
says '^skip case/skips .* a-program is not installed'
same 'what would run it' "$(tail -n 2 "$T/run.out" | head -n 1)" \
	'to run the skipped ones: as root: apt-get install -y a-package && make check'
same 'the last line' "$(tail -n 1 "$T/run.out")" '1 passed, 0 failed, 1 skipped'
echo 'skip "no kernels (make deps-emulator brings them)"' | a_case skips
printf '#!/bin/sh\n' >"$tree/scripts/deps.sh"
run 0 skips
says '^to run the skipped ones: make deps-emulator$'

# -q: what says that it is quick.
sed -i '2i# quick' "$tree/test/case/plum.sh"
run 0 -q
same 'the quick ones' "$(names)" 'plum '

# Two that compute little are there at once. What says nothing, or no more than "beside idle work", has neither of
# them beside it, and no live idle work.
rm "$tree"/test/case/*
single() { # NAME COMMENT
	a_case "$1" <<EOF
# $2
mkdir "$T/single" || fail 'two at once'
nap 0.3
! ls "$T"/at-* 2>/dev/null || fail 'not alone'
rmdir "$T/single"
EOF
}
beside() { # NAME COMMENT [OTHER]
	a_case "$1" <<EOF
# $2
touch "$T/at-$1" "$T/was-$1"
[ ! -e "$T/single" ] || fail 'beside one that is alone'
[ -z "${3:-}" ] || [ "\$(nproc)" -eq 1 ] || wait_for \${PATIENCE:-20} test -e "$T/was-${3:-}" || fail 'without ${3:-}'
nap 1
rm "$T/at-$1"
EOF
}
single plain 'alone'
single quiet 'beside idle work'
beside one 'beside idle work, two at a time' other
beside other 'beside idle work, two at a time' one
beside live 'beside others, as live idle work'
run 0
same 'all of them' "$(names)" 'live one other plain quiet '
rm "$T"/was-*
[ "$(nproc)" -eq 1 ] || PATIENCE=1 run 1 -j 1 # and one alone sees that it is

# The number of a process of another session, as if one of the case's own had had it before.
sleep 1000 &
stranger=$!
pids+=("$stranger")
rm "$tree"/test/case/*
a_case ends <<EOF
sleep 1000 &
pids+=("\$!" $stranger)
setsid sleep 1000 &
pids+=("\$!")
sh -c 'sleep 1000 & echo \$! >"\$1"' - "\$T/orphan"
pids+=("\$(cat "\$T/orphan")")
true &
wait "\$!"
pids+=("\$!")
EOF
# Signals that come before the programs are executed.
a_case interrupts <<EOF
sleep 1000 &
pids+=("\$!")
for ((i = 0; i < 1500; i++)); do
	true &
	kill -INT \$!
done
wait_for 10 eval '[ "\$(jobs -pr)" = "\${pids[0]}" ]' || fail "what the case needs was killed"
EOF
a_case leaves <<EOF
setsid sleep 1000 &
EOF
run 0 ends # guard fails one that leaves a process of its own
session_of "$stranger" || fail 'a process of another session was killed'
run 0 interrupts # by a child that the signal ends
run 1 leaves
says 'left running: [0-9]* \(sleep\)|status 98'
session_of "$stranger" || fail 'guard killed a process of another case'
