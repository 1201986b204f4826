# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Boots the distribution's kernels in an emulator, with a program of the test as their only one.
# Sourced after lib.sh by the cases that need a kernel of their own; skips where something is missing.

kernels=${SBINJECT_EMULATOR:-$HOME/.cache/sbinject/emulator}
need qemu-system-x86_64 busybox ldd
file -L "$(command -v busybox)" 2>/dev/null | grep -q 'statically' || ! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
	skip 'busybox is not static (busybox-static)'
mapfile -t releases < <(for ready in "$kernels"/*/ready; do [ -e "$ready" ] && basename "${ready%/ready}"; done)
[ ${#releases[@]} -gt 0 ] || skip "no kernels in $kernels (make deps-emulator brings them)"
! ldd "$SB" | grep -q libasan || skip "a sanitized build wants more memory than the guest has"
root=$T/root

take() { # PROGRAM...: with its libraries; its symbols without its debug information, which the guest unpacks
	local p lib

	for p; do
		strip -g -o "$root/bin/$(basename "$p")" "$p"
		for lib in $(ldd "$p" | grep -o '/[^ ]*'); do
			mkdir -p "$root$(dirname "$lib")"
			cp -Ln "$lib" "$root$lib"
		done
	done
}

# guest SCRIPT PROGRAM...: the guest's files; SCRIPT is all that runs in it
guest() {
	mkdir -p "$root"/{bin,proc,sys,tmp,dev,lib64,lib/x86_64-linux-gnu}
	cp -L "$(command -v busybox)" "$root/bin/busybox"
	ln -s busybox "$root/bin/sh"
	cp "$1" "$root/init"
	chmod +x "$root/init"
	take "${@:2}"
	[ -e "$root/lib/x86_64-linux-gnu/libc.so.6" ] || skip 'the C library is not where the guest expects it'
}

# module RELEASE [FOLDER NAME]: built for that kernel, without a warning, into the guest; once for all
# cases. Without a folder, that of the kernel module.
module() {
	local from=${2:-$SRC/inject/kmod} name=${3:-speed_bump} built=0
	local dir=$BUILD/test/kmod-$1${3:+-$3}

	mkdir -p "$dir"
	exec 8>"$dir/.lock"
	flock 8
	cp -u "$from"/Kbuild "$from"/*.[ch] "$dir/"
	make -C "$kernels/$1/usr/src/linux-headers-$1" M="$dir" \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$T/build.log" 2>&1 || built=$?
	cp "$dir/$name.ko" "$root/" || built=1
	if [ $built -ne 0 ] || grep -i 'warning:' "$T/build.log"; then
		rm -rf "$dir" # the next one is to see them, too
		fail "$1: the module does not build without a warning: $(tail -n 20 "$T/build.log")"
	fi
	exec 8>&-
}

# boot RELEASE SECONDS [WORD...]: to its end, which must come; the words are for the kernel
boot() {
	local words="${*:3}"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$T/initramfs"
	timeout "$2" qemu-system-x86_64 -M pc -accel tcg,thread=single -cpu max -m 768 -smp 2 -nographic -no-reboot -nodefaults \
		-serial stdio -kernel "$kernels/$1/boot/vmlinuz-$1" -initrd "$T/initramfs" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check $words" </dev/null >"$T/console" 2>&1
	tr -d '\r' <"$T/console" >"$T/console.txt"
	! grep '^FAIL' "$T/console.txt" || fail "$1 $words: $(grep -c '^FAIL' "$T/console.txt") things are wrong"
	grep -q '^guest: done' "$T/console.txt" ||
		fail "$1 $words did not come to its end: $(tail -n 20 "$T/console.txt")"
}
