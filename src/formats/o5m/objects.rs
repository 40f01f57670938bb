//! Parses datasets of an o5m file into a change set.

use super::DatasetError;
use super::strings::{Meaning, O5mStrings};
use super::varint::{self, DatasetCursor, Varint};
use crate::formats::change_action::ChangeAction;
use crate::formats::change_set::{ChangeSet, Draft};
use crate::osm::{Bbox, Location, ObjectKind, StringPool};

/// The times that are accepted, in seconds since 1970: the years 0 to 9999.
const TIMES: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// The state of delta encoding, and the table of strings.
#[derive(Debug, Default)]
pub(super) struct DeltaState {
    pub strings: O5mStrings,
    /// Whether the file is a change file.
    pub is_change: bool,
    last: Last,
}

/// The last values of the delta-encoded fields. The ids of nodes, ways and relations share one last value. The ids of
/// members have one last value for each kind.
#[derive(Debug, Default)]
struct Last {
    id: i64,
    timestamp: i64,
    changeset: i64,
    lon: i32,
    lat: i32,
    way_ref: i64,
    members: [i64; 3],
}

impl DeltaState {
    /// Sets the last values of all delta-encoded fields to 0, and empties the table of strings.
    pub(super) fn reset(&mut self) {
        self.last = Last::default();
        self.strings.reset();
    }

    /// Reads an object, and appends it to the set.
    pub(super) fn read_object(
        &mut self,
        kind: ObjectKind,
        bytes: &[u8],
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        let reader = &mut DatasetCursor::new(bytes);
        let mut draft = Draft::new(set, kind, ChangeAction::Create);
        self.last.id = self.last.id.wrapping_add(reader.read_signed()?);
        draft.id = self.last.id;
        self.read_info(reader, &mut draft, set)?;
        // An object that ends here is deleted. All other objects go on with coordinates or a list of references.
        if reader.is_empty() {
            draft.action = ChangeAction::Delete;
            set.is_history = true;
        } else {
            if self.is_change && draft.version != Some(1) {
                draft.action = ChangeAction::Modify;
            }
            match kind {
                ObjectKind::Node => draft.location = self.read_location(reader)?,
                ObjectKind::Way => self.read_refs(reader, set)?,
                ObjectKind::Relation => self.read_members(reader, set)?,
            }
            while !reader.is_empty() {
                self.read_tag(reader, set)?;
            }
        }
        set.append_draft(&draft)
            .map_err(|cause| DatasetError::new(0, cause))
    }

    /// Reads version, time, changeset and user. If there is no version, the other fields are absent. If there is no
    /// time, changeset and user are absent.
    fn read_info(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        draft: &mut Draft,
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        // Some writers end a deleted object right after its id.
        if reader.is_empty() {
            return Ok(());
        }
        let at = reader.position();
        let version = reader.read_unsigned()?;
        if version == 0 {
            return Ok(());
        }
        let version = i32::try_from(version).ok();
        let version = version.and_then(|version| u32::try_from(version).ok());
        let out_of_range =
            |at, what: &str| DatasetError::new(at, format!("the {what} is out of range"));
        draft.version = Some(version.ok_or_else(|| out_of_range(at, "version"))?);
        let at = reader.position();
        self.last.timestamp = self.last.timestamp.wrapping_add(reader.read_signed()?);
        if self.last.timestamp == 0 {
            return Ok(());
        }
        if !TIMES.contains(&self.last.timestamp) {
            return Err(out_of_range(at, "time"));
        }
        draft.timestamp = Some(self.last.timestamp);
        self.last.changeset = self.last.changeset.wrapping_add(reader.read_signed()?);
        draft.changeset = Some(self.last.changeset).filter(|changeset| *changeset > 0);
        let known = |meaning| match meaning {
            Meaning::User(user) => Some(user),
            _ => None,
        };
        let strings = &mut self.strings;
        (draft.uid, draft.user) =
            strings.read(reader, true, known, Meaning::User, |uid, name| {
                let name = intern_text(name, &mut set.strings)?;
                Ok((parse_uid(uid)?, name))
            })?;
        Ok(())
    }

    fn read_location(
        &mut self,
        reader: &mut DatasetCursor<'_>,
    ) -> Result<Option<Location>, DatasetError> {
        let mut next = |last: &mut i32, limit: i32| {
            let at = reader.position();
            let delta = reader.read_signed()?;
            // Some writers store differences as numbers of 32 bits, which overflow beyond 214 degrees. Adding with
            // overflow gives the right coordinate even then.
            let is_near = (-(1 << 33)..1 << 33).contains(&delta);
            *last = last.wrapping_add(delta as i32);
            if is_near && (-limit..=limit).contains(last) {
                Ok(*last)
            } else {
                Err(DatasetError::new(at, "a coordinate that is not on earth"))
            }
        };
        let lon = next(&mut self.last.lon, 1_800_000_000)?;
        let lat = next(&mut self.last.lat, 900_000_000)?;
        Ok(Location::new(lat, lon))
    }

    fn read_refs(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        let (start, nodes) = read_len_prefixed_list(reader)?;
        let mut nodes = DatasetCursor::new(nodes);
        while !nodes.is_empty() {
            let delta = nodes
                .read_signed()
                .map_err(|error| list_error_in_dataset(start, error))?;
            self.last.way_ref = self.last.way_ref.wrapping_add(delta);
            set.refs.push(self.last.way_ref);
        }
        Ok(())
    }

    fn read_members(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        let (start, members) = read_len_prefixed_list(reader)?;
        let mut members = DatasetCursor::new(members);
        while !members.is_empty() {
            let member = self.read_member(&mut members, set);
            member.map_err(|error| list_error_in_dataset(start, error))?;
        }
        Ok(())
    }

    fn read_member(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        let delta = reader.read_signed()?;
        let known = |meaning| match meaning {
            Meaning::Member(member) => Some(member),
            _ => None,
        };
        let strings = &mut self.strings;
        let (kind, role) = strings.read(reader, false, known, Meaning::Member, |string, _| {
            let (kind, role) = match string {
                [b'0', role @ ..] => (ObjectKind::Node, role),
                [b'1', role @ ..] => (ObjectKind::Way, role),
                [b'2', role @ ..] => (ObjectKind::Relation, role),
                _ => return Err("the type of a member is neither 0, 1 nor 2".to_owned()),
            };
            Ok((kind, intern_text(role, &mut set.strings)?))
        })?;
        let last = &mut self.last.members[kind as usize];
        *last = last.wrapping_add(delta);
        set.refs.push(*last);
        set.roles.push((kind, role));
        Ok(())
    }

    fn read_tag(
        &mut self,
        reader: &mut DatasetCursor<'_>,
        set: &mut ChangeSet,
    ) -> Result<(), DatasetError> {
        let known = |meaning| match meaning {
            Meaning::Tag(tag) => Some(tag),
            _ => None,
        };
        let strings = &mut self.strings;
        let (key, value) = strings.read(reader, true, known, Meaning::Tag, |key, value| {
            let strings = &mut set.strings;
            Ok((intern_text(key, strings)?, intern_text(value, strings)?))
        })?;
        set.tags.extend([key, value]);
        Ok(())
    }
}

/// Reads a list that is preceded by its length in bytes. Returns the offset of the list, and its bytes.
fn read_len_prefixed_list<'a>(
    reader: &mut DatasetCursor<'a>,
) -> Result<(usize, &'a [u8]), DatasetError> {
    let len = reader.read_unsigned()?;
    let start = reader.position();
    Ok((start, reader.read_bytes(len)?))
}

/// Converts an error in a list to an error in the dataset that contains the list. The list begins at offset `start` of
/// the dataset.
fn list_error_in_dataset(start: usize, error: DatasetError) -> DatasetError {
    DatasetError {
        at: start + error.at,
        cause: match error.cause.strip_suffix("past its dataset") {
            Some(cause) => format!("{cause}past its list"),
            None => error.cause,
        },
    }
}

/// Adds a string to a pool, and returns its id. Fails if the string is not UTF-8.
fn intern_text(bytes: &[u8], strings: &mut StringPool) -> Result<u32, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(strings.add(text)),
        Err(_) => Err("a string is not UTF-8".to_owned()),
    }
}

/// Parses the id of a user. The string must consist of one varint; an empty string means that there is no user.
fn parse_uid(bytes: &[u8]) -> Result<Option<i32>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bad = || "the id of the user is not a number in range".to_owned();
    match varint::parse_unsigned(bytes) {
        Varint::Number(uid, len) if len == bytes.len() => {
            let uid = i32::try_from(uid).map_err(|_| bad())?;
            Ok(Some(uid).filter(|uid| *uid > 0))
        }
        _ => Err(bad()),
    }
}

/// Reads the bounding box of a file.
pub(super) fn read_bounds(bytes: &[u8], set: &mut ChangeSet) -> Result<(), DatasetError> {
    let mut reader = DatasetCursor::new(bytes);
    let mut edge = |limit: i64| {
        let at = reader.position();
        let edge = reader.read_signed()?;
        let edge = Some(edge).filter(|edge| (-limit..=limit).contains(edge));
        let edge = edge.and_then(|edge| i32::try_from(edge).ok());
        edge.ok_or_else(|| DatasetError::new(at, "the bounding box of the file is not on earth"))
    };
    let (longest, highest) = (1_800_000_000, 900_000_000);
    let [west, south] = [edge(longest)?, edge(highest)?];
    let [east, north] = [edge(longest)?, edge(highest)?];
    let mut bounds = Bbox::EMPTY;
    bounds.add(south, west);
    bounds.add(north, east);
    set.document_header.text.add_box(bounds);
    Ok(())
}

/// Reads the replication timestamp of a file.
pub(super) fn read_timestamp(bytes: &[u8], set: &mut ChangeSet) -> Result<(), DatasetError> {
    let time = DatasetCursor::new(bytes).read_signed()?;
    if !TIMES.contains(&time) {
        return Err(DatasetError::new(0, "the time of the file is out of range"));
    }
    set.document_header.replication.timestamp = Some(time).filter(|time| *time != 0);
    Ok(())
}
