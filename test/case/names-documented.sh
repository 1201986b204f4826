#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each thing that a user can name is in the manual: keys, options of each verb, verbs, and the names of
# errors that sbctl prints.
# beside others
# quick
. "$SRC/test/lib.sh"

# In mdoc a hyphen is an argument of .Fl: --json is ".Fl -json".
has() { grep -qE -- "$2" "$SRC/man/$1" || fail "$1 does not name $3"; }
keys=$("$SB" --help | sed -n 's/^  \([a-z]*\)=.*/\1/p')
[ "$(echo "$keys" | wc -w)" -ge 7 ] || fail "keys: $keys"
for key in $keys; do
	has sbinject-targets.5 "^(KEY| {8}\|).*\"$key\"" "the key $key"
	has sbinject-targets.5 "^\.It Cm $key Ns = Ns" "what the key $key does"
	has sbinject.1 "^\.Cm $key( [,.])?\$" "the key $key"
done
verbs=$("$SB" --help | sed -n 's/^  sbinject \([a-z]*\) .*/\1/p')
[ "$(echo "$verbs" | wc -w)" -ge 5 ] || fail "verbs: $verbs"
for verb in '' $verbs; do
	page=sbinject.1
	[ "$verb" = sweep ] && page=sbinject-sweep.1
	[ "$verb" = report ] && page=sbinject-report.1
	[ "$verb" = explain ] && page=sbinject-explain.1
	[ "$verb" = find ] && page=sbinject-find.1
	# shellcheck disable=SC2086 # no verb, no word
	for option in $("$SB" $verb --help | sed -n 's/^  *\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
		grep -qE -- "Fl (. , )?-$option( |\$)" "$SRC/man/$page" "$SRC/man/sbinject.1" ||
			fail "$page does not name $verb --$option"
	done
done
errors=$(grep -oE '"E[A-Z]+"' "$SRC/src/base/err.c" | tr -d '"' | sort -u)
[ "$(echo "$errors" | wc -w)" -ge 8 ] || fail "errors: $errors"
for error in $errors; do
	has sbctl.1 "E[rv] $error|Er $error|$error" "the error $error"
done
