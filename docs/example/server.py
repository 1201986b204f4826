# SPDX-License-Identifier: MIT
"""A small inference server to practise on: HTTP in front, batches for a device behind.

    python3 server.py [PORT [LINGER_MS]]

Requests are parsed and queued; the engine takes up to eight, lets the device compute for 40 ms,
and answers. The device is a thread that sleeps: like a GPU it needs no Python while it works.
Before it takes them the engine lingers for 4 ms (LINGER_MS), so that more may come.
"""

import asyncio
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

BATCH, DEVICE_S = 8, 0.040


def device_run(batch):
    time.sleep(DEVICE_S)
    return [f"token {n}" for n, _ in batch]


class Engine:
    def __init__(self, linger_s):
        self.waiting = asyncio.Queue()
        self.device = ThreadPoolExecutor(1)
        self.linger_s = linger_s

    def schedule(self, batch):
        """Fill the batch from what waits."""
        time.sleep(self.linger_s)
        while len(batch) < BATCH and not self.waiting.empty():
            batch.append(self.waiting.get_nowait())

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self.waiting.get()]
            self.schedule(batch)
            tokens = await loop.run_in_executor(self.device, device_run, batch)
            for (_, answer), token in zip(batch, tokens):
                answer.set_result(token)


class Audit:
    """Keeps a record of each answer: a good deal of work, in Python."""

    def __init__(self):
        self.size = 0

    def record(self, number, token):
        entry = {"request": number, "token": token, "words": [str(i) for i in range(200)]}
        self.size += len(json.dumps(entry, sort_keys=True, indent=1))


def parse(line):
    method, path, _ = line.decode("latin-1").split(" ")
    return int(path.rpartition("=")[2]) if method == "GET" else None


async def serve(engine, audit, reader, writer):
    while line := await reader.readline():
        while (await reader.readline()).strip():
            pass
        number = parse(line)
        answer = asyncio.get_running_loop().create_future()
        await engine.waiting.put((number, answer))
        token = await answer
        body = token.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        audit.record(number, token)
    writer.close()


async def main(port, linger_ms):
    engine, audit = Engine(linger_ms / 1000), Audit()
    server = await asyncio.start_server(
        lambda r, w: serve(engine, audit, r, w), "127.0.0.1", port
    )
    print(f"pid {os.getpid()} port {server.sockets[0].getsockname()[1]}", flush=True)
    await engine.run()


if __name__ == "__main__":
    port, linger = (sys.argv[1:] + ["8017", "4"][len(sys.argv) - 1 :])[:2]
    asyncio.run(main(int(port), float(linger)))
