//! The parser of OPL ("Object Per Line"). A line is an object, a field begins with a letter that names it, and `%hex%`
//! escapes special characters in strings. See the OPL File Format Manual of osmcode.org.

use super::change_action::ChangeAction;
use super::change_set::{ChangeSet, Draft};
use super::changesets::parse_opl_changeset as parse_changeset;
use super::opl_fields::{decode_escapes, non_empty, parse_degrees, parse_number};
use super::text_chunks::{TextChunk, TextDamage, lines};
use crate::osm::{Location, ObjectKind, parse_timestamp};

/// The coordinates of a node in units of 1e-7 degree, collected from the fields `x` and `y`.
#[derive(Default)]
struct Coordinates {
    lat: Option<i32>,
    lon: Option<i32>,
}

/// Parses a chunk of a file. The chunk must consist of whole lines.
pub(super) fn parse(chunk: &TextChunk) -> Result<ChangeSet, TextDamage> {
    let mut parser = OplParser {
        objects: ChangeSet::default(),
        text: String::new(),
    };
    for (start, line) in lines(&chunk.bytes) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(line) if start == 0 && chunk.is_first() => line,
            _ => line,
        };
        let parsed = match std::str::from_utf8(line) {
            Ok(line) => parser.parse_line(line),
            Err(error) => Err((error.valid_up_to(), "the text is not UTF-8".into())),
        };
        if let Err((at, cause)) = parsed {
            return Err(TextDamage {
                at: start + at,
                lost: start,
                cause,
                objects: Box::new(parser.objects),
            });
        }
    }
    Ok(parser.objects)
}

struct OplParser {
    objects: ChangeSet,
    /// The buffer in which strings are unescaped.
    text: String,
}

impl OplParser {
    /// Parses a line. An error consists of an offset in the line and a message.
    fn parse_line(&mut self, line: &str) -> Result<(), (usize, String)> {
        let kind = match line.chars().next() {
            None | Some('#') => return Ok(()),
            Some('c') => {
                self.objects.changesets += 1;
                return parse_changeset(line).map(drop).map_err(|cause| (0, cause));
            }
            Some(letter) => ObjectKind::from_letter(letter),
        };
        let kind = kind.ok_or((0, "a line begins with n, w, r, c or #".to_owned()))?;
        let mut draft = Draft::new(&mut self.objects, kind, ChangeAction::Create);
        let (mut at, mut coordinates) = (0, Coordinates::default());
        for field in line.split([' ', '\t']) {
            if !field.is_empty() {
                let parsed = self.parse_field(field, at == 0, &mut draft, &mut coordinates);
                parsed.map_err(|cause| (at, cause))?;
            }
            at += field.len() + 1;
        }
        draft.location = match (coordinates.lat, coordinates.lon) {
            (Some(lat), Some(lon)) => Location::new(lat, lon),
            (None, None) => None,
            _ => return Err((0, "a node with only one of x and y".into())),
        };
        self.objects
            .append_draft(&draft)
            .map_err(|cause| (0, cause))
    }

    fn parse_field(
        &mut self,
        field: &str,
        is_id: bool,
        draft: &mut Draft,
        coordinates: &mut Coordinates,
    ) -> Result<(), String> {
        let mut chars = field.chars();
        let letter = chars.next().unwrap_or_default();
        let value = chars.as_str();
        match letter {
            _ if is_id => draft.id = parse_number(field, value)?,
            'v' => {
                let version = non_empty(value).map(|value| parse_number::<i32>(field, value));
                let version = version.transpose()?.filter(|version| *version > 0);
                draft.version = version.and_then(|version| u32::try_from(version).ok());
            }
            'd' => match value {
                "V" => {}
                "D" => {
                    draft.action = ChangeAction::Delete;
                    self.objects.is_history = true;
                }
                _ => return Err(format!("'{field}' is neither dV nor dD")),
            },
            'c' => {
                let changeset = non_empty(value).map(|value| parse_number::<i64>(field, value));
                draft.changeset = changeset.transpose()?.filter(|number| *number > 0);
            }
            't' => {
                let time = |value| {
                    parse_timestamp(value).ok_or_else(|| format!("'{value}' is not a time"))
                };
                draft.timestamp = non_empty(value).map(time).transpose()?;
            }
            'i' => {
                let uid = non_empty(value).map(|value| parse_number::<i32>(field, value));
                draft.uid = uid.transpose()?.filter(|uid| *uid > 0);
            }
            'u' => draft.user = self.parse_string(value)?,
            'x' => {
                let lon = non_empty(value).map(parse_degrees);
                coordinates.lon = lon.transpose()?;
            }
            'y' => {
                let lat = non_empty(value).map(parse_degrees);
                coordinates.lat = lat.transpose()?;
            }
            'T' => self.parse_tags(value)?,
            'N' | 'M' if self.objects.refs.len() > draft.refs_start => {
                return Err(format!("a second field {letter}"));
            }
            'N' if draft.kind == ObjectKind::Way => {
                self.parse_nodes(value, draft.locations_start)?
            }
            'M' if draft.kind == ObjectKind::Relation => self.parse_members(value)?,
            _ => return Err(format!("'{field}' is not a field of a {}", draft.kind)),
        }
        Ok(())
    }

    fn parse_string(&mut self, text: &str) -> Result<u32, String> {
        decode_escapes(&mut self.text, text)?;
        Ok(self.objects.strings.add(&self.text))
    }

    fn parse_tags(&mut self, text: &str) -> Result<(), String> {
        for tag in text.split(',').filter(|tag| !tag.is_empty()) {
            let (key, value) = tag
                .split_once('=')
                .ok_or_else(|| format!("'{tag}' is not a tag"))?;
            let tag = [self.parse_string(key)?, self.parse_string(value)?];
            self.objects.tags.extend(tag);
        }
        Ok(())
    }

    fn parse_nodes(&mut self, text: &str, locations_start: usize) -> Result<(), String> {
        let mut count = 0;
        for node in text.split(',').filter(|node| !node.is_empty()) {
            let bad = || format!("'{node}' is not a node of a way");
            let rest = node.strip_prefix('n').ok_or_else(bad)?;
            let (id, location) = match rest.split_once('x') {
                None => (rest, None),
                Some((id, location)) => (id, Some(location.split_once('y').ok_or_else(bad)?)),
            };
            if let Some((lon, lat)) = location.filter(|location| *location != ("", "")) {
                let location = Location::new(parse_degrees(lat)?, parse_degrees(lon)?);
                self.objects.locations.resize(locations_start + count, None);
                self.objects.locations.push(location);
            }
            self.objects.refs.push(parse_number(node, id)?);
            count += 1;
        }
        let locations = &mut self.objects.locations;
        if locations.len() > locations_start {
            locations.resize(locations_start + count, None);
        }
        Ok(())
    }

    fn parse_members(&mut self, text: &str) -> Result<(), String> {
        for member in text.split(',').filter(|member| !member.is_empty()) {
            let bad = || format!("'{member}' is not a member");
            let (id, role) = member.split_once('@').ok_or_else(bad)?;
            let mut chars = id.chars();
            let kind = chars.next().and_then(ObjectKind::from_letter);
            let kind = kind.ok_or_else(bad)?;
            let id = parse_number(member, chars.as_str())?;
            let role = self.parse_string(role)?;
            self.objects.refs.push(id);
            self.objects.roles.push((kind, role));
        }
        Ok(())
    }
}
