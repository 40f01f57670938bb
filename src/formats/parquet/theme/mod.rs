//! Themes: the features of a subject, such as roads, with columns of their own.

mod cast;
mod set;
mod values;

pub(crate) use set::ThemeSet;
pub(super) use values::ThemeRow;

use crate::error::{Error, FileResult, Result};
use crate::formats::GeometryTypes;
use crate::osm::ObjectExpression;
use serde::Deserialize;
use std::path::Path;

/// The built-in themes.
const BUILT_IN: &str = include_str!("themes.toml");

/// The features of a subject, and the columns that they have in addition to the columns of all features.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// The name, which is part of the name of a directory.
    pub name: String,
    /// The expressions that select the objects of the theme. At least one has to match.
    pub filter: Vec<ObjectExpression>,
    /// The types of geometries that the theme has.
    pub geometry_types: GeometryTypes,
    /// The columns.
    pub columns: Vec<ThemeColumn>,
}

/// A column of a theme.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThemeColumn {
    /// The name of the column.
    pub name: String,
    /// The keys of tags. The value of the column comes from the first of these keys that an object has. A column with
    /// several keys may skip a tag: if the filter of the theme has a condition on the key of the tag, the filter must
    /// select the object by this tag.
    pub keys: Vec<String>,
    /// The type of the column.
    pub column_type: ColumnType,
}

/// The type of a column of a theme. The column is null if the value of the tag cannot be converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ColumnType {
    /// The value of the tag, unchanged.
    #[default]
    Text,
    /// A whole number.
    Int,
    /// A decimal number.
    Float,
    /// A truth value. All values but `no`, `false` and `0` are true.
    Bool,
    /// A speed in km/h. The tag may be in mph or knots.
    Speed,
    /// A length in metres. The tag may have another unit.
    Length,
    /// The key of the tag instead of its value.
    Key,
    /// The ids of the relations of administrative boundaries around an area, countries first. No tag is read.
    Parents,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    theme: Vec<ThemeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeEntry {
    name: String,
    filter: Vec<String>,
    #[serde(default)]
    geometry: Vec<String>,
    #[serde(default)]
    columns: Vec<ColumnEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    name: String,
    key: Option<String>,
    keys: Option<Vec<String>>,
    #[serde(default, rename = "type")]
    column_type: ColumnType,
}

impl Theme {
    /// Returns the built-in themes.
    pub fn built_in() -> Vec<Self> {
        parse_themes(BUILT_IN).expect("a constant in this form")
    }

    /// Returns the text of the built-in themes, which is an example of the form that [`read`](Self::read) expects.
    pub const fn built_in_text() -> &'static str {
        BUILT_IN
    }

    /// Reads the themes in a TOML file. [`built_in_text`](Self::built_in_text) shows the form.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(path).for_path(path, "cannot read")?;
        parse_themes(&text).map_err(|cause| Error::file(path, cause))
    }
}

fn parse_themes(text: &str) -> Result<Vec<Theme>, String> {
    let document: Document = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.bytes().take(start);
        let line = 1 + before.filter(|byte| *byte == b'\n').count();
        format!("line {line}: {}", error.message().replace('\n', " "))
    })?;
    let themes = document.theme.into_iter().map(|entry| {
        let name = entry.name.clone();
        theme_from_entry(entry).map_err(|cause| format!("theme '{name}': {cause}"))
    });
    let themes = themes.collect::<Result<Vec<_>, _>>()?;
    if themes.is_empty() {
        return Err("there is no theme".into());
    }
    Ok(themes)
}

fn theme_from_entry(entry: ThemeEntry) -> Result<Theme, String> {
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    if entry.name.is_empty() || !entry.name.chars().all(is_plain) {
        return Err(
            "a name has lower-case letters, digits and _ only, because it names a directory".into(),
        );
    }
    if entry.filter.is_empty() {
        return Err("a filter has at least one expression, such as \"w/highway\"".into());
    }
    let filter = entry.filter.iter().map(|text| {
        let expression = ObjectExpression::parse(text)?;
        if !expression.metadata.is_empty() {
            return Err(format!(
                "'{text}': themes have no conditions on metadata; the options of an export can have them"
            ));
        }
        if expression.tag.is_none() {
            return Err(format!("'{text}': a theme needs a key, as in 'highway&!name'"));
        }
        Ok(expression)
    });
    let geometry_types = if entry.geometry.is_empty() {
        GeometryTypes::default()
    } else {
        entry.geometry.join(",").parse()?
    };
    Ok(Theme {
        filter: filter.collect::<Result<_, _>>()?,
        geometry_types,
        columns: entry
            .columns
            .into_iter()
            .map(column_from_entry)
            .collect::<Result<_, _>>()?,
        name: entry.name,
    })
}

fn column_from_entry(entry: ColumnEntry) -> Result<ThemeColumn, String> {
    if entry.name.is_empty() {
        return Err("a column has no name".into());
    }
    let keys = match (entry.key, entry.keys) {
        (Some(_), Some(_)) => return Err(format!("column '{}' has key and keys", entry.name)),
        (Some(key), None) => vec![key],
        (None, Some(keys)) if keys.is_empty() => {
            return Err(format!("column '{}' has no keys", entry.name));
        }
        (None, Some(keys)) => keys,
        (None, None) => vec![entry.name.clone()],
    };
    Ok(ThemeColumn {
        name: entry.name,
        keys,
        column_type: entry.column_type,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_themes_form_a_valid_set() {
        let themes = Theme::built_in();
        let names: Vec<&str> = themes.iter().map(|theme| theme.name.as_str()).collect();
        let expected = [
            "roads",
            "buildings",
            "pois",
            "addresses",
            "landuse",
            "water",
            "boundaries",
            "places",
            "transit",
        ];
        assert_eq!(names, expected);
        ThemeSet::new(&themes).unwrap();
    }

    #[test]
    fn errors_describe_mistakes_in_a_theme_file() {
        for (text, expected) in [
            ("", "missing field `theme`"),
            ("theme = []", "there is no theme"),
            (
                "[[theme]]\nname = \"a b\"\nfilter = [\"w\"]",
                "theme 'a b': a name has",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = []",
                "at least one expression",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = [\"x/y\"]",
                "letters other than n, w, r and a",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = [\"w/@version>1\"]",
                "no conditions on metadata",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = [\"w\"]\ngeometry = [\"area\"]",
                "expected point",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = [\"w\"]\ncolumns = [{name = \"b\", typ = \"int\"}]",
                "line 4: unknown field `typ`",
            ),
            (
                "[[theme]]\nname = \"a\"\nfilter = [\"w\"]\ncolumns = [{name = \"b\", type = \"date\"}]",
                "unknown variant `date`",
            ),
        ] {
            let error = parse_themes(text).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
