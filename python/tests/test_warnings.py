"""Warnings, which name the line of the caller."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Callable, List

import pytest

import pbfhogg

#: An area that is not closed, one of which a way is not in the file, and two points.
BROKEN = """\
n1 v1 x1 y1 Tname=a
n2 v1 x2 y1 Tamenity=cafe
n3 v1 x2 y2
w1 v1 Nn1,n2
w2 v1 Nn2,n3
r1 v1 Ttype=multipolygon,natural=water Mw1@outer,w2@outer
r2 v1 Ttype=boundary,boundary=administrative Mw1@outer,w99@outer
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.opl"
    path.write_text(BROKEN)
    return path


def heard(call: Callable[[], Any]) -> List[str]:
    """Return the warnings of a call, each of which must name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(one.filename == __file__ and one.category is UserWarning for one in caught)
    return [str(one.message) for one in caught]


READERS: List[Callable[[pbfhogg.Table], Any]] = [
    lambda table: table.to_arrow(),
    lambda table: table.to_polars(),
    lambda table: table.to_pandas(),
    lambda table: table.to_geopandas(),
    lambda table: list(table),
    lambda table: list(table.batches()),
    lambda table: table.head(1_000),
]


@pytest.mark.parametrize("read", READERS)
def test_what_is_left_out_is_a_warning(broken: Path, read: Callable[[pbfhogg.Table], Any]) -> None:
    """Once, whoever reads the features."""
    said = heard(lambda: read(pbfhogg.features(broken)))
    assert len(said) == 1 and "open ring" in said[0] and "1 relation of which" in said[0], said
    assert heard(lambda: read(pbfhogg.features(broken, kinds="node"))) == []


def test_counting_is_silent(broken: Path) -> None:
    assert heard(lambda: len(pbfhogg.features(broken))) == []


def test_the_command_says_what_it_leaves_out(broken: Path, tmp_path: Path) -> None:
    said = heard(lambda: pbfhogg.export(broken, tmp_path / "out.geojson"))
    assert len(said) == 1 and "open ring" in said[0], said


def test_a_column_that_nothing_has_is_a_warning(broken: Path) -> None:
    """It is probably a mistake, in particular if other tables call a column so."""
    read = lambda **arguments: heard(lambda: pbfhogg.features(broken, kinds="node", **arguments).to_arrow())
    assert read(columns=["name", "amenity", "osm_id"]) == []
    said = read(columns=["name", "nmae", "id"])
    assert [message for message in said if '"nmae"' in message] == ['columns: no feature has the tag "nmae"']
    assert [message for message in said if '"id"' in message][0].endswith('what every object has is "osm_id"')
    assert len(said) == 2
    # Without features, no tag is missing.
    assert read(columns=["nmae"], tags="nothing=here") == []


def test_a_box_is_warned_of_where_it_is_given(broken: Path) -> None:
    for function in (pbfhogg.read, pbfhogg.features, pbfhogg.objects):
        said = heard(lambda: function(broken, bbox=(1, 60, -1, 70)))
        assert len(said) == 1 and said[0].startswith("bbox: ")


def test_a_warning_may_be_an_error(broken: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="left out"):
            pbfhogg.features(broken).to_arrow()
