"""The functions of libcuda and libamdhip64 that the runtime calls, side by side: the two interfaces are twins.

A row names what a function does here, its name in either library, and its argument types. Sources: the CUDA driver API
reference (13.0) and the HIP runtime API reference (7.0).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ATTRIBUTES", "FUNCTIONS", "Api", "DriverError", "Function"]

_Handle = c_void_p
_Address = c_ulonglong
_Out = POINTER(c_void_p)


@dataclass(frozen=True, slots=True)
class Function:
    """A driver function: its names, and its argument types; all return an error code."""

    name: str
    cuda: str
    hip: str
    arguments: tuple[Any, ...]


FUNCTIONS: Final = (
    Function("init", "cuInit", "hipInit", (c_uint,)),
    Function("driver_version", "cuDriverGetVersion", "hipDriverGetVersion", (POINTER(c_int),)),
    Function("device_count", "cuDeviceGetCount", "hipGetDeviceCount", (POINTER(c_int),)),
    Function("device", "cuDeviceGet", "hipDeviceGet", (POINTER(c_int), c_int)),
    Function("device_name", "cuDeviceGetName", "hipDeviceGetName", (c_char_p, c_int, c_int)),
    Function("device_memory", "cuDeviceTotalMem_v2", "hipDeviceTotalMem", (POINTER(c_size_t), c_int)),
    Function("attribute", "cuDeviceGetAttribute", "hipDeviceGetAttribute", (POINTER(c_int), c_int, c_int)),
    Function("pci_id", "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (c_char_p, c_int, c_int)),
    Function("retain_context", "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (_Out, c_int)),
    Function("set_context", "cuCtxSetCurrent", "hipCtxSetCurrent", (_Handle,)),
    Function("allocate", "cuMemAlloc_v2", "hipMalloc", (POINTER(_Address), c_size_t)),
    Function("free", "cuMemFree_v2", "hipFree", (_Address,)),
    Function("allocate_host", "cuMemHostAlloc", "hipHostMalloc", (_Out, c_size_t, c_uint)),
    Function("free_host", "cuMemFreeHost", "hipHostFree", (c_void_p,)),
    Function("upload", "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (_Address, c_void_p, c_size_t, _Handle)),
    Function("download", "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (c_void_p, _Address, c_size_t, _Handle)),
    Function("copy", "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", (_Address, _Address, c_size_t, _Handle)),
    Function("fill", "cuMemsetD8Async", "hipMemsetD8Async", (_Address, c_ubyte, c_size_t, _Handle)),
    Function("create_stream", "cuStreamCreate", "hipStreamCreateWithFlags", (_Out, c_uint)),
    Function("destroy_stream", "cuStreamDestroy_v2", "hipStreamDestroy", (_Handle,)),
    Function("synchronize", "cuStreamSynchronize", "hipStreamSynchronize", (_Handle,)),
    Function("load_module", "cuModuleLoadData", "hipModuleLoadData", (_Out, c_char_p)),
    Function("unload_module", "cuModuleUnload", "hipModuleUnload", (_Handle,)),
    Function("function", "cuModuleGetFunction", "hipModuleGetFunction", (_Out, _Handle, c_char_p)),
    Function("set_function_attribute", "cuFuncSetAttribute", "hipFuncSetAttribute", (_Handle, c_int, c_int)),
    Function(
        "launch", "cuLaunchKernel", "hipModuleLaunchKernel",
        (_Handle, *(c_uint,) * 7, _Handle, c_void_p, c_void_p),
    ),
    Function("begin_capture", "cuStreamBeginCapture_v2", "hipStreamBeginCapture", (_Handle, c_int)),
    Function("end_capture", "cuStreamEndCapture", "hipStreamEndCapture", (_Handle, _Out)),
    Function(
        "instantiate", "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags", (_Out, _Handle, c_ulonglong)
    ),
    Function("launch_graph", "cuGraphLaunch", "hipGraphLaunch", (_Handle, _Handle)),
    Function("destroy_graph", "cuGraphDestroy", "hipGraphDestroy", (_Handle,)),
    Function("destroy_executable", "cuGraphExecDestroy", "hipGraphExecDestroy", (_Handle,)),
)  # fmt: skip

ATTRIBUTES: Final = {
    # what it is: its number in CUdevice_attribute, and in hipDeviceAttribute_t
    "units": (16, 63),
    "major": (75, 23),
    "minor": (76, 61),
    "warp": (10, 87),
    "shared_memory": (97, 74),
    "threads_per_block": (1, 56),
}
_SHARED_MEMORY: Final = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES and its twin."""
_ENDS: Final = {"cuda": 0, "hip": 3}
"""What ends the list of launch options."""


class Api:
    """The functions of one driver library, each raising RuntimeError with the driver's own words."""

    def __init__(self, kind: str, library: ctypes.CDLL) -> None:
        self.kind = kind
        self._library = library
        self._functions: dict[str, Any] = {}
        for row in FUNCTIONS:
            function = library[row.cuda if kind == "cuda" else row.hip]
            function.restype, function.argtypes = c_int, row.arguments
            self._functions[row.name] = function

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises DriverError where it gives an error code."""
        code = self._functions[name](*arguments)
        if code:
            raise DriverError(name, code, self._words(code))

    def made(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument receives a handle; the handle."""
        handle = c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle.value or 0

    def number(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument receives an int; the int."""
        number = c_int()
        self.call(name, ctypes.byref(number), *arguments)
        return number.value

    def _words(self, code: int) -> str:
        if self.kind == "hip":
            told = self._library["hipGetErrorString"]
            told.restype, told.argtypes = c_char_p, (c_int,)
            return (told(code) or b"").decode()
        words = c_char_p()
        self._library["cuGetErrorString"](c_int(code), ctypes.byref(words))
        return (words.value or b"").decode()

    @property
    def launch_end(self) -> int:
        """What ends the list of launch options."""
        return _ENDS[self.kind]

    def allow_shared_memory(self, function: int, size: int) -> None:
        """Let a kernel have more shared memory than all devices have."""
        self.call("set_function_attribute", function, _SHARED_MEMORY, size)


class DriverError(Exception):
    """A driver function gave an error code."""

    def __init__(self, function: str, code: int, words: str) -> None:
        super().__init__(f"{function}: {words or 'no words for it'} (error {code})")
        self.code = code
        self.is_out_of_memory = code == 2
