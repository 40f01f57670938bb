//! The options that all visitors of an export share.

#[cfg(feature = "parquet")]
use super::boundaries::Boundaries;
use super::cuts::Cuts;
use super::feature_buffer::FeatureForm;
use super::{FeatureRules, GeometryTypes, Incomplete, Options};
use crate::engine::block_matcher::select;
use crate::engine::geometry_pass::is_area;
use crate::error::FormatError;
use crate::osm::ObjectFilter;
use crate::pbf::{Block, Element, Relation};
#[cfg(feature = "parquet")]
use std::sync::Arc;

/// The options that all visitors of a run share.
pub(super) struct Shared {
    pub form: FeatureForm,
    pub rules: FeatureRules,
    pub types: GeometryTypes,
    pub keep_untagged: bool,
    pub filter: ObjectFilter,
    pub cuts: Cuts,
    /// Whether relations become features.
    pub relations: bool,
    /// The types of relations that become lines.
    line_relations: Vec<String>,
    #[cfg(feature = "parquet")]
    pub boundaries: Option<Arc<Boundaries>>,
    pub tag_keys: Option<Vec<String>>,
    pub incomplete: Incomplete,
    /// Whether features keep tags whose key an earlier tag of the object has.
    pub keeps_repeated_keys: bool,
    /// Whether problems are reported one by one.
    pub reports: bool,
}

impl Shared {
    pub(super) fn new(
        options: &Options,
        form: FeatureForm,
        filter: ObjectFilter,
        relations: bool,
        reports: bool,
    ) -> Self {
        Self {
            #[cfg(feature = "parquet")]
            boundaries: form.boundaries(),
            relations,
            rules: options.rules.clone(),
            types: options.geometry_types,
            keep_untagged: options.keep_untagged,
            filter,
            cuts: Cuts::new(options),
            tag_keys: options.tag_keys.clone(),
            line_relations: options.line_relations.clone(),
            incomplete: options.incomplete,
            keeps_repeated_keys: options.keeps_repeated_keys && form.is_text(),
            form,
            reports,
        }
    }
}

impl Shared {
    /// Returns whether each object of a block is visited, in file order; `None` if all objects are visited.
    pub(super) fn visited(&self, block: &Block<'_>) -> Result<Option<Vec<bool>>, FormatError> {
        #[cfg_attr(not(feature = "parquet"), expect(unused_mut))]
        let mut selected = select(&self.filter, block)?;
        #[cfg(feature = "parquet")]
        if let (Some(selected), Some(boundaries)) = (&mut selected, &self.boundaries) {
            boundaries.select(block, selected)?;
        }
        Ok(selected)
    }

    /// Whether a relation becomes a feature with lines.
    pub(super) fn is_line_relation(&self, relation: &Relation<'_>) -> bool {
        let type_of = relation.tags().find(|(key, _)| *key == "type");
        let mut types = self.line_relations.iter();
        self.types.lines && types.any(|one| type_of.is_some_and(|(_, value)| value == one))
    }

    /// Returns, for each object of a block in file order, whether the object is a visited relation that has an area or
    /// becomes lines. The member ways of these relations are needed.
    pub(super) fn selected_areas(&self, block: &Block<'_>) -> Result<Vec<bool>, FormatError> {
        let visited = self.visited(block)?;
        let mut areas = Vec::new();
        block.try_for_each(|element| {
            let is_visited = visited.as_ref().is_none_or(|visited| visited[areas.len()]);
            areas.push(match element {
                Element::Relation(relation) => {
                    let is_feature = is_area(relation.tags()) || self.is_line_relation(&relation);
                    is_visited && is_feature
                }
                _ => false,
            });
            Ok::<(), FormatError>(())
        })?;
        Ok(areas)
    }
}
