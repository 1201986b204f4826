#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With everything there `make deps` is quick, quiet and changes nothing; else it names the command.
# quick
# beside others
. "$SRC/test/lib.sh"

cd "$SRC" || exit 2
scripts/deps.sh build check >"$T/deps.out" 2>&1 || fail "$(cat "$T/deps.out")"
same 'what it says' "$(cat "$T/deps.out")" ''
# a machine with nothing but its package manager
mkdir "$T/bin"
for tool in sh sed sort tr grep id env; do ln -s "$(command -v $tool)" "$T/bin/$tool"; done
printf '#!/bin/sh\nexit 1\n' >"$T/bin/apt-get"
chmod 755 "$T/bin/apt-get"
rc=0
PATH=$T/bin scripts/deps.sh -n build check >"$T/deps.out" 2>"$T/deps.err" || rc=$?
same status "$rc" 1
for package in gcc pkg-config libelf-dev libdw-dev libcapstone-dev libjansson-dev libiberty-dev \
	libcmocka-dev; do
	grep -q "^apt-get install.* $package" "$T/deps.out" || fail "$package is not named"
done
rc=0 # what only tests drive is tried: nothing fails without it
PATH=$T/bin scripts/deps.sh -n tests emulator >"$T/deps.out" 2>"$T/deps.err" || rc=$?
same status "$rc" 1
for package in redis-server wrk musl-tools busybox-static qemu-system-x86; do
	grep -q "^apt-get install.* $package" "$T/deps.out" || fail "$package is not named"
done
PATH=$T/bin scripts/deps.sh -t check >"$T/deps.out" 2>"$T/deps.err" || fail '-t fails where a package is not to be had'
rm "$T/bin/apt-get"
cp /bin/true "$T/bin/dnf"
rc=0
PATH=$T/bin scripts/deps.sh -n build >"$T/deps.out" 2>"$T/deps.err" || rc=$?
same status "$rc" 1
grep -q '^dnf install.*elfutils-devel' "$T/deps.out" || fail 'no command for Fedora'
