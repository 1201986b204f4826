#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The page of a sweep is well-formed, fetches nothing, and says nothing that its document does not
# say, whatever the names and the verdicts are; in a browser it fits a telephone and a wide screen.
# limit: 240 s
# beside others, as idle work
. "$SRC/test/lib.sh"
need python3

unit=${V%/*}/unit/test-out-sweep-page
[ -x "$unit" ] || fail "$unit is not built"
mkdir pages
SB_PAGES=$T/pages "$unit" >unit.out 2>&1 || fail "no pages: $(tail -n 5 unit.out)"
more pages "$(ls pages/*.html | wc -l)" 7
for page in pages/*.html; do
	python3 "$SRC/test/tool/check-page.py" "$page" "${page%.html}.json" || fail "$page"
done

for name in chromium chromium-browser google-chrome; do
	browser=$(command -v $name) && break
done
[ -n "$browser" ] || skip 'the pages are right; no browser to look at them is installed (chromium)'
for name in all none; do
	python3 "$SRC/test/tool/look.py" "$browser" pages/$name.html 360 1600 >look ||
		skip "$browser does not run: $(cat look)"
	while read -r _ width wide high; do
		[ "$wide" -le "$width" ] || fail "$name: $wide wide on a screen of $width"
		[ "$high" -gt 400 ] && [ "$high" -lt 60000 ] || fail "$name: $high high at $width"
	done < <(grep '^at ' look)
	same "widths of $name" "$(grep -c '^at ' look)" 2
	same "$name fetched" "$(sed -n 's/^fetched //p' look)" 0
	sheets=$(sed -n 's/^sheets //p' look)
	[ "$sheets" -ge 1 ] && [ "$sheets" -le 60 ] || fail "$name: $sheets sheets of paper"
done
