#!/bin/sh
# SPDX-License-Identifier: MIT
#
# emulator.sh [DIR]: fetches what the tests of the kernel module boot: two kernels of Debian 12 and
# the headers to build for them, unpacked (not installed) into DIR, each in a folder of its own.
# What is there already is left alone. Without DIR: $SBINJECT_EMULATOR, else
# ~/.cache/sbinject/emulator, where the tests look for it.
set -u
dir=${1:-${SBINJECT_EMULATOR:-$HOME/.cache/sbinject/emulator}}

command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
	echo "emulator: the kernels are fetched as packages of Debian: apt-get and dpkg are needed" >&2
	exit 1
}

# The newest small kernel of a series: its release, as in linux-image-RELEASE-unsigned.
release() {
	apt-cache search --names-only "^linux-image-$1[.].*-cloud-amd64-unsigned\$" |
		sed -n 's/^linux-image-\(.*\)-unsigned .*/\1/p' | sort -V | tail -n 1
}

fetch() { # SERIES
	r=$(release "$1")
	if [ -z "$r" ] && [ "$(id -u)" -eq 0 ] && [ -z "$updated" ]; then # no lists on a bare machine
		apt-get update
		r=$(release "$1")
	fi
	[ -n "$r" ] || { echo "emulator: no kernel $1 in this system's package lists" >&2; return 1; }
	[ -e "$dir/$r/ready" ] && return
	common=${r%-cloud-amd64}
	kbuild=linux-kbuild-$common
	apt-cache show "$kbuild" >/dev/null 2>&1 || kbuild=linux-kbuild-$1
	rm -rf "${dir:?}/$r"
	mkdir -p "$dir/$r/deb" && cd "$dir/$r/deb" || return 1
	apt-get download "linux-image-$r-unsigned" "linux-headers-$r" "linux-headers-$common-common" \
		"$kbuild" || return 1
	for deb in *.deb; do dpkg -x "$deb" "$dir/$r" || return 1; done
	rm -rf "$dir/$r/deb" "$dir/$r/usr/lib/modules" "$dir/$r/lib/modules"
	# The headers name their other half by where it would be installed.
	sed -i "s|^include /usr/src|include $dir/$r/usr/src|" "$dir/$r/usr/src/linux-headers-$r/Makefile"
	: >"$dir/$r/ready"
	echo "emulator: $dir/$r"
}

mkdir -p "$dir" || exit 1
status=0 updated=''
for series in 6.1 6.12; do
	(fetch "$series") || status=1
	updated=1
done
exit $status
