#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# redis under load: attached, delayed, counted, let go; no client sees an error.
# beside others
. "$SRC/test/lib.sh"

need redis-server redis-benchmark redis-cli
port=$(free_port)
redis-server --port $port --save '' --appendonly no --daemonize no >"$T/redis.out" 2>&1 &
server=$!
pids+=("$server")
wait_for 10 redis-cli -p $port ping || skip 'redis does not start here'
redis-benchmark -p $port -n 60000 -c 20 -t set,get --csv >"$T/bench.csv" 2>"$T/bench.err" &
load=$!
pids+=("$load")
sb -p "$server" libc.so.6:epoll_wait 20us 'libc.so.6:write' 0 --for 1500ms --json "$T/run.json"
ended 0
wait "$load" || fail "the clients saw an error: $(cat "$T/bench.err")"
more 'waits hit' "$(j targets.0.hits)" 100
same 'every hit delayed' "$(j targets.0.delayed)" "$(j targets.0.hits)"
! grep -qi error "$T/bench.err" || fail "the clients saw an error: $(cat "$T/bench.err")"
let_go "$server"
same ping "$(redis-cli -p $port ping)" PONG
redis-cli -p $port shutdown nosave >/dev/null 2>&1
wait "$server" || fail "redis ended with status $?"
