"""What the tests share: the files, and other programs' view of them."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, List

import osmium
import pytest

import pbfhogg

DATA = Path(__file__).parents[2] / "tests" / "data"
FILES = sorted(path.name for path in DATA.glob("*.pbf"))
#: The files that a short run takes.
SHORT = ["helsinki.osm.pbf", "loc_on_ways.osm.pbf", "monaco.lz4.osm.pbf", "deleted_nodes.osh.pbf"]
IS_LONG = "PBFHOGG_LONG" in os.environ


def some_files() -> List[str]:
    """Return the names of all files, or of those of a short run."""
    return FILES if IS_LONG else [name for name in FILES if name in SHORT]


@pytest.fixture
def helsinki() -> Path:
    """A file without an index."""
    return DATA / "helsinki.osm.pbf"


@pytest.fixture(autouse=True)
def in_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the directory of the files."""
    monkeypatch.chdir(DATA)


@pytest.fixture(scope="session")
def large_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of 300,000 objects that no test changes. Beside it are change files of five days."""
    directory = tmp_path_factory.mktemp("large")
    path = directory / "world.osm.pbf"
    pbfhogg.synth(path, objects=300_000, changes=5, changes_dir=directory)
    return path


def run(code: str, *words: str) -> subprocess.Popen:
    """Run code in another interpreter, which an interrupt ends."""
    code = "import pbfhogg, sys\n" + textwrap.dedent(code)
    command = [sys.executable, "-c", code, *words]
    # A shell lets its background processes, and those that they start, ignore interrupts.
    default = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=default)


def rows_of_osmium(path: Path) -> List[Dict[str, Any]]:
    """Return the objects of a file as another library reads them, as rows of `read`."""
    rows = []
    names = {"n": "node", "w": "way", "r": "relation"}
    for item in osmium.FileProcessor(str(path)):
        kind = item.type_str()
        row: Dict[str, Any] = {
            "type": names[kind],
            "id": item.id,
            "version": item.version or None,
            "changeset": item.changeset or None,
            "uid": item.uid or None,
            "user": item.user or None,
            "tags": [(tag.k, tag.v) for tag in item.tags],
            "lat": None,
            "lon": None,
            "refs": None,
            "members": None,
        }
        seconds = item.timestamp.timestamp()
        row["timestamp"] = seconds if seconds > 0 else None
        if kind == "n" and item.location.valid() and item.visible:
            row["lat"], row["lon"] = item.location.lat, item.location.lon
        if kind == "w":
            row["refs"] = [node.ref for node in item.nodes]
        if kind == "r":
            row["members"] = [
                {"type": names[member.type], "ref": member.ref, "role": member.role} for member in item.members
            ]
        rows.append(row)
    return rows
