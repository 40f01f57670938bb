//! The application of fetched changes to a file.

use super::clip::RegionCut;
use super::download::Download;
use super::exec::FollowUp;
use super::position::FilePosition;
use super::{Applied, Options, Summary, augmented_diffs};
use crate::commands::apply_changes::{self, ChangeFilter};
use crate::commands::planet_step::{DataIdentity, PlanetStep};
use crate::engine::{HeaderOption, OutputOptions};
use crate::error::Result;
use crate::index::IdSets;
use crate::io::OutputTarget;
use crate::replication::State;
use crate::runtime::Context;

/// The application of changes to the file.
pub(super) struct Applying<'a> {
    options: &'a Options,
    output: &'a OutputOptions,
    position: &'a FilePosition,
    /// The replication state of the file before the update.
    start: State,
    /// The identity of the file before the update; `None` if no [`PlanetStep`] is wanted.
    before: Option<DataIdentity>,
    ctx: &'a Context,
}

impl<'a> Applying<'a> {
    pub(super) const fn new(
        options: &'a Options,
        output: &'a OutputOptions,
        (position, start): (&'a FilePosition, State),
        before: Option<DataIdentity>,
        ctx: &'a Context,
    ) -> Self {
        Self {
            options,
            output,
            position,
            start,
            before,
            ctx,
        }
    }

    /// Applies the changes. Returns the step of the file, if the step is wanted. With `follow_up`, records the update
    /// first. If the process ends after the file was replaced, a later run can still run the command of `follow_up`.
    pub(super) fn run(
        &self,
        download: Download,
        summary: &mut Summary,
        follow_up: Option<&FollowUp<'_>>,
    ) -> Result<Option<PlanetStep>> {
        let Some(follow_up) = follow_up else {
            return self.apply(download, summary);
        };
        follow_up.record_step(summary, self.position)?;
        let applied = self.apply(download, summary);
        if applied.is_err() {
            follow_up.discard_record_after_failure(summary, self.ctx);
        }
        applied
    }

    /// Applies the changes, and completes the summary.
    fn apply(&self, download: Download, summary: &mut Summary) -> Result<Option<PlanetStep>> {
        let (options, position, ctx) = (self.options, self.position, self.ctx);
        let changed = (self.before.as_ref()).map(|_| download.changes.ids().collect::<IdSets>());
        let mut output = self.output.clone();
        output.header.set.extend([
            HeaderOption::ReplicationUrl(summary.server.clone()),
            HeaderOption::ReplicationSequence(download.state.sequence),
            HeaderOption::ReplicationTimestamp(download.state.timestamp),
        ]);
        if position.has_locations {
            output = output.with_way_locations();
        }
        let mut apply = apply_changes::Options::new(&options.file, Vec::new(), output)
            .keep_days(options.keep_days)
            .augmented_diffs(augmented_diffs(options, &download.names));
        apply.keeps_locations = true;
        apply.base_time = Some(self.start.timestamp);
        let clip = options.clip.as_ref();
        let mut cut = clip.map(|(shape, strategy)| RegionCut::new(shape, strategy));
        let filter = cut.as_mut().map(|cut| cut as &mut dyn ChangeFilter);
        let base = apply_changes::open_base(&apply, ctx)?;
        let read = |_| Ok(download.changes);
        let applied = apply_changes::apply(&apply, base, read, filter, ctx)?;
        summary.applied = Some(Applied {
            created: applied.created,
            modified: applied.modified,
            deleted: applied.deleted,
        });
        summary.locations = applied.locations;
        summary.written = Some(applied.written);
        summary.augmented_diff = applied.augmented_diff;
        summary.expired_tiles = applied.expired_tiles;
        summary.clipped = cut.map(|cut| cut.finish(&options.file, ctx));
        let noted = self.before.clone().zip(changed);
        let (Some((before, changed)), OutputTarget::File { path, .. }) =
            (noted, &self.output.target)
        else {
            return Ok(None);
        };
        let after = DataIdentity::of_path(path, ctx)?;
        Ok(Some(PlanetStep {
            before,
            after,
            changed,
        }))
    }
}
