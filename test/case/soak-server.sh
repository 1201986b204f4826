#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real servers under load, attached and let go again and again: no client sees an error, and their
# maps, descriptors and memory are what they were.
# limit: 1500 s
# beside others
. "$SRC/test/lib.sh"

seconds=$((${SOAK_SECONDS:-30} * 3 / 20)) # of each server

state() { # NAME PID: of a server without clients
	"$TOOL/procstate" "$2" | grep -v '^fd .*socket' >"$T/$1.state"
	awk '/^RssAnon/ { print $2 }' "/proc/$2/status" >"$T/$1.rss"
	find "/proc/$2/fd" -mindepth 1 | wc -l >"$T/$1.fds"
}

# cycles PID ARGS...: until the load has ended
cycles() {
	local target=$1 n=0
	shift
	while kill -0 "$load" 2>/dev/null; do
		n=$((n + 1))
		# shellcheck disable=SC2046 # no option, no word
		sb -p "$target" "$@" --for $((RANDOM % 80 + 20))ms $([ $((n % 4)) -ne 0 ] || echo --no-follow)
		ended 0 "cycle $n"
	done
	echo "$n cycles"
	more cycles $n 3
}

compare() { # PID
	let_go "$1"
	state after "$1"
	diff "$T/before.state" "$T/after.state" || fail 'maps or descriptors differ'
	same descriptors "$(cat "$T/before.fds")" "$(cat "$T/after.fds")"
	less 'kB of anonymous memory more' $(($(cat "$T/after.rss") - $(cat "$T/before.rss"))) 1024
}

redis() {
	local server port
	port=$(free_port)

	redis-server --port $port --save '' --appendonly no --daemonize no >"$T/redis.out" 2>&1 &
	server=$!
	pids+=("$server")
	wait_for 10 redis-cli -p $port ping || return
	redis-benchmark -p $port -n 20000 -c 20 -r 1000 -t set,get --csv >/dev/null 2>&1 # warm
	sb -p "$server" libc.so.6:epoll_wait 5us libc.so.6:write 0 libc.so.6:malloc 0 --for 20ms
	sleep 0.5
	state before "$server"
	(
		end=$(($(date +%s) + seconds))
		while [ "$(date +%s)" -lt $end ]; do
			redis-benchmark -p $port -n 20000 -c 20 -r 1000 -t set,get --csv || exit 1
		done
	) >"$T/bench.csv" 2>"$T/bench.err" &
	load=$!
	pids+=("$load")
	cycles "$server" libc.so.6:epoll_wait 5us libc.so.6:write 0 libc.so.6:malloc 0
	wait "$load" || fail "the clients saw an error: $(cat "$T/bench.err")"
	! grep -qi error "$T/bench.err" || fail "the clients saw an error: $(cat "$T/bench.err")"
	sleep 0.5
	compare "$server"
	same ping "$(redis-cli -p $port ping)" PONG
	redis-cli -p $port shutdown nosave >/dev/null 2>&1
	wait "$server" || fail "redis ended with status $?"
	echo "redis: $(wc -l <"$T/bench.csv") lines of load"
}

nginx_server() {
	local server port
	port=$(free_port)

	mkdir -p "$T/www"
	chmod -R a+rX "$T"
	echo hello >"$T/www/index.html"
	cat >"$T/nginx.conf" <<-END
		daemon off; master_process on; worker_processes 2; pid $T/nginx.pid; error_log $T/nginx.err;
		events { worker_connections 256; }
		http { access_log off; server { listen 127.0.0.1:$port; root $T/www; } }
	END
	nginx -c "$T/nginx.conf" -p "$T" >"$T/nginx.out" 2>&1 &
	server=$!
	pids+=("$server")
	wait_for 10 test -s "$T/nginx.pid" || return
	wrk -t 1 -c 16 -d 1 "http://127.0.0.1:$port/" >/dev/null 2>&1
	sb -p "$server" libc.so.6:epoll_wait 5us libc.so.6:recv 0 --for 20ms
	sleep 0.5
	state before "$server"
	wrk -t 1 -c 16 -d $seconds "http://127.0.0.1:$port/" >"$T/wrk.out" 2>&1 &
	load=$!
	pids+=("$load")
	cycles "$server" libc.so.6:epoll_wait 5us libc.so.6:recv 0
	wait "$load" || fail "wrk: $(cat "$T/wrk.out")"
	! grep -E 'Socket errors|Non-2xx' "$T/wrk.out" || fail 'the clients saw an error'
	sleep 0.5
	compare "$server"
	kill -QUIT "$server"
	wait "$server" || fail "nginx ended with status $?"
	! grep -E 'signal|alert' "$T/nginx.err" || fail 'a worker went wrong'
	echo "nginx: $(grep 'requests in' "$T/wrk.out")"
}

has() { for c; do command -v "$c" >/dev/null 2>&1 || return 1; done; }
has redis-server redis-benchmark redis-cli || has nginx wrk || skip 'neither redis nor nginx with wrk'
! has redis-server redis-benchmark redis-cli || redis
! has nginx wrk || nginx_server
