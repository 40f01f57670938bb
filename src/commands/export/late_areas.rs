//! Areas that are written after all points and lines. They are in the order in which a single pass over the ways
//! completes the areas.
//!
//! The area of a relation is complete with its last member way. The area of a closed way comes directly after the
//! relations that the way completes. Relations that the same way completes are ordered by the position of the way among
//! their members, then by id.

use crate::error::{Error, Result};
use crate::formats::FeatureOptions;
use crate::formats::features::{Feature, FeatureDocument, FeatureText};
use crate::index::{KeyBits, RowBatch, RowLimits, RowSorter};
use crate::osm::{ObjectKind, id_rank};
use crate::pbf::Relation;
use crate::runtime::Context;
use std::path::Path;

/// The memory limits of the sort.
const LIMITS: RowLimits = RowLimits::new(32 << 20, 64 << 20);
/// The sort keys are the ranks of ways without the lowest bit, so they fit into 63 bits. Rows with the same key are
/// ordered by their headers.
const KEY: KeyBits = KeyBits::new(8, 63);
/// The size in bytes of the header of a row: the rank of the way, the index of the member, and the rank of the object.
const PLACE_LEN: usize = 20;
/// The approximate number of areas in a range of sort keys. The areas are read range by range.
const RANGE: u64 = 10_000;
/// The maximum size in memory of the areas that are read at a time, in bytes.
const READ_MEMORY: usize = 16 << 20;
/// The size in bytes at which a chunk of text ends.
const CHUNK: usize = 1 << 20;

/// The way that completes an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Completion {
    /// The rank of the id of the way.
    way: u64,
    /// The index of the way among the members of the relation; `u32::MAX` for the area of a closed way.
    member: u32,
}

impl Completion {
    /// Returns the completion of an area. The last member way of a relation in file order completes its area. If there
    /// are no member ways, returns the lowest value.
    fn of(area: &Feature<'_>, relation: Option<&Relation<'_>>) -> Self {
        let Some(relation) = relation else {
            return Self {
                way: id_rank(area.id),
                member: u32::MAX,
            };
        };
        let members = (0..).zip(relation.members());
        let ways = members.filter(|(_, way)| way.kind == ObjectKind::Way);
        let ways = ways.map(|(member, way)| Self {
            way: id_rank(way.id),
            member,
        });
        ways.max().unwrap_or(Self { way: 0, member: 0 })
    }
}

/// The areas of all workers.
pub(super) struct LateAreas {
    sorter: RowSorter,
    options: FeatureOptions,
}

impl LateAreas {
    /// Creates an empty collection. Its temporary files are in `directory`.
    pub(super) fn new(options: &FeatureOptions, directory: &Path, ctx: &Context) -> Self {
        Self {
            sorter: RowSorter::new(LIMITS, KEY, directory, ctx),
            options: options.clone(),
        }
    }

    /// Writes all areas.
    pub(super) fn write(&self, document: &mut FeatureDocument) -> Result<()> {
        let areas = self.sorter.finish()?;
        let mut text = FeatureText::new(&self.options);
        for rows in areas.all_portions(RANGE, READ_MEMORY) {
            for row in rows?.iter() {
                let area = row.get(PLACE_LEN..);
                text.add_row(area.ok_or_else(|| Error::internal("a row without its place"))?)?;
                if text.len() >= CHUNK {
                    document.put(&mut text)?;
                }
            }
        }
        document.put(&mut text)
    }
}

/// The areas of a worker.
pub(super) struct AreaBuffer<'a> {
    rows: RowBatch,
    text: FeatureText,
    areas: &'a LateAreas,
}

impl<'a> AreaBuffer<'a> {
    pub(super) fn new(areas: &'a LateAreas) -> Self {
        Self {
            rows: RowBatch::default(),
            text: FeatureText::new(&areas.options),
            areas,
        }
    }

    /// Adds an area. `relation` is the relation that has the area; `None` for the area of a way. May block while the
    /// sorter is busy.
    pub(super) fn put(&mut self, area: &Feature<'_>, relation: Option<&Relation<'_>>) {
        let Completion { way, member } = Completion::of(area, relation);
        let text = &mut self.text;
        self.rows.push(way >> 1, |out| {
            out.extend_from_slice(&way.to_be_bytes());
            out.extend_from_slice(&member.to_be_bytes());
            out.extend_from_slice(&id_rank(area.id).to_be_bytes());
            text.encode_row(out, area);
        });
        self.areas.sorter.add_if_full(&mut self.rows);
    }

    /// Passes the areas to the sorter. May block while the sorter is busy.
    pub(super) fn flush(&mut self) {
        self.areas.sorter.add_and_clear(&mut self.rows);
    }

    /// Fails if the sorter has failed.
    pub(super) fn check(&self) -> Result<()> {
        self.areas.sorter.check_for_error()
    }
}
