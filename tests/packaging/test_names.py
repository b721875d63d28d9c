"""Names and versions, compared with the `packaging` library."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from packaging.version import Version

from argosy.errors import UsageError
from argosy.packaging.names import (
    check_name,
    check_version,
    device_extra,
    device_project,
    local_segment,
    module_name,
    normalised,
)


@given(st.text("aZ09._-", min_size=1, max_size=12))
def test_names_are_normalised_as_indexes_do(name: str) -> None:
    assert normalised(name) == canonicalize_name(name)


@pytest.mark.parametrize(
    "version", ["1.2", "0", "2!1.0", "1.0a1", "1.0rc12", "1.2.post3", "1.0b2.post1.dev4", "2026.12.1"]
)
def test_versions_in_normal_form_are_taken(version: str) -> None:
    assert check_version(version) == version == str(Version(version))


@pytest.mark.parametrize("version", ["v1.2", "1.02", "1.0-1", "1.0.alpha1", "1.0c1", "01", "", "one", "1.0 "])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(UsageError, match="is no version in normal form\n  for example 1.2, 1.2.0rc1"):
        check_version(version)


def test_a_local_segment_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'1.2\+mine' has a local segment\n  leave out '\+…'"):
        check_version("1.2+mine")


@pytest.mark.parametrize("name", ["", "-net", "net.", "a b", "net/x", "réseau", "../net", "a\n"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a package\n  letters, digits"):
        check_name(name)


@pytest.mark.parametrize("name", ["3dnet", "class", "Lambda"])
def test_what_python_cannot_import_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="can't be imported: '(3dnet|class|lambda)' is no name of a module"):
        check_name(name)


@pytest.mark.parametrize("name", ["json", "argosy", "NumPy", "ml-dtypes", "msgspec"])
def test_what_would_hide_a_module_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="would hide the module"):
        check_name(name)


def test_a_name_has_bounds() -> None:
    with pytest.raises(UsageError, match="the name has 101 characters, at most 100"):
        check_name("n" * 101)


def test_one_name_has_a_form_for_each_place() -> None:
    assert check_name("ResNet.50") == "resnet-50"
    assert module_name("resnet-50") == "resnet_50"
    assert device_extra("sm_90") == "device-sm-90"
    assert device_project("resnet-50", "x86-64-v3") == "resnet-50-device-x86-64-v3"


@given(st.text("0123456789abcdef", min_size=64, max_size=64).filter(lambda digest: not digest.isdigit()))
def test_a_hash_in_a_version_is_kept_as_it_is(digest: str) -> None:
    text = f"1.2+{local_segment(digest)}"
    assert str(Version(text)) == text
    assert local_segment(digest).removeprefix("argosy.") in digest
