//! Prints notices, in osmium's words, about inputs that are not in canonical order or have several versions of an
//! object.

use crate::error::{FormatResult, Result};
use crate::file::PlannedFile;
use crate::osm::TypeThenId;
use crate::pbf::Block;
use std::path::Path;

/// The position of an object in canonical order: its key and its version.
type VersionKey = (TypeThenId, i64);

/// The result of comparing the position of an object with that of the object before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    InOrder,
    NewVersion,
    OtherKind,
    SmallerId,
    SmallerVersion,
    SameVersion,
}

impl Step {
    fn between((before, old): VersionKey, (key, version): VersionKey) -> Self {
        match (before.0 == key.0, before.cmp(&key), old.cmp(&version)) {
            (_, std::cmp::Ordering::Less, _) => Self::InOrder,
            (false, ..) => Self::OtherKind,
            (true, std::cmp::Ordering::Greater, _) => Self::SmallerId,
            (true, _, std::cmp::Ordering::Less) => Self::NewVersion,
            (true, _, std::cmp::Ordering::Greater) => Self::SmallerVersion,
            (true, _, std::cmp::Ordering::Equal) => Self::SameVersion,
        }
    }

    /// Returns the notice about an input that contains this step; `None` if the step is in order.
    fn notice(self, path: &Path) -> Option<String> {
        let file = path.display();
        let out_of_order = |rule| {
            Some(format!(
                "Objects in input file '{file}' out of order ({rule})."
            ))
        };
        match self {
            Self::InOrder => None,
            Self::NewVersion => Some(format!(
                "Warning: Multiple objects with same id in input file '{file}'!\n\
                 If you are reading history files, this is to be expected. \
                 Use --with-history to disable warning."
            )),
            Self::OtherKind => out_of_order("must be nodes, then ways, then relations"),
            Self::SmallerId => out_of_order("smaller ids must come first"),
            Self::SmallerVersion => out_of_order("smaller version must come first"),
            Self::SameVersion => Some(format!(
                "Two objects in input file '{file}' with same version."
            )),
        }
    }
}

/// Facts about the order of the objects in one or more consecutive blocks.
#[derive(Debug, Clone, Copy, Default)]
struct BlockOrder {
    /// The positions of the first and the last object; `None` without objects.
    ends: Option<(VersionKey, VersionKey)>,
    /// The first step that is out of order.
    problem: Option<Step>,
    /// Whether there are several versions of an object before that step.
    has_versions: bool,
}

impl BlockOrder {
    fn of(block: &Block<'_>) -> FormatResult<Self> {
        let mut order = Self::default();
        let mut objects = block.walk();
        while let Some(key) = objects.next_sort_key()? {
            let place = (key, objects.version_info()?.version);
            order.add(&Self {
                ends: Some((place, place)),
                ..Self::default()
            });
        }
        Ok(order)
    }

    /// Appends `next`, the facts about the objects that follow.
    fn add(&mut self, next: &Self) {
        let Some((first, last)) = next.ends else {
            return;
        };
        let step = match self.ends {
            Some((_, before)) => Step::between(before, first),
            None => Step::InOrder,
        };
        self.ends = Some((self.ends.map_or(first, |(start, _)| start), last));
        if self.problem.is_some() {
            return;
        }
        match step {
            Step::InOrder => {}
            Step::NewVersion => self.has_versions = true,
            _ => {
                self.problem = Some(step);
                return;
            }
        }
        self.has_versions |= next.has_versions;
        self.problem = next.problem;
    }
}

/// Sends the user a notice about the first object of a file that is out of order. If `versions` is set, also sends a
/// notice if objects have several versions. Does not read the file if the plan shows that neither notice applies.
pub(super) fn report_order_problems(source: PlannedFile<'_>, versions: bool) -> Result<()> {
    if source.plan.has_each_object_once() {
        return Ok(());
    }
    let mut order = BlockOrder::default();
    source.scan("check order").run(
        |_| true,
        |_, block| BlockOrder::of(block),
        |next| order.add(&next),
    )?;
    let versions = (versions && order.has_versions).then_some(Step::NewVersion);
    for step in versions.into_iter().chain(order.problem) {
        if let Some(notice) = step.notice(source.file.input.path()) {
            source.ctx.observer.notice(&notice);
        }
    }
    Ok(())
}
