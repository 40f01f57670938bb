//! Builds the geometries of single objects.

use super::builder::Builder;
use super::feature_buffer::FeatureForm;
use super::shared::Shared;
use super::{ExportFormat, LINE_RELATIONS, Options};
use crate::area::WayStore;
use crate::engine::geometry_pass::Visitor;
use crate::error::FormatError;
use crate::formats::features::OwnedGeometry;
use crate::formats::{FeatureFormat, FeatureOptions};
use crate::io::OutputTarget;
use crate::osm::{Location, ObjectFilter};
use crate::pbf::{Block, BlockBuilder, Element, Object};
use std::sync::Arc;

/// Builds the geometries of single objects, as an export of a table with default options does.
pub(crate) struct ObjectGeometries {
    builder: Builder,
    blocks: BlockBuilder,
}

impl ObjectGeometries {
    /// Creates a builder. With `keep_untagged`, objects without tags have geometries, too.
    pub(crate) fn new(keep_untagged: bool) -> Self {
        let format = ExportFormat::Text(FeatureOptions::new(FeatureFormat::GeoJson));
        let lines = LINE_RELATIONS.map(str::to_owned);
        let options = Options::new("", OutputTarget::Stdout, format)
            .keep_untagged(keep_untagged)
            .line_relations(lines.into());
        let filter = ObjectFilter::new([]);
        let shared = Shared::new(&options, FeatureForm::Kept, filter, true, false);
        Self {
            builder: Builder::new(&Arc::new(shared)),
            blocks: BlockBuilder::default(),
        }
    }

    /// Returns the geometry of an object; `None` if the object becomes no feature. `locations` has the location of each
    /// node of a way, and `ways` has the member ways of a relation, and those of the routes that are nested in it.
    pub(crate) fn of(
        &mut self,
        object: &Object<'_>,
        locations: &[Option<Location>],
        ways: &WayStore,
    ) -> Result<Option<OwnedGeometry>, FormatError> {
        self.blocks.add(object)?;
        self.blocks.end_block();
        for encoded in self.blocks.take_blocks() {
            let block = Block::parse(&encoded.payload)?;
            block.try_for_each(|element| match element {
                Element::Node(node) => {
                    let (info, location) = (node.info(), node.location());
                    self.builder.node(node.id(), info, location, node.tags())
                }
                Element::Way(way) => self.builder.way(&way, locations),
                Element::Relation(relation) => self.builder.relation(&relation, ways),
            })?;
        }
        // With the default rules, an object becomes a line or an area, and not both.
        Ok(self.builder.take_kept().into_iter().next())
    }
}
