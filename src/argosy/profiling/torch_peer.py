"""PyTorch as a peer: it reads no ONNX models, so it runs what it has saved itself of the same model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from argosy.errors import ArgosyError, EnvironmentError_, UsageError
from argosy.ir.dtype import dtype
from argosy.ir.types import TensorType, Type
from argosy.profiling.peer import Peer, installed, refused

__all__ = ["torch_peer"]

_EXPORTED: Final = ".pt2"
_SCRIPTS: Final = (".pt", ".pth", ".ts")
_BFLOAT16: Final = dtype("bfloat16").numpy


def torch_peer(
    model: str,
    feeds: Mapping[str, Any],
    *,
    threads: int,
    outputs: Mapping[str, Type],
    precision: str = "fp32",
    device: str = "cpu",
) -> Peer:
    """PyTorch: an exported program (`torch.export.save`) or TorchScript (`torch.jit.save`), as it is in the file.

    It takes the inputs of the model in their order, and gives its outputs in theirs. On a GPU a run copies inputs from
    memory that the device reaches, and results back, as a run of ours does, and is waited for. Raises UsageError for
    another file and other inputs or outputs, EnvironmentError_ where torch is not installed, sees no GPU, or fails.
    """
    del precision  # the file says it
    path = Path(model)
    if path.suffix not in (_EXPORTED, *_SCRIPTS):
        raise UsageError(
            "PyTorch runs what it has saved itself, an exported program (.pt2) or TorchScript (.pt)",
            where=model,
            hint="write it with torch.export.save(torch.export.export(module, inputs), 'model.pt2')",
        )
    if not path.is_file():
        raise UsageError("there is no such file", where=model)
    torch = installed("torch")
    for name, value in feeds.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OUS":
            raise UsageError("PyTorch takes tensors of numbers alone", where=f"input {name!r}")
    if device != "cpu" and not torch.cuda.is_available():
        raise EnvironmentError_("this PyTorch sees no GPU", hint="install one that is built for it")
    torch.set_num_threads(threads)
    try:
        run, module, count = _loaded(torch, path, device)
        if count is not None and count != len(feeds):
            raise UsageError(f"it takes {count} inputs, expected {len(feeds)}: {', '.join(feeds)}", where=model)
        given = [_tensor(torch, value, pinned=device != "cpu") for value in feeds.values()]

        def call() -> list[Any]:
            with torch.inference_mode():
                there = given if device == "cpu" else [value.to(device, non_blocking=True) for value in given]
                results = [value.cpu() for value in _flat(run(*there))]
            if device != "cpu":
                torch.cuda.synchronize(device)
            return results

        made = call()
    except ArgosyError:
        raise
    except Exception as error:  # noqa: BLE001 - it raises classes of many kinds, all told alike
        raise refused("PyTorch", error) from None
    if len(made) != len(outputs):
        raise UsageError(f"it gives {len(made)} outputs, expected {len(outputs)}: {', '.join(outputs)}", where=model)

    def results() -> dict[str, Any]:
        arrays = [_array(torch, value) for value in call()]
        return {name: _as(kind, array) for (name, kind), array in zip(outputs.items(), arrays, strict=True)}

    where = "CPU" if device == "cpu" else torch.cuda.get_device_name(device)
    return Peer(f"torch {torch.__version__}, {where}", call, results, _precision(torch, module))


def _loaded(torch: Any, path: Path, device: str) -> tuple[Callable[..., Any], Any, int | None]:
    """What runs a file, its module, and how many inputs that takes, where it says so."""
    if path.suffix == _EXPORTED:
        program = torch.export.load(str(path))
        count = len(program.graph_signature.user_inputs)
        if device != "cpu":
            passes = importlib.import_module("torch.export.passes")  # which torch doesn't import itself
            program = passes.move_to_device_pass(program, device)
        module = program.module()
        return module, module, count
    module = torch.jit.load(str(path), map_location=device).eval()
    return module, module, len(module.forward.schema.arguments) - 1  # without itself


def _tensor(torch: Any, value: Any, *, pinned: bool) -> Any:
    """A tensor with the elements of an array, in memory of its own."""
    short = value.dtype == _BFLOAT16  # which numpy and torch know by different names
    made = torch.tensor(value.view(np.int16) if short else value)
    made = made.view(torch.bfloat16) if short else made
    return made.pin_memory() if pinned else made


def _array(torch: Any, value: Any) -> Any:
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(_BFLOAT16)
    return value.numpy()


def _as(kind: Type, array: Any) -> Any:
    """Floats in the type that the model declares: a file of torch may have been made in another one."""
    is_float = isinstance(kind, TensorType) and kind.dtype.is_float
    return array.astype(kind.dtype.numpy) if isinstance(kind, TensorType) and is_float else array


def _flat(results: Any) -> Sequence[Any]:
    """The tensors that a module gives, alone, in sequences, or by name."""
    if isinstance(results, Mapping):
        results = tuple(results.values())
    if isinstance(results, (tuple, list)):
        return [value for result in results for value in _flat(result)]
    return (results,)


def _precision(torch: Any, module: Any) -> str:
    """The shortest type of its parameters."""
    kinds = {parameter.dtype for parameter in module.parameters()}
    return "bf16" if torch.bfloat16 in kinds else "fp16" if torch.float16 in kinds else "fp32"
