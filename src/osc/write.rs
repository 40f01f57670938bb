//! Writing change files.

use crate::osm::{ObjectId, format_e7, format_timestamp};
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

/// Changes as they stand in an OsmChange document, without its beginning and its end.
#[derive(Debug, Default)]
pub struct OscText {
    text: String,
    section: Option<ChangeAction>,
}

impl OscText {
    /// What stands before the changes; `generator` names the program.
    pub fn prologue(generator: &str) -> String {
        let generator = escape(generator);
        format!(
            "<?xml version='1.0' encoding='UTF-8'?>\n<osmChange version=\"0.6\" generator=\"{generator}\">\n"
        )
    }

    /// What stands behind the changes.
    pub const EPILOGUE: &str = "</osmChange>\n";

    /// Appends a change. Changes of the same action behind each other share a section.
    pub fn put(&mut self, action: ChangeAction, object: &Object<'_>) {
        self.begin_section(action);
        self.put_object(object);
    }

    /// Appends a deletion that says no more than which version of which object was deleted, and when.
    pub fn put_deletion(&mut self, id: ObjectId, version: Option<u32>, timestamp: Option<i64>) {
        self.begin_section(ChangeAction::Delete);
        let _ = write!(self.text, "    <{} id=\"{}\"", id.kind, id.id);
        if let Some(version) = version {
            let _ = write!(self.text, " version=\"{version}\"");
        }
        if let Some(timestamp) = timestamp {
            let _ = write!(self.text, " timestamp=\"{}\"", format_timestamp(timestamp));
        }
        self.text.push_str("/>\n");
    }

    fn begin_section(&mut self, action: ChangeAction) {
        if self.section != Some(action) {
            self.end_section();
            let _ = writeln!(self.text, "  <{}>", action.element());
            self.section = Some(action);
        }
    }

    fn end_section(&mut self) {
        if let Some(section) = self.section.take() {
            let _ = writeln!(self.text, "  </{}>", section.element());
        }
    }

    /// The text so far; the section may go on.
    fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Ends the last section and returns the text.
    pub fn finish(mut self) -> String {
        self.end_section();
        self.text
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
}

/// Writes an OsmChange document, change by change.
#[derive(Debug)]
pub struct OscWriter<W: Write> {
    out: W,
    text: OscText,
}

impl<W: Write> OscWriter<W> {
    /// Begins a document; `generator` names the program.
    pub fn new(mut out: W, generator: &str) -> io::Result<Self> {
        out.write_all(OscText::prologue(generator).as_bytes())?;
        Ok(Self {
            out,
            text: OscText::default(),
        })
    }

    /// Writes a change. Changes of the same action behind each other share a section.
    pub fn write(&mut self, action: ChangeAction, object: &Object<'_>) -> io::Result<()> {
        self.text.put(action, object);
        self.out.write_all(self.text.take().as_bytes())
    }

    /// Ends the document and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(self.text.finish().as_bytes())?;
        self.out.write_all(OscText::EPILOGUE.as_bytes())?;
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
