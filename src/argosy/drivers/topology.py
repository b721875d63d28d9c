"""AMD GPUs as the kernel's driver lists them.

Source: the Linux kernel's amdkfd, `kfd_topology.c`: a folder a node, with a file of `name value` lines, where
`gfx_target_version` is 10000 * major + 100 * minor + stepping, and `location_id` bus, device and function of PCI.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["KfdNode", "kfd_nodes"]

NODES: Final = Path("/sys/class/kfd/kfd/topology/nodes")


@dataclass(frozen=True, slots=True)
class KfdNode:
    """A GPU: its PCI place, its arch, its compute units (0 where that is not told)."""

    pci: str
    arch: str
    units: int


def kfd_nodes(folder: Path | None = None) -> list[KfdNode]:
    """The GPUs of a topology, in the order of their numbers; none where the kernel has no such driver."""
    nodes = [path for path in (folder or NODES).glob("*") if path.name.isdigit()]
    fields = [_fields(path / "properties") for path in sorted(nodes, key=lambda path: int(path.name))]
    return [_node(each) for each in fields if each.get("gfx_target_version", 0)]


def _fields(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # nodes that a container may not see can't be read
        return {}
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _node(fields: dict[str, int]) -> KfdNode:
    version, location = fields["gfx_target_version"], fields.get("location_id", 0)
    arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    bus, device, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    pci = f"{fields.get('domain', 0):04x}:{bus:02x}:{device:02x}.{function}"
    per_unit = fields.get("simd_per_cu", 0)
    return KfdNode(pci, arch, fields.get("simd_count", 0) // per_unit if per_unit else 0)
