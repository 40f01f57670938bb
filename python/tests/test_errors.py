"""Wrong arguments, damaged files, signals, and threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import run

import pbfhogg


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"kinds": "street"}, ValueError, "kinds: "),
        ({"kinds": []}, ValueError, "kinds: "),
        ({"tags": "w/"}, ValueError, "tags: "),
        ({"bbox": (10, 50, 181, 51)}, ValueError, "bbox: .*longitude 181"),
        ({"bbox": (10, 50, 11, 91)}, ValueError, "bbox: "),
        ({"bbox": "10,50,11,51"}, TypeError, "bbox: expected four numbers"),
        ({"ids": [1]}, ValueError, "ids: 1 could be"),
        ({"ids": ["x1"]}, ValueError, "ids: "),
        ({"ids": [1.5], "kinds": "way"}, TypeError, "ids: "),
        ({"columns": ["colour"]}, ValueError, "columns: "),
        ({"split": 7}, TypeError, "split: "),
        ({"jobs": -1}, ValueError, "jobs: "),
        ({"jobs": 2000}, ValueError, "jobs: "),
    ],
)
def test_wrong_arguments_are_named(helsinki: Path, arguments: Any, kind: type, words: str) -> None:
    """The exception tells which argument is wrong."""
    with pytest.raises(kind, match=words):
        pbfhogg.read(helsinki, **arguments)


def test_arguments_of_diffs_are_named(helsinki: Path, tmp_path: Path) -> None:
    """As they are called there."""
    with pytest.raises(ValueError, match="filter: "):
        pbfhogg.augmented_diff(helsinki, helsinki, filter="w/")
    with pytest.raises(ValueError, match="standard input"):
        pbfhogg.augmented_diff("-", helsinki)
    with pytest.raises(pbfhogg.Error, match="not-there"):
        pbfhogg.augmented_diff(helsinki, ["not-there.osc"])


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """And not to see whether it is there."""
    pipe = tmp_path / "changes.osc"
    os.mkfifo(pipe)
    text = b'<osmChange version="0.6"><delete><node id="1" version="2"/></delete></osmChange>'
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    assert pbfhogg.changes(pipe).to_arrow()["id"].to_pylist() == [1]
    writer.join()


def test_wrong_paths() -> None:
    """A file that is not there, and what is no path."""
    for function in (pbfhogg.read, pbfhogg.features, pbfhogg.objects, pbfhogg.info):
        with pytest.raises(pbfhogg.Error, match="not-there") as raised:
            function("not-there.osm.pbf")
        assert raised.value.kind == "not_found"
        assert raised.value.path == Path("not-there.osm.pbf")
        with pytest.raises(TypeError, match="expected a path"):
            function(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "use",
    [
        lambda table: list(table.batches()),
        lambda table: table.to_arrow(),
        lambda table: table.to_polars(),
        lambda table: table.to_pandas(),
    ],
)
def test_damage_is_found_and_placed(helsinki: Path, tmp_path: Path, use: Callable[[pbfhogg.Table], Any]) -> None:
    """The exception has the blob and its place, whoever reads the table."""
    data = bytearray(helsinki.read_bytes())
    split = pbfhogg.splits(helsinki, 1000)[2]
    data[split.offset + split.length // 2] ^= 0x55
    damaged = tmp_path / "damaged.osm.pbf"
    damaged.write_bytes(data)
    for table in (pbfhogg.read(damaged), pbfhogg.features(damaged)):
        with pytest.raises(pbfhogg.Error, match="blob") as raised:
            use(table)
        assert (raised.value.blob, raised.value.byte) == (split.blob, split.offset)
        assert raised.value.path == damaged and raised.value.kind in ("damaged", "truncated")


def test_two_threads_read_at_once(helsinki: Path) -> None:
    """Tables may be shared, and read at the same time."""
    table = pbfhogg.read(helsinki)
    expected = table.to_arrow()
    found: list = []
    threads = [threading.Thread(target=lambda: found.append(table.to_arrow())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(one == expected for one in found)


def test_an_interpreter_ends_with_a_stream_open(large_world: Path) -> None:
    """Threads that make batches do not hinder the end."""
    code = """
        import pyarrow
        table = pbfhogg.read(sys.argv[1])
        batches = table.batches(); next(batches)
        reader = pyarrow.RecordBatchReader.from_stream(table); reader.read_next_batch()
        objects = pbfhogg.objects(sys.argv[1]); next(objects)
        print("read")
    """
    program = run(code, str(large_world))
    output, errors = program.communicate(timeout=20)
    assert (program.returncode, output, errors) == (0, b"read\n", b"")
