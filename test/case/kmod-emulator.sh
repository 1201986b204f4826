#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The module in real kernels, booted in an emulator: its whole interface, by echo and cat and by
# sbctl. 6.1 and 6.12 have different interfaces for uprobes. scripts/emulator.sh brings them.
# limit: 600 s
. "$SRC/test/lib.sh"

kernels=${SBINJECT_EMULATOR:-$HOME/.cache/sbinject/emulator}
need qemu-system-x86_64 busybox ldd readelf
file -L "$(command -v busybox)" 2>/dev/null | grep -q 'statically' || ! ldd "$(command -v busybox)" >/dev/null 2>&1 ||
	skip 'busybox is not static (busybox-static)'
mapfile -t releases < <(ls -d "$kernels"/*/ready 2>/dev/null)
[ ${#releases[@]} -gt 0 ] || skip "no kernels in $kernels (make deps-emulator brings them)"

! ldd "$SB" | grep -q libasan || skip "a sanitized build wants more memory than the guest has"
root=$T/root
mkdir -p "$root"/{bin,proc,sys,tmp,dev,lib64,lib/x86_64-linux-gnu}
take() { # PROGRAM...: with its libraries
	local p lib

	for p; do
		cp -L "$p" "$root/bin/"
		for lib in $(ldd "$p" | grep -o '/[^ ]*'); do
			mkdir -p "$root$(dirname "$lib")"
			cp -Ln "$lib" "$root$lib"
		done
	done
}
cp -L "$(command -v busybox)" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
take "$V/calls" "$V/tree" "$CTL" "$SB"
cp "$SRC/test/emulator/guest.sh" "$root/init"
cp "$SRC/test/emulator/more.sh" "$root/"
chmod +x "$root/init"
[ -e "$root/lib/x86_64-linux-gnu/libc.so.6" ] || skip 'the C library is not where the guest expects it'
readelf -W --dyn-syms "$root/lib/x86_64-linux-gnu/libc.so.6" |
	awk '$4 == "FUNC" && $5 == "GLOBAL" && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' |
	sort -u | grep '^get\|^set' >"$root/functions"

for ready in "${releases[@]}"; do
	release=$(basename "$(dirname "$ready")")
	cp -r "$SRC/inject/kmod" "$T/kmod-$release"
	make -C "$kernels/$release/usr/src/linux-headers-$release" M="$T/kmod-$release" \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$T/build.log" 2>&1 ||
		fail "$release: the module does not build: $(tail -n 20 "$T/build.log")"
	! grep -i 'warning:' "$T/build.log" || fail "$release: the module builds with warnings"
	cp "$T/kmod-$release/speed_bump.ko" "$root/"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$T/initramfs"
	timeout 240 qemu-system-x86_64 -M pc -cpu max -m 768 -smp 2 -nographic -no-reboot -nodefaults \
		-serial stdio -kernel "$kernels/$release/boot/vmlinuz-$release" -initrd "$T/initramfs" \
		-append 'console=ttyS0 quiet panic=-1 no_timer_check' </dev/null >"$T/console" 2>&1
	tr -d '\r' <"$T/console" >"$T/console.txt"
	! grep '^FAIL' "$T/console.txt" || fail "$release: $(grep -c '^FAIL' "$T/console.txt") things are wrong"
	grep -q '^guest: done' "$T/console.txt" || fail "$release did not come to its end: $(tail -n 20 "$T/console.txt")"
done
