//! Encodes actions as XML, and writes all actions of an augmented diff to one file.

use super::Summary;
use super::action::{Action, Encoder, SendPart};
use super::actions::{ActionSource, encode_actions};
use super::filter::Filter;
use super::find::Findings;
use crate::engine::text_sink::warn_of_replaced_characters;
use crate::error::{FileResult, Result};
use crate::formats::{AugmentedXml, EncodedText, TextCompression, TextEncoder, TextOutput};
use crate::io::OutputTarget;
use std::path::Path;

/// The name of the generator in [`PROLOGUE`], by which an augmented diff of an earlier run is recognized.
pub(super) const GENERATOR: &str =
    "Overpass API (not used, but readers look for its name): pbfhogg";

/// The text before the actions.
pub(super) const PROLOGUE: &str = "<?xml version='1.0' encoding='UTF-8'?>\n<osm version=\"0.6\" \
                                   generator=\"Overpass API (not used, but readers look for its name): pbfhogg\">\n  <note>The data included in this document is from \
                                   www.openstreetmap.org. The data is made available under ODbL.</note>\n";
/// The text after the actions.
pub(super) const EPILOGUE: &str = "</osm>\n";

/// An encoder that turns actions into the text of one file, compressed as the name of the file says.
struct XmlEncoder<'s> {
    xml: AugmentedXml,
    compressor: TextEncoder,
    path: &'s Path,
}

impl Encoder for XmlEncoder<'_> {
    /// The text, if there is any, and the number of its characters that were replaced.
    type Part = (Option<EncodedText>, u64);

    fn put(
        &mut self,
        action: &Action<'_>,
        findings: &Findings<'_>,
        send: &SendPart<'_, Self::Part>,
    ) -> Result<()> {
        let (compressor, path) = (&mut self.compressor, self.path);
        let mut sent = Ok(());
        put_action(&mut self.xml, action, findings, &mut |xml| {
            let len = xml.len();
            let part = take_encoded(xml, compressor, path);
            if sent.is_ok() {
                sent = part.and_then(|part| send(part, len));
            }
        });
        sent
    }

    fn len(&self) -> usize {
        self.xml.len()
    }

    fn take(&mut self) -> Result<Self::Part> {
        take_encoded(&mut self.xml, &mut self.compressor, self.path)
    }
}

/// Takes the text from `xml`. Returns its compressed form, if there is any text, and the number of characters that were
/// replaced.
fn take_encoded(
    xml: &mut AugmentedXml,
    compressor: &mut TextEncoder,
    path: &Path,
) -> Result<(Option<EncodedText>, u64)> {
    let (text, replaced) = xml.take();
    let encoded = (!text.is_empty()).then(|| compressor.encode(text));
    let encoded = encoded.transpose().for_path(path, "cannot compress")?;
    Ok((encoded, replaced))
}

/// Appends an action: the old state of its object, if there is one, and the new state. Calls `spill`, which may take
/// the text, whenever the text is long.
pub(super) fn put_action(
    xml: &mut AugmentedXml,
    action: &Action<'_>,
    findings: &Findings<'_>,
    spill: &mut dyn FnMut(&mut AugmentedXml),
) {
    action
        .new
        .with_augmented(findings, |new| match &action.old {
            None => xml.put_action(action.kind, None, new, spill),
            Some(old) => old.with_augmented(findings, |old| {
                xml.put_action(action.kind, Some(old), new, spill);
            }),
        });
}

/// Writes all actions to a file.
pub(super) fn write(source: ActionSource<'_>, target: &OutputTarget) -> Result<Summary> {
    let ctx = source.base.source.ctx;
    let mut output = TextOutput::create(target.clone(), ctx)?;
    output.write(PROLOGUE)?;
    let mut replaced = 0;
    let (filter, path) = (Filter::new(source.selection), target.path());
    let encoder = || XmlEncoder {
        xml: AugmentedXml::new(),
        compressor: TextEncoder::new(TextCompression::of_name(path)),
        path,
    };
    let summary = encode_actions(source, &filter, encoder, |(chunk, unknown)| {
        replaced += unknown;
        if let Some(chunk) = chunk {
            output.chunk(chunk)?;
        }
        Ok(())
    })?;
    output.write(EPILOGUE)?;
    ctx.stats.bytes_written.add(output.finish()?);
    warn_of_replaced_characters(replaced, ctx);
    Ok(summary)
}
