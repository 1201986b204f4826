#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A process of another user that has a root directory of its own chooses what lies there: its debug
# file says nothing of a library of root's that another target maps, too; no link in it leads out of
# it, and nothing but a regular file is opened there.
. "$SRC/test/lib.sh"
need_root
need setpriv chroot objcopy python3 cc

chmod 755 "$T" && mkdir -m 755 "$T/open" "$T/jail" "$T/jail/open"
cat >"$T/shared.c" <<'C'
__attribute__((noinline)) int shared_fn(int n) { for (int i = 0; i < 9; i++) n = n * 7 + i; return n; }
__attribute__((noinline)) static int hidden_fn(int n) { return shared_fn(n) + 1; }
int (*keeps)(int) = hidden_fn;
C
cat >"$T/main.c" <<'C'
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t over;
static void end(int sig) { (void)sig; over = 1; }
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW);
	int (*fn)(int) = (int (*)(int))dlsym(lib, "shared_fn"), n = 1;

	signal(SIGTERM, end);
	puts("ready");
	fflush(stdout);
	while (!over) {
		n = fn(n);
		usleep(1000);
	}
	puts("self-check ok");
	return !fn;
}
C
cc -O1 -shared -fPIC -Wl,--build-id -o "$T/open/libshared.so" "$T/shared.c"
cc -O1 -o "$T/open/main" "$T/main.c"
id=$(readelf -n "$T/open/libshared.so" | sed -n 's/.*Build ID: //p')
debug=usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug

# A forged one: a name for a place in the midst of a function.
at=$(nm "$T/open/libshared.so" | awk '/ shared_fn$/ { print $1 }')
mkdir -p "$T/jail/${debug%/*}"
objcopy --only-keep-debug "$T/open/libshared.so" "$T/forged"
objcopy --add-symbol "forged_fn=.text:$((0x$at + 5 - 0x$(readelf -SW "$T/open/libshared.so" |
	sed -n 's/.* \.text *PROGBITS *\([0-9a-f]*\).*/\1/p'))),function,global" "$T/forged" "$T/jail/$debug"
strip "$T/open/libshared.so"
ln "$T/open/libshared.so" "$T/open/main" "$T/jail/open/"
for lib in $(ldd "$T/open/main" | grep -oE '/[^ ]+'); do
	mkdir -p "$T/jail/${lib%/*}" && cp -L "$lib" "$T/jail/$lib"
done
chown -R 65534:65534 "$T/jail/usr/lib/debug"
touch "$T"/{jailed,free}.{out,err}
start jailed chroot --userspec=65534:65534 "$T/jail" /open/main /open/libshared.so
jailed=$pid
start free "$T/open/main" "$T/open/libshared.so"
free=$pid
snapshot "$free"

sb list -p "$jailed" '*libshared.so:shared_fn'
ended 0
for order in "$jailed,$free" "$free,$jailed"; do
	refuses 3 "no function 'forged_fn'" -p "$order" '*libshared.so:forged_fn' 0 --for 10ms
	unchanged "$free"
done
# What root has there counts, in that root, too.
chown 0:0 "$T/jail/$debug"
sb list -p "$jailed" '*libshared.so:hidden_fn'
ended 0
sb list -p "$free" '*libshared.so:hidden_fn'
ended 3
chmod 666 "$T/jail/$debug"
sb list -p "$jailed" '*libshared.so:hidden_fn'
ended 3

# Links to what lies outside, as an absolute path and as another kind of file.
mkfifo -m 666 "$T/fifo"
exec 8<>"$T/fifo"
echo 'four bytes' >&8
for outside in "$T/fifo" "$T/open/libshared.so"; do
	ln -sf "$outside" "$T/jail/$debug.link" && mv "$T/jail/$debug.link" "$T/jail/$debug"
	sb list -p "$jailed" '*libshared.so:hidden_fn'
	ended 3
	ln -sf "$outside" "$T/jail/outside.so"
	chmod 755 "$T/jail"
	sb -p "$jailed" /outside.so:f 0 --for 10ms
	told 'there is no such file'
done
read -r -t 5 line <&8 || fail 'the FIFO was read'
same 'what the FIFO holds' "$line" 'four bytes'
mkfifo -m 666 "$T/jail/inside.so"
sb -p "$jailed" /inside.so:f 0 --for 10ms
told '/inside.so'
finish jailed "$jailed"
finish free "$free"
