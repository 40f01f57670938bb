"""Ctrl-C during commands, iterators and writers."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import IS_LONG, run

import pbfhogg

#: Work on the file ``path``, which is repeated until an interrupt. An output is ``out``.
WORK = [
    "table.to_arrow()",
    "for batch in table.batches(): pass",
    "table.to_polars()",
    "len(table), len(pbfhogg.features(path))",
    "for row in table: pass",
    "for row in pbfhogg.features(path): pass",
    "for row in pbfhogg.objects(path): pass",
    "for row in pbfhogg.objects(path, tags='w/highway'): pass",
    "pbfhogg.features(path).to_arrow()",
    "pbfhogg.augmented_diff(path, day).to_arrow()",
    "pbfhogg.changes(day).to_arrow()",
    "pbfhogg.info(path)",
    "pbfhogg.splits(path, 3)",
    "pbfhogg.add_locations_to_ways(path, out, overwrite=True)",
    "pbfhogg.add_locations_to_ways(path, out, overwrite=True, index_type='external')",
    "pbfhogg.apply_changes(path, day, out, overwrite=True)",
    "pbfhogg.build_geocode_index(path, out + '.index', overwrite=True)",
    "pbfhogg.cat(path, out + '.opl.gz', overwrite=True)",
    "pbfhogg.check(path, full=True)",
    "pbfhogg.diff(path, path, verify=True)",
    "pbfhogg.export(path, out + '.geojson', overwrite=True)",
    "pbfhogg.export(path, out + '.parquet', overwrite=True)",
    "pbfhogg.extract(path, out, bbox=(0, 0, 1, 1), overwrite=True)",
    "pbfhogg.getid(path, ['n1', 'w1'], out, add_referenced=True, overwrite=True)",
    "pbfhogg.merge_changes([day, day], out + '.osc.gz', simplify=True, overwrite=True)",
    "pbfhogg.renumber(path, out, overwrite=True)",
    "pbfhogg.repack(path, out, compression='zlib:9', overwrite=True)",
    "pbfhogg.repair(path, out, overwrite=True)",
    "pbfhogg.sort([path, path], out, overwrite=True)",
    "pbfhogg.split(path, out + '.parts', parts=3, overwrite=True)",
    "pbfhogg.synth(out, objects=300000, overwrite=True)",
    "pbfhogg.tags_filter(path, ['highway'], out, overwrite=True)",
    "pbfhogg.inspect(path, html=out + '.html', overwrite=True)",
    "pbfhogg.fileinfo(path, extended=True)",
    "pbfhogg.getparents(path, ['n1', 'w1'], out, overwrite=True)",
    "pbfhogg.time_filter(path, '2026-01-01T00:00:00Z', output=out, overwrite=True)",
    "pbfhogg.merge([path, path], out, overwrite=True)",
    "pbfhogg.tags_edit(path, out, drop='name', overwrite=True)",
    "pbfhogg.degrade(path, out, unsort=True, overwrite=True)",
    "pbfhogg.create_locations_index(path, index_file=out + '.index'); os.remove(out + '.index')",
    "pbfhogg.query_locations_index(index_file=nodes, dump=True, output=out, overwrite=True)",
    "pbfhogg.changeset_filter(changesets, out + '.osm.bz2', with_changes=True, overwrite=True)",
    "pbfhogg.update(path, out, server=server, max_age=99999, overwrite=True)",
    "pbfhogg.coastline(path, out + '.coast', overwrite=True)",
    "pbfhogg.regions(path, config=regions, directory=out + '.regions'); shutil.rmtree(out + '.regions')",
    "pbfhogg.Geocoder(places).reverse_many([40.0] * 300000, [-10.0] * 300000).to_arrow()",
    """
        with pbfhogg.Writer(out, overwrite=True) as writer:
            for number in range(1, 300000): writer.node(300000 - number, 1.0, 1.0)
    """,
]
#: The times in seconds between the start of the work and the interrupt.
MOMENTS = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2]


@pytest.fixture(scope="session")
def path(large_world: Path) -> Path:
    """Return the file, beside which is what else the work reads."""
    directory = large_world.parent
    days = directory / "server" / "000" / "000"
    days.mkdir(parents=True)
    for day in range(1, 6):
        for suffix in ("osc.gz", "state.txt"):
            (days / f"{day:03}.{suffix}").symlink_to(directory / f"{day:03}.{suffix}")
    (directory / "server" / "state.txt").symlink_to(days / "005.state.txt")
    (days / "000.state.txt").write_text("sequenceNumber=0\ntimestamp=2026-01-01T00\\:00\\:00Z\n")
    changeset = "<changeset id='{}' created_at='2026-01-01T00:00:00Z' open='true' num_changes='1'/>\n"
    changesets = "".join(changeset.format(number) for number in range(1, 200_000))
    (directory / "changesets.osm").write_text(f"<osm version='0.6'>\n{changesets}</osm>\n")
    pbfhogg.create_locations_index(large_world, index_file=directory / "nodes.index")
    pbfhogg.build_geocode_index(large_world, directory / "places.index")
    (directory / "regions.json").write_text('{"extracts":[{"output":"one.osm.pbf","bbox":[-10,39,-9,41]}]}')
    return large_world


def test_each_function_is_interrupted() -> None:
    """No command and no iterator is left out above. `read` only opens a file, and its table is tried."""
    names = [name for name in pbfhogg.__all__ if callable(getattr(pbfhogg, name))]
    left_out = {name for name in names if not any(f"pbfhogg.{name}(" in work for work in WORK)}
    assert left_out == {"Error", "Split", "Table", "read"}


@pytest.mark.parametrize(
    ("work", "moment"),
    [
        (work, moment)
        for number, work in enumerate(WORK)
        for moment in (MOMENTS if IS_LONG else [MOMENTS[number % len(MOMENTS)]])
    ],
)
def test_an_interrupt_ends_the_work(tmp_path: Path, path: Path, work: str, moment: float) -> None:
    """Ctrl-C raises KeyboardInterrupt within two seconds, and leaves no temporary file."""
    out = tmp_path / "out"
    out.mkdir()
    code = f"""
import os, shutil
path, directory = sys.argv[1:]
out, inputs = os.path.join(directory, "out.osm.pbf"), os.path.dirname(path)
names = ["005.osc.gz", "server", "changesets.osm", "nodes.index", "places.index", "regions.json"]
day, server, changesets, nodes, places, regions = (os.path.join(inputs, name) for name in names)
table = pbfhogg.read(path)
work = compile({work.strip() + chr(10)!r}, "work", "exec")
print("ready", flush=True)
while True: exec(work)
"""
    program = run(code, str(path), str(out))
    assert program.stdout is not None and program.stdout.readline() == b"ready\n"
    time.sleep(moment)
    for _ in range(3):
        # Python ignores an exception that a signal raises while it finalizes an object: people press Ctrl-C again.
        program.send_signal(signal.SIGINT)
        try:
            _, errors = program.communicate(timeout=2)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        program.kill()
        pytest.fail("three interrupts were ignored")
    assert b"KeyboardInterrupt" in errors, errors.decode()
    left = [one.name for one in out.rglob("*") if one.name.startswith(".")]
    assert not left
