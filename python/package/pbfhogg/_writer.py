"""Files written object by object."""

from __future__ import annotations

import datetime
import os
from types import TracebackType
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from . import _pbfhogg
from ._arguments import list_of, names_arguments

Tags = Union[Mapping[str, str], Iterable[Tuple[str, str]]]
Time = Union[int, datetime.datetime]


def _tag_list(tags: Optional[Tags]) -> List[Tuple[str, str]]:
    if tags is None:
        return []
    return list(tags.items()) if isinstance(tags, Mapping) else list_of("tags", tags)


def _seconds(time: Optional[Time]) -> Optional[int]:
    if not isinstance(time, datetime.datetime):
        return time
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return round(time.timestamp())


class Writer:
    """Writes a PBF file with a table of contents. Objects may come in any order, and are sorted.

    The file gets its name when the ``with`` block ends without an exception. Otherwise there is no file. A timestamp is
    a number of seconds since 1970, or a ``datetime``, which is in UTC if it has no zone.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "cafe.osm.pbf")
    >>> with pbfhogg.Writer(path) as writer:
    ...     writer.way(1, [1, 2], tags={"highway": "path"})
    ...     writer.node(1, 52.5, 13.4, tags={"amenity": "cafe"})
    ...     writer.node(2, 52.6, 13.4, version=3)
    >>> writer.objects
    3
    >>> [(found.type, found.id, found.tags) for found in pbfhogg.objects(path, tags="amenity")]
    [('node', 1, {'amenity': 'cafe'})]
    """

    @names_arguments
    def __init__(self, path: Union[str, "os.PathLike[str]"], *, overwrite: bool = False) -> None:
        """Open a file, which must not exist yet unless ``overwrite``."""
        self._native = _pbfhogg.Writer(path, overwrite)
        #: The number of objects in the file; ``None`` until it is written.
        self.objects: Optional[int] = None

    @names_arguments
    def node(
        self,
        id: int,
        lat: Optional[float],
        lon: Optional[float],
        *,
        tags: Optional[Tags] = None,
        version: Optional[int] = None,
        timestamp: Optional[Time] = None,
        changeset: Optional[int] = None,
        uid: Optional[int] = None,
        user: Optional[str] = None,
        visible: bool = True,
    ) -> None:
        """Add a node. A deleted node has no location."""
        place = None if lat is None or lon is None else (lat, lon)
        if visible and place is None:
            raise ValueError("lat, lon: a node that is not deleted has a location")
        metadata = (version, _seconds(timestamp), changeset, uid, user, visible)
        self._native.node(id, place, _tag_list(tags), metadata)

    @names_arguments
    def way(
        self,
        id: int,
        refs: Sequence[int],
        *,
        tags: Optional[Tags] = None,
        version: Optional[int] = None,
        timestamp: Optional[Time] = None,
        changeset: Optional[int] = None,
        uid: Optional[int] = None,
        user: Optional[str] = None,
        visible: bool = True,
    ) -> None:
        """Add a way, with the ids of its nodes."""
        metadata = (version, _seconds(timestamp), changeset, uid, user, visible)
        self._native.way(id, list_of("refs", refs), _tag_list(tags), metadata)

    @names_arguments
    def relation(
        self,
        id: int,
        members: Sequence[Tuple[str, int, str]],
        *,
        tags: Optional[Tags] = None,
        version: Optional[int] = None,
        timestamp: Optional[Time] = None,
        changeset: Optional[int] = None,
        uid: Optional[int] = None,
        user: Optional[str] = None,
        visible: bool = True,
    ) -> None:
        """Add a relation. Members are a type (``"node"``, ``"way"`` or ``"relation"``), an id and a role."""
        metadata = (version, _seconds(timestamp), changeset, uid, user, visible)
        self._native.relation(id, list_of("members", members), _tag_list(tags), metadata)

    def table(self, table: Any, *, kind: Optional[str] = None) -> None:
        """Add the rows of a table with the columns of :func:`pbfhogg.read`, which any Arrow library may have made.

        :param kind: The kind of the objects if the table has no column ``type``.
        """
        import pyarrow

        for batch in pyarrow.table(table).to_batches():
            for row in batch.to_pylist():
                self._row(row.pop("type", kind), row)

    def _row(self, kind: Optional[str], row: Mapping[str, Any]) -> None:
        names = ("version", "timestamp", "changeset", "uid", "user")
        values = {name: row[name] for name in names if row.get(name) is not None}
        values["visible"] = row.get("visible") is not False
        values["tags"] = row.get("tags")
        if kind == "node":
            if values["visible"] and (row.get("lat") is None or row.get("lon") is None):
                raise ValueError(f"node {row['id']} has no location, and no column visible tells that it is deleted")
            self.node(row["id"], row.get("lat"), row.get("lon"), **values)
        elif kind == "way":
            self.way(row["id"], row.get("refs") or [], **values)
        elif kind == "relation":
            members = [(one["type"], one["ref"], one["role"]) for one in row.get("members") or []]
            self.relation(row["id"], members, **values)
        else:
            raise ValueError(f'kind: expected "node", "way" or "relation", not {kind!r}')

    def close(self) -> None:
        """Write the file, and give it its name. Does nothing if that was done already."""
        if self.objects is None:
            self.objects = self._native.finish()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._native.abandon()
