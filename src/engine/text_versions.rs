//! Detects text inputs in which versions of the same object are not adjacent. This can happen only if the text input is
//! not in order. Adjacent versions are detected while the text input is read.

use super::scan::Scan;
use crate::error::Result;
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::index::IdSet;
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::runtime::Context;
use std::collections::HashMap;

/// Whether a file that was converted from a text input is out of order and has several versions of an object. Reads the
/// file once, and again if an id occurs twice. Ids are held in bit sets.
pub(super) fn has_unsorted_versions(file: &PbfFile, ctx: &Context) -> Result<bool> {
    let plan = BlobPlan::open(file, PlanNeeds::Order, ctx)?;
    if plan.is_sorted() != Some(false) {
        return Ok(false);
    }
    let [mut ids, mut repeated]: [[IdSet; 3]; 2] = Default::default();
    Scan::without_strings("find versions", file, &plan, ctx).run(
        |_| true,
        |_, block| {
            let mut ids: Vec<(ObjectKind, i64)> = Vec::new();
            block.for_each_id(|kind, id| ids.push((kind, id)))?;
            Ok(ids)
        },
        |found| {
            for (kind, id) in found {
                if !ids[kind as usize].insert(id) {
                    repeated[kind as usize].insert(id);
                }
            }
        },
    )?;
    drop(ids);
    if repeated.iter().all(IdSet::is_empty) {
        return Ok(false);
    }
    let (mut versions, mut differ) = (HashMap::<TypeThenId, u32>::new(), false);
    Scan::without_strings("compare versions", file, &plan, ctx).run(
        |_| true,
        |_, block| {
            let (mut objects, mut found) = (block.walk(), Vec::new());
            while let Some(key) = objects.next_sort_key()? {
                if repeated[key.0 as usize].contains(id_from_rank(key.1))
                    && let Some(version) = objects.version_info()?.version_number()
                {
                    found.push((key, version));
                }
            }
            Ok(found)
        },
        |found| {
            for (key, version) in found {
                differ |= *versions.entry(key).or_insert(version) != version;
            }
        },
    )?;
    Ok(differ)
}
