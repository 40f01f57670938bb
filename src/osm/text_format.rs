//! The formats of OSM data other than PBF, and the facts in which they differ. `formats/functions.rs` has the functions
//! that read and write the formats.

/// The content of an OSM file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// Data of one moment: each object has one version, and no object is deleted.
    Data,
    /// The versions of objects, in order, including deleted versions.
    History,
    /// Objects that are created, modified or deleted.
    Changes,
}

/// A format of OSM data other than PBF. Most of these formats are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextFormat {
    /// OSM XML (`<osm>`): objects are children of the root element.
    Osm,
    /// OsmChange XML (`<osmChange>`): objects are in sections that show the kind of change.
    OsmChange,
    /// OPL: each line is an object.
    Opl,
    /// Text for people, with a line for each attribute. It can be written, but not read.
    Debug,
    /// Comma-separated values (RFC 4180) with a header: attributes, the location of a node, and tags, without the nodes
    /// of ways and the members of relations. It can be written, but not read.
    Csv,
    /// o5m, which is binary. It can be read, but not written.
    O5m,
    /// o5c, the format of change files for o5m. It can be read, but not written.
    O5c,
}

/// The facts about a format.
#[derive(Debug)]
pub(crate) struct FormatFacts {
    pub format: TextFormat,
    /// The names by which users choose the format, which are also file extensions. The first name stands for the format
    /// itself. A second name stands for history files in the format.
    pub names: &'static [&'static str],
    /// Further names that are accepted.
    pub also: &'static [&'static str],
    /// The name of a file of the format in messages, with its article.
    pub file: &'static str,
    /// The name of the format in reports of osmium.
    pub family: &'static str,
    /// The kind of content that the format is for; `None` if the format is for every kind.
    pub content: Option<FileContent>,
    pub is_read: bool,
    /// The description in the help; `None` if the format is not written.
    pub help: Option<&'static str>,
    /// The name of the root element of a document; empty for a format that is not XML.
    pub root: &'static str,
    /// The bytes at the start of every file of the format; empty for a format that is text.
    pub magic: &'static [u8],
}

/// The defaults for [`FACTS`], which apply to most formats.
const COMMON: FormatFacts = FormatFacts {
    format: TextFormat::Opl,
    names: &[],
    also: &[],
    file: "",
    family: "",
    content: None,
    is_read: true,
    help: None,
    root: "",
    magic: b"",
};

/// The facts about all formats, in the order of the variants of [`TextFormat`].
static FACTS: &[FormatFacts] = &[
    FormatFacts {
        format: TextFormat::Osm,
        names: &["osm", "osh"],
        also: &["xml", "osm.xml", "osh.xml"],
        file: "an OSM XML file",
        family: "XML",
        content: Some(FileContent::Data),
        help: Some(
            "OSM XML: .osm, .xml, and .osh for history files, in which every object has the attribute visible",
        ),
        root: "osm",
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::OsmChange,
        names: &["osc"],
        also: &["osc.xml"],
        file: "an OsmChange file",
        family: "XML",
        content: Some(FileContent::Changes),
        help: Some("OsmChange: created, modified and deleted objects"),
        root: "osmChange",
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::Opl,
        names: &["opl"],
        also: &["osm.opl", "osh.opl", "osc.opl"],
        file: "an OPL file",
        family: "OPL",
        help: Some("one object a line, for grep and diff"),
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::Debug,
        names: &["debug"],
        also: &["osm.debug", "osh.debug", "osc.debug"],
        file: "a file in debug format",
        family: "DEBUG",
        is_read: false,
        help: Some("text for people: one attribute a line"),
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::Csv,
        names: &["csv"],
        also: &["osm.csv", "osh.csv", "osc.csv"],
        file: "a CSV file",
        family: "CSV",
        is_read: false,
        help: Some(
            "a row for each object: attributes, lon and lat, tags; no nodes of ways, no members",
        ),
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::O5m,
        names: &["o5m"],
        file: "an o5m file",
        family: "O5M",
        content: Some(FileContent::Data),
        magic: b"\xff\xe0\x04o5m2",
        ..COMMON
    },
    FormatFacts {
        format: TextFormat::O5c,
        names: &["o5c"],
        file: "an o5c file",
        family: "O5M",
        content: Some(FileContent::Changes),
        magic: b"\xff\xe0\x04o5c2",
        ..COMMON
    },
];

impl TextFormat {
    /// Returns the facts about the format.
    pub(crate) const fn facts(self) -> &'static FormatFacts {
        &FACTS[self as usize]
    }

    /// Returns the format with the given name or file extension. `name` must not include the extension of a
    /// compression.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = FACTS.iter();
        let found = all.find(|facts| facts.names.contains(&name) || facts.also.contains(&name));
        found.map(|facts| facts.format)
    }

    /// Returns the format whose magic is at the start of `start`. Formats without a magic are never returned.
    pub(crate) fn from_magic(start: &[u8]) -> Option<Self> {
        let mut all = FACTS.iter().filter(|facts| !facts.magic.is_empty());
        let found = all.find(|facts| start.starts_with(facts.magic));
        found.map(|facts| facts.format)
    }

    /// Returns the facts about the formats that are read.
    pub(crate) fn readable_formats() -> impl Iterator<Item = &'static FormatFacts> {
        FACTS.iter().filter(|facts| facts.is_read)
    }

    /// Returns the facts about the formats that are written.
    pub(crate) fn writable_formats() -> impl Iterator<Item = &'static FormatFacts> {
        FACTS.iter().filter(|facts| facts.help.is_some())
    }

    /// Returns the name of a file of this format in messages, with its article, such as `an OPL file`.
    pub const fn name(self) -> &'static str {
        self.facts().file
    }

    /// Returns the name by which users choose the format.
    pub(crate) const fn short_name(self) -> &'static str {
        self.facts().names[0]
    }

    /// Whether files of this format can be read, but not written.
    pub(crate) const fn is_read_only(self) -> bool {
        self.facts().help.is_none()
    }

    /// Whether the format is only for change files.
    pub(crate) const fn is_change(self) -> bool {
        matches!(self.facts().content, Some(FileContent::Changes))
    }

    /// Whether the format is only for data, and never for changes.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self.facts().content, Some(FileContent::Data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_in_the_order_of_the_formats() {
        for facts in FACTS {
            assert_eq!(facts.format.facts().format, facts.format);
        }
    }
}
