//! Writes features as text.

use super::feature_pass::FeaturePass;
use super::late_areas::{AreaBuffer, LateAreas};
use super::output::{FeatureNeeds, FeatureOutput};
use super::{Options, Report, Summary};
use crate::error::{FormatError, FormatResult, Result};
use crate::file::PbfFile;
use crate::formats::features::{Feature, FeatureChunk, FeatureDocument, FeatureText, Geometry};
use crate::formats::{Attribute, FeatureOptions};
use crate::geometry::Extent;
use crate::io::OpenOutput;
use crate::pbf::Relation;
use crate::runtime::Context;

/// The size in bytes at which a chunk of text ends.
const CHUNK: usize = 1 << 20;

/// The text of the features of a thread.
struct TextFeatures<'a> {
    text: FeatureText,
    /// The areas, if they are written after all other features; otherwise `None`.
    areas: Option<AreaBuffer<'a>>,
}

impl FeatureOutput for TextFeatures<'_> {
    type Part = FeatureChunk;

    fn put(&mut self, feature: &Feature<'_>, _: &Extent, relation: Option<&Relation<'_>>) -> u64 {
        match (&mut self.areas, feature.geometry) {
            (Some(areas), Geometry::MultiPolygon(_)) => areas.put(feature, relation),
            _ => self.text.put(feature),
        }
        1
    }

    fn take(&mut self, is_end: bool) -> FormatResult<Option<FeatureChunk>> {
        if !is_end && self.text.len() < CHUNK {
            return Ok(None);
        }
        let chunk = self.text.take();
        chunk.map_err(|error| FormatError::with(error.to_string()))
    }

    fn flush(&mut self) {
        self.areas.iter_mut().for_each(AreaBuffer::flush);
    }

    fn check(&self) -> Result<()> {
        self.areas.as_ref().map_or(Ok(()), AreaBuffer::check)
    }
}

/// Writes the features of a file as text.
pub(super) fn write(
    file: &PbfFile,
    options: &Options,
    format: &FeatureOptions,
    report: Option<&mut Report<'_>>,
    ctx: &Context,
) -> Result<Summary> {
    let output = OpenOutput::open(options.target.clone(), ctx)?;
    let mut document = FeatureDocument::create(output, format)?;
    let locate = options.locate_options();
    let late = options.areas_last;
    let late = late.then(|| LateAreas::new(format, &locate.1.temp_dir, ctx));
    let mut attributes = format.attributes.iter();
    let is_info = |attribute: Attribute| {
        !matches!(
            attribute,
            Attribute::Type | Attribute::Id | Attribute::WayNodes
        )
    };
    let pass = FeaturePass {
        file,
        rules: &options.rules,
        locate,
        needs: FeatureNeeds {
            info: attributes.any(|(attribute, _)| is_info(attribute)),
            way_nodes: format.attributes.has(Attribute::WayNodes),
            ..FeatureNeeds::default()
        },
        ctx,
    };
    let output = || TextFeatures {
        text: FeatureText::new(format),
        areas: late.as_ref().map(AreaBuffer::new),
    };
    let summary = pass.run(report, output, |chunk| document.add(chunk))?;
    if let Some(late) = &late {
        late.write(&mut document)?;
    }
    let bytes = document.finish()?;
    Ok(Summary { bytes, ..summary })
}
