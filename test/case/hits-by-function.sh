#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --hits-by-function: each function of a glob counts by itself, native and Python, in every process
# of a tree, and together they are the target's hits; functions without a call have 0.
# beside others
. "$SRC/test/lib.sh"
need python3

cat >"$T/sum.py" <<'P'
# The sum over the functions of target N, "called of all", and the hits of the function NAME.
import json, sys
target = json.load(open(sys.argv[1]))["targets"][int(sys.argv[2])]
by = {}
for site in target["sites"]:
    by[site["name"]] = by.get(site["name"], 0) + site["hits"]
print(sum(by.values()), f"{sum(n > 0 for n in by.values())} of {len(by)}", by.get(sys.argv[3]), sep="\n")
P
sums() { # NUMBER NAME: into sum, called, one
	{ read -r sum && read -r called && read -r one; } < <(python3 "$T/sum.py" "$T/run.json" "$1" "$2")
}

# Without it the output has no functions.
sb ':victim_*' 0 --json "$T/run.json" -- "$V/calls" -n 5
! grep -q 'functions of' "$T/sb.err" && [ -z "$(j targets.0.sites.0.hits 2>/dev/null)" ] || fail 'said without it'

for mechanism in jump int3; do
	sb ':victim_*' 0 --hits-by-function --mechanism $mechanism --json "$T/run.json" -- "$V/calls" -n 100
	ended 0 $mechanism
	sums 0 victim_work
	same "$mechanism: the sum" "$sum" "$(j targets.0.hits)"
	same "$mechanism: victim_work" "$one" 100
	told "^functions of :victim_\*: ${called% of *} of ${called#* of } were called"
	told '^ *100  victim_work '
	more "$mechanism: functions" "${called#* of }" "${called% of *}" # one is not called
done

# Every kind of child, with a delay; the pages of execs go one by one.
"$V/tree" 100 2 >"$T/tree.out" || fail 'the tree does not work'
sb ':tree_*' 1us --hits-by-function --json "$T/run.json" -- "$V/tree" 100 2
ended 0 tree
sums 0 tree_fn
same 'tree: calls' "$one" "$(calls sb tree_fn)"
same 'tree: the sum' "$sum" "$(j targets.0.hits)"

# Many threads, attached and left; sbctl shows what runs now.
start threads "$V/threads" busy 8
snapshot "$pid" -t
attach "$pid" ':thread_*' 0 --hits-by-function
await_session
"$CTL" list --hits-by-function >"$T/ctl.out" || fail 'sbctl refuses'
wait_for 10 eval '"$CTL" list --hits-by-function | grep -qE "^  [1-9][0-9]* thread_fn$"' || fail "sbctl: $("$CTL" list --hits-by-function 2>&1)"
sb_stop
ended 0 threads
unchanged "$pid" -t
sums 0 thread_fn
same 'threads: the sum' "$sum" "$(j targets.0.hits)"
more 'threads: hits' "$sum" 0
attach "$pid" :thread_fn 0
await_session
! "$CTL" list --hits-by-function >"$T/ctl.out" 2>"$T/ctl.err" || fail 'a session without it counts by function'
grep -q 'does not count by function' "$T/ctl.err" || fail "$(cat "$T/ctl.err")"
sb_stop
finish threads "$pid"

# A filter by thread leaves hits out that a function's own counter would take in.
sb ':victim_*' 0 thread=nobody --hits-by-function --json "$T/run.json" -- "$V/calls" -n 100
[ -z "$(j targets.0.sites.0.hits 2>/dev/null)" ] || fail 'thread=: hits by function'

refuses 2 'hits-by-function is for the inject backend' --backend uprobe --hits-by-function -p $$ libc.so.6:getpid 0

[ -s "$BUILD/python/agent.so.stripped" ] || exit 0
cat >"$T/some.py" <<'P'
import os, sys, threading
def a(): pass
def b(): a()
def many(f):
    for i in range(200): f()
class K:
    def m(self): b()
many(K().m)
pid = os.fork()
many(a)
if not pid: os._exit(0)
os.waitpid(pid, 0)
t = [threading.Thread(target=many, args=(a,)) for i in range(4)]
[x.start() for x in t]
[x.join() for x in t]
P
mapfile -t python < <(pythons)
for py in "${python[@]}"; do
	sb 'py:__main__:[!<]*' 1us --hits-by-function --json "$T/run.json" -- "$py" "$T/some.py"
	ended 0 "$py"
	sums 0 a
	same "$py: a" "$one" $((200 + 400 + 800))
	same "$py: the sum" "$sum" "$(j targets.0.hits)"
	sums 0 K.m
	same "$py: K.m" "$one" 200
done
