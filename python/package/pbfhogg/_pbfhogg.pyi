from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from ._splits import Split
from ._types import Box, Ids, Path, Source, Texts

Metadata = Tuple[Optional[int], Optional[int], Optional[int], Optional[int], Optional[str], bool]

__version__: str

class Error(Exception):
    """A file could not be read or written."""

    #: The kind of the error, such as ``"not_found"``, ``"exists"`` or ``"damaged"``.
    kind: str
    #: The file, if there is one.
    path: Optional[Any]
    #: The number of the blob, and its offset in bytes, if they are known.
    blob: Optional[int]
    byte: Optional[int]

class Batch:
    """Rows of a table."""

    num_rows: int
    column_names: List[str]
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> Tuple[object, object]: ...

class BatchIterator(Iterator[Batch]):
    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Batch: ...

class Table:
    column_names: List[str]
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def batches(self) -> BatchIterator: ...
    def __len__(self) -> int: ...
    def raise_last_error(self) -> None: ...
    def raise_warnings(self) -> None: ...

class Object:
    """A node, way or relation."""

    #: ``"node"``, ``"way"`` or ``"relation"``.
    type: str
    id: int
    version: Optional[int]
    #: Seconds since 1970.
    timestamp: Optional[int]
    changeset: Optional[int]
    uid: Optional[int]
    user: Optional[str]
    visible: bool
    tags: Dict[str, str]
    lat: Optional[float]
    lon: Optional[float]
    #: The ids of the nodes of a way; ``None`` for others.
    refs: Optional[List[int]]
    #: The members of a relation as type, id and role; ``None`` for others.
    members: Optional[List[Tuple[str, int, str]]]

class ObjectIterator(Iterator[Object]):
    def __iter__(self) -> ObjectIterator: ...
    def __next__(self) -> Object: ...

class Geocoder:
    def __init__(self, index: Path, languages: Texts) -> None: ...
    def reverse(self, lat: float, lon: float) -> str: ...
    def reverse_many(self, lats: bytes, lons: bytes) -> Table: ...

class Writer:
    def __init__(self, path: Path, overwrite: bool) -> None: ...
    def node(
        self, id: int, place: Optional[Tuple[float, float]], tags: List[Tuple[str, str]], metadata: Metadata
    ) -> None: ...
    def way(self, id: int, refs: List[int], tags: List[Tuple[str, str]], metadata: Metadata) -> None: ...
    def relation(
        self, id: int, members: List[Tuple[str, int, str]], tags: List[Tuple[str, str]], metadata: Metadata
    ) -> None: ...
    def finish(self) -> Optional[int]: ...
    def abandon(self) -> None: ...

def actions(
    base: Source,
    changes: Union[Source, List[Source]],
    *,
    direct_only: bool = False,
    filter: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Path] = None,
    area: Optional[str] = None,
    max_relation_members: Optional[int] = None,
    columns: Optional[Texts] = None,
    jobs: int = 0,
) -> Table: ...
def changes(
    path: Source, *, kinds: Optional[Texts] = None, columns: Optional[Texts] = None, jobs: int = 0
) -> Table: ...
def call(words: List[str]) -> Tuple[bool, str]: ...
def commands() -> str: ...
def main(words: List[str]) -> int: ...
def info(path: Source) -> str: ...
def plain_boxes(bbox: Box) -> List[Tuple[float, float, float, float]]: ...
def splits(path: Source, count: int) -> List[Split]: ...
def read(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Path] = None,
    area: Optional[str] = None,
    ids: Optional[Ids] = None,
    columns: Optional[Texts] = None,
    split: Optional[Split] = None,
    jobs: int = 0,
) -> Table: ...
def features(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Path] = None,
    area: Optional[str] = None,
    clip: bool = False,
    columns: Optional[Texts] = None,
    geometry: bool = True,
    jobs: int = 0,
) -> Table: ...
def objects(
    path: Source,
    *,
    kinds: Optional[Texts] = None,
    tags: Optional[Texts] = None,
    bbox: Optional[Box] = None,
    polygon: Optional[Path] = None,
    area: Optional[str] = None,
    ids: Optional[Ids] = None,
    jobs: int = 0,
) -> ObjectIterator: ...
