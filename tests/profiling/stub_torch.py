"""A package of the shape of torch, over numpy: as much of it as the peer calls. Tensors know the device they are on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["StubTorch"]


class _Tensor:
    def __init__(self, array: Any, device: str = "cpu", *, pinned: bool = False) -> None:
        self.array, self.device, self.pinned = array, device, pinned

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def view(self, kind: Any) -> _Tensor:
        return _Tensor(self.array.view(kind), self.device)

    def pin_memory(self) -> _Tensor:
        return _Tensor(self.array, self.device, pinned=True)

    def to(self, device: str, *, non_blocking: bool) -> _Tensor:
        assert non_blocking
        assert self.pinned
        return _Tensor(self.array, device)

    def cpu(self) -> _Tensor:
        return _Tensor(self.array)

    def numpy(self) -> Any:
        assert self.device == "cpu"
        assert self.dtype != ml_dtypes.bfloat16, "numpy has no such type of its own"
        return self.array


def _tensor(array: Any) -> _Tensor:
    assert array.dtype != ml_dtypes.bfloat16, "torch does not know the array's type"
    return _Tensor(np.array(array))


class _Module:
    """Calls a function of arrays, on its device."""

    def __init__(self, function: Callable[..., Any], device: str, kinds: tuple[Any, ...] = ()) -> None:
        self._function, self.device, self._kinds = function, device, kinds
        count = function.__code__.co_argcount
        self.forward = SimpleNamespace(schema=SimpleNamespace(arguments=["self"] + ["x"] * count))
        self.evaluates = False

    def eval(self) -> _Module:
        self.evaluates = True
        return self

    def parameters(self) -> list[Any]:
        return [SimpleNamespace(dtype=kind) for kind in self._kinds]

    def __call__(self, *tensors: _Tensor) -> Any:
        assert all(tensor.device == self.device for tensor in tensors), "on another device"
        return self._put(self._function(*(tensor.array for tensor in tensors)))

    def _put(self, result: Any) -> Any:
        if isinstance(result, dict):
            return {name: self._put(value) for name, value in result.items()}
        if isinstance(result, tuple):
            return tuple(map(self._put, result))
        return _Tensor(result, self.device)


class StubTorch(ModuleType):
    """The package. `files` are the functions that files hold, by file name; `told` is what was asked of it."""

    def __init__(self, files: dict[str, Callable[..., Any]], *, gpus: int = 0, kinds: tuple[Any, ...] = ()) -> None:
        super().__init__("torch")
        self.__version__ = "9.9"
        self.told: list[str] = []
        self.int16, self.float16, self.bfloat16 = np.dtype(np.int16), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
        self.tensor = _tensor
        self.set_num_threads = lambda count: self.told.append(f"{count} threads")
        self.cuda = SimpleNamespace(
            is_available=lambda: gpus > 0,
            synchronize=lambda device: self.told.append(f"waited for {device}"),
            get_device_name=lambda device: f"GPU {device}",
        )

        def found(path: str) -> Callable[..., Any]:
            if Path(path).name not in files:
                raise RuntimeError("PytorchStreamReader failed\nCheck 'archive': not a ZIP archive")
            return files[Path(path).name]

        def program(function: Callable[..., Any], device: str) -> Any:
            signature = SimpleNamespace(user_inputs=["x"] * function.__code__.co_argcount)
            return SimpleNamespace(
                graph_signature=signature, module=lambda: _Module(function, device, kinds), function=function
            )

        self.export = SimpleNamespace(load=lambda path: program(found(path), "cpu"))
        self._passes = ModuleType("torch.export.passes")
        self._passes.__dict__["move_to_device_pass"] = lambda given, device: program(given.function, device)
        self.jit = SimpleNamespace(load=lambda path, map_location: _Module(found(path), map_location, kinds))

    @contextmanager
    def inference_mode(self) -> Iterator[None]:
        self.told.append("no gradients")
        yield

    @contextmanager
    def installed(self) -> Iterator[StubTorch]:
        """Be the package that is imported."""
        before = sys.modules.get("torch")
        sys.modules["torch"] = self
        sys.modules["torch.export.passes"] = self._passes  # there for those who import it, no attribute of its parent
        try:
            yield self
        finally:
            del sys.modules["torch"], sys.modules["torch.export.passes"]
            if before is not None:
                sys.modules["torch"] = before
