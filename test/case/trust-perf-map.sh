#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --perf-map by root, in a process of another user, who chooses what stands at the map's path, and what
# its functions are called: nothing is written, made or removed that this user could not do himself.
# beside others
. "$SRC/test/lib.sh"
need_root
need setpriv chroot objcopy

drop_maps() { # of a case that fails
	local p

	for p in "${pids[@]}"; do rm -rf "/tmp/perf-$p.map" "/tmp/perf-$p.map.link" "/tmp/perf-$p.map.file"; done
}
at_end 'cleanup; drop_maps'
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
nobody() { exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
chmod 755 "$T" && mkdir -m 755 "$T/open" && mkdir -m 700 "$T/closed" && mkdir -m 777 "$T/theirs"
cp "$V/mapped" "$T/open/"
touch "$T/mapped.out" "$T/mapped.err"

start mapped nobody "$T/open/mapped"
snapshot "$pid"
map=/tmp/perf-$pid.map
session() {
	rm -f "$T/told"
	sb_start -p "$pid" :mapped_fn 0 --perf-map --status-fd 9 9>"$T/told"
	wait_for 20 grep -q '^attached' "$T/told" || fail 'no attach'
}
# left_alone WHAT: a session says that it uses no map, and changes nothing of what is there
left_alone() {
	local before

	before=$(stat -c '%i %f %u %h %s %Y' "$map")
	session
	wait_for 10 grep -q "gets no perf map: $map exists" "$T/sb.err" || fail "no warning, $1"
	sb_stop
	ended 0 "$1"
	same "what stands there, $1" "$(stat -c '%i %f %u %h %s %Y' "$map")" "$before"
	same "what belongs to root, $1" "$(cat "$T/closed/precious")" precious
	same "the files of root, $1" "$(ls "$T/closed")" precious
	rm -rf "$map"
}
echo precious >"$T/closed/precious"

as_nobody ln -s "$T/closed/precious" "$map"
left_alone 'a link to a file of root'
as_nobody ln -s "$T/closed/new" "$map"
left_alone 'a link to a file that is not there'
as_nobody touch "$T/theirs/other" && ln "$T/theirs/other" "$map"
left_alone 'a file with two names'
ln "$T/closed/precious" "$map"
left_alone 'another name of a file of root'
echo '1000 10 root' >"$map" && chmod 666 "$map"
left_alone 'a file of root'
as_nobody mkfifo "$map"
left_alone 'a pipe'
as_nobody mkdir "$map"
left_alone 'a folder'

# What it swaps meanwhile. The user may lose the own map, and nothing else.
# shellcheck disable=SC2016 # for that shell
nobody bash -c 'while [ ! -e "$3" ]; do
	ln -s "$1" "$2.link"; mv -f "$2.link" "$2"; echo "1000 10 sbinject:x" >"$2.file"; mv -f "$2.file" "$2"
done' - "$T/closed/precious" "$map" "$T/theirs/stop" 2>/dev/null &
swapper=$!
pids+=("$swapper")
for _ in 1 2 3 4 5 6 7 8; do
	session
	sb_stop
	ended 0 swapping
	same 'a file of root, with swaps' "$(cat "$T/closed/precious")" precious
done
touch "$T/theirs/stop" # a signal would leave its last mv running
wait "$swapper" 2>/dev/null
rm -rf "$map" "$map.link" "$map.file"
# The map is the user's own, and others cannot read it: it has addresses.
session
wait_for 10 grep -q 'sbinject:mapped_fn' "$map" || fail 'no map'
same 'owner and mode' "$(stat -c '%u %g %a' "$map")" '65534 65534 600'
sb_stop
ended 0
[ ! -e "$map" ] || fail 'the map stays'
unchanged "$pid"
finish mapped "$pid"

# Its root is its own, and /tmp there leads out of it.
mkdir -p "$T/jail/lib64" "$T/jail/open"
cp "$V/mapped" "$T/jail/open/"
for lib in $(ldd "$V/mapped" | grep -oE '/[^ ]+'); do
	mkdir -p "$T/jail/${lib%/*}" && cp -L "$lib" "$T/jail/$lib"
done
ln -s "$T/theirs" "$T/jail/tmp"
start mapped chroot --userspec=65534:65534 "$T/jail" /open/mapped
session
wait_for 10 grep -q "the perf map of process $pid, " "$T/sb.err" || fail 'no warning of a /tmp that is a link'
sb_stop
ended 0
same 'what was made outside' "$(find "$T/theirs" -name 'perf-*')" ''
finish mapped "$pid"

# A name with the end of a line in it is still one line.
objcopy --redefine-sym mapped_fn=$'mapped_fn\n1000 10 forged' "$V/mapped" "$T/open/forged" || fail objcopy
start forged nobody "$T/open/forged"
sb_start -p "$pid" ':mapped_fn*' 0 --perf-map
wait_for 10 grep -qF 'sbinject:mapped_fn\n1000 10 forged' "/tmp/perf-$pid.map" || fail "$(cat "/tmp/perf-$pid.map")"
! grep '^1000' "/tmp/perf-$pid.map" || fail 'a name makes a line'
sb_stop
ended 0
[ ! -e "/tmp/perf-$pid.map" ] || fail 'the map stays'
finish forged "$pid"
