//! Writing change files.

use crate::osm::{format_e7, format_timestamp};
use crate::pbf::{Object, ObjectBody};
use quick_xml::escape::escape;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What a change does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    /// The object is new.
    Create,
    /// The object has a new version.
    Modify,
    /// The object is gone.
    Delete,
}

impl ChangeAction {
    const fn element(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
        }
    }
}

/// Writes an OsmChange document, change by change.
#[derive(Debug)]
pub struct OscWriter<W: Write> {
    out: W,
    section: Option<ChangeAction>,
    text: String,
}

impl<W: Write> OscWriter<W> {
    /// Begins a document; `generator` names the program.
    pub fn new(mut out: W, generator: &str) -> io::Result<Self> {
        let generator = escape(generator);
        writeln!(out, "<?xml version='1.0' encoding='UTF-8'?>")?;
        writeln!(out, "<osmChange version=\"0.6\" generator=\"{generator}\">")?;
        Ok(Self {
            out,
            section: None,
            text: String::new(),
        })
    }

    /// Writes a change. Changes of the same action behind each other share a section.
    pub fn write(&mut self, action: ChangeAction, object: &Object<'_>) -> io::Result<()> {
        self.text.clear();
        if self.section != Some(action) {
            if let Some(section) = self.section {
                let _ = writeln!(self.text, "  </{}>", section.element());
            }
            let _ = writeln!(self.text, "  <{}>", action.element());
            self.section = Some(action);
        }
        self.put_object(object);
        self.out.write_all(self.text.as_bytes())
    }

    fn put_object(&mut self, object: &Object<'_>) {
        let text = &mut self.text;
        let (kind, info) = (object.kind().name(), &object.info);
        let _ = write!(text, "    <{kind} id=\"{}\"", object.id);
        let mut attribute = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = write!(text, " {name}=\"{value}\"");
            }
        };
        attribute("version", info.version.map(|version| version.to_string()));
        attribute("timestamp", info.timestamp.map(format_timestamp));
        attribute(
            "changeset",
            info.changeset.map(|changeset| changeset.to_string()),
        );
        attribute("uid", info.uid.map(|uid| uid.to_string()));
        attribute("user", info.user.map(escaped));
        if let ObjectBody::Node { lat_e7, lon_e7 } = object.body {
            attribute("lat", Some(format_e7(lat_e7)));
            attribute("lon", Some(format_e7(lon_e7)));
        }
        let start = text.len();
        text.push_str(">\n");
        let empty = text.len();
        match object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs } => {
                for id in refs {
                    let _ = writeln!(text, "      <nd ref=\"{id}\"/>");
                }
            }
            ObjectBody::Relation { members } => {
                for member in members {
                    let _ = writeln!(
                        text,
                        "      <member type=\"{}\" ref=\"{}\" role=\"{}\"/>",
                        member.kind,
                        member.id,
                        escaped(member.role)
                    );
                }
            }
        }
        for (key, value) in object.tags {
            let _ = writeln!(
                text,
                "      <tag k=\"{}\" v=\"{}\"/>",
                escaped(key),
                escaped(value)
            );
        }
        if text.len() == empty {
            text.truncate(start);
            text.push_str("/>\n");
        } else {
            let _ = writeln!(text, "    </{kind}>");
        }
    }

    /// Ends the document and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(section) = self.section {
            writeln!(self.out, "  </{}>", section.element())?;
        }
        writeln!(self.out, "</osmChange>")?;
        Ok(self.out)
    }
}

/// Text as an attribute's value. Line breaks and tabs are written as references: a reader would
/// make spaces of them.
fn escaped(text: &str) -> String {
    let mut out = escape(text).into_owned();
    for (from, to) in [("\n", "&#10;"), ("\r", "&#13;"), ("\t", "&#9;")] {
        if out.contains(from) {
            out = out.replace(from, to);
        }
    }
    out
}
