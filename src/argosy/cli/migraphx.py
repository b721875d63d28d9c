"""Every option of MIGraphX's driver, and what becomes of it here. The table in the docs is made from this one.

Source: the driver of AMD MIGraphX 2.16, and its later options where they are documented. Rows say what is the
same, what is rewritten, what is not needed because it is always so, and what is refused and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.cli.relaxed_json import relaxed_object
from argosy.cli.spelling import COMPILERS, READERS, Spelling, becomes, dropped, refused, same
from argosy.errors import UsageError

__all__ = ["FOREIGN_VERBS", "MIGRAPHX"]

FOREIGN_VERBS: Final = {"time": "perf", "op": "ops", "onnx": "ops"}
"""MIGraphX's commands that have another name here."""

_RUNNERS: Final = ("run", "perf", "verify")
_EVERY: Final = (*READERS, "ops")
_TENSORFLOW: Final = "Argosy reads ONNX models only; tf2onnx converts TensorFlow's"
_READ: Final = ("read",)
_GPU: Final = "this version asks no driver which GPU there is; name it by --gpu-arch"


def _shapes(values: Sequence[str]) -> list[str]:
    """`@x 1 3 224` as `--input-shape=x=1,3,224`."""
    words = [value.split() for value in values]
    return [f"--input-shape={name[1:]}={','.join(sizes) or 'scalar'}" for name, *sizes in words]


def _dims(values: Sequence[str]) -> list[str]:
    """`@N 4` and `@N {min:1,max:8,optimals:[1,4]}` as `--dim`; optimals become specialised sizes."""
    found = []
    for value in values:
        name, _, asked = value.partition(" ")
        if asked.strip().isdigit():
            found.append(f"--dim={name[1:]}={asked.strip()}")
            continue
        lower, upper, optimals = _bounds(asked, name)
        found.append(f"--dim={name[1:]}={lower}..{upper}")
        if optimals:
            found.append(f"--dim={name[1:]}={','.join(map(str, optimals))}")
    return found


def _bounds(text: str, name: str) -> tuple[int, int, list[int]]:
    """Least size, greatest size and optimal sizes in `{min:1, max:8, optimals:[4]}`, whose keys need no quotes."""
    try:
        value = relaxed_object(text)
        return value["min"], value["max"], value.get("optimals", [])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"--dim-param {name} is {text!r}", hint="our forms are --dim N=4 and --dim N=1..8") from None


def _number(name: str, key: str) -> Spelling:
    """An option that gives one number of every GPU; what `--gpu-arch-params` says goes before it."""
    return becomes(
        name,
        COMPILERS,
        f"--gpu-arch-params *={{{key}:N}}",
        lambda values: [f"--gpu-arch-params=*={{{key}:{values[0]}}}"],
        takes="a value",
        sample=("8",),
    )


MIGRAPHX: Final[tuple[Spelling, ...]] = (
    # every command
    same("-h --help", _EVERY),
    same("--log-level", _EVERY, told="by name or by number", sample=("3",)),
    same("--log-file", _EVERY, sample=("log.txt",)),
    # loader
    dropped("--onnx", READERS, "the kind of a file is seen from its content"),
    dropped("--migraphx", READERS, "an artifact is seen from its content; MIGraphX's own .mxr files are not read"),
    refused("--migraphx-json", READERS, "MIGraphX's files are not read; start from the ONNX model"),
    refused("--tf", READERS, _TENSORFLOW),
    refused("--nhwc --nchw", READERS, _TENSORFLOW),
    refused("--output-names", READERS, _TENSORFLOW, takes="values", sample=("y",)),
    refused("--test", READERS, "there is no built-in program; examples/ holds some", ours="examples/"),
    same("--batch", READERS, told="binds the symbolic first dims only; nothing else is set to 1", sample=("2",)),
    becomes(
        "--skip-unknown-operators", ("read", "params"), "--skip-unknown", told="for reading: a placeholder can't run"
    ),
    dropped("--debug-symbols", READERS, "names of nodes are always kept"),
    same("-t --trim", _READ, "--trim", sample=("1",)),
    refused("-s --trim-size", _READ, "--trim cuts the end; there is no cut at the front", takes="a value"),
    becomes(
        "--input-dim",
        READERS,
        "--input-shape x=1,3,224,224",
        _shapes,
        takes="a name and values",
        sample=("@x", "1", "3"),
    ),
    becomes("--dim-param", READERS, "--dim N=4 or N=1..512", _dims, takes="a name and values", sample=("@N", "1")),
    refused(
        "--dyn-input-dim",
        READERS,
        "dims are named: `argosy params` lists the names, --dim N=1..512 bounds one",
        ours="--dim N=1..512",
    ),
    refused(
        "--default-dyn-dim",
        READERS,
        "unbound dims stay symbolic, whatever their sizes; --dim N=1..512 bounds one",
        ours="--dim N=1..512",
    ),
    dropped("--enable-symbolic", READERS, "unbound dims always stay symbolic"),
    refused("--split-sizes", COMPILERS, "name the dim: --dim N=1,2048", ours="--dim N=1,2048"),
    becomes("--optimize", _READ, "-O"),
    same("-O", _READ),
    same("-p --apply-pass", _READ, "--apply-pass", sample=("eliminate_common",)),
    refused("--mlir", READERS, "there is no MLIR in Argosy"),
    refused("--replace-literals", READERS, "weights stay constants; --weights omit keeps them out of the file"),
    dropped("--strip-context", READERS, "an artifact holds no device context"),
    # output of read
    becomes("--text", _READ, "--format=text"),
    same("--json", _READ, "--json", told="the same as --format json"),
    refused("--binary", _READ, "`argosy compile` writes the artifact", ours="compile"),
    dropped("--binary", ("compile",), "an artifact is what `compile` writes"),
    refused("--cpp", _READ, "--format python writes a program as code", ours="--format python"),
    becomes("--python --py", _READ, "--format=python"),
    becomes("--graphviz -g", _READ, "--format=graphviz"),
    becomes("--brief", _READ, "--format=graphviz"),
    refused("--netron", _READ, "Netron shows the ONNX model itself; --format graphviz draws the program"),
    same("-o --output", ("read", "compile", "run"), sample=("out.npz",)),
    # parameters
    same("--fill0", _RUNNERS, told="repeat it for several inputs", sample=("x",)),
    same("--fill1", _RUNNERS, told="repeat it for several inputs", sample=("x",)),
    becomes(
        "--load-arg",
        _RUNNERS,
        "--input x=FILE",
        lambda values: [f"--input={value[1:].replace(' ', '=', 1)}" for value in values],
        takes="a name and values",
        told="a .npy, .npz or .pb file instead of MIGraphX's msgpack",
        sample=("@x", "x.npy"),
    ),
    # compile
    refused("--gpu", COMPILERS, _GPU, ours="--gpu-arch"),
    same("--gpu-arch", COMPILERS, told="also products and families; may be repeated", sample=("GPU",)),
    same("--gpu-arch-params", COMPILERS, told="with several archs, ARCH={…} by name", sample=("{num_cu:304}",)),
    same("--gpu-wavefront-size", COMPILERS, told="what the toolchain can't do is refused", sample=("64",)),
    _number("--gpu-num-cus", "num_cu"),
    _number("--gpu-num-chiplets", "num_chiplets"),
    becomes("--cpu", COMPILERS, "--arch=cpu", told="where the version has that arch"),
    becomes("--ref", COMPILERS, "--arch=ref"),
    dropped("--enable-offload-copy", COMPILERS, "inputs and outputs may always lie in host memory"),
    dropped("--disable-fast-math", COMPILERS, "fast math is off unless --fast-math asks for it"),
    becomes(
        "--exhaustive-tune",
        ("compile",),
        "--compile-mode=max",
        told="nothing is measured in this version, and it says so",
    ),
    same("--fp16", COMPILERS),
    same("--bf16", COMPILERS),
    refused("--int8", COMPILERS, "quantise the model's file; its QuantizeLinear and DequantizeLinear are kept"),
    refused("--fp8", COMPILERS, "quantise the model's file; its QuantizeLinear and DequantizeLinear are kept"),
    refused("--int4-weights", COMPILERS, "quantise the model's file; int4 weights are stored packed"),
    refused("--recompilable", ("compile",), "an artifact always keeps the program; compile it again for another arch"),
    refused("--weight-params", COMPILERS, "--weights omit leaves the weights out", ours="--weights omit"),
    refused("--bake-weights --encode-weights", ("compile",), "--weights FILE puts them beside the artifact"),
    # verify
    becomes("--rms-tol", ("verify",), "--rms", takes="a value", sample=("1e-3",)),
    same("--atol", ("verify",), told="always honoured", sample=("1e-3",)),
    same("--rtol", ("verify",), told="always honoured", sample=("1e-3",)),
    becomes("-i", ("verify",), "--per-instruction"),
    same("--per-instruction", ("verify",), told="alone on true inputs, and within one run, where errors add up"),
    becomes("-r", ("verify",), "--reduce"),
    same("--reduce", ("verify",), told="to a model of its own, with inputs and a script"),
    becomes("-b", ("verify",), "--bisect"),
    same("--bisect", ("verify",), told="over the whole graph, and over passes, rules, stages and solutions"),
    becomes("--ref-use-double", ("verify",), "--against ref64"),
    becomes(
        "-c --compiled-model",
        ("verify",),
        "verify MODEL ARTIFACT",
        lambda values: [f"--artifact={values[0]}"],
        takes="a value",
        sample=("a.argosy",),
    ),
    dropped("--no-rebuild", ("verify",), "each side is compiled and run once"),
    # perf, time
    same("-n --iterations", ("perf",), sample=("2",)),
    dropped("-d --detailed", ("perf",), "the report lists every instruction and every op"),
    # op, onnx
    dropped("-l --list", ("ops",), "`argosy ops` lists the ONNX ops, and the IR's"),
)
