//! Repair of files that are not PBF: OSM XML, OsmChange, OPL, o5m and o5c. The objects before the first damage are
//! saved. The last line of OPL needs no line break, as for every other command.

use super::mender::BlobMender;
use super::report::{Loss, LostIds, Report};
use super::survey::Survey;
use super::{NOTHING_SAVED, Options, write};
use crate::engine::{changesets, input};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{Damage, TextFormat};
use crate::io::{FileCompression, Input};
use crate::osm::{ObjectKind, TypeThenId, id_from_rank};
use crate::runtime::Context;

/// Writes the objects of a text input that stand before the first damage.
pub(super) fn repair(
    input: &Input,
    format: TextFormat,
    options: &Options,
    ctx: &Context,
) -> Result<Report> {
    ctx.expect_phases(1);
    let mender = BlobMender::new(options);
    let salvaged = input::salvage(input, format, mender.compression(), ctx)?;
    let nothing = Error::file_of(input.path(), ErrorKind::Damaged, NOTHING_SAVED);
    let Some(file) = salvaged.file else {
        return Err(salvaged.damage.map_or(nothing, |(error, _)| error));
    };
    changesets::warn_of_left_out_changesets(&file, ctx);
    let mut survey = Survey::begin(&file.input, ctx)?;
    survey.examine(&file.input, &mender, |_| Ok(()), ctx)?;
    let mut report = Report {
        bytes: salvaged.bytes,
        text: Some(format.short_name()),
        unpacked: FileCompression::detect(input.first_bytes()?).map(FileCompression::name),
        ..Report::default()
    };
    survey.fill_report(&mut report);
    // The counted blobs are those of the temporary file, so they are not reported.
    report.whole_blobs = 0;
    report.mended.clear();
    match salvaged.damage {
        None => report.ends_within_line = ends_within_line(input, format)?,
        Some(damage) => {
            let last = salvaged.last.filter(|_| report.was_sorted);
            let loss = loss_of_text(damage, salvaged.bytes, last, survey.is_history());
            report.lost.push(loss);
        }
    }
    if !survey.can_save_objects() {
        return Err(nothing);
    }
    write::write(
        &file.input,
        &survey,
        &mender,
        None,
        options,
        &mut report,
        ctx,
    )?;
    Ok(report)
}

/// Whether a file is uncompressed OPL whose last line has no line break. In such a file, nothing else shows that the
/// text was cut.
fn ends_within_line(input: &Input, format: TextFormat) -> Result<bool> {
    let is_plain = FileCompression::detect(input.first_bytes()?).is_none();
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

/// Returns the loss of the data after the damage. `last` is the last object before the damage; `None` if the objects
/// are not in order.
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
