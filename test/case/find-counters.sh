#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Given the address of a page of metrics, find proposes the counter on it that grows steadily, and the
# histogram of seconds as the response. Its commands run as they are printed, and an address that does not
# answer, or shows no counter, is refused before anything is hooked.
# limit: 60 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
need python3

start open "$V/sweep-shapes" open
url=http://127.0.0.1:$(sed -n 's/^port //p' open.out)/metrics
snapshot "$pid"
sb find -p "$pid" --progress "prom:$url" --dry-run --json "$T/run.json"
ended 0
unchanged "$pid"
[ "$(j explain.candidates)" != null ] || { finish open "$pid"; skip "$(j explain.candidates_reason)"; }
same 'given' "$(j progress_given)" false
grep -q '^app:items_total ' sb.out || fail "no table of the counters: $(cat sb.out)"
[ "$(j progress)" != null ] || { finish open "$pid"; skip "too noisy a machine: $(j sweep_reason)"; }
grep -q '^app:items_total .* proposed$' sb.out || fail "not proposed: $(cat sb.out)"
same 'response' "$(j response)" "prom:$url#latency_seconds"
same 'progress' "$(j progress)" "prom:$url#app:items_total"
grep -qF "an item is one more of prom:$url#app:items_total: proposed" sb.out || fail "$(cat sb.out)"

# Other windows than those asked for are no matter of this: short, and with the response.
command=$(j commands.sweep)
command=${command#sbinject }
eval "sb ${command/ --time * -p / --time 5s -p } --response '$(j response)' --json '$T/run.json'"
[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "$command: exit status $rc: $(cat sb.err)"
same 'of the sweep' "$(j response)" "prom:$url#latency_seconds"
unchanged "$pid"

refuses 1 'connect' find -p "$pid" --progress prom:http://127.0.0.1:1/metrics
cat >server.py <<'END'
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>requests_total 7</html>\n# TYPE queue gauge\nqueue 3\n")
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
python3 server.py >port &
pids+=($!)
wait_for 10 test -s port || fail 'no server'
refuses 1 'shows no counter' find -p "$pid" --progress "prom:http://127.0.0.1:$(cat port)/"
unchanged "$pid"
finish open "$pid"
exit 0
