# SPDX-License-Identifier: MIT
"""callers.py LIBRARY TRUTH WAY...: calls native functions in many ways, and writes the frames that it
has at each of these calls itself: a line of JSON, the innermost frame first."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback

library = sys.argv[1]
slow = ctypes.CDLL(library).pycall_slow  # without the GIL
held = ctypes.PyDLL(library).pycall_slow  # with it
fast = ctypes.CDLL(library).pycall_fast
back = ctypes.CDLL(library).pycall_back
held_fast = ctypes.PyDLL(library).pycall_fast
truth = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
numbers = iter(range(1, 1 << 30))
base = 0  # of the numbers of this process
lock = threading.Lock()
# A thread of the parent that the child does not have may hold it.
os.register_at_fork(after_in_child=lambda: globals().update(lock=threading.Lock()))
qualified = sys.version_info >= (3, 11)


def note(way, lines=0):
    """To be called in the line of the native call, or so many lines behind it."""
    frame, frames = sys._getframe(1), []
    stack = traceback.extract_stack(frame)
    while frame:
        code = frame.f_code
        frames.append([code.co_qualname if qualified else code.co_name, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    assert [(f.filename, f.lineno) for f in reversed(stack)] == [(f[1], f[2]) for f in frames]
    frames[0][2] -= lines
    with lock:
        number = base + next(numbers)
    os.write(truth, (json.dumps({"id": number, "way": way, "frames": frames}) + "\n").encode())
    return number


def plain(way="plain"):
    return slow(note(way))


class Shapes:
    def method(self):
        return held(note("method"))

    def __getitem__(self, key):
        return slow(note("getitem"))

    @property
    def value(self):
        return slow(note("property"))

    @staticmethod
    def static(n):
        return slow(note("static"))

    def __enter__(self):
        slow(note("enter"))
        return self

    def __exit__(self, *why):
        slow(note("exit"))
        return True


def recurse(n):
    if n == 0:
        return plain("recursion")
    return recurse(n - 1)


def generate(n):
    for i in range(n):
        yield slow(note("generator"))


def delegate():
    yield from generate(1)


async def inner():
    await asyncio.sleep(0)
    return slow(note("coroutine"))


async def agen():
    yield held(note("asynchronous generator"))


async def outer():
    await inner()
    async for _ in agen():
        pass
    await asyncio.gather(inner(), inner())


def größe_名():
    return slow(note("letters"))


def lines():
    return slow(
        note(
            "lines", lines=1))


def exceptions():
    try:
        raise ValueError(plain("try"))
    except ValueError:
        slow(note("except"))
    finally:
        slow(note("finally"))


def called_back(number):
    recurse(2)
    return number


def made(name, filename):
    space = {"slow": slow, "note": note}
    exec(compile(f"def {name}():\n\n  return slow(note('made'))\n", filename, "exec"), space)
    return space[name]()


def ways():
    global base
    plain()
    shapes = Shapes()
    shapes.method()
    shapes[1]
    shapes.value
    Shapes.static(0)
    with shapes:
        raise KeyError
    recurse(30)
    list(generate(2))
    [x for x in delegate()]
    sorted([1, 2], key=lambda v: slow(note("key")))
    functools.reduce(lambda a, b: held(note("reduce")), [1, 2, 3])
    asyncio.run(outer())
    größe_名()
    lines()
    exceptions()
    back(note("back"), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(called_back))
    made("f", "<string>")
    made("ü", "/tmp/dätei.py")
    made("n" * 700, "long")
    thread = threading.Thread(target=recurse, args=(3,))
    thread.start()
    thread.join()
    # A class statement has a frame.
    class Body:
        x = slow(note("class"))
    pid = os.fork()
    if not pid:
        base = 1 << 24
        slow(note("fork"))
        os._exit(0)
    os.waitpid(pid, 0)


def again():
    for _ in range(3):
        ways()


def many():
    recurse(250)


def throw_away(number, rounds):
    """Functions that are made, called once and freed, while others are made in their place."""
    for i in range(rounds):
        name = f"f{number}_{i % 7}"
        space = {"call": held_fast if i % 3 else fast, "note": note, "g": None}
        source = "\n" * (i % 50) + f"def {name}(n):\n  return {name}(n - 1) if n else call(note('made'))\n"
        exec(compile(source, f"/made/{number}/{i}.py", "exec"), space)
        with contextlib.suppress(ZeroDivisionError):
            space[name](i % 5)
            1 // 0
        space.clear()
        if i % 97 == 0:
            gc.collect()


def torture():
    global base
    rounds = int(sys.argv[4])
    threads = [threading.Thread(target=throw_away, args=(n, rounds)) for n in range(4)]
    for t in threads:
        t.start()
    for i in range(5):
        pid = os.fork()
        if not pid:
            base = i + 1 << 24
            throw_away(9, rounds // 10)
            os._exit(0)
        os.waitpid(pid, 0)
    for t in threads:
        t.join()


def endless():
    """Until SIGTERM; without notes, which would grow."""
    global note
    note = functools.partial(max, 7, key=lambda _: 0)  # 7
    ends = []  # not an Event: its set() in a handler waits for the lock that an interrupted wait() holds
    signal.signal(signal.SIGTERM, lambda *_: ends.append(1))

    def work(number):
        while not ends:
            throw_away(number, 100)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    print("ready", flush=True)
    while not ends:
        time.sleep(0.1)
        pid = os.fork()
        if not pid:
            throw_away(9, 20)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    for t in threads:
        t.join()


def nonsense():
    """Frames of this thread that are none, wherever they are, while a native function runs."""
    fields = {10: [24, 48], 11: [56], 12: [56], 13: [72]}[sys.version_info[1]]
    run = ctypes.PyDLL(library).pycall_nonsense
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    state = ctypes.pythonapi.PyThreadState_Get()
    page = ctypes.pythonapi.malloc
    page.restype, page.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    known = ctypes.cast(page(4096), ctypes.c_void_p).value
    for i in range(200):
        for value in (8, 1, 0x7fff00000000, 0xdead << 48, known & ~7, id(nonsense), id(type), state):
            field = ctypes.c_void_p(state + fields[i % len(fields)])
            assert run(7, field, ctypes.c_uint64(value)) == 7
            assert run(7, field, ctypes.c_uint64(ctypes.c_uint64.from_address(field.value).value)) == 7


def daemons():
    """The interpreter ends beside threads that go on calling."""
    def calls():
        while True:
            slow(1)
    for _ in range(8):
        threading.Thread(target=calls, daemon=True).start()
    threading.Event().wait(0.05)


{"ways": ways, "again": again, "nonsense": nonsense, "endless": endless, "many": many, "torture": torture, "daemons": daemons}[sys.argv[3]]()
print("self-check ok")
