//! The themes of a table. A [`ThemeSet`] finds the themes to which a feature belongs, and has the columns of all
//! themes.

use super::{ColumnType, Theme};
use crate::formats::features::{Feature, Geometry};
use crate::osm::{ObjectExpression, ObjectFilter, ObjectKind, TagPattern};

/// The maximum number of themes of a table.
const MAX_THEMES: usize = 64;

/// The themes of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThemeSet {
    themes: Vec<Theme>,
    /// The expressions of all themes.
    filter: ObjectFilter,
    /// The index of the theme of each expression in `filter`.
    owners: Vec<usize>,
    columns: Vec<SharedColumn>,
}

/// A column of the table. Themes that have a column of the same name share it.
#[derive(Debug, Clone)]
pub(in super::super) struct SharedColumn {
    pub name: String,
    pub column_type: ColumnType,
    /// The keys that each theme reads; `None` for a theme without the column.
    pub keys: Vec<Option<Vec<String>>>,
}

impl ThemeSet {
    /// Creates a set. Fails if there are too many themes, or if two themes have the same name. Also fails if a theme
    /// has two columns of the same name, or if columns of the same name have different types.
    pub(crate) fn new(themes: &[Theme]) -> Result<Self, String> {
        if themes.len() > MAX_THEMES {
            return Err(format!("there are more than {MAX_THEMES} themes"));
        }
        let (mut expressions, mut owners) = (Vec::new(), Vec::new());
        let mut columns: Vec<SharedColumn> = Vec::new();
        for (number, theme) in themes.iter().enumerate() {
            if themes[..number]
                .iter()
                .any(|other| other.name == theme.name)
            {
                return Err(format!("the theme '{}' is there twice", theme.name));
            }
            expressions.extend(theme.filter.iter().cloned());
            owners.resize(expressions.len(), number);
            for column in &theme.columns {
                let known = columns.iter().position(|known| known.name == column.name);
                let at = known.unwrap_or(columns.len());
                if known.is_none() {
                    columns.push(SharedColumn {
                        name: column.name.clone(),
                        column_type: column.column_type,
                        keys: vec![None; themes.len()],
                    });
                }
                let shared = &mut columns[at];
                if shared.column_type != column.column_type {
                    let name = &column.name;
                    return Err(format!("themes have a column '{name}' of different types"));
                }
                if shared.keys[number].replace(column.keys.clone()).is_some() {
                    return Err(format!(
                        "the theme '{}' has the column '{}' twice",
                        theme.name, column.name
                    ));
                }
            }
        }
        Ok(Self {
            themes: themes.to_vec(),
            filter: ObjectFilter::new(expressions),
            owners,
            columns,
        })
    }

    /// Whether there are no themes.
    pub(crate) const fn is_empty(&self) -> bool {
        self.themes.is_empty()
    }

    /// Returns the number of themes.
    pub(crate) const fn len(&self) -> usize {
        self.themes.len()
    }

    /// Returns the names of the themes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.themes.iter().map(|theme| theme.name.as_str())
    }

    /// Returns the name of a theme.
    pub(in super::super) fn name(&self, number: usize) -> &str {
        &self.themes[number].name
    }

    pub(in super::super) fn columns(&self) -> &[SharedColumn] {
        &self.columns
    }

    /// Whether some column has the type [`ColumnType::Parents`].
    pub(crate) fn needs_parents(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.column_type == ColumnType::Parents)
    }

    /// Returns the expressions of all themes.
    pub(crate) fn expressions(&self) -> &[ObjectExpression] {
        self.filter.expressions()
    }

    /// Returns the themes to which a feature belongs, as bits. Bit `n` stands for theme `n`. Without themes, bit 0 is
    /// set.
    pub(crate) fn themes_of(&self, feature: &Feature<'_>) -> u64 {
        if self.is_empty() {
            return 1;
        }
        let mut found = 0u64;
        for (key, value) in feature.tags {
            for index in self.filter.indices_with_key(key) {
                let (expression, owner) = (&self.filter.expressions()[index], self.owners[index]);
                if found >> owner & 1 == 0
                    && expression.matches_value(value)
                    && applies_to(expression, feature.kind, &feature.geometry)
                    && has_match_for_all(&expression.more_tags, feature.tags)
                    && !has_match_for_any(&expression.excluded_tags, feature.tags)
                    && self.themes[owner].geometry_types.has(&feature.geometry)
                {
                    found |= 1 << owner;
                }
            }
        }
        found
    }

    /// Whether the filter of a theme has a condition on the key of a tag, but does not select the feature by this tag.
    /// `tags` are all tags of the feature.
    pub(in super::super) fn is_tag_rejected(
        &self,
        theme: usize,
        (kind, geometry): (ObjectKind, &Geometry<'_>),
        tags: &[(&str, &str)],
        (key, value): (&str, &str),
    ) -> bool {
        let expressions = self.filter.expressions().iter().zip(&self.owners);
        let of_theme = expressions.filter(|(_, owner)| **owner == theme);
        let mut is_asked_for = false;
        for (expression, _) in of_theme {
            let patterns = || expression.tag.iter().chain(&expression.more_tags);
            for pattern in patterns().filter(|pattern| pattern.key.matches(key)) {
                is_asked_for = true;
                if pattern.matches_value(value)
                    && applies_to(expression, kind, geometry)
                    && has_match_for_all(patterns(), tags)
                    && !has_match_for_any(&expression.excluded_tags, tags)
                {
                    return false;
                }
            }
        }
        is_asked_for
    }
}

/// Whether an expression applies to a feature. It does if it applies to the kind of the feature's object. An expression
/// for areas also applies to features that are areas or closed ways.
fn applies_to(expression: &ObjectExpression, kind: ObjectKind, geometry: &Geometry<'_>) -> bool {
    let is_area = || match (kind, geometry) {
        (ObjectKind::Way, Geometry::LineString(points)) => {
            points.len() > 3 && points.first() == points.last()
        }
        (_, geometry) => matches!(geometry, Geometry::MultiPolygon(_)),
    };
    expression.kinds.contains(kind) || expression.areas && is_area()
}

/// Whether each pattern matches one of the tags.
fn has_match_for_all<'p>(
    patterns: impl IntoIterator<Item = &'p TagPattern>,
    tags: &[(&str, &str)],
) -> bool {
    let mut patterns = patterns.into_iter();
    patterns.all(|pattern| tags.iter().any(|(key, value)| pattern.matches(key, value)))
}

/// Whether one of the patterns matches one of the tags.
fn has_match_for_any(patterns: &[TagPattern], tags: &[(&str, &str)]) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| tags.iter().any(|(key, value)| pattern.matches(key, value)))
}
