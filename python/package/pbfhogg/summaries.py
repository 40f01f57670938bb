"""The types of what commands return, which is that of ``--json`` (``reference/json.md``)."""

from __future__ import annotations

from typing import Dict, List, Optional, TypedDict

from ._inspect_summary import InspectSummary as InspectSummary


class Written(TypedDict):
    """A PBF file that was written."""

    bytes: int
    blobs: int
    blobs_copied: int
    objects: Optional[int]
    sorted: bool
    indexed: bool


class CopySummary(TypedDict):
    """The summary of a command that copies what it does not change."""

    written: Written
    blobs_copied: int
    blobs_skipped: int
    blobs_rewritten: int


class SortSummary(TypedDict):
    """The summary of ``sort`` and ``merge``."""

    written: Written
    blobs_copied: int
    blobs_merged: int
    contradicting_locations: int


class RepackSummary(TypedDict):
    """The summary of ``repack``."""

    written: Written
    blobs_copied: int
    blobs_recompressed: int
    blobs_repacked: int


class GetidSummary(CopySummary):
    """The summary of ``getid``."""

    requested: int
    referenced: int
    missing: List[str]
    missing_count: int


class GetparentsSummary(CopySummary):
    """The summary of ``getparents``."""

    requested: int


class TagsFilterFields(TypedDict, total=False):
    """The fields of :class:`TagsFilterSummary` of data, and those of change files."""

    written: Written
    blobs_copied: int
    blobs_skipped: int
    blobs_rewritten: int
    missing: int
    referenced: int
    deleted: int
    dropped: int


class TagsFilterSummary(TagsFilterFields):
    """The summary of ``tags_filter``."""

    matched: int


class RuleEffect(TypedDict):
    """The effect of a rule that changes tags."""

    rule: str
    objects: int
    examples: List[str]


class TagsEditFields(TypedDict, total=False):
    """The fields of :class:`TagsEditSummary` of data, and those of change files. A dry run has none of them."""

    written: Written
    blobs_copied: int
    blobs_skipped: int
    blobs_rewritten: int
    created: int
    modified: int
    deleted: int
    bytes: int


class TagsEditSummary(TagsEditFields):
    """The summary of ``tags_edit``."""

    edited: int
    rules: List[RuleEffect]


class RenumberSummary(TypedDict):
    """The summary of ``renumber``."""

    written: Written
    nodes: int
    ways: int
    relations: int
    orphans: int
    ambiguous: int


class DegradeSummary(TypedDict):
    """The summary of ``degrade``."""

    written: Written
    dropped: int


class SynthDay(TypedDict):
    """The change file of a day."""

    path: str
    created: int
    modified: int
    deleted: int


class SynthSummary(TypedDict):
    """The summary of ``synth``."""

    written: Written
    towns: int
    days: List[SynthDay]


class ScratchSummary(TypedDict):
    """The temporary file of a join."""

    partitions: int
    bytes: int
    bytes_per_reference: float


class AddLocationsSummary(CopySummary):
    """The summary of ``add_locations_to_ways``."""

    index_type: str
    ways: int
    references: int
    missing_references: int
    missing_nodes: int
    stored_references: int
    scratch: Optional[ScratchSummary]


class Extracted(CopySummary):
    """An extract that was written."""

    output: str


class ExtractSummary(TypedDict):
    """The summary of ``extract``."""

    extracts: List[Extracted]
    passes: int


class RegionChanges(TypedDict):
    """The numbers of objects in a change file of a region."""

    created: int
    modified: int
    deleted: int


class RegionReport(TypedDict):
    """A region that ``regions`` keeps up to date."""

    name: str
    outcome: str
    sequence: Optional[int]
    timestamp: Optional[str]
    bytes: Optional[int]
    changes: Optional[RegionChanges]
    followed: bool
    cut_out: Optional[str]
    cause: Optional[str]


class RegionsSummary(TypedDict):
    """The summary of ``regions``."""

    timestamp: str
    regions: List[RegionReport]
    passes: int
    removed: int


class LocationsSummary(TypedDict):
    """The changes of locations in ways."""

    ways_moved: int
    missing_references: int
    incomplete_ways: int
    nodes_left_out: int
    nodes_kept: int
    nodes_removed: int
    members_missing: int


class AugmentedDiffSummary(TypedDict):
    """The summary of ``augmented_diff``."""

    created: int
    modified: int
    deleted: int
    indirect: int
    outdated: int
    absent: int
    missing: int
    missing_references: int
    without_geometry: int
    new_version_only: int
    repeated_keys: int
    files: Optional[int]
    tiles: Optional[int]
    unfilled: int


class ApplyChangesSummary(TypedDict):
    """The summary of ``apply_changes``."""

    written: Written
    changes: int
    created: int
    modified: int
    deleted: int
    outdated: int
    absent: int
    blobs_copied: int
    blobs_rewritten: int
    replication_sequence: Optional[int]
    replication_timestamp: Optional[str]
    header_box: str
    locations: Optional[LocationsSummary]
    augmented_diff: Optional[AugmentedDiffSummary]
    expired_tiles: Optional[AugmentedDiffSummary]


class ReplicationState(TypedDict):
    """The state of a file or a server."""

    sequence: int
    timestamp: str


class AppliedChanges(TypedDict):
    """The objects that changes concern."""

    created: int
    modified: int
    deleted: int


class ClippedChanges(TypedDict):
    """The objects outside of a region."""

    cut_away: int
    missing_references: int
    incomplete_ways: int
    incomplete_relations: int


class ExecutedCommand(TypedDict):
    """The command that ran after an update."""

    status: Optional[int]
    is_pending: bool


class UpdateSummary(TypedDict):
    """The summary of ``update``."""

    server: str
    before: ReplicationState
    after: ReplicationState
    newest: ReplicationState
    seconds_behind: int
    seconds_old: int
    is_current: bool
    is_server_behind: bool
    change_files: int
    change_bytes: int
    edited: Optional[int]
    augmented_diff: Optional[AugmentedDiffSummary]
    expired_tiles: Optional[AugmentedDiffSummary]
    applied: Optional[AppliedChanges]
    locations: Optional[LocationsSummary]
    clipped: Optional[ClippedChanges]
    written: Optional[Written]
    exec: Optional[ExecutedCommand]


class ExportSummary(TypedDict):
    """The summary of ``export``."""

    features: int
    points: int
    lines: int
    areas: int
    themes: Dict[str, int]
    bytes: int
    bbox: Optional[List[float]]
    square_degrees: float
    errors: Dict[str, int]
    incomplete: int
    warnings: Dict[str, int]
    repeated_keys: int
    index_type: Optional[str]


class CoastLoss(TypedDict):
    """Land or rings that an earlier coast has more of."""

    cell: Optional[List[int]]
    old: float
    new: float
    turned: float


class CoastlineSummary(TypedDict):
    """The summary of ``coastline``."""

    is_written: bool
    lines: int
    rings: int
    land: int
    problems: Dict[str, int]
    region: Optional[str]
    inside: Optional[str]
    losses: List[CoastLoss]
    features: int
    bytes: int


class SplitPart(TypedDict):
    """A part that is a file."""

    name: str
    first_blob: int
    blobs: int
    written: Written


class SplitSummary(TypedDict):
    """The summary of ``split``."""

    parts: List[SplitPart]
    objects: int
    bytes: int


class GeocodeIndexSummary(TypedDict):
    """The summary of ``build_geocode_index``."""

    bytes: int
    counts: Dict[str, int]
    incomplete: int
    not_interpolated: int
    long_tags: int
    simplified: List[str]
    index_type: Optional[str]


class OutsideNode(TypedDict):
    """A node that is not on earth."""

    id: int
    blob: int
    lat: float
    lon: float


class Fault(TypedDict):
    """What is wrong with an object or a blob."""

    kind: Optional[str]
    id: Optional[int]
    blob: int
    what: str


class IndexFinding(TypedDict):
    """A difference between an index and a blob."""

    blob: int
    offset: int
    what: str


class IndexCheck(TypedDict):
    """The comparison of the indexes with the blobs."""

    blobs: int
    in_table: int
    spatial_layout: bool
    in_id_table: int
    hashed: int
    with_blob_index: int
    with_segments: int
    damaged: int
    differences: int
    listed: List[IndexFinding]


class MissingCounts(TypedDict):
    """The numbers of references to objects that are not in the file."""

    nodes_in_ways: Optional[int]
    nodes_in_relations: Optional[int]
    ways_in_relations: Optional[int]
    relations_in_relations: Optional[int]


class ReferenceLocations(TypedDict):
    """The locations of the nodes of ways."""

    references: int
    stored: int
    unknown: int
    contradicting: Optional[int]


class IdViolation(TypedDict):
    """An id out of order."""

    kind: str
    id: int
    blob: int
    duplicate: bool


class DanglingReference(TypedDict):
    """A reference to an object that is not in the file."""

    kind: str
    id: int
    in_kind: str
    in_id: int


class AreaProblem(TypedDict):
    """A problem of an area."""

    kind: str
    id: int
    severity: str
    problem: str
    what: str
    node: Optional[int]
    ways: List[int]
    lat: Optional[float]
    lon: Optional[float]


class AreaCheck(TypedDict):
    """The check of the areas."""

    areas: int
    errors: Dict[str, int]
    incomplete: int
    warnings: Dict[str, int]
    unplaced: Optional[int]
    listed: List[AreaProblem]


class DoubledObject(TypedDict):
    """An object that is in the file twice, or that has a key twice."""

    kind: str
    id: int
    same_as: Optional[int]
    key: Optional[str]
    lat: Optional[float]
    lon: Optional[float]


class DoubledCheck(TypedDict):
    """The check for doubled nodes, ways and keys."""

    nodes: int
    ways: int
    keys: int
    listed: List[DoubledObject]


class CheckSummary(TypedDict):
    """The summary of ``check``."""

    nodes: Optional[int]
    ways: Optional[int]
    relations: Optional[int]
    spatial_layout: bool
    out_of_order: Optional[int]
    duplicates: Optional[int]
    duplicates_in_a_row: Optional[int]
    outside: Optional[int]
    faults: Optional[int]
    inexpressible: Optional[int]
    repeated_keys: Optional[int]
    index: Optional[IndexCheck]
    missing: Optional[MissingCounts]
    form: Optional[str]
    locations: Optional[ReferenceLocations]
    areas: Optional[AreaCheck]
    doubled: Optional[DoubledCheck]
    unused_nodes: Optional[int]
    listed_ids: List[IdViolation]
    listed_refs: List[DanglingReference]
    listed_contradictions: List[DanglingReference]
    listed_outside: List[OutsideNode]
    listed_faults: List[Fault]


class DiffCounts(TypedDict):
    """The objects of a kind in two files."""

    left: int
    right: int
    same: int
    different: int


class DiffSummary(TypedDict):
    """The summary of ``diff``."""

    nodes: DiffCounts
    ways: DiffCounts
    relations: DiffCounts
    blobs_equal: int
    new_version_only: int
    going_back: int
    inexact: int
    relocated: int
    locations_lost: int


class SalvageCounts(TypedDict):
    """The changes of mended blobs or of text."""

    objects: int
    unreadable: int
    more_unreadable: bool
    outside: int
    parts_dropped: int
    texts_replaced: int


class LostIds(TypedDict):
    """The ids that a lost blob may have had."""

    kind: str
    first: Optional[int]
    last: Optional[int]
    is_exact: bool


class Loss(TypedDict):
    """A part of a file that is lost."""

    blob: Optional[int]
    offset: int
    bytes: int
    cause: str
    objects: Optional[int]
    ids: List[LostIds]


class MendedBlob(SalvageCounts):
    """A blob that was mended."""

    blob: int
    offset: int
    cause: str


class TakenObjects(TypedDict):
    """The objects of another file."""

    path: str
    objects: int


_TakenFrom = TypedDict("_TakenFrom", {"from": Optional[TakenObjects]})


class RepairSummary(_TakenFrom):
    """The summary of ``repair``."""

    bytes: int
    unpacked: Optional[str]
    unpacked_in_part: bool
    text: Optional[str]
    ends_within_line: bool
    headers: int
    header_fault: Optional[str]
    whole_blobs: int
    mended: List[MendedBlob]
    lost: List[Loss]
    changes: SalvageCounts
    short_ways: int
    was_sorted: bool
    duplicates: int
    had_replication: bool
    keeps_replication: bool
    replication_sequence: Optional[int]
    written: Optional[Written]


class MergeChangesSummary(TypedDict):
    """The summary of ``merge_changes``."""

    created: int
    modified: int
    deleted: int
    bytes: int


class LocationsIndexSummary(TypedDict):
    """The summary of ``create_locations_index``."""

    nodes: int
    negative: int
    bytes: int
