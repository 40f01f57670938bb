//! The options of queries.

use super::area::Area;
use super::item::{KeyNumber, tag};

/// Options of a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// The languages of names, such as `de` and `en`, the best first. If an object has no name in any of these
    /// languages, its tag `name` is used.
    pub languages: Vec<String>,
    /// Whether objects in the answer have bounding boxes.
    pub has_boxes: bool,
    /// Whether to look up the objects of the street, the part of the city and the city that an address names. A name
    /// without an object nearby is then replaced by the name of the nearest street or of the area around the location.
    /// If false, each name in an address comes from the object that has the address.
    pub resolves_names: bool,
}

impl QueryOptions {
    /// Returns the name of an object in the best language that it has, or its tag `name`.
    pub(super) fn name<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        self.name_in_language(tags).or_else(|| tag(tags, "name"))
    }

    /// Returns the name of an object in the best language that it has; `None` if it has no name in any of the
    /// languages.
    pub(super) fn name_in_language<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        self.languages.iter().find_map(|language| {
            let name = tags.iter().find(|(key, _)| {
                let of = key.strip_prefix("name:");
                of == Some(language.as_str())
            });
            name.map(|(_, name)| *name)
        })
    }

    /// Returns the name of an area in the best language that it has, or its tag `name`.
    pub(super) fn area_name<'i>(&self, area: &Area<'i>) -> Option<&'i str> {
        let mut languages = self.languages.iter();
        let name = languages.find_map(|language| area.name_in(language));
        name.or_else(|| area.tag(KeyNumber::NAME))
    }
}
