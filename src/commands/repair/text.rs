//! Repair of files that are not PBF: OSM XML, OsmChange, OPL, o5m and o5c. The objects before the first damage are
//! saved. The last line of OPL needs no line break, as for every other command.

use super::headers::header;
use super::report::{Loss, LostIds, Report};
use super::survey::Survey;
use super::{Options, write};
use crate::engine::{changesets, input};
use crate::error::{Error, ErrorKind, Result};
use crate::file::{BlobPlan, PbfFile, PlanNeeds};
use crate::formats::{Damage, TextFormat};
use crate::io::{FileCompression, Input};
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::pbf::feature;
use crate::runtime::Context;

/// Writes the objects of a text input that stand before the first damage.
pub(super) fn repair(
    input: &Input,
    format: TextFormat,
    options: &Options,
    ctx: &Context,
) -> Result<Report> {
    let salvaged = input::salvage(input, format, ctx)?;
    let Some(file) = salvaged.file else {
        let cause = "there is no object in it that can be saved";
        let nothing = Error::file_of(input.path(), ErrorKind::Damaged, cause);
        return Err(salvaged.damage.map_or(nothing, |(error, _)| error));
    };
    changesets::note_left_out(&file, ctx);
    let plan = BlobPlan::open(&file, PlanNeeds::Order, ctx)?;
    let is_sorted = plan.is_sorted() == Some(true);
    let is_history = file.header.has(feature::HISTORY);
    let mut report = Report {
        bytes: salvaged.bytes,
        text: Some(format.short_name()),
        unpacked: FileCompression::of(input.start()?).map(FileCompression::name),
        headers: 1,
        was_sorted: is_sorted && (is_history || plan.has_each_object_once()),
        had_replication: file.header.has_replication(),
        ..Report::default()
    };
    if salvaged.damage.is_none() {
        report.ends_within_line = ends_within_line(input, format)?;
    }
    if let Some(damage) = salvaged.damage {
        let last = salvaged.last.filter(|_| is_sorted);
        report
            .lost
            .push(loss_of_text(damage, salvaged.bytes, last, is_history));
    }
    if options.dry_run {
        return Ok(report);
    }
    write_saved(file, plan.count(), options, &mut report, ctx)?;
    Ok(report)
}

/// Whether the last line of OPL has no line break at its end. In uncompressed text, only this shows a cut.
fn ends_within_line(input: &Input, format: TextFormat) -> Result<bool> {
    let is_plain = FileCompression::of(input.start()?).is_none();
    match input.len().checked_sub(1) {
        Some(last) if is_plain && format == TextFormat::Opl => {
            let mut byte = [0];
            input.read_all_at(&mut byte, last)?;
            // In UTF-16, a line break can end with 0.
            Ok(!matches!(byte, [b'\n' | 0]))
        }
        _ => Ok(false),
    }
}

/// Returns the loss of the data after the damage. `last` is the last object before it, if the objects are in order.
fn loss_of_text(
    (error, byte): Damage,
    bytes: u64,
    last: Option<TypeThenId>,
    is_history: bool,
) -> Loss {
    let cause = match &error {
        Error::Text {
            line,
            column,
            cause,
            ..
        } => format!("line {line}, column {column}: {cause}"),
        Error::File { cause, .. } => cause.clone(),
        _ => error.to_string(),
    };
    let mut loss = Loss::new(None, byte, bytes.saturating_sub(byte), cause);
    let may_follow = |kind: &ObjectKind| last.is_none_or(|last| last.0 <= *kind);
    let kinds = ObjectKind::ALL.into_iter().filter(may_follow);
    loss.ids = kinds
        .map(|kind| LostIds {
            kind,
            first: last
                .filter(|last| last.0 == kind)
                .map(|(_, rank)| id_from_rank(rank.saturating_add(u64::from(!is_history)))),
            last: None,
            is_exact: false,
        })
        .collect();
    loss
}

/// Writes the objects of `file`, and the objects of the other file whose ids are lost.
fn write_saved(
    mut file: PbfFile,
    objects: u64,
    options: &Options,
    report: &mut Report,
    ctx: &Context,
) -> Result<()> {
    let other = write::open_other(options, ctx)?;
    file.header = header(&Survey::of_whole(&file.header), report, other.as_ref());
    write::sort_saved(file, objects, other.as_ref(), options, report, ctx)
}
