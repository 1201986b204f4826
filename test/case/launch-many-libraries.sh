#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A demangled name in a large library is searched for once, not again with each library that the
# program loads after it, nor in each process of the tree: a start would take minutes.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

many=60000 libraries=48
awk -v n=$many 'BEGIN {
	for (i = 0; i < n; i++) {
		name = "function" i; f = "_ZN5space" length(name) name "ERKNS_4typeI" length(name) name "EEi"
		print ".globl " f "; .type " f ",@function; " f ": xor %eax,%eax; nopl (%rax); ret; .size " f ",.-" f
	}
	print ".section .note.GNU-stack,\"\",@progbits"
}' >"$T/large.s"
cc -shared -o "$T/liblarge.so" "$T/large.s" || fail 'the large library is not built'
for ((i = 0; i < libraries; i++)); do
	echo "int small$i(void) { return $i; }" | cc -shared -fPIC -x c -o "$T/small$i.so" - ||
		fail 'a small library is not built'
done
cat >"$T/main.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void work(int n)
{
	void *large = dlopen("./liblarge.so", RTLD_NOW);
	void (*f)(void) = (void (*)(void))dlsym(large, "_ZN5space9function7ERKNS_4typeI9function7EEi");
	char path[64];

	f();
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "./small%d.so", i);
		if (!dlopen(path, RTLD_NOW))
			exit(2);
		f();
	}
}
int main(int argc, char **argv)
{
	int children = argc > 2 ? 0 : 2;

	for (int i = 0; i < children; i++)
		if (fork() == 0)
			return execl(argv[0], argv[0], argv[1], "child", NULL);
	work(atoi(argv[1]));
	while (children && wait(NULL) > 0)
		;
	return 0;
}
C
cc -o "$T/main" "$T/main.c" -ldl || fail 'the program is not built'

took() { # TARGET: milliseconds of a run
	local start=${EPOCHREALTIME/[.,]/}

	sb "$1" 0 --json "$T/run.json" -q -- "$T/main" $libraries
	ended 0
	same "hits of $1" "$(j targets.0.hits)" $((3 * (libraries + 1)))
	ms=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
}

took 'liblarge.so:_ZN5space9function7ERKNS_4typeI9function7EEi'
plain=$ms
took 'liblarge.so:space::function7(*'
echo "$plain ms by the plain name, $ms ms by the demangled one"
[ "$ms" -lt $((plain * 3)) ] || fail "$ms ms by the demangled name, $plain ms by the plain one"
