#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Python functions, in one process and in several, swept by hits of another.
# limit: 150 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
need_python

p=${python[-1]}
for shape in serial ranks; do
	start "$shape" "$p" "$SRC/test/victim/python/sweep.py" "$shape"
	measures 1 'CRITICAL PARTIAL' "$pid" py:__main__:crit --progress py:__main__:item --time 6s
	same "$shape: lanes" "$(sj gates.lanes)" "$([ $shape = ranks ] && echo 2 || echo 1)"
	[ $shape = ranks ] || finds NOT_CALLED "$pid" py:__main__:never --progress py:__main__:item --time 3s
	finish "$shape" "$pid"
done
