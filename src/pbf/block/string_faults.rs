//! Parses blocks with their strings, and finds faulty strings and the objects that use them.
//!
//! A string is faulty if it is not UTF-8, or if it has characters that XML 1.0 does not allow. The protobuf type of
//! strings is `bytes`. Some writers therefore store text in another encoding, or text that was cut within a character.

use super::contents::ContentFacts;
use super::limits::MAX_PARTS;
use super::object::{Object, ObjectBody};
use super::outline::{BlockOutline, NOT_UTF8, StringTable, check_string_count};
use super::parsed::Block;
use crate::error::{FormatError, FormatResult};
use crate::osm::{ObjectKind, SeenKeys};
use crate::pbf::wire::Fields;
use crate::pbf::wire::schema::string_table;
use std::fmt::Write;

impl<'a> Block<'a> {
    /// Parses the strings of an uncompressed payload, and finds its messages.
    ///
    /// # Errors
    ///
    /// The payload is not a PrimitiveBlock, a string is not UTF-8, or the columns of dense nodes differ in length.
    pub fn parse(payload: &'a [u8]) -> Result<Self, FormatError> {
        let block = Self::parse_without_strings(payload)?;
        let strings = StringTable::parse(block.string_table);
        Ok(block.with_strings(strings.map_err(|error| add_object_name_to_error(payload, error))?))
    }
}

/// The maximum number of characters of a string that a message shows.
const SHOWN: usize = 60;

/// A fault in the contents of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentFault {
    /// The kind and the id of the object; `None` if the fault concerns no single object.
    pub object: Option<(ObjectKind, i64)>,
    /// A description of the fault.
    pub what: String,
    /// Whether the block can be read in spite of the fault.
    pub is_readable: bool,
    /// Whether the fault is a tag with the same key as an earlier tag of the object.
    pub is_repeated_key: bool,
}

impl ContentFault {
    /// Returns a fault other than a repeated key.
    pub(crate) const fn new(
        object: Option<(ObjectKind, i64)>,
        what: String,
        is_readable: bool,
    ) -> Self {
        Self {
            object,
            what,
            is_readable,
            is_repeated_key: false,
        }
    }
}

/// Fails if a string of the block in `payload` is not UTF-8. The error names an object that uses the string, if there
/// is one.
pub(crate) fn check_strings(payload: &[u8]) -> FormatResult<()> {
    let outline = BlockOutline::parse(payload)?;
    if are_utf8(outline.string_table).unwrap_or(false) {
        return Ok(());
    }
    match StringTable::parse(outline.string_table) {
        Ok(_) => Ok(()),
        Err(error) => Err(add_object_name_to_error(payload, error)),
    }
}

/// Whether all strings of a table are UTF-8.
fn are_utf8(string_table: &[u8]) -> FormatResult<bool> {
    let (mut fields, mut count) = (Fields::new(string_table), 0);
    while let Some(field) = fields.next()? {
        if field.number == string_table::S {
            count += 1;
            check_string_count(count)?;
            if !is_utf8(field.bytes()?) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether a string is UTF-8. Most strings are short and ASCII, and a check for ASCII is faster than a check for UTF-8.
fn is_utf8(string: &[u8]) -> bool {
    string.is_ascii() || std::str::from_utf8(string).is_ok()
}

/// The fault of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pbf) enum TextFault {
    NotUtf8,
    /// The string has characters that XML 1.0 does not allow.
    Inexpressible,
}

impl TextFault {
    /// Returns the fault of a string; `None` if it has none.
    pub(in crate::pbf) fn find_in(string: &[u8]) -> Option<Self> {
        let is_printable = |byte: &u8| matches!(byte, b' '..=b'~');
        // A loop without a branch is faster here.
        if string
            .iter()
            .fold(true, |are, byte| are & is_printable(byte))
        {
            return None;
        }
        match std::str::from_utf8(string) {
            Err(_) => Some(Self::NotUtf8),
            Ok(text) => is_inexpressible_in_xml(text).then_some(Self::Inexpressible),
        }
    }
}

/// Extends the message of `error` by the name of the first object that uses a string that is not UTF-8. If no object
/// uses such a string, the message gets the index of the first such string. `error` must be the error of parsing the
/// string table.
#[cold]
fn add_object_name_to_error(payload: &[u8], error: FormatError) -> FormatError {
    // Any other error means that the table is damaged or too long. In this case, the table is not read again.
    if !error.to_string().ends_with(NOT_UTF8) {
        return error;
    }
    let mut first = None;
    let checked = report_content_faults(payload, |fault| {
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

/// Checks all objects of the block in `payload`, and calls `take` with each of these faults:
///
/// - a use of a faulty string, or a faulty string that no object uses;
/// - a tag with the same key as an earlier tag of the object;
/// - a tag without a key;
/// - a version or a changeset that other programs refuse;
/// - an object that has too many parts for most commands.
///
/// Fails if the objects cannot be decoded for a reason other than a faulty string.
pub(crate) fn report_content_faults(
    payload: &[u8],
    mut take: impl FnMut(ContentFault),
) -> FormatResult<ContentFacts> {
    let outline = BlockOutline::parse(payload)?;
    let RawStrings { texts, faults } = RawStrings::parse(outline.string_table)?;
    let block = Block::parse_without_strings(payload)?;
    let inexpressible = faults.iter().filter(|fault| fault.is_utf8).count() as u64;
    let block = block.with_strings(escaped_table(texts, &faults));
    if !faults.is_empty() {
        report_faulty_string_uses(&block, &faults, &mut take)?;
    }
    let facts = block.check_contents()?;
    // Each tag, node or member takes at least one byte. So no object of a payload with at most `MAX_PARTS` bytes can
    // have too many of them.
    if payload.len() > MAX_PARTS {
        report_oversized_objects(&block, &mut take)?;
    }
    if facts.faulty_tags.has_any() {
        report_faulty_tags(&block, &mut take)?;
    }
    if facts.has_refused_info {
        report_refused_info(&block, &mut take)?;
    }
    Ok(ContentFacts {
        inexpressible,
        ..facts
    })
}

/// Calls `take` with each tag that has the same key as an earlier tag of the object, and with each other tag without a
/// key.
fn report_faulty_tags(block: &Block<'_>, mut take: impl FnMut(ContentFault)) -> FormatResult<()> {
    block.try_for_each(|element| {
        let mut seen = SeenKeys::default();
        for (key, value) in element.tags() {
            let is_repeated_key = !seen.insert(key);
            let text = |text: &str| escape_for_message(text.as_bytes());
            let what = match (is_repeated_key, key.is_empty()) {
                (true, _) => format!("the key \"{}\" occurs again", text(key)),
                (false, true) => format!("the value \"{}\" has no key", text(value)),
                (false, false) => continue,
            };
            take(ContentFault {
                object: Some((element.kind(), element.id())),
                what,
                is_readable: true,
                is_repeated_key,
            });
        }
        Ok(())
    })
}

/// Calls `take` with each object that has a version or a changeset that other programs refuse.
fn report_refused_info(block: &Block<'_>, mut take: impl FnMut(ContentFault)) -> FormatResult<()> {
    let mut walk = block.walk();
    while let Some(kind) = walk.next()? {
        if let Some(what) = walk.info()?.refusal() {
            take(ContentFault::new(Some((kind, walk.id()?)), what, true));
        }
    }
    Ok(())
}

/// Calls `take` with each object that has more than [`MAX_PARTS`] tags, nodes or members.
fn report_oversized_objects(
    block: &Block<'_>,
    mut take: impl FnMut(ContentFault),
) -> FormatResult<()> {
    block.try_for_each(|element| {
        if let Err(error) = element.check_size() {
            let (kind, id) = (element.kind(), element.id());
            let (cause, name) = (error.to_string(), format!("{kind} {id} "));
            let what = cause.strip_prefix(&name).unwrap_or(&cause).to_owned();
            take(ContentFault::new(Some((kind, id)), what, true));
        }
        Ok(())
    })
}

/// Calls `take` with each use of a faulty string, and with each faulty string that no object uses.
fn report_faulty_string_uses(
    block: &Block<'_>,
    faults: &[StringFault],
    mut take: impl FnMut(ContentFault),
) -> FormatResult<()> {
    let mut used = vec![false; faults.len()];
    // `text` is the escaped text of a fault if both have the same address.
    let fault_of = |text: &str| {
        let is_same = |fault: &StringFault| std::ptr::eq(fault.text.as_ptr(), text.as_ptr());
        faults.iter().position(is_same)
    };
    let (mut cursor, mut object, mut info) = (block.cursor(), Object::default(), None);
    while let Some(element) = cursor.next()? {
        object.fill_reusing_info(element, block, &mut info)?;
        let mut report = |text: &str, place: &dyn Fn() -> String| {
            if let Some(fault) = fault_of(text) {
                used[fault] = true;
                let what = format!("{} {}: {text}", place(), faults[fault].description());
                let object = Some((object.kind(), object.id));
                take(ContentFault::new(object, what, faults[fault].is_utf8));
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
        let (index, what, text) = (fault.index, fault.description(), &fault.text);
        let what = format!("string {index}, which no object uses, {what}: {text}");
        take(ContentFault::new(None, what, fault.is_utf8));
    }
    Ok(())
}

/// The strings of a block, and their faults. A string that is not UTF-8 is empty in `texts`.
struct RawStrings<'a> {
    texts: Vec<&'a str>,
    faults: Vec<StringFault>,
}

/// A string that is not UTF-8, or has characters that XML 1.0 does not allow.
struct StringFault {
    /// The index of the string.
    index: usize,
    /// Whether the string is UTF-8.
    is_utf8: bool,
    /// The string with invalid bytes and control characters escaped, such as `caf\xe9`.
    text: String,
}

impl<'a> RawStrings<'a> {
    fn parse(message: &'a [u8]) -> FormatResult<Self> {
        let mut texts = Vec::with_capacity(message.len() / 12);
        let (mut faults, mut fields) = (Vec::new(), Fields::new(message));
        while let Some(field) = fields.next().map_err(|error| error.within("StringTable"))? {
            if field.number != string_table::S {
                continue;
            }
            let bytes = field.bytes()?;
            let text = std::str::from_utf8(bytes).ok();
            if text.is_none_or(is_inexpressible_in_xml) {
                faults.push(StringFault {
                    index: texts.len(),
                    is_utf8: text.is_some(),
                    text: escape_for_message(bytes),
                });
            }
            texts.push(text.unwrap_or_default());
            check_string_count(texts.len())?;
        }
        Ok(Self { texts, faults })
    }
}

/// Returns a table of `texts` in which faulty strings are replaced by their escaped text.
fn escaped_table<'a>(mut texts: Vec<&'a str>, faults: &'a [StringFault]) -> StringTable<'a> {
    for fault in faults {
        texts[fault.index] = &fault.text;
    }
    StringTable::from_strings(texts)
}

impl StringFault {
    /// Returns a description of the fault, as the predicate of a message.
    const fn description(&self) -> &'static str {
        if self.is_utf8 {
            "has characters that XML does not know"
        } else {
            NOT_UTF8
        }
    }
}

/// Whether a string has control characters or other characters that XML 1.0 does not allow.
pub(in crate::pbf) fn is_inexpressible_in_xml(text: &str) -> bool {
    // In UTF-8, the byte of a control character is never a part of another character. So the bytes can be searched
    // without decoding.
    let is_control = |byte: u8| is_forbidden_in_xml(char::from(byte));
    text.bytes().any(is_control) || (!text.is_ascii() && text.chars().any(is_forbidden_in_xml))
}

/// Whether XML 1.0 forbids a character, even as a character reference.
pub(crate) const fn is_forbidden_in_xml(char: char) -> bool {
    matches!(char, '\0'..=' ' | '\u{fffe}' | '\u{ffff}')
        && !matches!(char, '\t' | '\n' | '\r' | ' ')
}

/// Converts a string to text for messages. Bytes that are not UTF-8 become `\xNN`, control characters are escaped, and
/// long text is truncated.
fn escape_for_message(bytes: &[u8]) -> String {
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
    // The fault may lie in the part that is cut off, so the result ends with the offset and the value of the faulty
    // byte.
    if text.chars().count() <= SHOWN {
        return text;
    }
    let start: String = text.chars().take(SHOWN).collect();
    let at = match std::str::from_utf8(bytes) {
        Ok(text) => text.find(is_forbidden_in_xml),
        Err(error) => Some(error.valid_up_to()),
    };
    match at {
        Some(at) => format!("{start}… (byte {at} is \\x{:02x})", bytes[at]),
        None => format!("{start}…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_escaped_and_long_text_is_cut() {
        assert_eq!(
            escape_for_message(b"caf\xe9 \xf0\x9f"),
            "caf\\xe9 \\xf0\\x9f"
        );
        assert_eq!(escape_for_message(b"a\nb\xff"), "a\\nb\\xff");
        let long = [&[b'a'; 70][..], b"\xfe"].concat();
        let wanted = format!("{}… (byte 70 is \\xfe)", "a".repeat(60));
        assert_eq!(escape_for_message(&long), wanted);
    }
}
