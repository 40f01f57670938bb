"""Files that are bytes in memory."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Callable

import numpy
import pyarrow
import pytest
from conftest import DATA

import pbfhogg

BOX = (24.9400, 60.1660, 24.9450, 60.1700)
USES = {
    "info": lambda source: {**pbfhogg.info(source), "path": None},
    "read": lambda source: pbfhogg.read(source, tags="highway", bbox=BOX).to_arrow(),
    "features": lambda source: pbfhogg.features(source, tags="building").to_arrow(),
    "objects": lambda source: [(one.type, one.id, one.tags) for one in pbfhogg.objects(source, kinds="relation")],
    "splits": lambda source: pbfhogg.splits(source, 3),
    "parts": lambda source: [
        len(batch) for split in pbfhogg.splits(source, 3) for batch in pbfhogg.read(source, split=split).batches()
    ],
}


def mapped(path: Path) -> mmap.mmap:
    """Map a file into memory."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    "of",
    [
        Path.read_bytes,
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        mapped,
        lambda path: numpy.fromfile(path, dtype="u1"),
        lambda path: pyarrow.py_buffer(path.read_bytes()),
    ],
    ids=["bytes", "bytearray", "memoryview", "mmap", "numpy", "arrow"],
)
def test_bytes_are_read_as_their_file(helsinki: Path, of: Callable[[Path], Any], use: Callable[[Any], Any]) -> None:
    """Objects of six types have the bytes."""
    assert use(of(helsinki)) == use(helsinki)


def test_text_and_changes_in_memory(helsinki: Path, tmp_path: Path) -> None:
    """Other formats, compressed or not, and a base and changes at once."""
    day = DATA / "000466354.osc.gz"
    assert pbfhogg.changes(day.read_bytes()).to_arrow() == pbfhogg.changes(day).to_arrow()
    text = tmp_path / "helsinki.osm.gz"
    pbfhogg.cat([helsinki], text)
    assert pbfhogg.read(text.read_bytes()).to_arrow() == pbfhogg.read(helsinki).to_arrow()
    malta = DATA / "malta.osm.pbf"
    found = pbfhogg.augmented_diff(malta.read_bytes(), [day.read_bytes(), day.read_bytes()])
    assert found.to_arrow() == pbfhogg.augmented_diff(malta, day).to_arrow()


def test_bytes_may_change_after_the_call(helsinki: Path) -> None:
    """A table has a copy, and may outlive the object."""
    data = bytearray(helsinki.read_bytes())
    table = pbfhogg.read(data)
    data[:] = bytes(len(data))
    assert table.to_arrow() == pbfhogg.read(helsinki).to_arrow()


def test_errors_say_that_it_is_bytes(helsinki: Path) -> None:
    """Damage, and what is neither a path nor bytes."""
    data = helsinki.read_bytes()
    with pytest.raises(pbfhogg.Error, match="<bytes>") as raised:
        pbfhogg.read(data[:-1000]).to_arrow()
    assert raised.value.path == Path("<bytes>") and raised.value.blob is not None
    with pytest.raises(pbfhogg.Error, match=r"<bytes of changes\[1\]>"):
        pbfhogg.augmented_diff(data, [b"<osmChange version='0.6'/>", b"<osmChange>"]).to_arrow()
    for wrong in (b"", b"nothing"):
        with pytest.raises(pbfhogg.Error, match="<bytes>"):
            pbfhogg.read(wrong)
    for wrong in (7, None, [1]):
        with pytest.raises(TypeError, match="expected a path, an address or bytes"):
            pbfhogg.read(wrong)  # type: ignore[arg-type]
