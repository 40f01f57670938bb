"""The commands as functions, and the program."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import pbfhogg


def test_every_command_has_a_function() -> None:
    """The commands of the help are there, with documentation that names each parameter."""
    words = [sys.executable, "-m", "pbfhogg", "--help"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = set(pbfhogg._commands.__all__)
    assert {"add_locations_to_ways", "apply_changes", "cat", "check", "export", "sort", "update"} <= names
    for name in names:
        function = getattr(pbfhogg, name)
        assert name.replace("_", "-") in listed, name
        parameters = inspect.signature(function).parameters
        assert all(f":param {key}:" in function.__doc__ for key in parameters if key != "output"), name


def test_summaries_are_dicts(helsinki: Path, tmp_path: Path) -> None:
    """A function returns what the program prints with --json."""
    one, two = tmp_path / "one.osm.pbf", tmp_path / "two.osm.pbf"
    box = (24.940, 60.168, 24.945, 60.172)
    summary = pbfhogg.extract(helsinki, one, bbox=box, strategy="smart")
    words = ["extract", str(helsinki), "-b", ",".join(map(str, box)), "-s", "smart", "-o", str(two), "--json"]
    printed = subprocess.run([sys.executable, "-m", "pbfhogg", *words], capture_output=True, text=True, check=True)
    expected = json.loads(printed.stdout)
    assert summary.keys() == expected.keys()
    assert one.read_bytes() == two.read_bytes()
    filtered = tmp_path / "filtered.osm.pbf"
    pbfhogg.tags_filter(helsinki, ["w/highway=primary", "n/amenity"], filtered)
    assert 0 < pbfhogg.inspect(filtered)["objects"] < pbfhogg.inspect(helsinki)["objects"]


def test_statistics_are_written(helsinki: Path, tmp_path: Path) -> None:
    """The file has what --stats writes."""
    stats = tmp_path / "stats.json"
    pbfhogg.inspect(helsinki, stats=stats)
    assert "phases" in json.loads(stats.read_text())


def test_checks_that_fail_are_no_errors(helsinki: Path, tmp_path: Path) -> None:
    """The summary tells."""
    small = tmp_path / "small.osm.pbf"
    pbfhogg.extract(helsinki, small, bbox=(24.940, 60.168, 24.945, 60.172))
    assert pbfhogg.diff(helsinki, small)["nodes"]["left"] > 0


def test_errors_of_commands(helsinki: Path, tmp_path: Path) -> None:
    """Those of files are errors of the module, those of arguments are those of Python."""
    output = tmp_path / "there.osm.pbf"
    output.write_text("mine")
    with pytest.raises(pbfhogg.Error, match="there.osm.pbf") as raised:
        pbfhogg.cat(helsinki, output)
    assert raised.value.kind == "exists" and output.read_text() == "mine"
    with pytest.raises(TypeError, match="no_such_option"):
        pbfhogg.cat(helsinki, output, no_such_option=True)
    with pytest.raises(TypeError, match="overwrite"):
        pbfhogg.cat(helsinki, output, overwrite="yes")
    with pytest.raises(ValueError, match="the name ends in .geojson"):
        pbfhogg.export(helsinki, tmp_path / "pois.geojson", theme="pois")
    assert not (tmp_path / "pois.geojson").exists()
    with pytest.raises(ValueError, match="bounding box"):
        pbfhogg.extract(helsinki, tmp_path / "x.osm.pbf", bbox=(1, 2, 3))
    with pytest.raises(ValueError, match="stream"):
        pbfhogg.cat("-", output)


def test_warnings_are_those_of_python(helsinki: Path, tmp_path: Path) -> None:
    """What the program warns of is a warning."""
    located = tmp_path / "located.osm.pbf"
    pbfhogg.extract(helsinki, tmp_path / "part.osm.pbf", bbox=(24.940, 60.168, 24.945, 60.172), strategy="simple")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pbfhogg.add_locations_to_ways(tmp_path / "part.osm.pbf", located, ignore_missing_nodes=True)
    assert ["references to" in str(one.message) for one in caught] == [True]
    assert caught[0].category is UserWarning


def test_an_export_warns_of_what_it_leaves_out(helsinki: Path, tmp_path: Path) -> None:
    """The report has the same numbers."""
    with pytest.warns(UserWarning, match="left out: .* of which a part is not in the file"):
        report = pbfhogg.export(helsinki, tmp_path / "all.geojson")
    assert report["incomplete"] > 0


def test_the_program(helsinki: Path) -> None:
    """The package brings the program, with its exit statuses."""
    words = [sys.executable, "-m", "pbfhogg"]
    version = subprocess.run([*words, "version"], capture_output=True, text=True, check=True).stdout
    assert version == f"pbfhogg {pbfhogg.__version__}\n"
    wrong = subprocess.run([*words, "inspect", "not-there"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "") and "not-there" in wrong.stderr


def test_results_need_files(helsinki: Path) -> None:
    """Nothing is written to the standard output of the interpreter, and nothing waits for its standard input."""
    for call in (
        lambda: pbfhogg.cat(helsinki),
        lambda: pbfhogg.getid(helsinki, ["n1"]),
        lambda: pbfhogg.export(helsinki),
        lambda: pbfhogg.read("-"),
        lambda: pbfhogg.cat(helsinki, Path("-")),
        lambda: pbfhogg.cat(Path("-"), "out.osm.pbf"),
        lambda: pbfhogg.repair(helsinki, dry_run=True, report="-"),
    ):
        with pytest.raises(ValueError, match="give a"):
            call()
    for command in (["geocode", "index"], ["show", str(helsinki)], ["update", str(helsinki), "--watch", "60"]):
        with pytest.raises(ValueError, match="program alone"):
            pbfhogg._pbfhogg.call(command)
