#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench-ab.sh BUILD [ROUNDS [SECONDS]]: a sweep against a plain A/B of the same length, on servers
# with their own load generators. The A/B is pairs of runs of the generator, with and without the
# sweep's largest dose, and Student's interval of their differences; kappa and its half-width are
# in the same unit for both. A row a server: the median of the rounds' ratios.
set -u
build=${1:-build}
rounds=${2:-3}
seconds=${3:-20}
leg=2
t=$(mktemp -d)
chmod 711 "$t"
server='' load='' session=''
stop() { # PID: ends it and waits
	[ -z "$1" ] || { kill "$1" && wait "$1"; } 2>/dev/null
}
trap 'stop "$session"; stop "$load"; stop "$server"; rm -rf "$t"' EXIT
jget() { "$build/test/tool/jget" "$t/json" "$1"; }

# Servers: NAME_start sets $server and $traced; NAME_run SECONDS runs the generator and prints its
# rate in items a second.
port=$((21000 + $$ % 4000))

postgres_start() {
	local initdb as=(setpriv --reuid=postgres --regid=postgres --init-groups --reset-env)

	for initdb in /usr/lib/postgresql/*/bin/initdb /usr/bin/initdb; do
		[ ! -x "$initdb" ] || break
	done
	[ -x "$initdb" ] && command -v pgbench >/dev/null && id -u postgres >/dev/null 2>&1 || return
	install -d -o postgres "$t/pg" || return
	cd "$t/pg" || return
	"${as[@]}" "$initdb" -D "$t/pg/data" -A trust >/dev/null 2>&1 || return
	"${as[@]}" "${initdb%/*}/postgres" -D "$t/pg/data" -k "$t/pg" -p $port \
		-h 127.0.0.1 >"$t/pg.out" 2>&1 &
	server=$!
	cd - >/dev/null || return
	pg=(-h 127.0.0.1 -p "$port" -U postgres)
	for ((i = 0; i < 100; i++)); do
		pgbench -i -q -s 1 "${pg[@]}" postgres >/dev/null 2>&1 && break
		sleep 0.1
	done
	target=:PortalRun progress=:ReadyForQuery
}
postgres_run() { pgbench -S -n -c 1 -T "$1" "${pg[@]}" postgres 2>/dev/null | awk '/^tps/ { print $3 }'; }

redis_start() {
	command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || return
	redis-server --bind 127.0.0.1 --port $port --save '' --appendonly no >"$t/redis.out" 2>&1 &
	server=$!
	sleep 1
	redis_rate=$(redis-benchmark -p $port -c 20 -t get -n 50000 --csv | awk -F'"' '/GET/ { print $4 }')
	target=:processCommand progress=:processCommand
}
redis_run() {
	redis-benchmark -p $port -c 20 -t get -n "$(awk -v r="$redis_rate" -v s="$1" 'BEGIN { printf "%d", r * s }')" \
		--csv 2>/dev/null | awk -F'"' '/GET/ { print $4 }'
}

nginx_start() {
	command -v nginx >/dev/null && command -v wrk >/dev/null || return
	cat >"$t/nginx.conf" <<-END
		daemon off; worker_processes 1; pid $t/nginx.pid; error_log $t/nginx.err; user root;
		events { worker_connections 256; }
		http { access_log off; keepalive_requests 100000000;
		server { listen 127.0.0.1:$port; location / { return 200 "some text\n"; } } }
	END
	nginx -c "$t/nginx.conf" -p "$t" >"$t/nginx.out" 2>&1 &
	server=$!
	sleep 1
	target=:ngx_http_handler progress=:ngx_http_finalize_request
}
nginx_run() { wrk -t1 -c4 -d"$1"s "http://127.0.0.1:$port/" | awk '/^Requests.sec/ { print $2 }'; }

# sweep NAME: $kappa, $half, $said, and the largest dose: $dose a hit, $x_ns an item
sweep() {
	"$1_run" $((seconds + 6)) >/dev/null &
	load=$!
	sleep 1
	"$build/sbinject" sweep -q -p "$server" "$target" --progress "$progress" --time "${seconds}s" \
		--seed $((++seed)) --evidence=none --json "$t/json" >/dev/null
	kappa=$(jget targets.0.kappa) said=$(jget targets.0.verdict)
	half=$(awk -v l="$(jget targets.0.kappa_ci.0)" -v h="$(jget targets.0.kappa_ci.1)" \
		'BEGIN { print (h - l) / 2 }')
	last=$(jget targets.0.doses_ns.#) # doses.0 is none
	dose=$(jget "targets.0.doses.$last.delay_ns") x_ns=$(jget "targets.0.doses.$last.x_ns")
	wait "$load"
	load=''
}

# compare NAME: pairs of legs, ON and OFF in turn; $ab and $ab_half, the slope and its half-width.
compare() {
	local pairs=$((seconds / leg / 2)) i arm
	local -A rate

	"$build/sbinject" -q -p "$server" "$target" "${dose}ns" >/dev/null &
	session=$!
	until "$build/sbctl" -s $session status >/dev/null 2>&1; do sleep 0.1; done
	for ((i = 0; i < pairs; i++)); do
		for arm in $([ $((i % 2)) = 0 ] && echo enable disable || echo disable enable); do
			"$build/sbctl" -s $session "$arm" >/dev/null
			rate[$arm]=$("$1_run" $leg)
		done
		echo "${rate[enable]} ${rate[disable]}"
	done >"$t/pairs"
	stop "$session"
	session=''
	# x_ns is injected into an item; q: Student's, 97.5 %, of 1 to 10 degrees of freedom
	read -r ab ab_half < <(awk -v x="$x_ns" 'BEGIN {
			split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228", q, " ") }
		{ d = (1e9 / $1 - 1e9 / $2) / x; s += d; ss += d * d; n++ }
		END { print s / n, q[n - 1] * sqrt((ss - s * s / n) / (n - 1) / n) }' "$t/pairs")
}

row() { # NAME TITLE
	local i ratios=() all=''

	target='' progress=''
	"$1_start"
	if [ -z "$target" ]; then
		printf 'sweep   %-58s not measured: not installed, or does not start\n' "$2"
		return
	fi
	for ((i = 0; i < rounds; i++)); do
		sweep "$1"
		if [ -z "$dose" ] || [ "$kappa" = null ]; then
			all="$all $said;"
			continue
		fi
		compare "$1"
		ratios+=("$(awk -v a="$half" -v b="$ab_half" 'BEGIN { print a / b }')")
		all="$all $(printf '%.2f +- %.2f (%s) against %.2f +- %.2f;' "$kappa" "$half" "$said" "$ab" "$ab_half")"
	done
	stop "$server"
	server=''
	printf 'sweep   %-58s %s  <= 1  %s\n' "$2: half-width over that of an A/B" \
		"$(median "${ratios[@]}")" "${all%;}"
}

median() {
	[ $# -gt 0 ] || { echo 'none'; return; }
	printf '%s\n' "$@" | sort -g | awk '{ a[NR] = $1 } END { printf "%.2f", (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'
}

echo
echo "sweeps of ${seconds} s against pairs of runs of ${leg} s for as long, $rounds rounds"
seed=0
row postgres 'PostgreSQL, pgbench -S -c 1'
row redis 'Redis, redis-benchmark -c 20'
row nginx 'nginx, wrk -c 4'
