#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sbinject-page(5) says of the control page what its header has, field by field: every offset of the
# one is checked by the compiler in the other, and none is left out.
# beside others
# quick
. "$SRC/test/lib.sh"
need python3

python3 - "$SRC" <<'P' || fail 'the manual page and inject/page-abi.h differ'
import re, sys

abi = open(sys.argv[1] + "/inject/page-abi.h").read()
man = open(sys.argv[1] + "/man/sbinject-page.5").read()
structs = {"Header": "header", "Notices": "notice", "Process table": "proc", "Doorbell": "ring",
           "Private record": "record", "Cell": "cell", "Counts": "counts", "Slot": "slot",
           "Times": "span", "Times of a function": "function", "Calls in progress": "call",
           "Thread record": "thread", "Arguments": "arguments",
           "Words that are not in registers": "stacked", "Kept arguments": "kept", "Values": "more", "Note": "note", "List of chunks": "trace",
           "Taken chunks": "taken", "Chunk": "chunk", "Event": "event", "List of places": "stacks",
           "Taken places": "stacks_taken", "Stack": "stack", "Python frame": "frame"}
version = re.search(r"^#define SB_PAGE_VERSION\s+(\d+)$", abi, re.M)[1]
said = re.findall(r"^The layout is version (\d+)|^\.It 8 Ta u32 Ta version, (\d+)$|^Version (\d+) added$", man, re.M)
assert [x for of in said[:3] for x in of if x] == [version] * 3, (version, said)
documented = {}
for title, name in structs.items():
    part = re.search(r"^\.Ss %s\n(.*?)(?=^\.S[sh] )" % title, man, re.M | re.S)[1]
    fields = documented[name] = {}
    for offset, kind, text in re.findall(r"^\.It (\d+) Ta (\S+) Ta (.*)$", part, re.M):
        pair = re.match(r"(\w+), (\w+_\w+)\b", text)  # "region_addr, region_size: ..."
        fields[re.match(r"\w+", text)[0]] = int(offset)
        if pair:
            fields[pair[2]] = int(offset) + 8
for name, fields in documented.items():
    checked = {f: int(o) for f, o in re.findall(r"SB_PAGE_OFF\(sb_page_%s, (\w+), (\d+)\)" % name, abi)}
    first = next(iter(fields))
    if first not in checked and not fields[first]:  # the first field's offset needs no check
        checked[first] = 0
    assert fields == checked, (name, set(fields.items()) ^ set(checked.items()))
    body = re.search(r"^struct sb_page_%s \{(.*?)^\};" % name, abi, re.M | re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    declared = {f for line in re.findall(r"(?:u?int\d+_t|char|struct sb_page_slot|struct sb_page_event|struct sb_page_kept|struct sb_page_python)\s+([^;]*);", body)
                for f in re.findall(r"(\w+)(?:\[[^\]]*\])?\s*(?:,|$)", line)}
    assert {f for f in declared if not f.startswith(("reserved", "settings"))} == set(fields), (name, declared ^ set(fields))
P
