# SPDX-License-Identifier: MIT
"""
real.py FOLDER KIND...: programs as people write them, under load, that count the calls of step()
themselves and look at all their results.

Until FOLDER/go is there they call warm() instead; then step(), and FOLDER/went is made; then warm()
again until FOLDER/stop is there. Without a FOLDER (-): step() at once.
"""
import asyncio
import concurrent.futures
import http.client
import http.server
import multiprocessing
import os
import queue
import sys
import threading

folder = sys.argv[1]
LOAD = 4  # clients, workers


def warm(n):
    return n * n


def step(n):
    return n * n


def either(which, n):
    return (step if which == "step" else warm)(n)


class Http:
    """http.server with a thread a connection, and clients that keep theirs."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            which, n = self.path[1:].split("/")
            body = b"%d" % either(which, int(n))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def client(self, which, n, done):
        connection = http.client.HTTPConnection(*self.server.server_address)
        for i in range(n):
            connection.request("GET", "/%s/%d" % (which, i))
            answer = connection.getresponse()
            assert answer.status == 200 and int(answer.read()) == i * i
            done.append(1)
        connection.close()

    def run(self, which, n):
        done = []
        clients = [threading.Thread(target=self.client, args=(which, n, done))
                   for _ in range(LOAD)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        assert len(done) == LOAD * n, "a client failed"
        return len(done)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Asyncio:
    """An asyncio server and its clients, with tasks, a lock, a queue and an executor."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(
            asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        while line := await reader.readline():
            which, n = line.decode().split()
            if int(n) % 5:
                value = either(which, int(n))
            else:
                value = await self.loop.run_in_executor(None, either, which, int(n))
            writer.write(b"%d\n" % value)
            await writer.drain()
        writer.close()

    async def client(self, which, n):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for i in range(n):
            writer.write(b"%s %d\n" % (which.encode(), i))
            assert int(await reader.readline()) == i * i
        writer.close()
        await writer.wait_closed()
        return n

    async def clients(self, which, n):
        return sum(await asyncio.gather(*[self.client(which, n) for _ in range(LOAD)]))

    def run(self, which, n):
        return self.loop.run_until_complete(self.clients(which, n))

    def close(self):
        self.server.close()
        self.loop.run_until_complete(self.server.wait_closed())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


class Pool:
    """multiprocessing: workers that live long, and ones that come and go."""

    def __init__(self):
        self.context = multiprocessing.get_context("fork")
        self.pool = self.context.Pool(2)

    def run(self, which, n):
        work = [(which, i) for i in range(n)]
        good = [i * i for i in range(n)]
        assert self.pool.starmap(either, work, 7) == good
        assert self.pool.starmap_async(either, work, 1).get() == good
        with self.context.Pool(2, maxtasksperchild=3) as short:
            assert short.starmap(either, work[:10], 1) == good[:10]
            short.close()
            short.join()
        return 2 * n + min(n, 10)

    def close(self):
        self.pool.close()
        self.pool.join()


class Futures:
    """concurrent.futures, threads and processes."""

    def __init__(self):
        self.threads = concurrent.futures.ThreadPoolExecutor(LOAD)
        self.processes = concurrent.futures.ProcessPoolExecutor(
            2, mp_context=multiprocessing.get_context("fork"))

    def run(self, which, n):
        total = 0
        for pool in (self.threads, self.processes):
            waiting = {pool.submit(either, which, i): i for i in range(n)}
            for f in concurrent.futures.as_completed(waiting):
                assert f.result() == waiting[f] ** 2
                total += 1
        return total

    def close(self):
        self.threads.shutdown()
        self.processes.shutdown()


class Queue:
    """Threads that make, and threads that take."""

    def make(self, n):
        for i in range(n):
            self.queue.put(i)

    def take(self, which):
        while (i := self.queue.get()) is not None:
            value = either(which, i)
            with self.lock:
                self.sum += value
                self.n += 1

    def run(self, which, n):
        self.queue, self.lock, self.sum, self.n = queue.Queue(10), threading.Lock(), 0, 0
        makers = [threading.Thread(target=self.make, args=(n,)) for _ in range(LOAD)]
        takers = [threading.Thread(target=self.take, args=(which,)) for _ in range(LOAD)]
        for t in makers + takers:
            t.start()
        for t in makers:
            t.join()
        for _ in takers:
            self.queue.put(None)
        for t in takers:
            t.join()
        assert self.sum == LOAD * sum(i * i for i in range(n)), "something was lost"
        return self.n

    def close(self):
        pass


KINDS = {"http": Http, "asyncio": Asyncio, "pool": Pool, "futures": Futures, "queue": Queue}


def at(name):
    return folder != "-" and os.path.exists(os.path.join(folder, name))


def main(names):
    kinds = [KINDS[name]() for name in names]
    os.write(1, b"ready\n")
    while not at("go") and folder != "-":
        for kind in kinds:
            kind.run("warm", 10)
    calls = sum(kind.run("step", 100) for kind in kinds)
    os.write(1, b"calls step %d\n" % calls)
    if folder != "-":
        open(os.path.join(folder, "went"), "w").close()
    while not at("stop") and folder != "-":
        for kind in kinds:
            kind.run("warm", 10)
    for kind in kinds:
        kind.close()
    os.write(1, b"self-check ok\n")


if __name__ == "__main__":
    main(sys.argv[2:] or list(KINDS))
