# SPDX-License-Identifier: MIT
"""Speaks with the agent as sbinject does, from inside of the interpreter: lays out a control
page, a record and a mailbox (inject/page-abi.h), loads the agent and calls it."""
import ctypes
import gc
import mmap
import os
import sys

OFF, COUNT, SLOW = 0, 1, 2
THREADS, DELAY, SPANS = 1, 2, 4
FILE, RESUME, TIMED = 1, 2, 8
APPLY, LIST, STOP = 1, 2, 3
ERRORS = {0: "ok", -1: "load", -2: "unsupported", -3: "no-tool", -4: "python", -5: "busy",
          -6: "damaged", -7: "elsewhere", -8: "again"}
SLOTS, SHARED, PAGE_MAX = 64, 16, 1 << 20
TABLES, TABLE = 128, 1 << 16  # of the thread filter, and bytes of each
u8, u16, u32, u64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
i32, i64 = ctypes.c_int32, ctypes.c_int64


class Header(ctypes.Structure):
    _fields_ = [("magic", u64), ("version", u32), ("header_size", u32), ("session", u64),
                ("size", u64), ("targets_max", u32), ("procs_max", u32), ("slots", u32),
                ("cell_size", u32), ("block_size", u64), ("procs_off", u64), ("blocks_off", u64),
                ("threads_off", u64), ("tsc_hz", u64), ("tracer_pid", u32), ("reserved0", u32),
                ("region_addr", u64), ("region_size", u64), ("notes_off", u64),
                ("notes_size", u64), ("lease_until", u64), ("generation", u32),
                ("doorbell_spin", u32), ("reserved1", u64 * 2),
                ("mailbox_addr", u64), ("mailbox_size", u64), ("each_off", u64), ("each_max", u32),
                ("span_blocks", u32), ("counters_off", u64), ("spans_off", u64),
                ("calls_off", u64), ("functions_off", u64), ("trace_off", u64),
                ("chunks_off", u64), ("chunks", u32), ("stacks", u32),
                ("stack_list_off", u64), ("stacks_off", u64), ("stack_size", u32),
                ("reserved2", u32)]


class Told(ctypes.Structure):
    _fields_ = [("reserved", u64 * 18), ("doorbell", u32), ("doorbells_lost", u32), ("notes_used", u64)]


class Slot(ctypes.Structure):
    _fields_ = [("owner", u64), ("hits", u64), ("injected_ticks", u64), ("overrun_ticks", u64),
                ("residual_ticks", i64), ("lapsed", u64), ("max_ticks", u64), ("exits", u64),
                ("bucket", u64 * 120)]


class Cell(ctypes.Structure):
    _fields_ = [("state", u32), ("flags", u32), ("delay_ticks", u64), ("every", u64),
                ("overrun_limit", u64), ("residual_max", u64), ("pause_above", u64),
                ("threads", u64), ("span_block", u16), ("span_bit", u8), ("shape", u8),
                ("span_epoch", u32), ("value", u16 * 12)]


class Counts(ctypes.Structure):
    _fields_ = [("settings", u64 * 7), ("cuts", u64), ("cut_ticks", u64),
                ("reserved", u64 * 119), ("slot", Slot * (SLOTS + SHARED))]


class Span(ctypes.Structure):
    _fields_ = [("begun", u64), ("calls", u64), ("ticks", u64), ("own_ticks", u64),
                ("outer_ticks", u64), ("inv_least", u64), ("most", u64), ("apart", u64),
                ("last", u64), ("reserved", u64 * 55), ("bucket", u64 * 1216)]


class Times:
    """How long calls of a cell took: the sums of all slots of its block."""

    def __init__(self, spans=()):
        self.begun, self.calls, self.ticks, self.outer_ticks, self.apart = (
            sum(getattr(s, field) for s in spans)
            for field in ("begun", "calls", "ticks", "outer_ticks", "apart"))
        self.missed = self.begun - self.calls
        self.most = max((s.most for s in spans), default=0)
        self.least = min((s.inv_least ^ (1 << 64) - 1 for s in spans if s.calls), default=0)
        self.buckets = [sum(column) for column in zip(*(s.bucket for s in spans if s.calls))]

    def __repr__(self):
        return str({k: v for k, v in vars(self).items() if k != "buckets"})


class Note(ctypes.Structure):
    _fields_ = [("size", u32), ("cell", u32), ("pid", u32), ("line", u32)]


class Target(ctypes.Structure):
    _fields_ = [("cell", u32), ("flags", u32), ("module", u32), ("name", u32)]


class Layout(ctypes.Structure):
    _fields_ = [("session", u64), ("size", u64), ("targets_max", u32), ("procs_max", u32),
                ("slots", u32), ("cell_size", u32), ("block_size", u64), ("procs_off", u64),
                ("blocks_off", u64), ("threads_off", u64), ("notes_off", u64),
                ("notes_size", u64), ("tsc_hz", u64), ("counters_off", u64),
                ("spans_off", u64), ("span_blocks", u64), ("calls_off", u64), ("trace_off", u64),
                ("chunks_off", u64), ("chunks", u64), ("stacks", u64), ("stack_size", u64),
                ("stack_list_off", u64), ("stacks_off", u64)]


class Mailbox(ctypes.Structure):
    _fields_ = [("magic", u64), ("version", u32), ("size", u32), ("busy", u32), ("asked", u32),
                ("done", u32), ("queued", u32), ("command", u32), ("status", i32),
                ("async_op", u32), ("parked", u32), ("let_go", u32), ("async_status", i32),
                ("function", u64 * 14), ("handle", u64), ("agent", u64), ("page_addr", u64),
                ("record_addr", u64), ("page", Layout), ("path", ctypes.c_char * 64),
                ("reason", ctypes.c_char * 256), ("list", u32), ("n_targets", u32),
                ("targets_off", u32), ("flags", u32), ("python", u32), ("matched", u32),
                ("cost_ticks", u64), ("others", u64 * 10), ("held_ticks", u64 * 2),
                ("slice_ticks", u64), ("paused_at", u64), ("pieces", u32), ("last", u32)]


assert ctypes.sizeof(Header) == 272 and ctypes.sizeof(Slot) == 1024
assert ctypes.sizeof(Cell) == 88 and Counts.slot.offset == 1024 and ctypes.sizeof(Span) == 10240

SPAN_BLOCK = (SLOTS + SHARED) * ctypes.sizeof(Span)

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libdl = ctypes.PyDLL(None)
libdl.dlclose.argtypes = [ctypes.c_void_p]


class Agent:
    """A control page and an agent. Targets are (MODULE, NAME[, FLAGS]), each with its own cell."""

    def __init__(self, *targets, cells=16, procs=4, path=None):
        cell = ctypes.sizeof(Counts)
        block = cells * cell
        blocks = 4096 + procs * 64 + 4096 & ~4095
        threads = blocks + procs * block
        rear = threads + TABLES * TABLE
        notes = rear + threads
        spans = notes + (1 << 20)
        # A block for each cell that is timed, in each process: see time(). What is not written to
        # takes no memory.
        span_blocks = 1 << (2 * cells).bit_length()
        size = spans + span_blocks * SPAN_BLOCK
        fd = os.memfd_create("sbinject")
        os.ftruncate(fd, size)
        self.base = libc.mmap(None, size, 3, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        self.record_addr = libc.mmap(None, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert libc.madvise(self.record_addr, 4096, 18) == 0  # MADV_WIPEONFORK
        self.record = u64.from_address(self.record_addr)
        self.header = Header.from_address(self.base)
        self.header.__init__(
            magic=0x31656761706a6273, version=10, header_size=272, session=id(self), size=size,
            targets_max=cells, procs_max=procs, slots=SLOTS, cell_size=cell, block_size=block,
            procs_off=4096, blocks_off=blocks, threads_off=threads, notes_off=notes,
            notes_size=1 << 20, lease_until=1 << 62, counters_off=rear, spans_off=spans,
            span_blocks=span_blocks)
        self.told = Told.from_address(self.base + rear)
        self.timed = 0  # blocks in use; none is block 0
        self.threads_off, self.counters_off = threads, rear
        self.block, self.cell_size, self.cells_max = block, cell, cells
        self.record.value = block  # process 1
        self.process = 1
        self.mailbox_memory = ctypes.create_string_buffer(1 << 16)
        self.mailbox = Mailbox.from_buffer(self.mailbox_memory)
        self.mailbox.magic, self.mailbox.version, self.mailbox.size = 0x316d6f6f726a6273, 10, 1 << 16
        for field, _ in Layout._fields_:
            setattr(self.mailbox.page, field, getattr(self.header, field))
        self.mailbox.page_addr, self.mailbox.record_addr = self.base, self.record_addr
        self.lib = ctypes.PyDLL(path or os.environ["AGENT"])
        self.targets = []
        self.set_targets(*targets)

    def set_targets(self, *targets):
        at = 1024 + len(targets) * 16
        for i, (module, name, *rest) in enumerate(targets):
            t = Target.from_buffer(self.mailbox_memory, 1024 + i * 16)
            t.flags = rest[0] if rest else 0
            t.cell = rest[1] if len(rest) > 1 else i
            for field, text in (("module", module), ("name", name)):
                data = text.encode() + b"\0"
                self.mailbox_memory[at:at + len(data)] = data
                setattr(t, field, at)
                at += len(data)
            if not self.cell(t.cell).state:
                self.cell(t.cell).state = COUNT
        self.mailbox.n_targets, self.mailbox.targets_off = len(targets), 1024
        self.mailbox.list += 1
        self.targets = targets

    def cell_at(self, i, process):
        process = self.process if process is None else process
        return (self.base + self.mailbox.page.blocks_off + process * self.block +
                i * self.cell_size)

    def cell(self, i, process=None):
        return Cell.from_address(self.cell_at(i, process))

    def counts(self, i=0, process=None):
        return Counts.from_address(self.cell_at(i, process) + self.counters_off)

    def ask(self, command):
        self.mailbox.command = command
        return self.lib.sb_agent(ctypes.byref(self.mailbox))

    def must(self, command):
        rc = self.ask(command)
        assert rc == 0, (ERRORS.get(rc, rc), self.mailbox.reason)
        return self

    def apply(self):
        return self.must(APPLY)

    def stop(self):
        return self.must(STOP)

    def sum(self, field, i=0, process=None):
        return sum(getattr(s, field) for s in self.counts(i, process).slot)

    def hits(self, i=0, process=None):
        return self.sum("hits", i, process)

    def state(self, state, *cells):
        for i in cells or range(len(self.targets)):
            self.cell(i).state = state
        return self.apply()

    def time(self, on, *cells):
        """Calls are timed from now on, or no more."""
        for i in cells or range(len(self.targets)):
            cell = self.cell(i)
            if on and not cell.span_block:
                self.timed += 1
                assert self.timed < self.mailbox.page.span_blocks
                cell.span_block = self.timed
            cell.flags = cell.flags & ~SPANS | (SPANS if on else 0)
        return self.apply()

    def times(self, i=0, process=None):
        """How long the calls took that were timed so far."""
        block = self.cell(i, process).span_block
        if not block:
            return Times()
        at = self.base + self.mailbox.page.spans_off + block * SPAN_BLOCK
        return Times((Span * (SLOTS + SHARED)).from_address(at))

    def notes(self, cell=None):
        """(cell, MODULE, NAME, FILE, LINE) of each note."""
        at, found = self.base + self.mailbox.page.notes_off, []
        end = at + min(self.told.notes_used, self.mailbox.page.notes_size)
        while at < end:
            n = Note.from_address(at)
            if not n.size:
                break
            text = ctypes.string_at(at + 16, n.size - 16).split(b"\0")
            if cell is None or cell == n.cell:
                found.append((n.cell, *(t.decode() for t in text[:3]), n.line))
            at += n.size
        return found

    def names(self, cell=None):
        return sorted(n[2] for n in self.notes(cell))

    def unload(self):
        handle = self.lib._handle
        del self.lib
        gc.collect()
        name = os.environ["AGENT"]
        while mapped(name) and libdl.dlclose(handle) == 0:
            pass  # once for each Agent that there was


def mapped(text):
    with open("/proc/self/maps") as f:
        return [line for line in f if text in line]


def monitoring():
    """All that sys.monitoring tells of itself."""
    m = getattr(sys, "monitoring", None)
    if not m:
        return None
    return [(m.get_tool(i), m.get_events(i) if m.get_tool(i) else 0) for i in range(6)]
