# SPDX-License-Identifier: MIT
"""A load, and the time at which each token arrives. load.py PORT RATE SECONDS [TOKENS]: an open loop,
requests begin at their own times, whether or not earlier ones are answered. load.py --clients N PORT
SECONDS [TOKENS]: a closed loop, each client asks again when it has its answer. Prints a report as JSON
when the last answer is there."""
import argparse
import asyncio
import json
import random
import sys
import time

import aiohttp

PROMPT_TOKENS = 32
PATIENCE_S = 120
# vLLM's server closes a connection that was idle for 5 s. A request that is sent at that moment fails,
# with sbinject or without: an idle connection is not used again after
IDLE_S = 2


class Answer:
    def __init__(self):
        self.sent = time.monotonic()
        self.tokens = []  # when each chunk arrived
        self.counted = 0  # as the server says it at the end
        self.error = None


async def ask(http, port, n_tokens, rng, answer):
    body = {"model": "tiny", "stream": True, "max_tokens": n_tokens, "ignore_eos": True,
            "temperature": 0, "stream_options": {"include_usage": True},
            "prompt": [rng.randrange(2, 2000) for _ in range(PROMPT_TOKENS)]}
    try:
        async with http.post("http://127.0.0.1:%d/v1/completions" % port, json=body) as reply:
            if reply.status != 200:
                answer.error = "status %d: %.200s" % (reply.status, await reply.text())
                return
            async for line in reply.content:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                if event.get("choices"):
                    answer.tokens.append(time.monotonic())
                if event.get("usage"):
                    answer.counted = event["usage"]["completion_tokens"]
        if answer.counted != n_tokens:
            answer.error = "%d tokens of %d" % (answer.counted, n_tokens)
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as e:
        answer.error = repr(e)


async def arrive(send, rng, rate, seconds):
    """An open loop: a request at its time."""
    tasks = []
    begin = at = time.monotonic()
    while at < begin + seconds:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        tasks.append(asyncio.create_task(send()))
        at += rng.expovariate(rate)
    await asyncio.gather(*tasks)


async def take_turns(send, end):
    """One client of a closed loop."""
    while time.monotonic() < end:
        await send()


async def run(args):
    rng = random.Random(args.port)
    answers = []
    limit = aiohttp.ClientTimeout(total=PATIENCE_S)
    many = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S)
    async with aiohttp.ClientSession(timeout=limit, connector=many) as http:
        async def send():
            answers.append(Answer())
            await ask(http, args.port, args.tokens, rng, answers[-1])

        if args.clients:
            end = time.monotonic() + args.seconds
            await asyncio.gather(*(take_turns(send, end) for _ in range(args.clients)))
        else:
            await arrive(send, rng, args.rate, args.seconds)
    return answers


def report(answers):
    gaps = []  # (when it ended, seconds): between two tokens of one request
    for a in answers:
        gaps.extend((t, t - s) for s, t in zip(a.tokens, a.tokens[1:]))
    return {"requests": len(answers), "errors": [a.error for a in answers if a.error],
            "tokens": sum(a.counted for a in answers), "gaps": gaps,
            "first": [(a.tokens[0], a.tokens[0] - a.sent) for a in answers if a.tokens]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, help="a closed loop of so many, without RATE")
    parser.add_argument("port", type=int)
    if "--clients" not in sys.argv:
        parser.add_argument("rate", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("tokens", type=int, nargs="?", default=64)
    json.dump(report(asyncio.run(run(parser.parse_args()))), sys.stdout)
