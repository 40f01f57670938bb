//! Change files as input of `extract`.
//!
//! A change file has the new states of objects, but not always their locations: a deletion has no location, and the
//! nodes of a changed way are in the file only if they have changed, too.

use super::Options;
use crate::engine::input_content::content_of;
use crate::engine::scan::Scan;
use crate::error::{Advice, Error, Result, display_path};
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::formats::FileContent;
use crate::index::IdSets;
use crate::osm::{ObjectId, ObjectKind, id_from_rank};
use crate::runtime::Context;
use std::fmt;

/// Fails if the input is a change file in which the locations of objects are missing. If [`Options::accepts_changes`]
/// is set, warns instead.
pub(super) fn check(file: &PbfFile, options: &Options, ctx: &Context) -> Result<()> {
    let is_change = if options.accepts_changes {
        file.header.text.is_change
    } else {
        content_of(file, ctx)? == FileContent::Changes
    };
    if !is_change {
        return Ok(());
    }
    let unplaced = Unplaced::count(file, ctx)?;
    let path = file.input.path();
    if unplaced.is_empty() {
        return Ok(());
    }
    if options.accepts_changes {
        ctx.warn(format!(
            "{}: this is a change file, which does not say where all of its objects are: those that it does not place \
             are left out, wherever they lie ({unplaced})",
            display_path(path)
        ));
        return Ok(());
    }
    let cause = format!(
        "this is a change file, which does not say where all of its objects are, so that no region can be cut out of \
         it ({unplaced})"
    );
    Err(Error::file(path, cause).advise(Advice::CutDataInstead))
}

/// The numbers of objects whose locations a change file does not give.
#[derive(Debug, Clone, Copy, Default)]
struct Unplaced {
    deletions: u64,
    /// The number of ways with a node that is not in the file.
    ways: u64,
    all_ways: u64,
    /// The number of relations without a member in the file.
    relations: u64,
    all_relations: u64,
}

impl Unplaced {
    /// Counts the objects of a file, and those without a location.
    fn count(file: &PbfFile, ctx: &Context) -> Result<Self> {
        let plan = BlobPlan::open(file, PlanNeeds::Frames, ctx)?;
        let (mut present, mut all) = (IdSets::default(), Self::default());
        Scan::without_strings("find changed objects", file, &plan, ctx).run(
            |_| true,
            |_, block| {
                let (mut objects, mut ids, mut deletions) = (block.walk(), Vec::new(), 0);
                while let Some((kind, rank)) = objects.next_sort_key()? {
                    if objects.version_info()?.is_deleted {
                        deletions += 1;
                    } else {
                        let id = id_from_rank(rank);
                        ids.push(ObjectId { kind, id });
                    }
                }
                Ok((ids, deletions))
            },
            |(ids, deletions): (Vec<ObjectId>, u64)| {
                present.extend(ids);
                all.deletions += deletions;
            },
        )?;
        let present = &present;
        Scan::without_strings("find places", file, &plan, ctx).run(
            |_| true,
            |_, block| {
                let (mut objects, mut found) = (block.walk(), Self::default());
                while let Some(kind) = objects.next()? {
                    if kind == ObjectKind::Node || objects.version_info()?.is_deleted {
                        continue;
                    }
                    if kind == ObjectKind::Way {
                        let is_missing = |id| !present.contains(ObjectKind::Node, id);
                        found.all_ways += 1;
                        found.ways += u64::from(objects.any_ref(is_missing)?);
                    } else {
                        let has_member =
                            objects.any_member(|kind, id| present.contains(kind, id))?;
                        found.all_relations += 1;
                        found.relations += u64::from(!has_member);
                    }
                }
                Ok(found)
            },
            |found| all.add(&found),
        )?;
        Ok(all)
    }

    const fn add(&mut self, other: &Self) {
        self.ways += other.ways;
        self.all_ways += other.all_ways;
        self.relations += other.relations;
        self.all_relations += other.all_relations;
    }

    const fn is_empty(&self) -> bool {
        self.deletions + self.ways + self.relations == 0
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "deletions: {}; ways of which a node is not in the file: {} of {}; relations without a member in the file: \
             {} of {}",
            self.deletions, self.ways, self.all_ways, self.relations, self.all_relations
        )
    }
}
