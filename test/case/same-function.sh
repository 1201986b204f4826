#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two targets that mean one function: the second is refused by name, before anything is touched.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls"
snapshot "$pid" -t
refuses 2 "calls:victim_work.*':victim_work'" -p "$pid" :victim_work 1us calls:victim_work 2us
refuses 2 "already a site of target ':victim_\*'" -p "$pid" ':victim_*' 1us :victim_other 2us
unchanged "$pid" -t
sb list -p "$pid" :victim_work 'calls:victim_*'
ended 0
grep -qE "victim_work .*no: already a site of target ':victim_work'" "$T/sb.out" ||
	fail "list does not say whose it is: $(cat "$T/sb.out")"
unchanged "$pid" -t

snapshot "$pid"
# The narrower one first: the glob takes the rest.
sb -p "$pid" :victim_other 0 ':victim_*' 0 --for 300ms --json "$T/run.json"
ended 0
same 'outcome of the first' "$(j targets.0.outcome)" counted
same 'outcome of the glob' "$(j targets.1.outcome)" counted
same 'sites of the first' "$(j targets.0.sites.#)" 1
same 'refused to the glob' "$(j targets.1.sites_refused.0.symbol)" victim_other
unchanged "$pid"

# pid= tells two processes apart, each with a delay of its own.
one=$pid
start two "$V/calls"
snapshot "$pid"
sb -p "$one,$pid" :victim_work 0 "pid=$one" :victim_work 2us "pid=$pid" --for 300ms \
	--json "$T/run.json"
ended 0
same 'outcome in the first' "$(j targets.0.outcome)" counted
same 'outcome in the second' "$(j targets.1.outcome)" delayed
same 'process of the second' "$(j targets.1.sites.0.pids.0)" "$pid"
unchanged "$one"
unchanged "$pid"
finish two "$pid"
finish calls "$one"
