"""What registers hold when a wave begins, by generation.

Sources: LLVM's "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.emulation.archs import generation
from argosy.emulation.assembly import Listing
from argosy.emulation.memory import Fault
from argosy.emulation.refusal import NotEmulated

__all__ = ["LaunchState", "launch_state"]

_USER: Final = (
    # what comes first in the user registers, where a kernel asks for it, and how many it takes
    ("user_sgpr_private_segment_buffer", 4),
    ("user_sgpr_dispatch_ptr", 2),
    ("user_sgpr_queue_ptr", 2),
    ("user_sgpr_kernarg_segment_ptr", 2),
    ("user_sgpr_dispatch_id", 2),
    ("user_sgpr_flat_scratch_init", 2),
    ("user_sgpr_private_segment_size", 1),
)
_UNKNOWN: Final = ("user_sgpr_dispatch_ptr", "user_sgpr_queue_ptr", "user_sgpr_dispatch_id")
_MOST_THREADS: Final = 1024
_SPARE: Final = 16
"""Registers beyond those that a kernel says it uses, so that its last wide access stays inside."""


@dataclass(frozen=True, slots=True)
class LaunchState:
    """Sizes of a launch, and where the first registers hold what.

    `kernarg_at` is the first scalar register of the address of the arguments. The workgroup's numbers are in
    `ids_at` and the registers behind it, of the axes whose bits `id_axes` has, or in trap registers.
    """

    lanes: int
    waves: int
    vectors: int
    accumulators: int
    private_size: int
    lds_size: int
    threads: int
    kernarg_at: int | None
    ids_at: int
    id_axes: int
    ids_in_traps: bool


def launch_state(listing: Listing, threads: int, shared: int) -> LaunchState:
    """The state for a launch.

    Raises Fault for a launch that no device takes, NotEmulated for what a kernel wants that no launch here gives.
    """
    descriptor, lanes = listing.descriptor, listing.wave_size
    place, kernarg_at = 0, None
    for name, count in _USER:
        if descriptor.get(name, 0):
            if name in _UNKNOWN:
                raise NotEmulated(f"{name.removeprefix('user_sgpr_')} in registers", listing.name)
            if name == "user_sgpr_kernarg_segment_ptr":
                kernarg_at = place
            place += count
    room, most = max(shared, descriptor.get("group_segment_fixed_size", 0)), generation(listing.arch).local_size
    if threads > _MOST_THREADS or room > most:
        raise Fault(
            f"a workgroup of {threads} threads and {room} bytes of local memory, {listing.arch} has {_MOST_THREADS} "
            f"and {most}",
            where=listing.name,
        )
    axes = sum(descriptor.get(f"system_sgpr_workgroup_id_{name}", 0) << axis for axis, name in enumerate("xyz"))
    vectors = descriptor.get("next_free_vgpr", 256)
    accumulators = max(vectors - descriptor["accum_offset"], 0) if "accum_offset" in descriptor else 0
    return LaunchState(
        lanes,
        -(-threads // lanes),
        vectors + _SPARE,
        accumulators + _SPARE,
        descriptor.get("private_segment_fixed_size", 0),
        room,
        threads,
        kernarg_at,
        descriptor.get("user_sgpr_count", place),
        axes,
        generation(listing.arch).ids_in_traps,
    )
