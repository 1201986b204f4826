#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tracepoints as targets: what sched_switch counts of a process tree is what /proc has of its threads; values
# and calls in the file agree; beside native targets; refusals name the reason; nothing outlives SIGKILL.
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
need_uprobe
switches() { # PID: all of its threads
	awk '/_ctxt_switches/ { n += $2 } END { print n }' "/proc/$1"/task/*/status
}
links() { # PID...: the ids of the links at the tracepoint that these processes hold
	# shellcheck disable=SC2046 # files
	grep -ls '^tp_name:[[:space:]]*sched_switch' $(printf '/proc/%s/fdinfo/* ' "$@") |
		xargs -r sed -sn 's/^link_id:[[:space:]]*//p' 2>/dev/null | sort -u
}
# known: those of the session, in ids. Other sessions, of other cases, have their own.
known() {
	# shellcheck disable=SC2046 # pids
	links "$sb_pid" $(pgrep -P "$sb_pid") >ids
	[ -s ids ]
}
gone() { ! links '[0-9]*' | grep -qxf ids; }

# A process that sleeps again and again. Looks at /proc around the session and within it bound its count.
mkfifo "$T/never"
bash -c 'while :; do read -rt 0.003; done' <>"$T/never" &
pid=$!
pids+=("$pid")
before=$(switches "$pid")
attach_told "$pid" tracepoint:sched:sched_switch 0
attached=$(switches "$pid")
nap 2
until=$(switches "$pid")
linked=$(known && echo yes)
sb_stop INT
ended 0
after=$(switches "$pid")
[ -z "$linked" ] || gone || fail 'the program stays at the tracepoint'
hits=$(j targets.0.hits)
[ "$hits" -le $((after - before)) ] || fail "$hits hits of at most $((after - before)) switches"
[ "$hits" -ge $((until - attached)) ] || fail "$hits hits of at least $((until - attached)) switches"
more 'switches' $((until - attached)) 200
same mechanism "$(j targets.0.sites.0.mechanism)" raw_tracepoint
same module "$(j targets.0.sites.0.module)" sched
same 'of the process' "$(j processes.0.targets.0.hits)" "$hits"

# A command from its start, with its children: each fork and each exit is known.
sb trace tracepoint:sched:sched_process_fork tracepoint:sched:sched_process_exec \
	tracepoint:sched:sched_process_exit -o "$T/t.jsonl" --json "$T/run.json" -- \
	bash -c 'for i in 1 2 3 4 5; do /bin/true; done; exit 0'
ended 0
same forks "$(j targets.0.hits)" 5
same execs "$(j targets.1.hits)" 6
same 'forks in the file' "$(grep -c '"name":"sched_process_fork","phase":"X"' "$T/t.jsonl")" 5
same 'execs in the file' "$(grep -c '"name":"sched_process_exec","phase":"X"' "$T/t.jsonl")" 6
same recorded "$(j trace.calls)" $(($(j targets.0.hits) + $(j targets.1.hits) + $(j targets.2.hits)))
same 'a call takes' "$(j targets.0.spans.max_ns)" 0

# Values: the sum is that of the file; a type comes from the kernel's own description.
sb trace tracepoint:sched:sched_switch arg=preempt:1 arg=state:4 sum=state arg=next:3 -p "$pid" --for 1s \
	-o "$T/v.jsonl" --json "$T/run.json"
ended 0
same types "$(for i in 0 1 2; do j "targets.0.spans.values.$i.type"; done | tr '\n' ' ')" 'bool u32 ptr '
same sum "$(j targets.0.spans.values.1.sum)" \
	"$(grep '"sched_switch","phase":"X"' "$T/v.jsonl" | sed 's/.*"state":\([0-9]*\).*/\1/' | paste -sd+ | bc)"
same calls "$(j targets.0.spans.calls)" "$(grep -c '"sched_switch","phase":"X"' "$T/v.jsonl")"

# Beside native targets, in one file and one result, on one clock.
for format in jsonl pftrace json; do
	sb trace libc.so.6:read libc.so.6:poll tracepoint:sched:sched_switch -p "$pid" --for 1s \
		-o "$T/m.$format" --json "$T/run.json"
	ended 0
	same target "$(j targets.2.spec)" tracepoint:sched:sched_switch
	sb report "$T/m.$format" --json "$T/report.json"
	ended 0
	same "its kind, from $format" "$(sed -n '/"name": "sched_switch"/,/"kind"/s/^ *"kind": "\(.*\)".*/\1/p' "$T/report.json")" \
		kernel
	same "spans of $format" "$(grep -c "  sched_switch " "$T/sb.out")" 1
	same recorded "$(j trace.calls)" $(($(j targets.0.spans.calls) + $(j targets.1.spans.calls) + $(j targets.2.hits)))
done

# Without a processor: each switch away is one, and each that ended is in the file, for as long as it slept.
sb trace tracepoint:sched:sched_switch 'offcpu:*' offcpu:no-such-thread -p "$pid" --for 1s -o "$T/o.jsonl" --json "$T/run.json"
ended 0
differ=$(($(j targets.0.hits) - $(j targets.1.hits)))
[ "${differ#-}" -le 2 ] || fail "$(j targets.1.hits) of $(j targets.0.hits) switches"
same 'of that name' "$(j targets.2.hits)" 0
same 'in the file' "$(grep -c '"name":"off CPU: [a-z]*","phase":"X".*"module":"sched"' "$T/o.jsonl")" \
	"$(j targets.1.spans.calls)"
same 'of another type' "$(grep '"phase":"X"' "$T/o.jsonl" | grep -vc '"type":"kernel"')" 0
slept=$(sed -n 's/.*"off CPU: [a-z]*","phase":"X".*"dur_us":\([0-9]*\).*/\1/p' "$T/o.jsonl" | paste -sd+ | bc)
more 'us without a processor' "$slept" 500000
less 'us without a processor' "$slept" 1100000
"$SB" report "$T/o.jsonl" --json "$T/report.json" >"$T/report" || fail report
grep -q '^in calls  off CPU ' "$T/report" || fail "the report: $(cat "$T/report")"
same 'in calls, of a trace of instants' "$(grep -c '"in_calls_ns": 0,' "$T/report.json")" \
	"$(grep -c '"in_calls_ns"' "$T/report.json")"
off=$(sed -n 's/^ *"off_cpu_ns": \([0-9]*\).*/\1/p' "$T/report.json" | head -n 1)
[ $((off / 1000 - slept)) -le 2000 ] && [ $((slept - off / 1000)) -le 0 ] || fail "off CPU: $off ns, $slept us in the lines"

# The handlers that /proc/interrupts counts: of a device that has something to do now.
line=$(awk '/^ *[0-9]+:/ && $NF ~ /^[a-z][a-z0-9.-]*$/ { n = 0; for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i; if (n > most) { most = n; name = $NF } }
	END { print name }' /proc/interrupts)
handled() { awk -v name="$line" '$NF == name { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts; }
if [ -n "$line" ] && [ ${#line} -le 14 ]; then
	before=$(handled)
	sb_start trace "interrupt:$line" -p "$pid" -o "$T/i.jsonl" --json "$T/run.json" --status-fd 9 9>"$T/told"
	wait_for 20 grep -q '^attached' "$T/told" || fail "no attach to $pid"
	attached=$(handled)
	for _ in 1 2 3; do
		dd if=/dev/zero of="$T/written" bs=64k count=16 oflag=direct conv=fsync 2>/dev/null
		nap 0.1
	done
	until=$(handled)
	sb_stop INT
	ended 0
	hits=$(j targets.0.hits)
	[ "$hits" -le $(($(handled) - before)) ] || fail "$hits of at most $(($(handled) - before)) interrupts"
	# Some were not handed to the program, on a busy machine, by none of the kernel's own counts.
	[ "$hits" -ge $(((until - attached) * 4 / 5)) ] || fail "$hits of at least $((until - attached)) interrupts"
	same 'interrupts in the file' "$(grep -c "\"name\":\"$line\",\"phase\":\"X\",\"pid\":0,\"tid\":0," "$T/i.jsonl")" "$hits"
	same 'of no process' "$(j processes.0.targets.0.hits)" 0
fi

# Both count in one window, whatever opens it.
sb trace libc.so.6:poll 'offcpu:*' -p "$pid" --start 100ms --for 1s --json "$T/run.json"
ended 0
open=$(j targets.0.active_s)
[ "$(echo "$open < 0.5" | bc)" -eq 1 ] || more "switches in the window of $open s" "$(j targets.1.hits)" 20
apart=$(echo "d = ($(j targets.0.active_s) - $(j targets.1.active_s)) * 1000; if (d < 0) d = -d; d / 1" | bc)
less 'ms between the windows' "$apart" 300

refuses 2 'never delayed' -p "$pid" tracepoint:sched:sched_switch 5us
refuses 2 'never delayed' -p "$pid" 'offcpu:*' 5us
refuses 2 'is not for interrupt' trace -p "$pid" interrupt:x arg=x:1
refuses 2 'never delayed' sweep -p "$pid" kernel:do_futex --progress f:x
refuses 2 'names no tracepoint' -p "$pid" tracepoint:sched_switch
refuses 3 "did you mean 'sched:sched_switch'" -p "$pid" tracepoint:sched:sched_swich 0
refuses 3 "did you mean 'do_futex'" -p "$pid" kernel:do_futx 0
refuses 2 'not for the kernel' -p "$pid" tracepoint:sched:sched_switch 0 thread=x
refuses 2 'returns nothing' trace -p "$pid" tracepoint:sched:sched_switch ret
refuses 3 'fewer arguments' trace -p "$pid" tracepoint:sched:sched_switch arg=x:9
sb list 'tracepoint:sched:sched_sw*' 'kernel:do_fute*'
ended 0
grep -q 'sched  *sched_switch .*raw_tracepoint' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"
grep -q 'vmlinux  *do_futex ' "$T/sb.out" || fail "list: $(cat "$T/sb.out")"

# By sbctl: into a session that has such targets, and not into one that has none.
attach_told "$pid" tracepoint:sched:sched_switch 0
"$CTL" add tracepoint:sched:sched_waking 0 || fail 'sbctl add'
"$CTL" list | grep -q sched_waking || fail 'sbctl list'
"$CTL" remove tracepoint:sched:sched_waking || fail 'sbctl remove'
sb_stop INT
ended 0
attach_told "$pid" libc.so.6:read 0
! "$CTL" add tracepoint:sched:sched_waking 0 2>"$T/why" || fail 'a session of inject took it'
grep -q 'none in the kernel' "$T/why" || fail "sbctl: $(cat "$T/why")"
sb_stop INT
ended 0

# SIGKILL of both processes: the program at the tracepoint goes with their descriptors.
attach_told "$pid" tracepoint:sched:sched_switch 0
known || skip "the kernel does not show links of tracepoints"
! gone || fail 'a link that is there is not seen'
kill -9 "$sb_pid" $(pgrep -P "$sb_pid")
wait_for 10 gone || fail 'a program stays at the tracepoint'
kill -0 "$pid" || fail 'the program is gone'
