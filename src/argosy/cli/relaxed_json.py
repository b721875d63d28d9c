"""JSON whose keys need no quotes, or single ones, as MIGraphX's options take it: `{num_cu:304, num_chiplets:8}`."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from argosy.errors import UsageError

__all__ = ["relaxed_object"]

_BARE_KEY: Final = re.compile(r"([{,]\s*)('?)(\w+)\2\s*:")


def relaxed_object(text: str) -> dict[str, Any]:
    """The object in `text`; raises ValueError for anything else, UsageError for a key that is given twice."""
    value = json.loads(_BARE_KEY.sub(r'\1"\3":', text), object_pairs_hook=_once)
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004 - the same fault as text that can't be read
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(f"{key} is given twice")
    return dict(pairs)
