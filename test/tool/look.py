#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""look.py BROWSER PAGE.html WIDTH...: opens a page in a headless Chromium by its DevTools pipe. For
each width prints how wide and high the page becomes, then how many sheets it prints on and how
many requests it made beyond its own file. Screenshots lie beside the page."""
import base64
import json
import os
import subprocess
import sys
import tempfile


class Browser:
    def __init__(self, program, profile):
        mine, theirs = os.pipe(), os.pipe()  # commands, answers

        def hand_over():
            a, b = os.dup(mine[0]), os.dup(theirs[1])
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=hand_over)
        os.close(mine[0])
        os.close(theirs[1])
        self.to, self.back = mine[1], theirs[0]
        self.id, self.session, self.rest, self.events = 0, None, b"", []

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                sys.exit("the browser has ended")
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self.read()
            if got.get("id") == self.id:
                if "error" in got:
                    sys.exit(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.read())


def main():
    program, page, widths = sys.argv[1], os.path.realpath(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        b = Browser(program, profile)
        try:
            target = b.call("Target.createTarget", url="about:blank")["targetId"]
            b.session = b.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            b.call("Page.enable")
            b.call("Network.enable")
            b.call("Page.navigate", url="file://" + page)
            b.wait_for("Page.loadEventFired")
            for width in map(int, widths):
                b.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                       deviceScaleFactor=1, mobile=False)
                size = b.call("Page.getLayoutMetrics")["cssContentSize"]
                print("at", width, size["width"], size["height"])
                shot = b.call("Page.captureScreenshot", captureBeyondViewport=True,
                              clip={"x": 0, "y": 0, "width": width, "height": size["height"],
                                    "scale": 1})
                with open(f"{page}.{width}.png", "wb") as f:
                    f.write(base64.b64decode(shot["data"]))
            pdf = base64.b64decode(b.call("Page.printToPDF")["data"])
            print("sheets", pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/"))
            asked = [e["params"]["request"]["url"] for e in b.events
                     if e.get("method") == "Network.requestWillBeSent"]
            print("fetched", sum(url != "file://" + page for url in asked))
        finally:
            b.process.kill()
            b.process.wait()


main()
