"""The data source for PySpark, whose executors are processes of their own."""

from __future__ import annotations

import http.server
import os
import re
import signal
import subprocess
import sys
import threading
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from conftest import DATA, IS_LONG

import pbfhogg

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession  # noqa: E402

import pbfhogg.spark  # noqa: E402

#: With 2,600,000 objects, the file is as large as a city.
OBJECTS = 2_600_000 if IS_LONG else 200_000


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two executors, and at most four attempts of a task."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2, 4]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.dataSource.register(pbfhogg.spark.PbfDataSource)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    """The same file without an index, and with a table of contents and locations in ways."""
    directory = tmp_path_factory.mktemp("world")
    plain, indexed = directory / "world.osm.pbf", directory / "indexed.osm.pbf"
    located = directory / "located.osm.pbf"
    pbfhogg.synth(plain, objects=OBJECTS)
    pbfhogg.add_locations_to_ways(plain, located, keep_untagged_nodes=True)
    pbfhogg.repack(located, indexed, objects_per_blob=2000)
    return {"plain": plain, "indexed": indexed}


def load(spark: SparkSession, path: object, **options: str) -> Any:
    """Return a file as a data frame."""
    return spark.read.format("pbfhogg").options(**options).load(str(path))


@pytest.mark.parametrize("name", ["plain", "indexed"])
def test_counts_and_sums(spark: SparkSession, world: Dict[str, Path], name: str) -> None:
    """Spark adds up from parts what the library finds in the whole file."""
    path = world[name]
    frame = load(spark, path, splits="12")
    assert 8 <= frame.rdd.getNumPartitions() <= 12
    if IS_LONG:
        assert load(spark, path).rdd.getNumPartitions() >= 8
    counts = {row["type"]: row["count"] for row in frame.groupBy("type").count().collect()}
    expected = pbfhogg.read(path, columns=["type"]).to_polars()["type"].value_counts()
    assert counts == dict(expected.iter_rows())
    lengths = frame.selectExpr("sum(size(refs))", "max(timestamp)", "sum(size(tags))").collect()[0]
    every = pbfhogg.read(path, columns=["refs", "timestamp", "tags"]).to_arrow()
    assert lengths[0] == sum(len(refs) for refs in every["refs"].to_pylist() if refs)
    assert lengths[1].timestamp() == max(every["timestamp"].to_pylist()).timestamp()
    assert lengths[2] == sum(map(len, every["tags"].to_pylist()))


def test_rows_are_those_of_the_library(spark: SparkSession) -> None:
    """All columns of a real file."""
    path = DATA / "monaco.osm.pbf"
    found = load(spark, path, splits="5").collect()
    expected = pbfhogg.read(path).to_arrow().to_pylist()
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected):
        row = row.asDict(recursive=True)
        assert row.pop("timestamp").timestamp() == wanted.pop("timestamp").timestamp()
        # Spark has no order of the entries of a map.
        assert row == {**wanted, "tags": dict(wanted["tags"])}


def test_the_length_of_ways(spark: SparkSession, world: Dict[str, Path]) -> None:
    """Locations in ways give lengths in metres, without a join."""

    def metres(places: List[Tuple[float, float]]) -> float:
        total = 0.0
        for (lat, lon), (next_lat, next_lon) in zip(places, places[1:]):
            one, two = radians(lat), radians(next_lat)
            part = sin((two - one) / 2) ** 2 + cos(one) * cos(two) * sin(radians(next_lon - lon) / 2) ** 2
            total += 2 * 6_371_008.8 * asin(sqrt(part))
        return total

    ways = load(spark, world["indexed"], kinds="way", columns="id,locations", tags="highway")
    lengths = ways.rdd.map(lambda row: metres([(place["lat"], place["lon"]) for place in row["locations"] or []]))
    table = pbfhogg.read(world["indexed"], kinds="way", columns=["locations"], tags="highway").to_arrow()
    lists = table["locations"].to_pylist()
    expected = sum(metres([(place["lat"], place["lon"]) for place in places or []]) for places in lists)
    assert expected > 0 and lengths.sum() == pytest.approx(expected, rel=1e-9)


class Counting(http.server.BaseHTTPRequestHandler):
    """Serves ranges of a file, and counts bytes."""

    data = b""
    sent = 0

    def do_HEAD(self) -> None:  # noqa: N802
        self.answer()

    def do_GET(self) -> None:  # noqa: N802
        part = self.answer()
        Counting.sent += len(part)
        self.wfile.write(part)

    def answer(self) -> bytes:
        data, words = Counting.data, self.headers.get("Range", "")
        start, end = 0, len(data)
        if words.startswith("bytes="):
            first, _, last = words[6:].partition("-")
            start = int(first) if first else len(data) - int(last)
            end = min(int(last) + 1, len(data)) if first and last else len(data)
        self.send_response(206 if words else 200)
        if words:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        return data[start:end]

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_selections_read_a_fraction(spark: SparkSession, world: Dict[str, Path]) -> None:
    """A file on a web server, of which tasks read what they need."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Counting.data = world["indexed"].read_bytes()
    address = f"http://127.0.0.1:{server.server_port}/world.osm.pbf"

    def read(**options: str) -> Tuple[int, float]:
        Counting.sent = 0
        count = load(spark, address, splits="8", **options).count()
        return count, Counting.sent / len(Counting.data)

    every, all_bytes = read()
    assert every == load(spark, world["indexed"]).count() and all_bytes >= 1
    relations, some_bytes = read(kinds="relation", tags="type=multipolygon")
    table = pbfhogg.read(world["indexed"], kinds="relation", tags="type=multipolygon", columns=["id"])
    assert relations == table.to_arrow().num_rows > 0
    none, few_bytes = read(kinds="way", ids="w-5")
    print(f"\nof {len(Counting.data)} bytes: all {all_bytes:.2f}, relations {some_bytes:.3f}, no id {few_bytes:.3f}")
    # Each task reads the table of contents.
    assert none == 0 and some_bytes < 0.1 and few_bytes < 0.1
    server.shutdown()


def test_conditions_are_pushed_down(spark: SparkSession, world: Dict[str, Path]) -> None:
    """With them, there are fewer parts, and the same rows."""
    plain = load(spark, world["indexed"], splits="12")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    way = pbfhogg.read(world["indexed"], kinds="way", columns=["id"]).to_arrow()["id"][17].as_py()
    conditions = [
        "type = 'relation'",
        "type IN ('relation', 'way') AND size(refs) > 10",
        f"id = {way} AND type = 'way'",
        f"id IN ({way}, 5, 6)",
        "type = 'way' AND type = 'node'",
        "lat > 20.5 AND lat <= 60 AND lon BETWEEN -120 AND 30.25",
        "lat = 0 OR type = 'way'",
        "refs IS NOT NULL AND tags['highway'] IS NOT NULL",
        "lat IS NULL",
        "NOT (type = 'node')",
        "lon < -200",
    ]
    try:
        for condition in conditions:
            pushed = load(spark, world["indexed"], splits="12", pushdown="true").filter(condition)
            query = ["count(*)", "sum(id)", "sum(hash(type, id))"]
            found, expected = (frame.selectExpr(*query).collect() for frame in (pushed, plain.filter(condition)))
            assert found == expected, condition
            if condition.startswith("type = 'relation'"):
                assert pushed.rdd.getNumPartitions() < plain.rdd.getNumPartitions() / 2
        # Without the option, a data frame may be used again.
        nodes, ways = plain.filter("type = 'node'"), plain.filter("type = 'way'")
        assert nodes.union(ways).count() == nodes.count() + ways.count() < plain.count()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_a_killed_task_is_done_again(spark: SparkSession, world: Dict[str, Path], tmp_path: Path) -> None:
    """The process of a task dies after its first batch, twice; nothing is lost, and nothing comes twice."""
    marks = str(tmp_path)

    class FragileReader(pbfhogg.spark.PbfReader):
        def read(self, partition: Any) -> Iterator[Any]:
            for batch in super().read(partition):
                yield batch
                for name in ("one", "two"):
                    mark = os.path.join(marks, name)
                    try:
                        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                    except FileExistsError:
                        continue
                    os.kill(os.getpid(), signal.SIGKILL)

    class Fragile(pbfhogg.spark.PbfDataSource):
        @classmethod
        def name(cls) -> str:
            return "fragile"

        def reader(self, schema: Any) -> FragileReader:
            return FragileReader(dict(self.options), schema)

    spark.dataSource.register(Fragile)
    frame = spark.read.format("fragile").option("splits", "12").load(str(world["plain"]))
    query = ["count(*)", "sum(id)", "sum(size(refs))", "sum(hash(map_entries(tags)))"]
    found = frame.selectExpr(*query).collect()
    assert sorted(os.listdir(marks)) == ["one", "two"]
    assert found == load(spark, world["plain"]).selectExpr(*query).collect()


def test_wrong_options(spark: SparkSession, world: Dict[str, Path]) -> None:
    """The error says which option is wrong."""
    for options, words in [
        ({"kind": "way"}, "no option 'kind'"),
        ({"bbox": "1,2"}, "bbox: "),
        ({"kinds": "street"}, "kinds: "),
        ({"columns": "colour"}, "columns: "),
        ({"splits": "0"}, "splits: "),
        ({"kinds": "way", "ids": "123"}, "ids: "),
        ({"ids": "x12"}, "ids: "),
    ]:
        with pytest.raises(Exception, match=words):
            load(spark, world["plain"], **options).count()
    with pytest.raises(Exception, match="not-there"):
        load(spark, "not-there.osm.pbf")


def test_the_example(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of `reference/analytics.md`."""
    page = (Path(__file__).parents[2] / "reference" / "analytics.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    [example] = [block for block in blocks if "pbfhogg.spark" in block]
    # The processes of Spark have the directory in which it began.
    exec(example.replace("malta.osm.pbf", str(DATA / "malta.osm.pbf")), {})
    rows = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    table = pbfhogg.read("malta.osm.pbf", kinds="way", tags="highway", columns=["tags"]).to_pandas()
    expected = table["tags"].map(lambda tags: tags["highway"]).value_counts().head(3)
    assert [(name.strip(), int(count)) for name, count in rows[1:]] == list(expected.items())


CLUSTER = """
import sys
from pyspark.sql import SparkSession
import pbfhogg.spark
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(pbfhogg.spark.PbfDataSource)
frame = spark.read.format("pbfhogg").option("splits", "12").load(sys.argv[1])
print("rows", frame.count(), frame.rdd.map(lambda row: __import__("os").getppid()).distinct().count())
"""


def test_executors_of_a_cluster(world: Dict[str, Path]) -> None:
    """Two executors with processes of their own."""
    import pyspark

    environment = {**os.environ, "SPARK_HOME": os.path.dirname(pyspark.__file__), "PYSPARK_PYTHON": sys.executable}
    words = [sys.executable, "-c", CLUSTER, str(world["indexed"])]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    rows, executors = run.stdout.split("rows ")[1].split()
    every = sum(len(batch) for batch in pbfhogg.read(world["indexed"], columns=["id"]).batches())
    assert (int(rows), int(executors)) == (every, 2), run.stderr
