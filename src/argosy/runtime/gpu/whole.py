"""Runs of nothing but fixed launches: copies in, launches and copies out are one captured graph.

The host's ends of the copies are memory that the device reaches without a detour, at places that stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.runtime.buffers import read_tensor, write_tensor
from argosy.runtime.gpu.layout import Bound, DeviceFrame
from argosy.runtime.gpu.staged import Staging, dense_bytes
from argosy.runtime.nodes import Launches

__all__ = ["run_whole", "whole_graph"]


def whole_graph(frame: DeviceFrame, launches: Launches) -> int | None:
    """The graph of a whole run, from a frame's second run on, where there can be one."""
    staging = frame.layout.staging
    if frame.whole is None and staging is not None and launches.number in frame.warm:
        bound = frame.bind([launch.step for launch in launches.launches])
        frame.whole = frame.captured(lambda: _queue(frame, staging, bound))
    return frame.whole


def _queue(frame: DeviceFrame, staging: Staging, bound: Sequence[Bound]) -> None:
    device, stream, symbols, table = frame.device, frame.stream, frame.layout.symbols, frame.table
    for _, number, offset in staging.inputs:
        size = dense_bytes(table, number, symbols)
        if size:
            device.upload(frame.locate(number, symbols), frame.staging[offset : offset + size], stream)
    frame.start(bound)
    for number, offset in staging.outputs:
        size = dense_bytes(table, number, symbols)
        if size:
            device.download(frame.staging[offset : offset + size], frame.locate(number, symbols), stream)
    frame.faults.fetch(stream)


def run_whole(frame: DeviceFrame, staging: Staging, graph: int, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Do a run by its graph; the outputs. What kernels report has been fetched."""
    table, symbols = frame.table, frame.layout.symbols
    for place, number, offset in staging.inputs:
        write_tensor(frame.staging[offset:], table[number].dtype, arguments[place])
    frame.device.launch_graph(graph, frame.stream)
    frame.device.synchronize(frame.stream)
    return tuple(
        read_tensor(frame.staging[offset:], table[number].dtype, table[number].shape(symbols)).copy()
        for number, offset in staging.outputs
    )
