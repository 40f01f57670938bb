//! Blocks with their strings, and faults of strings: those that are not UTF-8, or have characters that XML does not know,
//! and the objects that use them. The protobuf type of strings is `bytes`, and some writers put text of another encoding,
//! or text that was cut within a character, in there.

use super::block::Block;
use super::element::Element;
use super::object::{Object, ObjectBody};
use super::outline::{BlockOutline, NOT_UTF8, StringTable, check_string_count};
use super::schema::string_table;
use super::wire::Fields;
use crate::error::FormatError;
use crate::osm::ObjectKind;
use std::fmt::Write;

impl<'a> Block<'a> {
    /// Finds the strings and the messages of an uncompressed payload.
    ///
    /// # Errors
    ///
    /// The payload is not a PrimitiveBlock, a string is not UTF-8, or the columns of dense nodes differ in length.
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let block = Self::parse_bare(payload)?;
        let strings = StringTable::parse(block.string_table);
        Ok(block.with_strings(strings.map_err(|error| named(payload, error))?))
    }
}

/// The number of characters of a string that a message shows.
const SHOWN: usize = 60;

/// A fault in the contents of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentFault {
    /// The kind and the id of the object; `None` if the fault concerns no single object.
    pub object: Option<(ObjectKind, i64)>,
    /// The fault, as text.
    pub what: String,
    /// Whether the block can be read all the same.
    pub is_readable: bool,
}

/// Fails if a string of the block in `payload` is not UTF-8, and names an object that uses the string.
pub(crate) fn check_strings(payload: &[u8]) -> Result<(), FormatError> {
    let outline = BlockOutline::parse(payload)?;
    match StringTable::parse(outline.string_table) {
        Ok(_) => Ok(()),
        Err(error) => Err(named(payload, error)),
    }
}

/// The error of a string table that cannot be parsed, with the first object that uses the string concerned, if there is
/// one.
#[cold]
fn named(payload: &[u8], error: FormatError) -> FormatError {
    // A table that is too long is not read again.
    if !error.to_string().ends_with(NOT_UTF8) {
        return error;
    }
    let mut first = None;
    let checked = content_faults(payload, |fault| {
        if !fault.is_readable {
            first.get_or_insert(fault);
        }
    });
    match (checked, first) {
        (_, Some(fault)) => match fault.object {
            Some((kind, id)) => FormatError::with(format!("{error}: {kind} {id}: {}", fault.what)),
            None => FormatError::with(format!("{error}: {}", fault.what)),
        },
        _ => error,
    }
}

/// Facts about the objects of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ContentFacts {
    /// The number of strings with characters that XML 1.0 does not know.
    pub inexpressible: u64,
    /// Whether there are deleted versions.
    pub has_deleted: bool,
    /// Whether there are ways with nodes, and ways with the locations of their nodes.
    pub has_refs: bool,
    pub has_locations: bool,
}

/// Decodes all objects of the block in `payload`, and calls `take` with each string that is not UTF-8 or has characters
/// that XML 1.0 does not know, once for each use. Fails if the objects cannot be decoded for another reason.
pub(crate) fn content_faults(
    payload: &[u8],
    take: impl FnMut(ContentFault),
) -> Result<ContentFacts, FormatError> {
    let outline = BlockOutline::parse(payload)?;
    let table = RawStrings::parse(outline.string_table)?;
    let faults: Vec<_> = table.faults().collect();
    let block = Block::parse_bare(payload)?.with_strings(table.replaced(&faults));
    if !faults.is_empty() {
        string_uses(&block, &faults, take)?;
    }
    let mut facts = ContentFacts {
        inexpressible: faults.iter().filter(|fault| fault.is_utf8).count() as u64,
        ..ContentFacts::default()
    };
    block.try_for_each(|element| {
        facts.has_deleted |= !element.info().visible;
        if let Element::Way(way) = element {
            facts.has_refs |= way.refs().next().is_some();
            facts.has_locations |= way.nano_locations().next().is_some();
        }
        Ok::<(), FormatError>(())
    })?;
    Ok(facts)
}

/// Calls `take` with each use of the strings that have faults, and with those that are not used.
fn string_uses(
    block: &Block<'_>,
    faults: &[StringFault],
    mut take: impl FnMut(ContentFault),
) -> Result<(), FormatError> {
    let mut used = vec![false; faults.len()];
    // A string is found again by its address.
    let fault_of = |text: &str| {
        let is_same = |fault: &StringFault| std::ptr::eq(fault.text.as_ptr(), text.as_ptr());
        faults.iter().position(is_same)
    };
    let (mut cursor, mut object, mut info) = (block.cursor(), Object::default(), None);
    while let Some(element) = cursor.next()? {
        object.fill_next(&element, block, &mut info)?;
        let mut report = |text: &str, place: &dyn Fn() -> String| {
            if let Some(fault) = fault_of(text) {
                used[fault] = true;
                take(ContentFault {
                    object: Some((object.kind(), object.id)),
                    what: format!("{} {}: {text}", place(), faults[fault].what()),
                    is_readable: faults[fault].is_utf8,
                });
            }
        };
        for (key, value) in object.tags.iter() {
            report(key, &|| "the key of a tag".into());
            report(value, &|| format!("the value of the tag \"{key}\""));
        }
        if let ObjectBody::Relation { members } = &object.body {
            for member in members.iter() {
                let (letter, id) = (member.kind.letter(), member.id);
                report(member.role, &|| format!("the role of member {letter}{id}"));
            }
        }
        report(object.info.user.unwrap_or_default(), &|| {
            "the name of the user".into()
        });
    }
    let unused = faults.iter().zip(&used).filter(|(_, used)| !**used);
    for (fault, _) in unused {
        let (index, what, text) = (fault.index, fault.what(), &fault.text);
        take(ContentFault {
            object: None,
            what: format!("string {index}, which no object uses, {what}: {text}"),
            is_readable: fault.is_utf8,
        });
    }
    Ok(())
}

/// The strings of a block as they are stored.
struct RawStrings<'a>(Vec<&'a [u8]>);

/// A string that is not UTF-8, or has characters that XML 1.0 does not know.
struct StringFault {
    /// The index of the string.
    index: usize,
    /// Whether the string is UTF-8.
    is_utf8: bool,
    /// The string with its other bytes escaped, as `caf\xe9`.
    text: String,
}

impl<'a> RawStrings<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let (mut strings, mut fields) = (Vec::new(), Fields::new(message));
        while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
            if field.number == string_table::S {
                strings.push(field.bytes()?);
                check_string_count(strings.len())?;
            }
        }
        Ok(Self(strings))
    }

    fn faults(&self) -> impl Iterator<Item = StringFault> {
        let strings = self.0.iter().enumerate();
        strings.filter_map(|(index, bytes)| {
            let is_utf8 = std::str::from_utf8(bytes).is_ok();
            let is_fault = !is_utf8 || is_inexpressible(bytes);
            is_fault.then(|| StringFault {
                index,
                is_utf8,
                text: escaped(bytes),
            })
        })
    }

    /// The table of the strings, in which `faults` have their escaped text.
    fn replaced<'b>(&self, faults: &'b [StringFault]) -> StringTable<'b>
    where
        'a: 'b,
    {
        let mut faults = faults.iter().peekable();
        let strings = self.0.iter().enumerate().map(|(index, bytes)| {
            let fault = faults.next_if(|fault| fault.index == index);
            match fault {
                Some(fault) => fault.text.as_str(),
                None => std::str::from_utf8(bytes).unwrap_or_default(),
            }
        });
        StringTable::of(strings.collect())
    }
}

impl StringFault {
    /// The predicate of the message.
    const fn what(&self) -> &'static str {
        if self.is_utf8 {
            "has characters that XML does not know"
        } else {
            NOT_UTF8
        }
    }
}

/// Whether a text has control characters or other characters that XML 1.0 does not know.
fn is_inexpressible(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !b"\t\n\r".contains(byte);
    let noncharacters = [b"\xef\xbf\xbe", b"\xef\xbf\xbf"];
    bytes.iter().any(is_control)
        || noncharacters
            .iter()
            .any(|char| memchr::memmem::find(bytes, *char).is_some())
}

/// Text with the bytes that are not UTF-8 as `\xNN`, and with control characters escaped. Long text is cut.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.extend(chunk.valid().chars().flat_map(|char| match char {
            '\\' => vec!['\\'],
            char if char.is_control() => char.escape_default().collect(),
            char => vec![char],
        }));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    // A part that is cut off may have the fault: then the first byte of it is named.
    if text.chars().count() <= SHOWN {
        return text;
    }
    let start: String = text.chars().take(SHOWN).collect();
    let at = match std::str::from_utf8(bytes) {
        Ok(_) => (0..bytes.len()).find(|at| is_inexpressible(&bytes[*at..bytes.len().min(at + 3)])),
        Err(error) => Some(error.valid_up_to()),
    };
    let at = at.unwrap_or(0);
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!("{start}… (byte {at} is \\x{byte:02x})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_escaped_and_long_text_is_cut() {
        assert_eq!(escaped(b"caf\xe9 \xf0\x9f"), "caf\\xe9 \\xf0\\x9f");
        assert_eq!(escaped(b"a\nb\xff"), "a\\nb\\xff");
        let long = [&[b'a'; 70][..], b"\xfe"].concat();
        let wanted = format!("{}… (byte 70 is \\xfe)", "a".repeat(60));
        assert_eq!(escaped(&long), wanted);
    }
}
