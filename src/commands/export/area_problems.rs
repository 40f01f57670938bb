//! The problems of areas, without an export.

use super::builder::ExportPart;
use super::feature_buffer::FeatureForm;
use super::maker::{AnyMaker, FeatureMaker, FeatureView, MakerForm};
use super::{ExportFormat, Options, Report, Summary, visit};
use crate::error::{Error, Result};
use crate::file::PbfFile;
use crate::formats::{FeatureFormat, FeatureOptions, GeometryTypes};
use crate::io::OutputTarget;
use crate::runtime::Context;
use std::sync::Arc;

/// Counts features instead of making batches of them.
#[derive(Default)]
struct FeatureCounter(u64);

impl FeatureMaker for FeatureCounter {
    type Batch = u64;

    fn add(&mut self, _: &FeatureView<'_>) {
        self.0 += 1;
    }

    fn take(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.0)).filter(|count| *count > 0)
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// Finds the problems of the areas of a file. Calls `report` with each problem that an [export](super::run) of areas
/// has with the default options, in the order of the input. Of the summary, the number of areas and the numbers of
/// problems are set.
pub(crate) fn area_problems(
    file: &PbfFile,
    report: &mut Report<'_>,
    ctx: &Context,
) -> Result<Summary> {
    let format = ExportFormat::Text(FeatureOptions::new(FeatureFormat::GeoJson));
    let types = GeometryTypes {
        points: false,
        lines: false,
        areas: true,
    };
    let options =
        Options::new(file.input.path(), OutputTarget::Stdout, format).geometry_types(types);
    let create = Arc::new(|| Box::new(FeatureCounter::default()) as Box<dyn AnyMaker>);
    let needs_info = false;
    let form = FeatureForm::Made(MakerForm { create, needs_info });
    let mut areas = 0;
    let summary = visit(file, &options, form, true, ctx, |part| match part {
        ExportPart::Made(batch) => {
            let broken = |_| Error::Internal("a batch has another type".into());
            areas += *batch.downcast::<u64>().map_err(broken)?;
            Ok(())
        }
        ExportPart::Problems(problems) => problems.iter().try_for_each(&mut *report),
        ExportPart::Features(_) | ExportPart::Tally(_) => Ok(()),
    })?;
    Ok(Summary { areas, ..summary })
}
