#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deps.sh [-n | -t] GROUP...	groups: build uprobe check tests bench lint emulator
#
# Installs what is missing of the groups when run as root on Debian, Ubuntu or Fedora;
# otherwise, or with -n, prints the command and exits 1. With -t it tries: what cannot be installed
# is named, and the status is 0. Without anything missing it is quiet, quick and touches no network.
#
# The packages of redis, nginx and PostgreSQL bring services. Debian's start them when they are installed and at
# each boot: here they are kept from it, so that nothing listens that did not before. A service of an
# installed package is left as it is.
set -u

dry='' try=''
case ${1-} in
-n) dry=1 && shift ;;
-t) try=1 && shift ;;
esac
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

group_tests() { # programs that cases drive, and skip where they are not
	need c++ g++ gcc-c++ have c++
	need musl-gcc musl-tools musl-gcc have musl-gcc
	need redis-server redis-server redis have redis-server
	need redis-benchmark redis-tools redis have redis-benchmark
	need nginx nginx nginx has_nginx
	need wrk wrk wrk have wrk
	need gdb gdb gdb have gdb
	need jq jq jq have jq
	need strace strace strace have strace
	need python3 python3 python3 have python3
	need ensurepip python3-venv python3 python_has ensurepip
	need "Python's tests" "$(python_tests)" python3-test python_has test.test_generators
	need xz xz-utils xz have xz
	need script bsdutils util-linux have script
	need setpriv util-linux util-linux have setpriv
	need zsh zsh zsh have zsh
	need fish fish fish have fish
	need pgrep procps procps-ng have pgrep
	need curl curl curl have curl
	need go golang-go golang have go
	need valgrind valgrind valgrind have valgrind
	need OpenCL "pocl-opencl-icd ocl-icd-libopencl1" "pocl ocl-icd" has_opencl
	need prometheus prometheus golang-github-prometheus have prometheus
	need browser chromium chromium has_browser # that looks at the pages of reports
}

has_browser() { have chromium || have chromium-browser || have google-chrome; }

has_opencl() { # a runtime with a device, and the loader
	for icd in /etc/OpenCL/vendors/*.icd; do
		for loader in /usr/lib/*/libOpenCL.so.1 /usr/lib*/libOpenCL.so.1; do
			[ -e "$icd" ] && [ -e "$loader" ] && return
		done
	done
	return 1
}
has_nginx() { have nginx || [ -x /usr/sbin/nginx ]; }
python_has() { have python3 && python3 -c "import $1" 2>/dev/null; }
python_tests() { # Debian's package of them has the version in its name
	have python3 && python3 -c 'import sys
print("libpython3.%d-testsuite" % sys.version_info[1])' || echo libpython3-testsuite
}

has_postgres() {
	have pgbench || return
	for initdb in /usr/lib/postgresql/*/bin/initdb /usr/bin/initdb; do
		[ -x "$initdb" ] && return
	done
	return 1
}

group_bench() { # the peers that `make bench` measures beside sbinject, and servers
	need clang clang clang have clang
	need libbpf libbpf-dev libbpf-devel pkg libbpf
	need gdb gdb gdb have gdb
	need strace strace strace have strace
	need redis-server redis-server redis have redis-server
	need redis-benchmark redis-tools redis have redis-benchmark
	need nginx nginx nginx has_nginx
	need wrk wrk wrk have wrk
	need postgres postgresql "postgresql-server postgresql-contrib" has_postgres
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
	build | uprobe | check | tests | bench | lint | emulator) "group_$group" ;;
	*) echo "deps: no group '$group' (build uprobe check tests bench lint emulator)" >&2; exit 2 ;;
	esac
done
[ -z "$missing" ] && exit 0

status=1
[ -z "$try" ] || status=0
words() { echo "$@" | tr ' ' '\n' | grep . | sort -u | tr '\n' ' ' | sed 's, $,,'; }
if have apt-get; then
	packages=$(words "$missing_deb")
	install='apt-get install -y --no-install-recommends'
	refresh='apt-get update'
elif have dnf; then
	packages=$(words "$missing_rpm")
	install='dnf install -y'
	refresh=true
else
	echo "deps: missing:$missing" >&2
	echo "deps: install them with this system's package manager (Debian's names:$missing_deb)" >&2
	exit $status
fi

if [ -n "$dry" ] || [ "$(id -u)" -ne 0 ]; then
	echo "deps: missing:$missing" >&2
	echo "deps: run as root:" >&2
	echo "$install $packages"
	exit $status
fi

# Services of the packages that are about to come. systemd starts no masked unit. In a container
# without an init Debian's packages start nothing; another init has started them when they are
# installed, so they are stopped.
systemd() { [ -d /run/systemd/system ] && systemctl "$@" >/dev/null 2>&1; }
hold_services() {
	units=''
	for package in $packages; do
		case $package in
		redis | redis-server) units="$units redis-server.service" ;;
		nginx) units="$units nginx.service" ;;
		postgresql) units="$units postgresql.service" ;;
		esac
	done
	[ -z "$units" ] && return
	echo "deps:$units: will be installed, and stay off"
	# shellcheck disable=SC2086 # units are words
	systemd mask $units
}
release_services() {
	[ -z "$units" ] && return
	# shellcheck disable=SC2086 # units are words
	systemd unmask $units
	for unit in $units; do
		name=${unit%.service}
		systemd disable "$unit"
		[ -d /run/systemd/system ] || [ ! -x "/etc/init.d/$name" ] ||
			"/etc/init.d/$name" stop >/dev/null 2>&1
		! have update-rc.d || update-rc.d "$name" disable >/dev/null 2>&1
	done
}

bring() { # PACKAGE...
	$install "$@" || { [ -z "$refreshed" ] && refreshed=1 && $refresh && $install "$@"; }
}

echo "deps: missing:$missing"
echo "deps: $install $packages"
export DEBIAN_FRONTEND=noninteractive
refreshed=''
hold_services
trap release_services EXIT
trap 'exit 130' INT TERM
# shellcheck disable=SC2086 # the packages are words
bring $packages && exit 0
if [ -n "$try" ]; then # one that this system does not have stops no other
	for package in $packages; do
		bring "$package" || echo "deps: there is no $package: what needs it is skipped" >&2
	done
	exit 0
fi
echo "deps: could not install; run this yourself: $install $packages" >&2
exit 1
