#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the seeds of fuzz-elf: `make-corpus-elf.sh DIR`. Small files of each kind that the
# reader tells apart; they are made and not kept, since a compiler's output is no source.
set -e
dir=${1:?usage: make-corpus-elf.sh DIR}
mkdir -p "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > f.c <<'END'
int f(int a) { return a + 1; }
static __attribute__((noinline, used)) int inner(int a) { return a * 7; }
int g(int a) { return inner(a); }
int data = 3;
END
cat > over.cc <<'END'
namespace ns { int over(int a) { return a; } int over(double b) { return (int)b; }
struct Box { int v[4]; int &operator[](int i); }; int &Box::operator[](int i) { return v[i]; } }
END
cat > ver.c <<'END'
int f_old(void) { return 1; }
int f_new(void) { return 2; }
__asm__(".symver f_old,f@V1");
__asm__(".symver f_new,f@@V2");
END
printf 'V1 { local: *_old; *_new; }; V2 {} V1;\n' > ver.map
small='-O1 -nostdlib -shared -fPIC -Wl,-z,noseparate-code,-z,max-page-size=4096'
cc $small -Wl,--build-id,-soname,f.so -o f.so f.c
cc $small -Wl,--hash-style=sysv -o sysv.so f.c
c++ $small -o over.so over.cc
cc $small -Wl,--version-script=ver.map -o ver.so ver.c
strip -o stripped.so f.so
cp f.so nosec.so
printf '\0\0\0\0\0\0\0\0' | dd of=nosec.so bs=1 seek=40 conv=notrunc 2>/dev/null
printf '\0\0\0\0' | dd of=nosec.so bs=1 seek=60 conv=notrunc 2>/dev/null
cc -g1 $small -o lines.so f.c
if command -v xz >/dev/null; then
	objcopy --only-keep-debug f.so f.dbg
	xz -9 f.dbg
	strip -o mini.so f.so
	objcopy --add-section .gnu_debugdata=f.dbg.xz mini.so
fi
cp ./*.so "$dir"
