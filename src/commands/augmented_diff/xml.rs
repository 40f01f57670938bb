//! Augmented diffs as XML, and the file with all actions.

use super::action::{Action, Encoder};
use super::actions::for_each;
use super::filter::Filter;
use super::find::Findings;
use super::{Base, Selection, Summary};
use crate::engine::text_sink::warn_replaced;
use crate::error::Result;
use crate::formats::{AugmentedXml, TextOutput};
use crate::io::OutputTarget;

/// The text before the actions.
pub(super) const PROLOGUE: &str = "<?xml version='1.0' encoding='UTF-8'?>\n<osm version=\"0.6\" \
                                   generator=\"Overpass API (not used, but readers look for its name): pbfhogg\">\n  <note>The data included in this document is from \
                                   www.openstreetmap.org. The data is made available under ODbL.</note>\n";
/// The text after the actions.
pub(super) const EPILOGUE: &str = "</osm>\n";

impl Encoder for AugmentedXml {
    /// The text, and the number of its characters that were replaced.
    type Part = (String, u64);

    fn put(&mut self, action: &Action<'_>, findings: &Findings<'_>) {
        put_action(self, action, findings);
    }

    fn take(&mut self) -> Result<Self::Part> {
        Ok(AugmentedXml::take(self))
    }
}

/// Appends an action with both states.
pub(super) fn put_action(xml: &mut AugmentedXml, action: &Action<'_>, findings: &Findings<'_>) {
    action.new.augmented(findings, |new| match &action.old {
        None => xml.put(action.kind, None, new),
        Some(old) => old.augmented(findings, |old| xml.put(action.kind, Some(old), new)),
    });
}

/// Writes all actions to a file.
pub(super) fn write(
    base: &Base<'_>,
    findings: &Findings<'_>,
    selection: &Selection,
    target: &OutputTarget,
) -> Result<Summary> {
    let mut output = TextOutput::create(target.clone(), base.ctx)?;
    output.write(PROLOGUE)?;
    let mut replaced = 0;
    let filter = Filter::new(selection);
    let summary = for_each(
        base,
        findings,
        &filter,
        AugmentedXml::new,
        |(text, unknown)| {
            replaced += unknown;
            output.write(&text)
        },
    )?;
    output.write(EPILOGUE)?;
    base.ctx.stats.bytes_written.add(output.finish()?);
    warn_replaced(replaced, base.ctx);
    Ok(summary)
}
