"""A data source for PySpark 4, so that a cluster reads PBF files.

>>> spark.dataSource.register(pbfhogg.spark.PbfDataSource)                                  # doctest: +SKIP
>>> ways = spark.read.format("pbfhogg").option("kinds", "way").load("planet.osm.pbf")       # doctest: +SKIP

The rows are those of :func:`pbfhogg.read`. Each task reads a part of the file, which the driver has divided.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import pyarrow
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import pbfhogg
from pbfhogg import _pbfhogg

if TYPE_CHECKING:
    from pbfhogg import Split

#: The types of the columns in Spark.
_TYPES = {
    "type": "string not null",
    "id": "bigint not null",
    "version": "int",
    "timestamp": "timestamp",
    "changeset": "bigint",
    "uid": "int",
    "user": "string",
    "visible": "boolean not null",
    "tags": "map<string, string> not null",
    "lat": "double",
    "lon": "double",
    "refs": "array<bigint>",
    "locations": "array<struct<lat: double, lon: double>>",
    "members": "array<struct<type: string, ref: bigint, role: string>>",
}
_KINDS = ("node", "way", "relation")
#: The kinds of objects that have a value in a column.
_KINDS_WITH = {
    "lat": {"node"},
    "lon": {"node"},
    "refs": {"way"},
    "locations": {"way"},
    "members": {"relation"},
}
_OPTIONS = ("path", "kinds", "tags", "bbox", "ids", "columns", "splits", "jobs", "pushdown")


class _Part(InputPartition):  # type: ignore[misc, unused-ignore]
    """A part of the file, which a task reads."""

    def __init__(self, split: "Split") -> None:
        self.split = split


class _Selection:
    """The objects that are read."""

    def __init__(self, options: Dict[str, str]) -> None:
        self.kinds: Set[str] = set(_words(options.get("kinds")) or _KINDS)
        self.tags = _texts(options.get("tags"))
        self.ids: Optional[Set[str]] = None
        if "ids" in options:
            self.ids = {_checked_id(text) for text in _words(options["ids"])}
        self.bbox = _box(options.get("bbox"))

    def restrict_kinds(self, kinds: Iterable[str]) -> None:
        self.kinds &= set(kinds)

    def restrict_ids(self, numbers: Sequence[int]) -> None:
        ids = {f"{kind[0]}{number}" for kind in _KINDS for number in numbers}
        self.ids = ids if self.ids is None else self.ids & ids

    def arguments(self) -> Dict[str, Any]:
        """The arguments of :func:`pbfhogg.read`."""
        ids = None
        if self.ids is not None:
            initials = {kind[0] for kind in self.kinds}
            ids = sorted(one for one in self.ids if one[0] in initials)
        return {"kinds": sorted(self.kinds), "tags": self.tags, "bbox": self.bbox, "ids": ids}


def _checked_id(text: str) -> str:
    if not re.fullmatch("[nwr]-?[0-9]+", text):
        raise ValueError(f"ids: expected ids such as w123, not {text!r}")
    return text


def _words(text: Optional[str]) -> List[str]:
    """Parse an option that is a list, with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()] if text else []


def _texts(text: Optional[str]) -> Optional[List[str]]:
    """Parse an option that is a text, or a JSON array of texts."""
    if text is None:
        return None
    return [str(one) for one in json.loads(text)] if text.lstrip().startswith("[") else [text]


def _box(text: Optional[str]) -> Optional[Tuple[float, float, float, float]]:
    if text is None:
        return None
    try:
        left, bottom, right, top = (float(edge) for edge in text.split(","))
    except ValueError:
        raise ValueError(f"bbox: expected left,bottom,right,top in degrees, not {text!r}") from None
    return left, bottom, right, top


def _number(options: Dict[str, str], name: str, default: Optional[int]) -> Optional[int]:
    text = options.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name}: expected a number from 1, not {text!r}")
    return int(text)


class PbfDataSource(DataSource):  # type: ignore[misc, unused-ignore]
    """The format ``pbfhogg`` of ``spark.read``. Register it with ``spark.dataSource.register``.

    ``load`` takes a path on storage that all executors have, or an ``https://`` address. Options:

    - ``kinds``: ``node``, ``way``, ``relation``, or several with commas between;
    - ``tags``: an expression as ``pbfhogg tags-filter`` takes it, or a JSON array of expressions of which one must
      match;
    - ``bbox``: left,bottom,right,top in degrees, as of :func:`pbfhogg.read`; ``ids``: such as ``w123,w124``;
    - ``columns``: the columns of :func:`pbfhogg.read`, with commas between; those of a schema if one is given;
    - ``splits``: about how many tasks read the file; by default one for 64 MB, but up to 32 for smaller files;
    - ``jobs``: the number of threads of a task, 1 by default;
    - ``pushdown``: ``true`` if conditions on ``type``, ``id``, ``lat`` and ``lon`` select what is read. It takes
      PySpark 4.1 with ``spark.sql.python.filterPushdown.enabled``, which keeps the conditions of a data frame that is
      used again: load it anew for each query, and for each side of a union or a join.
    """

    @classmethod
    def name(cls) -> str:
        return "pbfhogg"

    def schema(self) -> str:
        options = _checked(self.options)
        columns = _words(options.get("columns")) or None
        table = pbfhogg.read(options["path"], columns=columns, **_Selection(options).arguments())
        return ", ".join(f"`{name}` {_TYPES[name]}" for name in table.column_names)

    def reader(self, schema: StructType) -> "PbfReader":
        options = _checked(self.options)
        is_pushing = options.get("pushdown", "false").lower() == "true"
        return (PushingReader if is_pushing else PbfReader)(options, schema)


def _checked(given: Mapping[str, str]) -> Dict[str, str]:
    """Return the options by their names in lower case. Raises an error if one is unknown."""
    options = {name.lower(): text for name, text in given.items()}
    for name in options:
        if name not in _OPTIONS:
            raise ValueError(f"there is no option {name!r}; there are {', '.join(_OPTIONS[1:])}")
    if "path" not in options:
        raise ValueError("there is no file to read: load(...) takes its path")
    return options


class PbfReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Divides a file between tasks, and reads the parts."""

    def __init__(self, options: Dict[str, str], schema: StructType) -> None:
        self.path = options["path"]
        self.columns = list(schema.fieldNames())
        self.schema = _arrow_schema(schema)
        self.selection = _Selection(options)
        self.count = _number(options, "splits", None)
        self.jobs = _number(options, "jobs", 1)

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the file. Parts that have none of the selected objects are left out."""
        ids = self.selection.ids
        if not self.selection.kinds or (ids is not None and not self.selection.arguments()["ids"]):
            return []
        splits = pbfhogg.splits(self.path, self.count or self._default_count())
        return [_Part(split) for split in splits if self._may_have_objects(split)]

    def _default_count(self) -> int:
        size: int = pbfhogg.info(self.path)["bytes"]
        return max(size // (64 << 20), min(size // (1 << 20), 32), 1)

    def _may_have_objects(self, split: "Split") -> bool:
        if split.kinds is None:
            return True
        if not self.selection.kinds & set(split.kinds):
            return False
        area = split.bbox
        if self.selection.bbox is None or area is None or split.kinds != ("node",):
            return True
        west, south, east, north = area
        return any(
            left <= east and west <= right and bottom <= north and south <= top
            for left, bottom, right, top in _pbfhogg.plain_boxes(self.selection.bbox)
        )

    def read(self, partition: Any) -> Iterator["pyarrow.RecordBatch"]:
        """Read a part. PySpark calls this with ``None`` if ``partitions`` has returned nothing."""
        if partition is None:
            return
        table = pbfhogg.read(
            self.path, columns=self.columns, split=partition.split, jobs=self.jobs or 1, **self.selection.arguments()
        )
        for batch in table.batches():
            yield pyarrow.record_batch(batch).cast(self.schema)


class PushingReader(PbfReader):
    """A reader that takes conditions of queries. PySpark refuses it unless it is told to push conditions down."""

    def pushFilters(self, filters: List[Any]) -> Iterable[Any]:  # noqa: N802
        """Restrict what is read. Spark evaluates those conditions that are not met by every row that is read."""
        low = {"lat": -90.0, "lon": -180.0}
        high = {"lat": 90.0, "lon": 180.0}
        has_bounds = False
        for condition in filters:
            name = ".".join(getattr(condition, "attribute", ()))
            value = getattr(condition, "value", None)
            values: Any = value if _is(condition, "In") else None
            if _is(condition, "EqualTo", "EqualNullSafe"):
                values = [value]
            if name == "type" and values is not None:
                self.selection.restrict_kinds(values)
            elif name == "id" and values is not None:
                self.selection.restrict_ids([one for one in values if one is not None])
            else:
                if name in _KINDS_WITH and not _is(condition, "IsNull", "EqualNullSafe", "Not"):
                    # A comparison with null is not true.
                    self.selection.restrict_kinds(_KINDS_WITH[name])
                if name in low and isinstance(value, (int, float)) and not math.isnan(value):
                    if _is(condition, "EqualTo", "GreaterThan", "GreaterThanOrEqual"):
                        low[name], has_bounds = max(low[name], min(value, high[name])), True
                    if _is(condition, "EqualTo", "LessThan", "LessThanOrEqual"):
                        high[name], has_bounds = min(high[name], max(value, low[name])), True
                yield condition
        if has_bounds and self.selection.bbox is None:
            edges = (low["lon"], low["lat"], high["lon"], high["lat"])
            if edges[0] <= edges[2] and edges[1] <= edges[3]:
                # Locations are rounded to 1e-7 degree.
                unit = 1e-7
                self.selection.bbox = (
                    max(edges[0] - unit, -180.0),
                    max(edges[1] - unit, -90.0),
                    min(edges[2] + unit, 180.0),
                    min(edges[3] + unit, 90.0),
                )


def _arrow_schema(schema: StructType) -> "pyarrow.Schema":
    """Return the schema of the batches that PySpark expects. From 4.3 on, it compares names of nested fields, too."""
    convert: Any = to_arrow_schema
    has_zone = "timezone" in inspect.signature(convert).parameters
    converted: "pyarrow.Schema" = convert(schema, timezone="UTC") if has_zone else convert(schema)
    return converted


def _is(condition: Any, *names: str) -> bool:
    """Whether a condition is of one of some classes, which PySpark has from 4.1 on."""
    return any(isinstance(condition, getattr(datasource, name, ())) for name in names)
