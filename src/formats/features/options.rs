//! The options for writing features: format, attributes, and unique ids.

#[cfg(feature = "parquet")]
use crate::formats::DerivedColumns;
use crate::formats::TextCompression;

/// The format of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureFormat {
    /// One GeoJSON object (RFC 7946) with a feature on each line.
    GeoJson,
    /// A sequence of GeoJSON features, one on each line.
    GeoJsonSeq {
        /// Whether each line begins with the character RS, as RFC 8142 demands.
        has_record_separator: bool,
    },
    /// A line for each feature: the geometry as WKT, then the tags.
    Text,
    /// The text format of `COPY` in PostgreSQL: a line for each feature, with the geometry as hexadecimal WKB.
    Postgres {
        /// The type of the column of the tags.
        tags: TagColumn,
    },
    /// Comma-separated values (RFC 4180) with a header: attributes, the columns `@lon` and `@lat` with a point on the
    /// geometry, and tags.
    Csv {
        /// Whether there is a column `@geometry` with the geometry as WKT.
        has_geometry: bool,
    },
}

impl FeatureFormat {
    /// Whether the format is a table, in which each feature is a row.
    pub(crate) const fn is_table(self) -> bool {
        matches!(self, Self::Csv { .. })
    }

    /// Returns the text before the first feature, between two features, and after the last one. A table also has a
    /// header.
    pub(crate) const fn prologue_separator_epilogue(self) -> [&'static str; 3] {
        match self {
            Self::GeoJson => [
                "{\"type\":\"FeatureCollection\",\"features\":[\n",
                ",\n",
                "\n]}\n",
            ],
            Self::GeoJsonSeq { .. } | Self::Text | Self::Postgres { .. } | Self::Csv { .. } => {
                [""; 3]
            }
        }
    }

    /// Returns the format with the given name, which may be the extension of a file name.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "geojson" | "json" => Self::GeoJson,
            "geojsonseq" | "jsonseq" => Self::GeoJsonSeq {
                has_record_separator: true,
            },
            // Readers of files with this extension expect lines without a record separator.
            "geojsonl" => Self::GeoJsonSeq {
                has_record_separator: false,
            },
            "text" | "txt" => Self::Text,
            "pg" => Self::Postgres {
                tags: TagColumn::default(),
            },
            "csv" => Self::Csv {
                has_geometry: false,
            },
            _ => return None,
        })
    }
}

/// The type of the column of the tags in a table for PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TagColumn {
    /// The tags are in a column of the type `json` or `jsonb`.
    #[default]
    Json,
    /// The tags are in a column of the type `hstore`.
    Hstore,
}

/// An attribute of an object. The order of the variants is the order in which attributes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Attribute {
    /// The kind of the object: `node`, `way` or `relation`.
    Type,
    /// The id of the object.
    Id,
    /// The version of the object.
    Version,
    /// The id of the changeset.
    Changeset,
    /// The id of the user.
    Uid,
    /// The name of the user.
    User,
    /// The time of the version.
    Timestamp,
    /// The ids of the nodes of a way.
    WayNodes,
}

impl Attribute {
    /// All attributes, in the order of the output.
    pub const ALL: [Self; 8] = [
        Self::Type,
        Self::Id,
        Self::Version,
        Self::Changeset,
        Self::Uid,
        Self::User,
        Self::Timestamp,
        Self::WayNodes,
    ];

    /// Returns the name of the attribute.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Id => "id",
            Self::Version => "version",
            Self::Changeset => "changeset",
            Self::Uid => "uid",
            Self::User => "user",
            Self::Timestamp => "timestamp",
            Self::WayNodes => "way_nodes",
        }
    }

    /// Returns the attribute with the given name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The attributes that are written, and their names in the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The attributes and their names, in the order of [`Attribute::ALL`]. Each attribute occurs at most once.
    names: Vec<(Attribute, String)>,
}

impl Attributes {
    /// Adds an attribute under a name, or changes its name.
    pub fn set(&mut self, attribute: Attribute, name: impl Into<String>) {
        self.names.retain(|(known, _)| *known != attribute);
        let at = self.names.partition_point(|(known, _)| *known < attribute);
        self.names.insert(at, (attribute, name.into()));
    }

    /// Removes an attribute, so that it is not written.
    pub fn remove(&mut self, attribute: Attribute) {
        self.names.retain(|(known, _)| *known != attribute);
    }

    /// Whether an attribute is written.
    pub fn has(&self, attribute: Attribute) -> bool {
        self.names.iter().any(|(known, _)| *known == attribute)
    }

    /// Whether some attribute is written under the given name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|(_, known)| known == name)
    }

    /// Returns the attributes and their names, in the order of the output.
    pub fn iter(&self) -> impl Iterator<Item = (Attribute, &str)> {
        self.names
            .iter()
            .map(|(attribute, name)| (*attribute, name.as_str()))
    }
}

/// The kind of id that features get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UniqueId {
    /// Features have no id.
    #[default]
    None,
    /// The number of the feature in the output, from 1.
    Counter,
    /// A letter and a number, such as `w17`: `n` for points, `w` for lines, `a` for areas.
    TypeAndId,
}

/// The options for writing features.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureOptions {
    /// The format of the features.
    pub format: FeatureFormat,
    /// The compression of the file.
    pub compression: TextCompression,
    /// The attributes that are written in addition to the tags.
    pub attributes: Attributes,
    /// The kind of id that features get.
    pub unique_id: UniqueId,
    /// The keys of the tags that are columns of [`FeatureFormat::Csv`]. `None` means a column `name`, and a column
    /// `tags` with all tags as a JSON object.
    pub tag_columns: Option<Vec<String>>,
    /// The computed columns of [`FeatureFormat::Csv`]. The column of [`DerivedColumns::country`] is empty in all rows,
    /// because rows are written before all boundaries are known.
    #[cfg(feature = "parquet")]
    pub derived: DerivedColumns,
}

impl FeatureOptions {
    /// Returns options for uncompressed features in `format`, without attributes and ids.
    pub const fn new(format: FeatureFormat) -> Self {
        Self {
            format,
            compression: TextCompression::None,
            attributes: Attributes { names: Vec::new() },
            unique_id: UniqueId::None,
            tag_columns: None,
            #[cfg(feature = "parquet")]
            derived: DerivedColumns::NONE,
        }
    }
}
