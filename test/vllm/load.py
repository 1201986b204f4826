# SPDX-License-Identifier: MIT
"""An open-loop load: requests begin at their own times, whether or not earlier ones are answered,
and the time at which each token arrives is kept. load.py PORT RATE SECONDS [TOKENS]: prints a report as
JSON when the last answer is there."""
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


async def run(port, rate, seconds, n_tokens):
    rng = random.Random(port)
    answers, tasks = [], []
    limit = aiohttp.ClientTimeout(total=PATIENCE_S)
    many = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S)
    async with aiohttp.ClientSession(timeout=limit, connector=many) as http:
        begin = at = time.monotonic()
        while at < begin + seconds:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            answers.append(Answer())
            tasks.append(asyncio.create_task(ask(http, port, n_tokens, rng, answers[-1])))
            at += rng.expovariate(rate)
        await asyncio.gather(*tasks)
    return answers


def report(answers):
    gaps = []  # (when it ended, seconds): between two tokens of one request
    for a in answers:
        gaps.extend((t, t - s) for s, t in zip(a.tokens, a.tokens[1:]))
    return {"requests": len(answers), "errors": [a.error for a in answers if a.error],
            "tokens": sum(a.counted for a in answers), "gaps": gaps,
            "first": [(a.tokens[0], a.tokens[0] - a.sent) for a in answers if a.tokens]}


if __name__ == "__main__":
    port, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    n_tokens = int(sys.argv[4]) if len(sys.argv) > 4 else 64
    json.dump(report(asyncio.run(run(port, rate, seconds, n_tokens))), sys.stdout)
