"""Code for aarch64 under Debian's qemu-user, called by the runtime of this process.

Test and emulator map the same memory at the same address, so the runtime's tables and blocks are good in both. The
shared object of a variant is put there by a loader of our own, just as it is in the artifact; a call is a message
to the emulator. Nothing runs in parallel, and nothing can be said about speed.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

import argosy
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.ir.op import Env
from argosy.runtime.executor import Executor
from argosy.runtime.host_abi import RunRecord
from argosy.runtime.memory import ALIGNMENT, Bytes
from argosy.targets.cpu.arch import find_cpu
from argosy.toolchains.zig import Source, compile_objects, zig_program
from tests.conformance.runners import Run

__all__ = ["EMULATOR", "EmulatedRunner", "Machine"]

EMULATOR: Final = shutil.which("qemu-aarch64")
_ADDRESS: Final = 0x20_0000_0000
_SIZE: Final = 8 << 30
_SHARED_AND_NOT_REPLACING: Final = 0x100001
_GUEST: Final = Path(__file__).with_name("guest.c")

_DYNSYM, _RELA = 11, 4
_RELATIVE, _GLOBAL, _JUMP, _ABSOLUTE = 1027, 1025, 1026, 257


class Machine:
    """An emulator at work, and the memory that it shares with this process."""

    def __init__(self) -> None:
        self._file = os.memfd_create("emulated")
        os.ftruncate(self._file, _SIZE)
        library = ctypes.CDLL(None, use_errno=True)
        library.mmap.restype = ctypes.c_void_p
        library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        found = library.mmap(_ADDRESS, _SIZE, 3, _SHARED_AND_NOT_REPLACING, self._file, 0)
        assert found == _ADDRESS, os.strerror(ctypes.get_errno())
        self._memory = np.ctypeslib.as_array((ctypes.c_uint8 * _SIZE).from_address(_ADDRESS))
        self._used = 0
        self._folder = tempfile.TemporaryDirectory()
        guest = self._built()
        assert EMULATOR is not None
        command = [EMULATOR, "-cpu", "max", guest, str(self._file), str(_ADDRESS), str(_SIZE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(self._file,), bufsize=0
        )

    def close(self) -> None:
        """End the emulator. The memory stays mapped."""
        self._process.communicate()
        os.close(self._file)
        self._folder.cleanup()

    def allocate(self, size: int) -> Bytes:
        """Zeroed memory that both see; it is never given back."""
        begin = self._used
        self._used = -(-(begin + size) // ALIGNMENT) * ALIGNMENT
        assert self._used <= _SIZE
        return self._memory[begin : begin + size]

    def call(self, function: int, argument: int) -> None:
        """Call a function in the emulator."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(struct.pack("<QQ", function, argument))
        if len(self._process.stdout.read(8)) != 8:
            raise RuntimeError(f"the emulated program ended with status {self._process.wait()}")

    def load(self, content: bytes) -> dict[str, int]:
        """Put a shared object into the memory, as a loader would; the addresses of its symbols."""
        sections = _sections(content)
        end = max(begin + room for begin, _, _, room in _segments(content))
        self._used = -(-self._used // 65536) * 65536
        image = self.allocate(end)
        base = _ADDRESS + self._used - (-(-end // ALIGNMENT) * ALIGNMENT)
        for begin, offset, size, _ in _segments(content):
            image[begin : begin + size] = np.frombuffer(content, np.uint8, size, offset)
        (symbols,) = (section for section in sections if section[1] == _DYNSYM)
        names = sections[symbols[6]]
        found = []
        for place in range(symbols[4], symbols[4] + symbols[5], 24):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", content, place)
            start = names[4] + name
            found.append((content[start : content.index(b"\0", start)].decode(), base + value if section else 0))
        for section in sections:
            if section[1] == _RELA:
                for place in range(section[4], section[4] + section[5], 24):
                    offset, info, addend = struct.unpack_from("<QQq", content, place)
                    kind, symbol = info & 0xFFFFFFFF, info >> 32
                    assert kind in (_RELATIVE, _GLOBAL, _JUMP, _ABSOLUTE)
                    start = base if kind == _RELATIVE else found[symbol][1]
                    image[offset : offset + 8].view(np.int64)[0] = start + addend
        return dict(found)

    def _built(self) -> str:
        """The program that runs in the emulator, linked without any library."""
        arch = find_cpu("neoverse-n1")
        assert arch is not None
        (made,) = compile_objects([Source("guest", _GUEST.read_text())], arch.code)
        folder = Path(self._folder.name)
        (folder / "guest.o").write_bytes(made)
        command = [zig_program(), "ld.lld", "-m", "aarch64linux", "-static", "-o", "guest", "guest.o"]
        subprocess.run(command, cwd=folder, check=True)
        return str(folder / "guest")


def _sections(content: bytes) -> list[tuple[int, ...]]:
    """Section headers: name, type, flags, address, offset, size, link, …"""
    table, count = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    return [struct.unpack_from("<IIQQQQIIQQ", content, table + 64 * index) for index in range(count)]


def _segments(content: bytes) -> list[tuple[int, int, int, int]]:
    """Loaded segments: address, offset in the file, bytes in the file, bytes in memory."""
    table, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    headers = [struct.unpack_from("<IIQQQQQQ", content, table + 56 * index) for index in range(count)]
    return [(header[3], header[2], header[5], header[6]) for header in headers if header[0] == 1]


class EmulatedCode:
    """The code of a variant in a machine; see `argosy.runtime.layout.Code`."""

    threads = 1

    def __init__(self, machine: Machine, content: bytes) -> None:
        self._machine = machine
        self._symbols = machine.load(content)
        self.calls = 0

    def address(self, code: int, entry: str) -> int:
        assert code == 0
        return self._symbols[entry]

    def bind(self, record: RunRecord) -> Callable[[], None]:
        size = ctypes.sizeof(RunRecord)
        shared = self._machine.allocate(size)

        def call() -> None:
            self.calls += 1
            ctypes.memmove(shared.ctypes.data, ctypes.addressof(record), size)
            self._machine.call(self._symbols["argosy_run"], shared.ctypes.data)
            ctypes.memmove(ctypes.addressof(record), shared.ctypes.data, size)

        return call

    def allocate(self, size: int) -> Bytes:
        return self._machine.allocate(size)

    def adopt(self, memory: Bytes) -> Bytes:
        copied = self._machine.allocate(memory.size)
        copied[:] = memory
        return copied

    @property
    def sees_everything(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class EmulatedRunner:
    """A runner of the conformance suite: compiled for `level` without host steps, run in `machine`."""

    machine: Machine
    level: str
    strict: bool = True

    def prepare(self, model: onnx.ModelProto) -> Run:
        """A function that runs the model."""
        artifact = argosy.compile(argosy.load_onnx(model), targets=[self.level], strict=self.strict)
        (variant,) = artifact.variants
        plan = artifact.plan(variant.key)
        decoder = Decoder(plan.modules, decode_symbols(plan.symbols), artifact.literal, "emulated")
        code = EmulatedCode(self.machine, artifact.entry(variant.key, plan.code[0].path)) if plan.code else None
        executor = Executor(plan, decoder, "emulated", code)

        def run(inputs: Mapping[str, Any]) -> dict[str, Any]:
            results = executor.run([inputs.get(binding.name) for binding in plan.inputs], Env())
            return {binding.name: value for binding, value in zip(plan.outputs, results, strict=True)}

        return run
