#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A function of one byte is hooked where its section ends, and behind a function whose length the
# file does not give: its second byte is the linker's fill, its jump stands in the padding before it.
# beside others
. "$SRC/test/lib.sh"
. "$SRC/test/shapes.bash"

start last "$V/last-byte" 200000 "$T/gate"
snapshot "$pid"
count_all jump last "$pid" "$T/gate" last_ret after_start
