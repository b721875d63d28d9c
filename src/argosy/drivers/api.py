"""The functions of libcuda and libamdhip64 that the runtime calls, side by side: the two interfaces are twins.

A row names what a function does here, its name in either library, and its argument types. Sources: the CUDA driver API
reference (13.0) and the HIP runtime API reference (7.0).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import DeviceError

__all__ = [
    "ARCH_BYTES",
    "ARCH_PLACE",
    "ATTRIBUTES",
    "CONSTANTS",
    "FUNCTIONS",
    "LAUNCH_WITH",
    "PROGRAMMATIC",
    "PROPERTIES",
    "PROPERTIES_BYTES",
    "SHORTAGE_HINT",
    "TENSOR_MAPS",
    "Api",
    "Constant",
    "DriverError",
    "Function",
    "LaunchAttribute",
    "LaunchConfig",
]

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
    Function("free_memory", "cuMemGetInfo_v2", "hipMemGetInfo", (POINTER(c_size_t), POINTER(c_size_t))),
    Function("pci_id", "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId", (c_char_p, c_int, c_int)),
    Function("retain_context", "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (_Out, c_int)),
    Function("context", "cuCtxGetCurrent", "hipCtxGetCurrent", (_Out,)),
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
    Function("create_event", "cuEventCreate", "hipEventCreateWithFlags", (_Out, c_uint)),
    Function("destroy_event", "cuEventDestroy_v2", "hipEventDestroy", (_Handle,)),
    Function("record_event", "cuEventRecord", "hipEventRecord", (_Handle, _Handle)),
    Function("elapsed", "cuEventElapsedTime", "hipEventElapsedTime", (POINTER(c_float), _Handle, _Handle)),
    Function("wait_event", "cuStreamWaitEvent", "hipStreamWaitEvent", (_Handle, _Handle, c_uint)),
    Function("synchronize_event", "cuEventSynchronize", "hipEventSynchronize", (_Handle,)),
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

PROPERTIES: Final = Function("properties", "", "hipGetDevicePropertiesR0600", (c_void_p, c_int))
"""What HIP alone has: a structure of `PROPERTIES_BYTES`, with the arch's name in `ARCH_BYTES` from `ARCH_PLACE` on."""
PROPERTIES_BYTES: Final = 1472
ARCH_PLACE: Final = 1160
ARCH_BYTES: Final = 256


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: what it is, and a value of 64 bytes, of which the ones here take the first 4."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("count", c_uint),
    )


LAUNCH_WITH: Final = Function(
    "launch_with", "cuLaunchKernelEx", "", (POINTER(LaunchConfig), _Handle, c_void_p, c_void_p)
)
"""What CUDA alone has, from 11.8 on: a launch with attributes."""
_Numbers = POINTER(c_uint)
_Sizes = POINTER(c_ulonglong)
_Places = POINTER(c_int)
TENSOR_MAPS: Final = (
    Function(
        "tiled_map", "cuTensorMapEncodeTiled", "",
        (c_void_p, c_int, c_uint, c_void_p, _Sizes, _Sizes, _Numbers, _Numbers, *(c_int,) * 4),
    ),
    Function(
        "window_map", "cuTensorMapEncodeIm2col", "",
        (c_void_p, c_int, c_uint, c_void_p, _Sizes, _Sizes, _Places, _Places, c_uint, c_uint, _Numbers, *(c_int,) * 4),
    ),
)  # fmt: skip
"""What CUDA alone has, from 12.0 on: how the copy engine sees a tensor."""
PROGRAMMATIC: Final = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of the two interfaces, with its names there."""

    cuda: int
    hip: int
    cuda_name: str
    hip_name: str

    def of(self, kind: str) -> int:
        """The number in one of them."""
        return self.cuda if kind == "cuda" else self.hip


ATTRIBUTES: Final = {
    "units": Constant(16, 63, "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", "hipDeviceAttributeMultiprocessorCount"),
    "wave": Constant(10, 87, "CU_DEVICE_ATTRIBUTE_WARP_SIZE", "hipDeviceAttributeWarpSize"),
    "major": Constant(
        75, 23, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", "hipDeviceAttributeComputeCapabilityMajor"
    ),
    "minor": Constant(
        76, 61, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR", "hipDeviceAttributeComputeCapabilityMinor"
    ),
}
"""What devices are asked for."""
CONSTANTS: Final = {
    "shared_memory": Constant(
        8, 8, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", "hipFuncAttributeMaxDynamicSharedMemorySize"
    ),
    "parameters": Constant(1, 1, "CU_LAUNCH_PARAM_BUFFER_POINTER", "HIP_LAUNCH_PARAM_BUFFER_POINTER"),
    "parameter_bytes": Constant(2, 2, "CU_LAUNCH_PARAM_BUFFER_SIZE", "HIP_LAUNCH_PARAM_BUFFER_SIZE"),
    "launch_end": Constant(0, 3, "CU_LAUNCH_PARAM_END", "HIP_LAUNCH_PARAM_END"),
    "non_blocking": Constant(1, 1, "CU_STREAM_NON_BLOCKING", "hipStreamNonBlocking"),
    "timing": Constant(0, 0, "CU_EVENT_DEFAULT", "hipEventDefault"),
    "no_timing": Constant(2, 2, "CU_EVENT_DISABLE_TIMING", "hipEventDisableTiming"),
    "thread_local": Constant(1, 1, "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL", "hipStreamCaptureModeThreadLocal"),
    "out_of_memory": Constant(2, 2, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"),
}
"""What functions are told, and tell."""


class Api:
    """The functions of one driver library, each raising DriverError with the driver's own words."""

    def __init__(self, kind: str, library: ctypes.CDLL) -> None:
        self.kind = kind
        self._library = library
        self._functions: dict[str, Any] = {}
        for row in (*FUNCTIONS, PROPERTIES, LAUNCH_WITH, *TENSOR_MAPS):
            name = row.cuda if kind == "cuda" else row.hip
            if name and (row in FUNCTIONS or hasattr(library, name)):
                function = library[name]
                function.restype, function.argtypes = c_int, row.arguments
                self._functions[row.name] = function

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises DriverError where it gives an error code."""
        code = self._functions[name](*arguments)
        if code:
            raise DriverError(name, code, self._words(code), out_of_memory=code == self.constant("out_of_memory"))

    def has(self, name: str) -> bool:
        """Whether the library has a function."""
        return name in self._functions

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

    def constant(self, name: str) -> int:
        """One of CONSTANTS in this interface."""
        return CONSTANTS[name].of(self.kind)


SHORTAGE_HINT: Final = "run with smaller sizes or fewer runs at once (max_concurrency), or free memory there"
"""What to do where memory of a device is short."""


class DriverError(DeviceError):
    """A driver function gave an error code."""

    def __init__(self, function: str, code: int, words: str, *, out_of_memory: bool = False) -> None:
        what = f"the driver's {function}: {words or 'no words for it'} (error {code})"
        super().__init__(what, hint=SHORTAGE_HINT if out_of_memory else "")
        self.code = code
        self.is_out_of_memory = out_of_memory
