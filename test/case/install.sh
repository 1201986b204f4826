#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# make install and uninstall: DESTDIR and PREFIX, and nothing left.
# quick
# beside others
. "$SRC/test/lib.sh"

need make
cd "$SRC" || exit 2
build=${BUILD#"$SRC"/}
case $build in # were it older than its sources it would be made anew, and alike
*-san) export SAN=1 ;;
esac
make -s install BUILD="$build" DESTDIR="$T/root" PREFIX=/opt/sb >"$T/log" 2>&1 || fail "$(cat "$T/log")"
[ -x "$T/root/opt/sb/bin/sbinject" ] || fail 'no binary'
"$T/root/opt/sb/bin/sbinject" --version >/dev/null || fail 'it does not run'
for page in man/*.[1-8]; do
	[ -e "$page" ] || continue
	[ -e "$T/root/opt/sb/share/man/man${page##*.}/${page##*/}" ] || fail "$page is not installed"
done
# Each shell looks for a file that is named for the command.
share=$T/root/opt/sb/share
for file in bash-completion/completions/sbinject bash-completion/completions/sbctl \
	zsh/site-functions/_sbinject fish/vendor_completions.d/sbinject.fish fish/vendor_completions.d/sbctl.fish; do
	[ -s "$share/$file" ] || fail "$file is not installed"
done
XDG_CONFIG_HOME=$T/none "$T/root/opt/sb/bin/sbinject" list -p $$ cuda:launch >"$T/list" 2>&1
grep -q '^cuda:cuLaunchKernel ' "$T/list" || fail "presets are not installed: $(cat "$T/list")"
(. "$share/bash-completion/completions/sbctl" && complete -p sbctl) >"$T/log" || fail 'bash does not complete sbctl'
make -s uninstall BUILD="$build" DESTDIR="$T/root" PREFIX=/opt/sb >"$T/log" 2>&1 || fail "$(cat "$T/log")"
same 'files left' "$(find "$T/root" -type f | wc -l)" 0
[ "$(make help | wc -l)" -ge 12 ] || fail 'make help lists too little'
