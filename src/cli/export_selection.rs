//! The arguments of `export` that select objects and features.

use super::args::{GivenRegion, KindArgs, RegionArgs, read_expressions, region};
use super::session::Session;
use crate::commands::export::{FeatureRules, GeometryTypes};
use crate::geometry::Antimeridian;
use crate::osm::ObjectExpression;
use crate::runtime::Context;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The objects and features to export.
#[derive(Debug, clap::Args)]
pub struct SelectionArgs {
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    region: RegionArgs,
    /// Export only objects that match EXPRESSION, as in tags-filter; repeatable
    #[arg(long, value_name = "EXPRESSION", value_parser = ObjectExpression::parse)]
    filter: Vec<ObjectExpression>,
    /// Read expressions for --filter from FILE, one per line; # at the start of a word begins a comment
    #[arg(long, value_name = "FILE")]
    expressions: Vec<PathBuf>,
    /// Cut geometries at the edges of a region: a box as for --bbox, or a file as for --polygon
    #[arg(long, value_name = "REGION", allow_hyphen_values = true)]
    clip: Option<String>,
    /// Lines and areas across the antimeridian: cut them at 180 degrees, or keep them as they are
    #[arg(long, value_name = "HOW", value_parser = parse_antimeridian)]
    antimeridian: Option<Antimeridian>,
    /// Geometry types to write, comma-separated: point, linestring, polygon
    #[arg(long, value_name = "TYPES")]
    geometry_types: Option<GeometryTypes>,
    /// Types of relations that become lines, comma-separated, or none [default: route,waterway,superroute for tables,
    /// and none for text]
    ///
    /// The member ways are joined in their order. Platforms and stops are left out.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    line_relations: Option<Vec<String>>,
    /// Also write features without tags
    #[arg(short = 'n', long)]
    keep_untagged: bool,
    /// Write only the tags with these keys, comma-separated
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    properties: Option<Vec<String>>,
}

impl SelectionArgs {
    /// Sets the rules that select objects and features. `input` is the input of the command.
    pub fn apply_to(
        &self,
        session: &Session,
        input: &Path,
        rules: &mut FeatureRules,
        ctx: &Context,
    ) -> Result<()> {
        rules.kinds = self.kinds.kind_set();
        rules.filter = self.filter.clone();
        for path in &self.expressions {
            let read = read_expressions(session, path, ObjectExpression::parse)?;
            rules.filter.extend(read);
        }
        rules.region = self.region.region(session, input, ctx)?;
        let clip = self.clip.as_deref();
        let is_box = clip.is_some_and(|clip| clip.matches(',').count() == 3);
        let given = GivenRegion {
            bbox: clip.filter(|_| is_box),
            polygon: clip.filter(|_| !is_box).map(Path::new),
            area: None,
        };
        rules.clip = region(session, given, input, ctx)?;
        let by_default = session.conventions.antimeridian;
        rules.antimeridian = self.antimeridian.unwrap_or(by_default);
        rules.geometry_types = self.geometry_types.unwrap_or_default();
        let given = self.line_relations.clone();
        match given {
            Some(types) => {
                rules.line_relations = types.into_iter().filter(|one| one != "none").collect();
            }
            None if !session.conventions.exports_routes => rules.line_relations.clear(),
            None => {}
        }
        rules.keep_untagged = self.keep_untagged;
        rules.tag_keys = self.properties.clone();
        Ok(())
    }
}

fn parse_antimeridian(text: &str) -> Result<Antimeridian, String> {
    match text {
        "cut" => Ok(Antimeridian::Cut),
        "keep" => Ok(Antimeridian::Keep),
        _ => Err("expected cut or keep".into()),
    }
}
