"""The type of what ``inspect`` returns."""

from __future__ import annotations

from typing import Dict, List, Optional, TypedDict


class Position(TypedDict):
    """A position in degrees."""

    lat: float
    lon: float


class CompressionLevels(TypedDict):
    """The compression levels that a blob may have."""

    min: int
    max: int


class CompressionSummary(TypedDict):
    """The blobs of a compression."""

    kind: str
    level: Optional[CompressionLevels]
    blobs: int
    bytes: int
    payload_bytes: int


class SampledCompression(TypedDict):
    """The compression of some blobs."""

    sampled_blobs: int
    kinds: List[CompressionSummary]


class KindSummary(TypedDict):
    """The blobs of a kind."""

    kind: str
    blobs: int
    bytes: int
    payload_bytes: Optional[int]
    objects: int
    min_id: Optional[int]
    max_id: Optional[int]


class CountsByKind(TypedDict):
    """Counts by kind."""

    nodes: int
    ways: int
    relations: int


class ExtendedFacts(TypedDict):
    """What ``extended`` adds."""

    objects: CountsByKind
    first_timestamp: Optional[str]
    last_timestamp: Optional[str]
    with_version: int
    with_timestamp: int
    with_changeset: int
    with_uid: int
    with_user: int
    deleted: int
    further_versions: Optional[int]
    tagged: CountsByKind
    tags: CountsByKind
    refs: int
    most_refs: int
    most_refs_way: Optional[int]
    members: int
    most_members: int
    most_members_relation: Optional[int]


class NodeStatistics(TypedDict):
    """What ``nodes`` adds."""

    nodes: int
    tagged: int
    outside: int
    at_zero: int
    finer_than_e7: int
    bbox: Optional[List[float]]
    westernmost: Optional[int]
    southernmost: Optional[int]
    easternmost: Optional[int]
    northernmost: Optional[int]
    center: Optional[Position]


class WayLocations(TypedDict):
    """What ``locations`` adds."""

    form: str
    ways: int
    located_ways: int
    partly_located_ways: int
    bare_ways: int
    refs: int
    located_refs: int
    bare_refs: int


class Anomaly(TypedDict):
    """An anomaly of a file."""

    count: int
    object: Optional[str]
    blob: int


class IdRange(TypedDict):
    """The ids of a kind."""

    kind: str
    min_id: int
    max_id: int
    objects: int
    span: int
    blobs: int
    overlapping_blobs: int
    widest_blob: int


class BlobFacts(TypedDict):
    """A blob."""

    number: int
    offset: int
    bytes: int
    payload_bytes: Optional[int]
    compression: str
    kinds: str
    objects: int
    min_id: int
    max_id: int
    sorted: Optional[bool]
    bbox: Optional[List[float]]
    flags: List[str]


class LargeObject(TypedDict):
    """An object, and the count by which it is large."""

    kind: str
    id: int
    count: int


class LargestObjects(TypedDict):
    """The field of ``top``."""

    relations: List[LargeObject]
    ways: List[LargeObject]
    tag_sets: List[LargeObject]
    areas: List[LargeObject]


class InspectOptions(TypedDict, total=False):
    """The fields of :class:`InspectSummary` that options add."""

    compression: SampledCompression
    extended: ExtendedFacts
    node_statistics: NodeStatistics
    way_locations: WayLocations
    anomalies: Dict[str, Anomaly]
    id_ranges: List[IdRange]
    blob_list: List[BlobFacts]
    top: LargestObjects


class InspectSummary(InspectOptions):
    """The summary of ``inspect`` and :func:`pbfhogg.info`."""

    path: str
    bytes: int
    generator: Optional[str]
    source: Optional[str]
    header_bbox: Optional[List[float]]
    data_bbox: Optional[List[float]]
    required_features: List[str]
    optional_features: List[str]
    replication_timestamp: Optional[str]
    replication_sequence: Optional[int]
    replication_url: Optional[str]
    index: str
    indexed: bool
    blobs: int
    payload_bytes: Optional[int]
    objects: int
    nodes: int
    ways: int
    relations: int
    kinds: List[KindSummary]
    declared_sorted: bool
    sorted: Optional[bool]
    spatial_layout: bool
    id_table: bool
    history: bool
    locations_on_ways: bool
