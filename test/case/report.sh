#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# report: sums, filters, conversions and errors, on a small trace whose figures are known.
# beside others
# quick
. "$SRC/test/lib.sh"

trace="$SRC/test/case/report.jsonl"
shows() { grep -qE -- "$1" "$T/sb.out" || fail "no '$1' in: $(cat "$T/sb.out")"; }
lacks() { ! grep -qE -- "$1" "$T/sb.out" || fail "'$1' in: $(cat "$T/sb.out")"; }

sb report "$trace" --slowest 2 --gaps=1ms --timeline
ended 0
shows '^59\.5us +95\.0us +1 .* outer +prog$'
shows '^31\.5us +31\.5us +3 .* inner +prog$'
shows ' delay: inner +prog$'
shows '^lost: 2 calls'
shows '^filtered: 1 call '
shows '^30\.0us +30\.0us +0\.000020 +mod\.<lambda> & "x" +- +77 +prog +78 '
shows '^1\.970ms +0\.000050 +0\.002020 '
shows '^77/77 main +\|'
lacks $'\x1b'
lacks 'cut off|damaged|skipped'

# how calls are spread
sb report "$trace" --histogram --json "$T/run.json"
ended 0
shows '^times of inner, 3 calls$'
shows '^ +512ns +1\.02us +1 +\|@{50}\|$'
shows '^ +2\.05us +4\.10us +0 +\| {50}\|$'
shows '^times of delay: inner, 1 call$'
same 'the same as numbers' "$(tr -d ' \n' <"$T/run.json" | grep -o '"histogram":\[\[512[^a-z]*\]\]')" \
	'"histogram":[[512,1024,1],[8192,16384,1],[16384,32768,1]]'
sb report "$trace" --json "$T/run.json"
! grep histogram "$T/run.json" || fail 'a histogram that was not asked for'

# the same from each format, and through a pipe
for format in pftrace json jsonl; do
	sb report "$trace" -o "$T/t.$format"
	ended 0
	sb report "$T/t.$format" --json "$T/run.json"
	ended 0
	same "$format" "$(j trace.format)" "$format"
	same functions "$(j functions.#)" 4
	same complete "$(j trace.complete)" true
	same lost "$(j trace.lost)" 2
	same spans "$(j spans)" 6
	"$SB" report "$T/t.$format" --folded - >"$T/$format.folded" || fail "--folded of $format"
	cmp -s "$T/pftrace.folded" "$T/$format.folded" || fail "$format: other stacks"
	"$SB" report - --folded - <"$T/t.$format" | cmp -s - "$T/$format.folded" || fail 'by a pipe'
done
grep -qx 'outer;delay: inner 5000' "$T/jsonl.folded" || fail "folded: $(cat "$T/jsonl.folded")"
sb report "$T/t.pftrace" -o "$T/again.jsonl"
cmp "$trace" "$T/again.jsonl" || fail 'jsonl to pftrace and back is another file'

# filters
sb report "$trace" --function 'inn*' --pid 77,78 --thread 77 --json -
ended 0
cp "$T/sb.out" "$T/run.json"
same spans "$(j spans)" 3
same own "$(j functions.0.own_ns)" 30500
sb report "$trace" --from 20us --to 40us -o "$T/part.json"
ended 0
sb report "$T/part.json" --json "$T/run.json"
same spans "$(j spans)" 3
same filtered "$(j trace.filtered)" 4

# pictures
sb report "$trace" --svg "$T/flame.svg"
ended 0
grep -q 'mod.&lt;lambda&gt; &amp; &quot;x&quot;: 30.000 us' "$T/flame.svg" || fail 'the name in the picture'
! grep -E '(href|src)=|<script|url\(' "$T/flame.svg" || fail 'the picture needs other files'
if command -v python3 >/dev/null; then
	python3 - "$T/flame.svg" "$T/t.json" <<'END' || fail 'not XML, or not JSON'
import json, sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])
json.load(open(sys.argv[2]))
END
fi

# cut off: what is there, and that it is cut
for format in pftrace json jsonl; do
	head -c $(($(wc -c <"$T/t.$format") - 150)) "$T/t.$format" >"$T/cut.$format"
	sb report "$T/cut.$format"
	ended 0
	shows '^cut off: the trace has no end'
	shows ' outer +prog$'
done

# what is refused
refuses 2 'another' report "$trace" "$trace"
refuses 2 'needs a trace' report
refuses 2 'does not say the format' report "$trace" -o "$T/x.txt"
refuses 2 'no format' report "$trace" -o "$T/x.txt" --format xml
refuses 2 'is the trace that is read' report "$T/t.json" -o "$T/t.json"
refuses 2 'no option' report "$trace" --bogus
refuses 2 'number from 1' report "$trace" --slowest 0
refuses 2 'not after' report "$trace" --from 2s --to 1s
refuses 1 'cannot read' report "$T/none.json"
refuses 1 'cannot read' report "$T"
: >"$T/empty"
refuses 1 'is empty' report "$T/empty"
refuses 1 'is no trace' report "$SB"
refuses 1 'cannot write' report "$trace" --svg /dev/full
refuses 1 'No space left' report "$trace" -o /dev/full --format json
