#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deps.sh [-n] GROUP...	groups: build uprobe check bench lint emulator
#
# Installs what is missing of the groups when run as root on Debian, Ubuntu or Fedora;
# otherwise, or with -n, prints the command and exits 1. Without anything missing it is quiet,
# quick and touches no network.
set -u

dry=''
[ "${1-}" = -n ] && dry=1 && shift
[ $# -gt 0 ] || set -- build

have() { command -v "$1" >/dev/null 2>&1; }
pkg() { have pkg-config && pkg-config --exists "$1"; }
links() { have cc && echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - "$@" 2>/dev/null; }

# Of 3.10 or later, for the agent that Python targets need.
has_python_h() { [ -n "$("${0%/*}/find-python.sh")" ]; }

missing_deb='' missing_rpm='' missing=''
# need NAME DEBIAN_PACKAGE FEDORA_PACKAGE TEST...
need() {
	name=$1 deb=$2 rpm=$3
	shift 3
	"$@" && return
	missing="$missing $name"
	missing_deb="$missing_deb $deb"
	missing_rpm="$missing_rpm $rpm"
}

group_build() {
	need cc gcc gcc have cc
	need libc libc6-dev glibc-devel test -e /usr/include/stdio.h
	need ar binutils binutils have ar
	need make make make have make
	need pkg-config pkg-config pkgconf-pkg-config have pkg-config
	need libelf libelf-dev elfutils-libelf-devel pkg libelf
	need libdw libdw-dev elfutils-devel pkg libdw
	need capstone libcapstone-dev capstone-devel pkg capstone
	need jansson libjansson-dev jansson-devel pkg jansson
	need libcurl libcurl4-openssl-dev libcurl-devel pkg libcurl
	need libmicrohttpd libmicrohttpd-dev libmicrohttpd-devel pkg libmicrohttpd
	need libiberty libiberty-dev binutils-devel links -liberty
	need Python.h python3-dev python3-devel has_python_h
}

group_uprobe() { # what the uprobe backend is built with
	need clang clang clang have clang
	need libbpf libbpf-dev libbpf-devel pkg libbpf
}

group_check() {
	need cmocka libcmocka-dev libcmocka-devel pkg cmocka
}

group_bench() { # the peers that `make bench` measures beside sbinject
	need clang clang clang have clang
	need libbpf libbpf-dev libbpf-devel pkg libbpf
	need gdb gdb gdb have gdb
	need strace strace strace have strace
}

group_emulator() { # what boots the kernel module; the kernels come by emulator.sh
	need qemu qemu-system-x86 qemu-system-x86-core have qemu-system-x86_64
	need busybox busybox-static busybox have busybox
	need readelf binutils binutils have readelf
}

group_lint() {
	need clang-format clang-format clang-tools-extra have clang-format
	need clang-tidy clang-tidy clang-tools-extra have clang-tidy
	need cppcheck cppcheck cppcheck have cppcheck
	need mandoc mandoc mandoc have mandoc
	need shellcheck shellcheck ShellCheck have shellcheck
}

for group; do
	case $group in
	build | uprobe | check | bench | lint | emulator) "group_$group" ;;
	*) echo "deps: no group '$group' (build uprobe check bench lint emulator)" >&2; exit 2 ;;
	esac
done
[ -z "$missing" ] && exit 0

words() { echo "$@" | tr ' ' '\n' | grep . | sort -u | tr '\n' ' ' | sed 's, $,,'; }
if have apt-get; then
	install="apt-get install -y --no-install-recommends $(words "$missing_deb")"
	refresh='apt-get update'
elif have dnf; then
	install="dnf install -y $(words "$missing_rpm")"
	refresh=true
else
	echo "deps: missing:$missing" >&2
	echo "deps: install them with this system's package manager (Debian's names:$missing_deb)" >&2
	exit 1
fi

if [ -n "$dry" ] || [ "$(id -u)" -ne 0 ]; then
	echo "deps: missing:$missing" >&2
	echo "deps: run as root:" >&2
	echo "$install"
	exit 1
fi
echo "deps: missing:$missing"
echo "deps: $install"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # the commands are words
$install || { $refresh && $install; } || {
	echo "deps: could not install; run this yourself: $install" >&2
	exit 1
}
