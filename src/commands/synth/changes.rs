//! The change files of a synthetic world, and state files like those of replication servers.

use super::town::{SyntheticObject, Town};
use super::world::{Lifetime, World, day_end};
use crate::error::{FileResult, Result};
use crate::formats::{ChangeAction, OscWriter};
use crate::io::{OpenOutput, OutputTarget, StreamOutput, commit_together};
use crate::osm::{ObjectKind, format_timestamp};
use crate::runtime::Context;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The number of files that are open at a time and are committed together.
const AT_ONCE: usize = 256;

/// A change file, and the number of objects that it creates, modifies and deletes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaySummary {
    /// The change file.
    pub path: PathBuf,
    /// The number of objects that the change file creates.
    pub created: u64,
    /// The number of objects that the change file modifies.
    pub modified: u64,
    /// The number of objects that the change file deletes.
    pub deleted: u64,
}

/// The changed objects of one day by action. Created and modified objects are in canonical order, deleted objects in
/// reverse canonical order.
#[derive(Default)]
struct Day {
    created: Vec<SyntheticObject>,
    modified: Vec<SyntheticObject>,
    deleted: Vec<SyntheticObject>,
}

/// Writes the change files of the first `days` days, `001.osc.gz` and so on, each with its state file `001.state.txt`.
/// Creates the directory if it does not exist.
pub(super) fn write_days(
    world: &World,
    days: u32,
    directory: &Path,
    overwrite: bool,
    ctx: &Context,
) -> Result<Vec<DaySummary>> {
    let _phase = ctx.phase("changes", 0);
    std::fs::create_dir_all(directory).for_path(directory, "cannot create")?;
    let mut by_day = collect(world, days, ctx)?;
    let (mut summaries, mut files) = (Vec::new(), Vec::new());
    for (day, changes) in (1..).zip(&mut by_day) {
        let path = directory.join(format!("{day:03}.osc.gz"));
        let mut text = Vec::new();
        write_day(changes, &mut text).for_path(&path, "cannot write")?;
        files.push(write_file(path.clone(), overwrite, &text, ctx)?);
        let state_path = directory.join(format!("{day:03}.state.txt"));
        files.push(write_file(
            state_path,
            overwrite,
            state_text(day).as_bytes(),
            ctx,
        )?);
        if files.len() >= AT_ONCE {
            commit_together(std::mem::take(&mut files))?;
        }
        summaries.push(DaySummary {
            path,
            created: changes.created.len() as u64,
            modified: changes.modified.len() as u64,
            deleted: changes.deleted.len() as u64,
        });
    }
    commit_together(files)?;
    Ok(summaries)
}

/// Returns the changes of all towns in the first `days` days, one [`Day`] per day.
fn collect(world: &World, days: u32, ctx: &Context) -> Result<Vec<Day>> {
    let mut by_day: Vec<Day> = (0..days).map(|_| Day::default()).collect();
    for number in 0..world.towns {
        ctx.cancellation.check()?;
        let town = Town::new(world, number);
        for (day, changes) in (1..).zip(&mut by_day) {
            for kind in ObjectKind::ALL {
                changes.created.extend(town.objects_created_on(kind, day));
            }
        }
        for mut object in town.into_objects() {
            let (Lifetime::Changes(day) | Lifetime::Goes(day)) = object.lifetime else {
                continue;
            };
            // Changes of days after the last wanted day are left out.
            let Some(changes) = by_day.get_mut(day as usize - 1) else {
                continue;
            };
            if matches!(object.lifetime, Lifetime::Changes(_)) {
                object.edit_on_day(day);
                changes.modified.push(object);
            } else {
                changes.deleted.push(object.into_deleted(day));
            }
        }
    }
    for day in &mut by_day {
        for changes in [&mut day.created, &mut day.modified, &mut day.deleted] {
            changes.sort_by_key(|object| (object.kind(), object.id));
        }
        // The reverse order deletes relations before their members, and ways before their nodes.
        day.deleted.reverse();
    }
    Ok(by_day)
}

fn write_day(day: &Day, out: impl Write) -> std::io::Result<()> {
    // The gzip header gets no modification time, so that the same seed gives the same bytes.
    let gzip = GzBuilder::new().mtime(0).write(out, Compression::new(6));
    let mut osc = OscWriter::new(BufWriter::new(gzip), "pbfhogg synth")?;
    let parts = [
        (ChangeAction::Create, &day.created),
        (ChangeAction::Modify, &day.modified),
        (ChangeAction::Delete, &day.deleted),
    ];
    for (action, objects) in parts {
        for object in objects {
            object.with_object(|object| osc.write(action, object))?;
        }
    }
    let gzip = osc
        .finish()?
        .into_inner()
        .map_err(|error| error.into_error())?;
    gzip.finish().map(drop)
}

fn state_text(day: u32) -> String {
    // Replication servers write state files as Java properties files, in which colons are escaped.
    let time = format_timestamp(day_end(day)).replace(':', "\\:");
    format!("sequenceNumber={day}\ntimestamp={time}\n")
}

/// Writes a file that gets its name only when it is committed.
fn write_file(path: PathBuf, overwrite: bool, bytes: &[u8], ctx: &Context) -> Result<StreamOutput> {
    let target = OutputTarget::File { path, overwrite };
    let mut output = StreamOutput::new(OpenOutput::open(target, ctx)?);
    output.write(bytes)?;
    Ok(output)
}
