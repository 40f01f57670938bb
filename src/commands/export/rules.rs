//! The rules by which objects become lines, areas, or both.

use crate::osm::{ObjectExpression, ObjectFilter, TagPattern};

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
        Self::Matching(filter(patterns))
    }

    /// Whether the rule holds for an object with these tags.
    fn holds(&self, tags: &[(&str, &str)]) -> bool {
        match self {
            Self::Any => !tags.is_empty(),
            Self::None => false,
            Self::Matching(filter) => tags.iter().any(|(key, value)| matches(filter, key, value)),
        }
    }
}

/// Returns a filter for the tags that one of the patterns matches.
fn filter(patterns: impl IntoIterator<Item = TagPattern>) -> ObjectFilter {
    ObjectFilter::new(patterns.into_iter().map(ObjectExpression::of_tag))
}

fn matches(filter: &ObjectFilter, key: &str, value: &str) -> bool {
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

/// The rules that decide whether a closed way is a line or an area, and which tags are written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FeatureRules {
    /// The rule that makes a closed way a line. If it is `None`, all closed ways that are not areas are lines. If both
    /// rules are `None`, closed ways are lines and areas.
    pub linear: Option<TagRule>,
    /// The rule that makes a closed way an area. If it is `None`, all closed ways that are not lines are areas. If both
    /// rules are `None`, closed ways are lines and areas.
    pub area: Option<TagRule>,
    /// The tags that are written.
    pub tags: WrittenTags,
}

impl Default for FeatureRules {
    /// Makes a closed way an area if one of its tags matches a pattern in [`AREA_TAGS`], and otherwise a line.
    fn default() -> Self {
        let patterns = AREA_TAGS
            .iter()
            .map(|text| TagPattern::parse(text).expect("a constant in this syntax"));
        Self {
            linear: None,
            area: Some(TagRule::matching(patterns)),
            tags: WrittenTags::All,
        }
    }
}

impl FeatureRules {
    /// Makes every closed way with tags both a line and an area, unless its tag `area` decides between the two.
    pub fn both() -> Self {
        Self {
            linear: Some(TagRule::Any),
            area: Some(TagRule::Any),
            tags: WrittenTags::All,
        }
    }

    /// Restricts the written tags to those that one of the patterns matches.
    pub fn include_tags(&mut self, patterns: impl IntoIterator<Item = TagPattern>) {
        self.tags = WrittenTags::Only(filter(patterns));
    }

    /// Restricts the written tags to those that none of the patterns matches.
    pub fn exclude_tags(&mut self, patterns: impl IntoIterator<Item = TagPattern>) {
        self.tags = WrittenTags::Except(filter(patterns));
    }

    /// Whether a closed way with these tags is a line, and whether it is an area. A way without tags is a line.
    pub(crate) fn of_closed_way(&self, tags: &[(&str, &str)]) -> (bool, bool) {
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

    /// Removes the tags that are not written.
    pub(super) fn retain(&self, tags: &mut Vec<(&str, &str)>) {
        match &self.tags {
            WrittenTags::All => {}
            WrittenTags::Only(filter) => tags.retain(|(key, value)| matches(filter, key, value)),
            WrittenTags::Except(filter) => tags.retain(|(key, value)| !matches(filter, key, value)),
        }
    }
}

/// The tags that make a closed way an area, in the notation of a configuration.
///
/// The list is "polygon features" (<https://github.com/tyrasd/osm-polygon-features>, 2017, CC0), without the values
/// that are lines by the OSM wiki (<https://wiki.openstreetmap.org/wiki/Key:area>) unless they have `area=yes`. These
/// are all values of `barrier`, and tracks, runways, cart paths, dykes, trenches and the like. `indoor` is added.
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
