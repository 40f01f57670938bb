//! Finds the problems that an export of areas would report, without writing the export.

use super::feature_pass::FeaturePass;
use super::output::{FeatureNeeds, FeatureOutput};
use super::{FeatureRules, LookupOptions, Report, Summary};
use crate::error::Result;
use crate::file::PbfFile;
use crate::formats::GeometryTypes;
use crate::formats::features::Feature;
use crate::geometry::Extent;
use crate::pbf::Relation;
use crate::runtime::Context;
use std::convert::Infallible;

/// An output that counts features, and writes none.
struct CountedFeatures;

impl FeatureOutput for CountedFeatures {
    type Part = Infallible;

    fn put(&mut self, _: &Feature<'_>, _: &Extent, _: Option<&Relation<'_>>) -> u64 {
        1
    }
}

/// Finds the problems of the areas of a file. Calls `report` with each problem that an [export](super::run) of areas
/// has with the default options, in the order of the input. Returns the summary of that export.
pub(crate) fn area_problems(
    file: &PbfFile,
    report: &mut Report<'_>,
    ctx: &Context,
) -> Result<Summary> {
    let rules = FeatureRules::default().geometry_types(GeometryTypes {
        points: false,
        lines: false,
        areas: true,
    });
    let pass = FeaturePass {
        file,
        rules: &rules,
        locate: LookupOptions::default().locate_options(std::env::temp_dir),
        needs: FeatureNeeds::default(),
        ctx,
    };
    pass.run(Some(report), || CountedFeatures, |part| match part {})
}
