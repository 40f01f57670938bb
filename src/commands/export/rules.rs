//! The rules by which objects become features.

use super::line_relations::LINE_RELATIONS;
use crate::engine::object_geometry::{Incomplete, is_closed};
use crate::formats::GeometryTypes;
use crate::geometry::{Antimeridian, Shape};
use crate::osm::{KindSet, Location, ObjectExpression, ObjectFilter, TagPattern};

/// A rule about the tags of an object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TagRule {
    /// The rule holds for every object with a tag.
    Any,
    /// The rule holds for no object.
    None,
    /// The rule holds for objects with a tag that an expression matches.
    Matching(ObjectFilter),
}

impl TagRule {
    /// Creates a rule that holds for objects with a tag that one of the patterns matches.
    pub fn matching(patterns: impl IntoIterator<Item = TagPattern>) -> Self {
        Self::Matching(tag_filter(patterns))
    }

    /// Whether the rule holds for an object with these tags.
    fn holds(&self, tags: &[(&str, &str)]) -> bool {
        match self {
            Self::Any => !tags.is_empty(),
            Self::None => false,
            Self::Matching(filter) => tags
                .iter()
                .any(|(key, value)| filter_matches_tag(filter, key, value)),
        }
    }
}

/// Returns a filter for the tags that one of the patterns matches.
fn tag_filter(patterns: impl IntoIterator<Item = TagPattern>) -> ObjectFilter {
    ObjectFilter::new(patterns.into_iter().map(ObjectExpression::of_tag))
}

/// Whether one of the expressions of a filter matches a tag.
fn filter_matches_tag(filter: &ObjectFilter, key: &str, value: &str) -> bool {
    filter.with_key(key).any(|one| one.matches_value(value))
}

/// The tags that are written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum WrittenTags {
    /// All tags.
    #[default]
    All,
    /// The tags that an expression matches.
    Only(ObjectFilter),
    /// The tags that no expression matches.
    Except(ObjectFilter),
}

options! {
    /// The rules for making features of objects. They decide which objects become features, which geometry a feature
    /// gets, and which tags are written.
    #[derive(Debug, Clone)]
    #[non_exhaustive]
    pub struct FeatureRules {
    }
    setters {
        /// The rule that makes a closed way a line. If it is `None`, all closed ways that are not areas are lines. If
        /// `linear` and `area` are both `None`, closed ways are lines and areas.
        linear: Option<TagRule>,
        /// The rule that makes a closed way an area. If it is `None`, all closed ways that are not lines are areas. If
        /// `linear` and `area` are both `None`, closed ways are lines and areas.
        area: Option<TagRule>,
        /// The tags that are written.
        tags: WrittenTags,
        /// The keys of the tags that are written; `None` for all tags that [`tags`](Self::tags) allows. An object that
        /// has only tags with other keys becomes a feature without tags.
        tag_keys: Option<Vec<String>>,
        /// The types of geometries that are written.
        geometry_types: GeometryTypes,
        /// The values of the tag `type` of relations that become lines. By default, there are none; see
        /// [`LINE_RELATIONS`]. The member ways are joined in their order; platforms and stops are left out. A relation
        /// with missing ways becomes the lines of its remaining ways.
        line_relations: Vec<String>,
        /// Whether features without tags are written.
        keep_untagged: bool,
        /// The kinds of objects from which features are made.
        kinds: KindSet,
        /// The expressions that select objects; all objects are selected if there are none.
        filter: Vec<ObjectExpression>,
        /// The region that selects features. A feature is written if its geometry shares a point with the region. A
        /// geometry that crosses the antimeridian is cut there before this test, whatever
        /// [`antimeridian`](Self::antimeridian) says. `None` writes all features.
        region: Option<Shape>,
        /// The region at whose edges geometries are cut; `None` for no cuts.
        clip: Option<Shape>,
        /// How to treat lines and areas that cross the antimeridian.
        antimeridian: Antimeridian,
        /// How to treat relations with a member way, or a node of a member way, that is not in the file.
        incomplete: Incomplete,
        /// Whether text formats get all tags of an object, even if several have the same key, as osmium writes them.
        /// Otherwise, and in tables, an object has only the first tag with each key.
        keeps_repeated_keys: bool,
    }
}

impl Default for FeatureRules {
    /// Makes features of all objects with tags. A closed way is an area if one of its tags matches a pattern in
    /// [`AREA_TAGS`], and otherwise a line. Incomplete relations are left out.
    fn default() -> Self {
        let patterns = AREA_TAGS
            .iter()
            .map(|text| TagPattern::parse(text).expect("a constant in this syntax"));
        Self {
            linear: None,
            area: Some(TagRule::matching(patterns)),
            tags: WrittenTags::All,
            tag_keys: None,
            geometry_types: GeometryTypes::default(),
            line_relations: Vec::new(),
            keep_untagged: false,
            kinds: KindSet::ALL,
            filter: Vec::new(),
            region: None,
            clip: None,
            antimeridian: Antimeridian::default(),
            incomplete: Incomplete::default(),
            keeps_repeated_keys: false,
        }
    }
}

impl FeatureRules {
    /// Makes every closed way with tags both a line and an area, unless its tag `area` decides between the two.
    pub fn both() -> Self {
        let (linear, area) = (Some(TagRule::Any), Some(TagRule::Any));
        Self {
            linear,
            area,
            ..Self::default()
        }
    }

    /// Makes lines of the relations of the usual types, [`LINE_RELATIONS`].
    #[must_use]
    pub fn with_line_relations(self) -> Self {
        self.line_relations(LINE_RELATIONS.map(str::to_owned).into())
    }

    /// Restricts the written tags to those that one of the patterns matches.
    pub fn include_tags(&mut self, patterns: impl IntoIterator<Item = TagPattern>) {
        self.tags = WrittenTags::Only(tag_filter(patterns));
    }

    /// Restricts the written tags to those that none of the patterns matches.
    pub fn exclude_tags(&mut self, patterns: impl IntoIterator<Item = TagPattern>) {
        self.tags = WrittenTags::Except(tag_filter(patterns));
    }

    /// Whether a closed way with these tags is a line, and whether it is an area. A way without tags is a line.
    pub(crate) fn closed_way_forms(&self, tags: &[(&str, &str)]) -> (bool, bool) {
        if tags.is_empty() {
            return (true, false);
        }
        let area = tags.iter().find(|(key, _)| *key == "area");
        match area.map(|(_, value)| *value) {
            Some("yes") => return (false, true),
            Some("no") => return (true, false),
            _ => {}
        }
        match (&self.linear, &self.area) {
            (None, None) => (true, true),
            (Some(linear), None) => (linear.holds(tags), !linear.holds(tags)),
            (None, Some(area)) => (!area.holds(tags), area.holds(tags)),
            (Some(linear), Some(area)) => (linear.holds(tags), area.holds(tags)),
        }
    }

    /// Whether a way becomes a line, and whether it becomes an area. `locations` are the locations of its nodes.
    pub(super) fn way_forms(
        &self,
        tags: &[(&str, &str)],
        locations: &[Option<Location>],
    ) -> (bool, bool) {
        let (is_line, is_area) = if is_closed(locations) {
            self.closed_way_forms(tags)
        } else {
            (true, false)
        };
        let types = self.geometry_types;
        (is_line && types.lines, is_area && types.areas)
    }

    /// Whether a relation with these tags becomes a feature with lines.
    pub(super) fn is_line_relation<'t>(
        &self,
        mut tags: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> bool {
        let type_of = tags.find(|(key, _)| *key == "type");
        let mut types = self.line_relations.iter();
        self.geometry_types.lines && types.any(|one| type_of.is_some_and(|(_, value)| value == one))
    }

    /// Removes the tags that are not written. Returns whether the object becomes a feature. It becomes a feature if
    /// `self.tags` leaves a tag, even one that `self.tag_keys` removes. It also becomes a feature if features without
    /// tags are written.
    pub(super) fn retain_written_tags(&self, tags: &mut Vec<(&str, &str)>) -> bool {
        match &self.tags {
            WrittenTags::All => {}
            WrittenTags::Only(filter) => {
                tags.retain(|(key, value)| filter_matches_tag(filter, key, value))
            }
            WrittenTags::Except(filter) => {
                tags.retain(|(key, value)| !filter_matches_tag(filter, key, value))
            }
        }
        let is_feature = self.keep_untagged || !tags.is_empty();
        if let Some(keys) = &self.tag_keys {
            tags.retain(|(key, _)| keys.iter().any(|wanted| wanted == key));
        }
        is_feature
    }
}

/// The tags that make a closed way an area, in the notation of a configuration.
///
/// The list follows "polygon features" (<https://github.com/tyrasd/osm-polygon-features>, 2017, CC0). According to the
/// OSM wiki (<https://wiki.openstreetmap.org/wiki/Key:area>), some values make a closed way a line unless the way has
/// `area=yes`. The list omits these values: all values of `barrier`, and tracks, runways, cart paths, dykes, trenches
/// and the like. It adds `indoor`.
pub const AREA_TAGS: [&str; 26] = [
    "building!=no",
    "amenity!=no",
    "landuse!=no",
    "leisure!=no,track,slipway",
    "area!=no",
    "boundary!=no",
    "place!=no",
    "shop!=no",
    "tourism!=no",
    "historic!=no,aqueduct,citywalls,city_wall,hollow_way,railway,road,roman_road,wall",
    "public_transport!=no",
    "office!=no",
    "building:part!=no",
    "military!=no,trench",
    "ruins!=no,yes",
    "area:highway!=no",
    "craft!=no",
    "golf!=no,cartpath,hole,path",
    "indoor!=no,wall",
    "highway=services,rest_area,escape,elevator",
    "natural!=no,arete,cliff,coastline,couloir,earth_bank,gully,ridge,tree_row,valley",
    "waterway=riverbank,dock,boatyard,dam",
    "railway=station,turntable,roundhouse,platform",
    "man_made!=no,cutline,dyke,embankment,goods_conveyor,pipeline",
    "power=plant,substation,generator,transformer",
    "aeroway!=no,jet_bridge,parking_position,runway,taxilane,taxiway",
];
