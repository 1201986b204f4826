#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Prometheus itself: its own checker finds nothing wrong with the metrics of a session, and a server
# scrapes them and has the hits that the session has.
. "$SRC/test/lib.sh"
need python3 curl promtool prometheus

metrics=$(free_port)
server=$(free_port)
start calls "$V/calls" -p 2000
snapshot "$pid"
attach "$pid" :victim_work 2us 'later.so:f"n' 5us \
	libc.so.6:clock_nanosleep 0 time=yes --metrics "$metrics" --metrics-file "$T/sb.prom" \
	--metrics-by-pid --interval 100ms
await_session
wait_for 10 curl -sf "http://127.0.0.1:$metrics/metrics" -o "$T/classic" || fail 'nothing is served'
promtool check metrics <"$T/classic" >"$T/check" 2>&1 || fail "promtool: $(cat "$T/check")"
wait_for 10 test -s "$T/sb.prom" || fail 'no file'
promtool check metrics <"$T/sb.prom" >"$T/check" 2>&1 || fail "promtool, of the file: $(cat "$T/check")"

cat >"$T/prometheus.yml" <<Y
global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs:
  - job_name: sbinject
    static_configs: [ { targets: [ "127.0.0.1:$metrics" ] } ]
Y
prometheus --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/data" --log.level=warn \
	--web.listen-address="127.0.0.1:$server" >"$T/prometheus.log" 2>&1 </dev/null &
pids+=($!)
scraper=$!
ask() { curl -s --get "http://127.0.0.1:$server/api/v1/query" --data-urlencode "query=$1" -o "$T/answer"; }
scraped() { ask 'sbinject_hits_total{target=":victim_work"} > 0' && grep -q '"pid":"' "$T/answer"; }
wait_for 30 scraped || fail "nothing was scraped: $(cat "$T/answer" "$T/prometheus.log")"
ask 'up{job="sbinject"} == 1'
grep -q '"value"' "$T/answer" || fail "the scrape failed: $(cat "$T/answer")"
ask 'sbinject_target_state{sbinject_target_state="pending"} == 1'
grep -qF 'later.so:f\"n' "$T/answer" || fail "no state of a target: $(cat "$T/answer")"
# The histogram of the times of calls gives quantiles.
took() { ask "histogram_quantile(0.5, rate(sbinject_call_duration_seconds_bucket[5s])) > 0" &&
	grep -q '"target":"libc.so.6:clock_nanosleep"' "$T/answer"; }
wait_for 10 took || fail "no quantile: $(cat "$T/answer")"
kill -TERM "$scraper"
wait "$scraper"
sb_stop
ended 0
unchanged "$pid"
finish calls "$pid"
