//! The options of queries.

/// Options of a query.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// The languages of names as language tags, such as `de`, `el-GR` and `sr-Latn`, the best first. For each of them,
    /// the names of an object are looked up under the tag, and then under shorter tags (RFC 4647): `sr-Latn-RS`,
    /// `sr-Latn`, `sr`. Case does not matter. The tag `name` counts as a name in the language of the country. If an
    /// object has no name in any of the languages, `name` is used.
    pub languages: Vec<String>,
    /// Whether all objects in the answer have bounding boxes.
    pub has_boxes: bool,
    /// Whether to look up the objects of the street, of the part of the city, and of the city that an address names. A
    /// name without an object nearby is then replaced by the name of the nearest street or of the area around the
    /// location. If false, each name in an address comes from the object that has the address.
    pub resolves_names: bool,
}
