//! The options of queries.

use super::area::Area;
use super::item::tag;

/// Options of a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// The languages of names, such as `de` and `en`, the best first. `name` comes after all of them.
    pub languages: Vec<String>,
    /// Whether objects in the answer have bounding boxes.
    pub has_boxes: bool,
    /// Whether street, part of the city and city are objects of their own. Otherwise the object of a part that an
    /// address names is that with the address. A name without an object near is replaced by that of the nearest
    /// street or of the area around the location.
    pub resolves_names: bool,
}

impl QueryOptions {
    /// The name of an object in the best language that it has.
    pub(super) fn name<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        self.name_in_language(tags).or_else(|| tag(tags, "name"))
    }

    /// The name of an object in the best of the languages; `None` if it has none in any of them.
    pub(super) fn name_in_language<'i>(&self, tags: &[(&'i str, &'i str)]) -> Option<&'i str> {
        self.languages.iter().find_map(|language| {
            let name = tags.iter().find(|(key, _)| {
                let of = key.strip_prefix("name:");
                of == Some(language.as_str())
            });
            name.map(|(_, name)| *name)
        })
    }

    /// The name of an area in the best language that it has.
    pub(super) fn area_name<'i>(&self, area: &Area<'i>) -> Option<&'i str> {
        let mut languages = self.languages.iter();
        let name = languages.find_map(|language| area.name_in(language));
        name.or_else(|| area.tag("name"))
    }
}
