"""Arguments of several types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy
import pandas
import pytest
import shapely

import pbfhogg

BOX = (24.940, 60.168, 24.945, 60.172)


@pytest.mark.parametrize(
    "box",
    [
        list(BOX),
        numpy.array(BOX),
        pandas.Series(BOX),
        tuple(numpy.float64(edge) for edge in BOX),
        shapely.box(*BOX).bounds,
    ],
    ids=["list", "numpy", "pandas", "numbers of numpy", "shapely"],
)
def test_a_box_is_any_four_numbers(helsinki: Path, tmp_path: Path, box: Any) -> None:
    """For tables, iterators and commands."""
    expected = pbfhogg.read(helsinki, bbox=BOX, columns=["type", "id"]).to_arrow()
    assert 0 < expected.num_rows
    assert pbfhogg.read(helsinki, bbox=box, columns=["type", "id"]).to_arrow() == expected
    assert sum(1 for _ in pbfhogg.objects(helsinki, bbox=box)) == expected.num_rows
    assert len(pbfhogg.features(helsinki, bbox=box)) == len(pbfhogg.features(helsinki, bbox=BOX))
    pbfhogg.extract(helsinki, tmp_path / "a.osm.pbf", bbox=box)
    pbfhogg.extract(helsinki, tmp_path / "b.osm.pbf", bbox=BOX)
    assert (tmp_path / "a.osm.pbf").read_bytes() == (tmp_path / "b.osm.pbf").read_bytes()


def test_a_generator_of_edges_is_a_box(helsinki: Path) -> None:
    assert len(pbfhogg.read(helsinki, bbox=(edge for edge in BOX))) == len(pbfhogg.read(helsinki, bbox=BOX))


def test_integers_and_texts_may_be_those_of_numpy(helsinki: Path, tmp_path: Path) -> None:
    ids = pbfhogg.read(helsinki, kinds="way", tags="building", columns=["id"]).to_arrow()["id"].to_numpy()[:3]
    for some in (ids, pandas.Series(ids), set(ids.tolist()), (int(one) for one in ids)):
        assert len(pbfhogg.read(helsinki, kinds="way", ids=some)) == 3
    assert len(pbfhogg.read(helsinki, kinds="way", ids=int(ids[0]))) == 1
    kinds = numpy.array(["node", "way"])
    assert len(pbfhogg.read(helsinki, kinds=kinds)) == len(pbfhogg.read(helsinki, kinds=["node", "way"]))
    words = numpy.array([f"w{one}" for one in ids])
    pbfhogg.getid(helsinki, words, tmp_path / "three.osm.pbf", jobs=numpy.int64(1))
    assert len(pbfhogg.read(tmp_path / "three.osm.pbf")) == 3


def test_a_column_may_be_a_text(helsinki: Path) -> None:
    assert pbfhogg.read(helsinki, columns="id").columns == ["id"]


def writer(call: Callable[[pbfhogg.Writer], None]) -> Callable[[Path], None]:
    """Return a function that calls a writer of a file in a directory."""

    def run(directory: Path) -> None:
        with pbfhogg.Writer(directory / "new.osm.pbf") as opened:
            call(opened)

    return run


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("path", lambda _: pbfhogg.read(None)),  # type: ignore[arg-type]
        ("kinds", lambda _: pbfhogg.read("helsinki.osm.pbf", kinds=5)),  # type: ignore[arg-type]
        ("kinds", lambda _: pbfhogg.read("helsinki.osm.pbf", kinds=["way", 5])),  # type: ignore[list-item]
        ("tags", lambda _: pbfhogg.features("helsinki.osm.pbf", tags={"highway": True})),
        ("bbox", lambda _: pbfhogg.read("helsinki.osm.pbf", bbox=5)),  # type: ignore[arg-type]
        ("bbox", lambda _: pbfhogg.read("helsinki.osm.pbf", bbox=["a", "b", "c", "d"])),  # type: ignore[list-item]
        ("ids", lambda _: pbfhogg.read("helsinki.osm.pbf", kinds="way", ids=1.5)),  # type: ignore[arg-type]
        ("columns", lambda _: pbfhogg.read("helsinki.osm.pbf", columns=[5])),  # type: ignore[list-item]
        ("jobs", lambda _: pbfhogg.read("helsinki.osm.pbf", jobs="all")),  # type: ignore[arg-type]
        ("clip", lambda _: pbfhogg.features("helsinki.osm.pbf", bbox=BOX, clip="yes")),  # type: ignore[arg-type]
        ("polygon", lambda _: pbfhogg.features("helsinki.osm.pbf", polygon=5)),  # type: ignore[arg-type]
        ("polygon", lambda _: pbfhogg.features("helsinki.osm.pbf", polygon=shapely.Point(1, 2))),
        ("polygon", lambda _: pbfhogg.extract("helsinki.osm.pbf", "x.osm.pbf", polygon=5)),  # type: ignore[arg-type]
        ("bbox", lambda _: pbfhogg.extract("helsinki.osm.pbf", "x.osm.pbf", bbox=object())),  # type: ignore[arg-type]
        ("filter", lambda _: pbfhogg.augmented_diff("helsinki.osm.pbf", "x", filter=5)),  # type: ignore[call-overload]
        ("count", lambda _: pbfhogg.splits("helsinki.osm.pbf", "many")),  # type: ignore[arg-type]
        ("index", lambda _: pbfhogg.Geocoder(5)),  # type: ignore[arg-type]
        ("id", writer(lambda file: file.node("1", 2, 3))),  # type: ignore[arg-type]
        ("lat, lon", writer(lambda file: file.node(1, "2", 3))),  # type: ignore[arg-type]
        ("refs", writer(lambda file: file.way(1, 5))),  # type: ignore[arg-type]
        ("members", writer(lambda file: file.relation(1, [("way", "5", "")]))),  # type: ignore[list-item]
        ("tags", writer(lambda file: file.node(1, 2, 3, tags=5))),  # type: ignore[arg-type]
        ("version", writer(lambda file: file.node(1, 2, 3, version="2"))),  # type: ignore[arg-type]
        ("timestamp", writer(lambda file: file.node(1, 2, 3, timestamp="2020-01-01"))),  # type: ignore[arg-type]
        ("user", writer(lambda file: file.node(1, 2, 3, user=5))),  # type: ignore[arg-type]
    ],
)
def test_type_errors_name_the_argument(tmp_path: Path, name: str, call: Callable[[Path], Any]) -> None:
    with pytest.raises(TypeError, match=f"^{name}: "):
        call(tmp_path)


def test_numbers_beyond_their_range_are_named(helsinki: Path) -> None:
    with pytest.raises(ValueError, match="jobs: "):
        pbfhogg.read(helsinki, jobs=-1)
    with pytest.raises(ValueError, match="count: "):
        pbfhogg.splits(helsinki, -1)
    with pytest.raises(ValueError, match="max_relation_members: "):
        pbfhogg.augmented_diff(helsinki, "000466354.osc.gz", max_relation_members=-1)
    with pytest.raises(ValueError, match="bbox: .* 3 numbers"):
        pbfhogg.read(helsinki, bbox=(1, 2, 3))


def test_iterators_are_threads_that_do_not_hold_the_interpreter(large_world: Path) -> None:
    """Another thread of Python runs while one waits for batches and objects."""
    import threading

    path = large_world
    for iterator in (pbfhogg.read(path).batches(), pbfhogg.features(path).batches(), pbfhogg.objects(path)):
        ended = threading.Event()
        turns = 0

        def read() -> None:
            for _ in iterator:
                pass
            ended.set()

        thread = threading.Thread(target=read)
        thread.start()
        while not ended.wait(0.001):
            turns += 1
        thread.join()
        assert turns > 0
