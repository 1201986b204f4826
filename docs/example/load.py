# SPDX-License-Identifier: MIT
"""Load for server.py: 16 clients, each with its next request as soon as it has an answer.

    python3 load.py [PORT [SECONDS]]

Prints the requests answered and their rate.
"""

import asyncio
import sys
import time

CLIENTS = 16


async def client(port, until, answered):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        writer.write(b"GET /generate?n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % len(answered))
        head = await reader.readuntil(b"\r\n\r\n")
        answered.append(await reader.readexactly(int(head.split(b"Length: ")[1])))
    writer.close()


async def main(port, seconds):
    answered, start = [], time.monotonic()
    await asyncio.gather(*(client(port, start + seconds, answered) for _ in range(CLIENTS)))
    print(f"{len(answered)} requests, {len(answered) / (time.monotonic() - start):.0f} a second")


if __name__ == "__main__":
    port, seconds = (sys.argv[1:] + ["8017", "5"][len(sys.argv) - 1 :])[:2]
    asyncio.run(main(int(port), float(seconds)))
