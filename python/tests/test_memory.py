"""Memory of long streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import IS_LONG

import pbfhogg

#: About 100 MB of PBF, or 3 MB.
OBJECTS = 9_500_000 if IS_LONG else 300_000
PROGRAM = """
import pbfhogg, sys
rows = sum(len(batch) for batch in eval(sys.argv[2])(sys.argv[1]).batches())
# The peak in `getrusage` would be that of the process that started this one, if it is higher.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) // 1024)
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a size."""
    path = tmp_path_factory.mktemp("memory") / "world.osm.pbf"
    pbfhogg.synth(path, objects=OBJECTS)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other units")
@pytest.mark.parametrize("function", ["pbfhogg.features", "pbfhogg.read"])
def test_batches_take_little_memory(world: Path, function: str) -> None:
    """A few batches are in memory at a time, and not the file."""
    words = [sys.executable, "-c", PROGRAM, str(world), function]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    rows, megabytes = map(int, run.stdout.split())
    print(f"\n{function} of {world.stat().st_size >> 20} MB: {rows} rows, {megabytes} MB")
    assert rows > OBJECTS / 100 and megabytes < 500
