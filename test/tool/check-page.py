#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check-page.py PAGE.html DOCUMENT.json: the page of a sweep is well-formed, fetches nothing, says
nothing that the document does not say, and its pictures share their axes, which begin at zero."""
import json
import re
import sys
import xml.etree.ElementTree as ET

CONSTANT = {"95 %", "p50", "p90", "p99"}  # of intervals, and quantiles
HIDDEN = {*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x61C, 0xFEFF}


def shown(text):
    """As src/base/text.h shows a name; the document's form of it is that of src/base/json.h."""
    out = []
    for c in text:
        point = ord(c)
        if 0xEF80 <= point <= 0xEFFF:
            out.append(f"\\x{point & 0xff:02x}")
        elif c in "\n\t\r":
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}[c])
        elif point < 0x20 or point == 0x7F:
            out.append(f"\\x{point:02x}")
        elif 0x80 <= point < 0xA0 or point in HIDDEN:
            out.append(f"\\u{point:04x}")
        else:
            out.append("\ufffd" if point in (0xFFFE, 0xFFFF) else c)
    return "".join(out)


def values(node, numbers, strings):
    if isinstance(node, dict):
        for key, value in node.items():
            values(value, numbers, strings)
    elif isinstance(node, list):
        for value in node:
            values(value, numbers, strings)
    elif isinstance(node, str):
        strings.add(shown(node))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        numbers.add(float(node))


def fail(what):
    sys.exit(f"{sys.argv[1]}: {what}")


def check_texts(root, numbers, strings):
    """Each figure and each sentence stands in the document; no digit stands anywhere else."""
    def walk(e):
        of, text = (e.get("class") or "").split(), "".join(e.itertext())
        if e.tag == "style" or "tick" in of or "outside" in of or "name" in of:
            pass
        elif e.tag == "data":
            if float(e.get("value")) not in numbers:
                fail(f"the document lacks {e.get('value')} ({text})")
        elif "said" in of:
            if text not in strings:
                fail(f"the document lacks: {text}")
        else:
            if e.tag == "title" and e.get("id") and text in strings:
                return
            for part in [e.text or ""] + [c.tail or "" for c in e]:
                for constant in CONSTANT:
                    part = part.replace(constant, "")
                if re.search(r"\b(nan|inf)\b", part, re.I):
                    fail(f"no number: {part.strip()}")
                if re.search(r"[2-9]|\d\d", part):
                    fail(f"a number that is no figure: {part.strip()}")
            for child in e:
                walk(child)
    walk(root)


def check_attributes(root):
    for e in root.iter():
        if e.tag in ("script", "link", "iframe", "img", "image", "use", "object", "form"):
            fail(f"<{e.tag}>")
        for key, value in e.attrib.items():
            if key in ("href", "src", "srcset", "action") or key.startswith("on"):
                fail(f"{key}={value}")
            if "url(" in value and not value.startswith("url(#clip"):
                fail(f"{key}={value}")
            if key != "id" and e.tag not in ("data",) and re.search(r"\b(nan|inf)\b", value, re.I):
                fail(f"{key}={value}")
        if e.tag == "style" and re.search(r"url\(|@import|http", e.text):
            fail("the style fetches something")


def check_access(root):
    if root.get("lang") != "en":
        fail("no language")
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    if len(ids) != len(set(ids)):
        fail("an id stands twice")
    for th in root.iter("th"):
        if not th.get("scope"):
            fail("a head of a table without scope")
    nested = {c for svg in root.iter("svg") for c in svg.iter("svg") if c is not svg}
    for svg in root.iter("svg"):
        if svg in nested or svg.get("aria-hidden") == "true":
            continue
        if svg.find("title") is None or svg.find("desc") is None or svg.get("role") != "img":
            fail("a picture without a title and a description")
        if not set(svg.get("aria-labelledby").split()) <= set(ids):
            fail("a picture whose title is elsewhere")


def check_axes(root, doc):
    pictures = [s for s in root.iter("svg") if s.get("class") == "dose" and s.get("data-scale")]
    scales = {s.get("data-scale") for s in pictures}
    if len(scales) > 1:
        fail(f"axes differ: {scales}")
    for s in pictures:
        x0, x1, y0, y1 = map(float, s.get("data-scale").split())
        if x0 != 0 or not y0 <= 0 < y1 or not x1 > 0:
            fail(f"axes do not begin at zero: {s.get('data-scale')}")
        if [t.text for t in s.iter("text") if t.get("class") == "tick"].count("0") != 2:
            fail("an axis without its zero")
        if not (list(s.iter("circle")) or [p for p in s.iter("path") if p.get("class") == "arrow"]):
            fail("an empty picture")
    if len({s.get("data-scale") for s in root.iter("svg") if s.get("class") == "stack"}) > 1:
        fail("scales of bars differ")
    drawn = [t for t in doc["targets"]
             if any(d["delay_ns"] and d["x_ns"] is not None and d["delta_ns"] is not None
                    for d in t["doses"])]
    if len(pictures) != len(drawn):
        fail(f"{len(pictures)} pictures of {len(drawn)} targets with doses")


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    doc = json.load(open(sys.argv[2], encoding="utf-8"))
    numbers, strings = set(), set()
    values(doc, numbers, strings)
    head, _, body = page.partition("\n")
    if head != "<!DOCTYPE html>":
        fail("no doctype")
    root = ET.fromstring(body)
    check_attributes(root)
    check_texts(root, numbers, strings)
    check_access(root)
    check_axes(root, doc)
    h1 = root.find(".//h1")
    if shown(doc["summary"][0]) != "".join(h1.itertext()):
        fail("another headline than the document's")
    rows = root.findall(".//table[@class='wide']/tbody/tr")
    if len(rows) != len(doc["targets"]):
        fail(f"{len(rows)} rows of {len(doc['targets'])} targets")


main()
