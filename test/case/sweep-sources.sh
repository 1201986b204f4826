#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A progress source that does not answer, does not move, goes back or has no such number is an error
# that says so, and the target is left alone.
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
need python3

start serial "$V/sweep-shapes" serial item=1000 rest=1
snapshot "$pid"
cat >server.py <<'END'
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/hangs":
            time.sleep(20)
        self.send_response(500 if self.path == "/500" else 200)
        self.end_headers()
        self.wfile.write(b"lat_sum 5\nlat_count 3\nstands_total 7\nfalls_total %d\n" % (1e9 - time.time() * 10 % 1e8))
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
python3 server.py >port &
pids+=($!)
wait_for 10 test -s port || fail 'no server'
url=http://127.0.0.1:$(cat port)
no() { refuses 1 "$1" sweep -q -p "$pid" :crit --time 4s --progress "$2"; }
usage() { refuses 2 "$1" sweep -q -p "$pid" :crit --time 4s "${@:2}"; }

no 'connect' prom:http://127.0.0.1:1/#x
no 'status 500' "prom:$url/500#stands_total"
no 'time' "prom:$url/hangs#stands_total"
no 'no metric' "prom:$url/#missing_total"
no 'no metric' "prom:$url/#stands_total{a=\"b\"}"
no 'does not move.* 7 ' "prom:$url/#stands_total"
no 'went back' "prom:$url/#falls_total"
no 'no such file' file:/nonexistent
echo text >text
no 'no number' "file:$T/text"
no 'failed' cmd:false
no 'does not move.* 5 ' 'cmd:echo 5'
no 'does not move' :never
refuses 1 'does not move.* 3 ' sweep -q -p "$pid" :crit --time 4s --progress :item \
	--response "prom:$url/#lat"
usage 'no progress'
usage 'names no metric' --progress prom:http://127.0.0.1
usage 'runs' --progress 'stdout:x'
usage 'runs' --progress end
usage 'not a number' --progress :item --doses 1us,zero
usage 'smallest' --progress :item --doses 5ns
usage 'response' --progress :item --response file:x
usage 'self-check' --progress cmd:date --self-check
unchanged "$pid"
finish serial "$pid"
