#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --perf-map: a profiler names the stubs of each process, of regions that are added later too. At the
# end no name is left, and a map that the program has itself is as if nothing had been there.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

drop_maps() { # of a case that fails
	local p

	for p in "${pids[@]}"; do rm -f "$(map "$p")"; done
}
at_end 'cleanup; drop_maps'

map() { echo "/tmp/perf-$1.map"; }
names() { grep -qE "^[0-9a-f]+ [0-9a-f]+ sbinject:$2\$" "$(map "$1")" 2>/dev/null; }
await_name() { wait_for 10 names "$1" "$2" || fail "no name $2 for $1: $(cat "$(map "$1")")"; }
no_map() { [ ! -e "$(map "$1")" ] || fail "a map stays, $2: $(cat "$(map "$1")")"; }
no_names() { ! grep 'sbinject' "$(map "$1")" || fail "names stay, $2"; }

# Every address is in code without a file.
in_stubs() { # PID
	local at size rest range mode found

	while read -r at size rest; do
		found=0
		while read -r range mode _; do
			((0x$at >= 0x${range%-*} && 0x$at + 0x$size <= 0x${range#*-})) && [[ $mode == r-x* ]] && found=1
		done < <(grep ' 00:00 0 *$' "/proc/$1/maps")
		[ $found -eq 1 ] || fail "$at $size $rest is no stub"
	done < <(grep 'sbinject:' "$(map "$1")")
}

start calls "$V/calls"
calls=$pid
snapshot "$calls"
attach "$calls" :victim_work 2us --perf-map
await_name "$calls" victim_work
await_name "$calls" spin
await_name "$calls" doorbell
in_stubs "$calls"
same 'the mode of the map' "$(stat -c %a "$(map "$calls")")" 600
if command -v perf >/dev/null && perf record -q -e cpu-clock -o "$T/perf.data" -p "$calls" -- sleep 0.5 2>"$T/perf.err"; then
	perf report -i "$T/perf.data" --stdio -s sym >"$T/report" 2>&1
	grep -q ' sbinject:spin *$' "$T/report" || fail "perf report: $(cat "$T/report")"
	! grep -E '[5-9][0-9]?\.[0-9]+%.* 0x' "$T/report" || fail "an address in perf report"
else
	echo "without perf: $(cat "$T/perf.err" 2>/dev/null)"
fi
await_session
"$CTL" add :victim_other 0 >"$T/ctl.out" 2>&1 || fail "sbctl add: $(cat "$T/ctl.out")"
await_name "$calls" victim_other
sb_stop
ended 0
no_map "$calls" detach
unchanged "$calls"
# Without the option, nothing.
attach "$calls" :victim_work 0
no_map "$calls" 'without the option'
sb_stop

start later "$V/later" "$V/victim-lib.so" 50 1 "$T/gate"
sb_start -p "$pid" victim-lib.so:lib_fn 0 --perf-map
wait_for 10 hooked "$pid" || fail 'the loader is not hooked'
await_name "$pid" doorbell
touch "$T/gate"
await_name "$pid" lib_fn
sb_stop
no_map "$pid" 'a library'
finish later "$pid"

start fork "$V/mapped" fork "$T/fork"
attach "$pid" :mapped_fn 1us --perf-map
touch "$T/fork"
wait_for 10 eval "[ \$(grep -c '^child' '$T/fork.out') -eq 2 ]" || fail 'no second child'
family="$pid $(sed -n 's/^child //p' "$T/fork.out")"
for p in $family; do await_name "$p" mapped_fn; done
sb_stop
ended 0
for p in $family; do no_map "$p" fork; done
finish fork "$pid"

# Launched: until the end, or for ever.
sb_start :mapped_fn 1us --perf-map -- "$V/mapped"
wait_for 10 grep -q '^pid' "$T/sb.out" || fail 'not launched'
p=$(sed -n 's/^pid //p' "$T/sb.out")
pids+=("$p")
await_name "$p" mapped_fn
kill -TERM "$p"
sb_wait
ended 0
no_map "$p" launched
sb_start :mapped_fn 1us --perf-map-keep -- "$V/mapped"
wait_for 10 grep -q '^pid' "$T/sb.out" || fail 'not launched'
p=$(sed -n 's/^pid //p' "$T/sb.out")
pids+=("$p")
await_name "$p" mapped_fn
kill -TERM "$p"
sb_wait
ended 0
names "$p" mapped_fn || fail '--perf-map-keep does not keep'
rm "$(map "$p")"

# An exec drops the stubs of the program before, and their names.
sb_start libc.so.6:write 0 :mapped_fn 0 --perf-map -- sh -c "echo first; exec '$V/mapped' append"
wait_for 10 grep -q '^pid' "$T/sb.out" || fail 'not launched'
p=$(sed -n 's/^pid //p' "$T/sb.out")
pids+=("$p")
await_name "$p" mapped_fn
await_name "$p" write
in_stubs "$p"
kill -TERM "$p"
sb_wait
ended 0
no_names "$p" exec
grep -q '^self-check ok' "$T/sb.out" || fail 'the map of the program is not whole'
rm "$(map "$p")"

# A mount and pid namespace: the file is in there, under the pid in there.
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	cp "$V/mapped" "$T/inner" # the name that is looked for below
	start inner unshare -m -p -f --mount-proc sh -c "mount -t tmpfs none /mnt && cp '$T/inner' /mnt/ &&
		mount -t tmpfs none /tmp && exec /mnt/inner"
	inner=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
	attach "$inner" :mapped_fn 1us --perf-map
	wait_for 10 grep -q sbinject:mapped_fn "/proc/$inner/root/tmp/perf-1.map" || fail 'no map in the namespace'
	[ ! -e "$(map "$inner")" ] && [ ! -e "$(map 1)" ] || fail 'a map out of the namespace'
	if [ -s "$T/report" ]; then
		perf record -q -e cpu-clock -o "$T/perf.data" -p "$inner" -- sleep 0.3 2>"$T/perf.err"
		perf report -i "$T/perf.data" --stdio -s sym >"$T/report" 2>&1
		grep -q ' sbinject:spin *$' "$T/report" || fail "perf report: $(cat "$T/report")"
	fi
	sb_stop
	ended 0
	[ ! -e "/proc/$inner/root/tmp/perf-1.map" ] || fail 'a map stays in the namespace'
	kill -TERM "$inner"
	wait "$pid"
	said inner '^self-check ok$' || fail 'the victim in the namespace is not content'
fi

# A map that is there already, and that no process writes.
printf '1000 10 mine\n2000 10 sb:not\nhalf' >"$(map "$calls")"
cp "$(map "$calls")" "$T/map"
attach "$calls" :victim_work 0 --perf-map
await_name "$calls" victim_work
grep -qx half "$(map "$calls")" || fail "a line is longer now: $(cat "$(map "$calls")")"
sb_stop
ended 0
cmp -n "$(stat -c %s "$T/map")" "$T/map" "$(map "$calls")" || fail 'the map that was there is another one'
grep . "$(map "$calls")" | cmp - <(grep . "$T/map") || fail 'more than that is there'
rm "$(map "$calls")"

# One that the program writes: its end checks that it is whole.
start append "$V/mapped" append
for _ in 1 2 3; do
	attach "$pid" :mapped_fn 1us --perf-map
	await_name "$pid" mapped_fn
	sb_stop
	ended 0
	no_names "$pid" append
done
finish append "$pid"
rm "$(map "$pid")"
start offset "$V/mapped" offset
attach "$pid" :mapped_fn 1us --perf-map
wait_for 10 grep -q 'writes it without appending' "$T/sb.err" || fail 'no warning of a writer with an offset'
sb_stop
ended 0
finish offset "$pid"
no_names "$pid" offset
rm "$(map "$pid")"
start late "$V/mapped" late "$T/late"
attach "$pid" :mapped_fn 1us --perf-map
await_name "$pid" mapped_fn
touch "$T/late"
wait_for 10 eval "ls -l /proc/$pid/fd | grep -q '$(map "$pid")'" || fail "it cannot use our map: $(cat "$T/late.err")"
sb_stop
ended 0
rm "$T/late"
wait_for 10 grep -q own_3 "$(map "$pid")" || fail 'the map that the program has open was removed'
no_names "$pid" late
finish late "$pid"
rm "$(map "$pid")"

# SIGKILL of the tracer: the command line cleans up; of both: recover does.
attach "$calls" :victim_work 0 --perf-map
await_name "$calls" victim_work
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$calls/status")
kill -KILL "$tracer"
sb_wait
no_map "$calls" 'a killed tracer'
attach "$calls" :victim_work 0 --perf-map
await_name "$calls" victim_work
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$calls/status")
kill -STOP "$sb_pid" # so that it cannot restore between the two
kill -KILL "$tracer" "$sb_pid"
wait "$sb_pid" 2>/dev/null
sb recover -p "$calls"
ended 0
no_map "$calls" recover
unchanged "$calls"
finish calls "$calls"
refuses 2 'perf-map is for the inject backend' --backend uprobe --perf-map -p $$ libc.so.6:getpid 0
