"""Tables, which Arrow, DuckDB, polars, pandas and GeoPandas read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, TypeVar

from . import _pbfhogg

if TYPE_CHECKING:
    import geopandas
    import pandas
    import polars
    import pyarrow

_Read = TypeVar("_Read")


class Table:
    """A table of a file. Rows are read when a reader asks for them, and each reader reads the file anew.

    A loop over a table has its rows as dicts, and ``len`` counts them. A table implements the
    `Arrow PyCapsule interface
    <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>`_: pass it to ``pyarrow.table``,
    ``polars.from_arrow``, or name it in a query of DuckDB.

    >>> roads = pbfhogg.read("helsinki.osm.pbf", kinds="way", tags="highway", columns=["id", "tags"])
    >>> roads
    <pbfhogg.Table of id, tags: to_arrow(), to_polars(), to_pandas(), head(), batches(), len(), for row in>
    >>> len(roads)
    2650
    >>> next(iter(roads))["tags"]["highway"]
    'unclassified'
    >>> roads.to_polars().height
    2650
    """

    __slots__ = ("_native",)

    def __init__(self, native: _pbfhogg.Table) -> None:
        self._native = native

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return self._native.column_names

    @property
    def column_names(self) -> List[str]:
        """The names of the columns, as pyarrow calls them."""
        return self._native.column_names

    @property
    def schema(self) -> "pyarrow.Schema":
        """The names and the types of the columns."""
        import pyarrow

        return pyarrow.schema(self)

    def __len__(self) -> int:
        """Count the rows. This reads the file."""
        return len(self._native)

    def __bool__(self) -> bool:
        # Otherwise, Python counts the rows.
        return True

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        """Read the rows one by one, as dicts. Tags are dicts, too."""
        import pyarrow

        maps = [field.name for field in self.schema if pyarrow.types.is_map(field.type)]
        for batch in self.batches():
            for row in pyarrow.record_batch(batch).to_pylist():
                for name in maps:
                    if row[name] is not None:
                        row[name] = dict(row[name])
                yield row

    def head(self, n: int = 5) -> "pyarrow.Table":
        """Read the first rows."""
        import pyarrow

        if n < 0:
            raise ValueError(f"n: expected at least 0, not {n}")
        batches: List[pyarrow.RecordBatch] = []
        missing = n
        for batch in self.batches():
            batches.append(pyarrow.record_batch(batch)[:missing])
            missing -= len(batches[-1])
            if missing == 0:
                break
        return pyarrow.Table.from_batches(batches, schema=self.schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        geopandas = "to_geopandas(), " if "geometry" in self.columns else ""
        can = f"to_arrow(), to_polars(), to_pandas(), {geopandas}head(), batches(), len(), for row in"
        return f"<pbfhogg.Table of {', '.join(self.columns)}: {can}>"

    def batches(self) -> Iterator[_pbfhogg.Batch]:
        """Read the rows in batches, as they come. A few batches are in memory at a time.

        A batch can be passed to ``pyarrow.record_batch``.

        >>> sum(len(batch) for batch in pbfhogg.read("helsinki.osm.pbf", kinds="relation").batches())
        620
        """
        return self._native.batches()

    def to_arrow(self) -> "pyarrow.Table":
        """Read all rows into a ``pyarrow.Table``."""
        import pyarrow

        return self._read(pyarrow.table)

    def to_polars(self) -> "polars.DataFrame":
        """Read all rows into a ``polars.DataFrame``."""
        import polars

        return self._read(polars.DataFrame)

    def to_pandas(self) -> "pandas.DataFrame":
        """Read all rows into a ``pandas.DataFrame``. Tags become dicts."""
        import pyarrow

        return self._read(lambda table: pyarrow.table(table).to_pandas(maps_as_pydicts="strict"))

    def to_geopandas(self, crs: Any = "EPSG:4326") -> "geopandas.GeoDataFrame":
        """Read all rows into a ``geopandas.GeoDataFrame``. The table must have a geometry, as :func:`features` has.

        :param crs: The reference system of the coordinates, which are longitude and latitude by default. Those of
            another system are computed.
        """
        import geopandas
        import pyproj

        if "geometry" not in self.columns:
            raise ValueError("the table has no column geometry; pbfhogg.features has one")
        degrees = pyproj.CRS("EPSG:4326")
        is_same = degrees.equals(pyproj.CRS(crs), ignore_axis_order=True)
        frame = self.to_pandas()
        geometry = geopandas.GeoSeries.from_wkb(frame["geometry"], crs=crs if is_same else degrees)
        if not is_same:
            geometry = geometry.to_crs(crs)
        return geopandas.GeoDataFrame(frame.drop(columns="geometry"), geometry=geometry)

    def _read(self, read: Callable[[Any], _Read]) -> _Read:
        """Let a reader read the table. An error of the file is a :class:`pbfhogg.Error`, and not one of the reader."""
        try:
            result = read(self)
        except KeyboardInterrupt:
            raise
        except Exception:
            self._native.raise_last_error()
            raise
        self._native.raise_warnings()
        return result
