//! Removes, replaces and inserts a few objects of an encoded block, without decoding the others.
//!
//! Unchanged parts are copied byte for byte. These are the string table (new strings are appended to it), the messages
//! of ways and relations, and the runs of dense columns between two changes. Only the first delta after a change is
//! re-encoded.

use super::growing_table::{GROWTH, GrowingTable};
use super::locations::{MovedWayWriter, MovedWays, put_way};
use super::script::{EditOp, EditScript};
use crate::error::{FormatError, FormatResult};
use crate::osm::Location;
use crate::pbf::block::dense::{DenseNodes, next_tag_run};
use crate::pbf::block::messages::{Head, RawInfo, encode_relation, encode_way};
use crate::pbf::block::object::{Object, ObjectBody, put_deltas, raw_location};
use crate::pbf::block::outline::{BlockOutline, BlockUnits, Group, Message};
use crate::pbf::encode::dense_columns::{DenseColumns, InfoColumn};
use crate::pbf::frame::blob::MAX_PAYLOAD_LEN;
use crate::pbf::wire::schema::{primitive_block, primitive_group};
use crate::pbf::wire::{Fields, Varints, put_bytes_field, put_sint, put_varint};

/// Options of [`splice_block`] for the locations of ways.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpliceOptions<'m> {
    /// Whether coordinates are removed from the ways that are kept.
    pub drop_locations: bool,
    /// Whether inserted ways are written with their locations, if they have any.
    pub new_locations: bool,
    /// The new coordinates of kept ways, in the units of the block; `None` if no kept way gets new coordinates, or if
    /// `drop_locations` is set.
    pub moved: Option<&'m MovedWays>,
}

/// Applies `script` to the block in `payload` and appends the edited payload to `out`. The indices of the insert steps
/// refer to `new`.
///
/// Returns `false` and appends nothing if the block cannot be edited. A block can be edited if all of these hold:
///
/// - It has exactly one group, which consists of one DenseNodes message, of ways only or of relations only.
/// - Its string 0 is empty.
/// - Its units express the new objects exactly.
/// - The edited payload has at most [`MAX_PAYLOAD_LEN`] bytes.
pub fn splice_block(
    payload: &[u8],
    script: &EditScript,
    new: &[Object<'_>],
    options: SpliceOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<bool, FormatError> {
    let block = BlockOutline::parse(payload)?;
    let Some((group, form)) = sole_group(&block)? else {
        return Ok(false);
    };
    let mut strings = GrowingTable::new(block.string_table)?;
    if !strings.begins_with_empty_string() {
        return Ok(false);
    }
    let mut prepare = |object| NewObject::prepare(object, &block.units, options, &mut strings);
    let Some(new) = new.iter().map(&mut prepare).collect::<Option<Vec<_>>>() else {
        return Ok(false);
    };
    let start = out.len();
    let spliced = splice_group(group, form, script, &new, options)?;
    put_block(&block, &strings.encoded, &spliced, out);
    let fits = out.len() - start <= MAX_PAYLOAD_LEN as usize;
    if !fits {
        out.truncate(start);
    }
    Ok(fits)
}

/// Appends the content of a group with the objects that `script` keeps. The group uses the string table and units of
/// the block in `payload`. `script` must not insert objects.
///
/// The block must have exactly one group. The group must consist of one DenseNodes message, of ways only or of
/// relations only. For other blocks, returns `false` and appends nothing.
pub(crate) fn put_kept_messages(
    payload: &[u8],
    script: &EditScript,
    out: &mut Vec<u8>,
) -> FormatResult<bool> {
    let block = BlockOutline::parse(payload)?;
    let Some((group, form)) = sole_group(&block)? else {
        return Ok(false);
    };
    let (new, options) = (&[], SpliceOptions::default());
    match form {
        GroupForm::Dense(message) => splice_dense(message, script, new)?.put_message(out),
        GroupForm::Messages => splice_messages(group, script, new, options, out)?,
    }
    Ok(true)
}

/// Appends the block in `payload` with only the objects that `script` keeps. The restrictions and the result are those
/// of [`put_kept_messages`].
pub(crate) fn put_kept_block(
    payload: &[u8],
    script: &EditScript,
    out: &mut Vec<u8>,
) -> FormatResult<bool> {
    let block = BlockOutline::parse(payload)?;
    let Some((group, form)) = sole_group(&block)? else {
        return Ok(false);
    };
    let (new, options) = (&[], SpliceOptions::default());
    let spliced = splice_group(group, form, script, new, options)?;
    put_block(&block, block.string_table, &spliced, out);
    Ok(true)
}

/// Appends a block with the string table `strings` and the group `group`. All other fields are those of `block`.
fn put_block(block: &BlockOutline<'_>, strings: &[u8], group: &Spliced, out: &mut Vec<u8>) {
    put_bytes_field(out, primitive_block::STRINGTABLE, strings);
    group.put_group(out);
    out.extend_from_slice(&block.other_fields);
}

/// A group after an edit.
enum Spliced {
    Dense(Box<DenseColumns>),
    /// The fields of a group of ways or relations.
    Messages(Vec<u8>),
}

impl Spliced {
    /// Appends the group as a field of a block.
    fn put_group(&self, out: &mut Vec<u8>) {
        match self {
            Self::Dense(columns) => columns.put_group(out),
            Self::Messages(messages) => {
                put_bytes_field(out, primitive_block::PRIMITIVEGROUP, messages)
            }
        }
    }
}

/// Applies the script to a group that has the form `form`.
fn splice_group(
    group: &Group<'_>,
    form: GroupForm<'_>,
    script: &EditScript,
    new: &[NewObject<'_>],
    options: SpliceOptions<'_>,
) -> FormatResult<Spliced> {
    match form {
        GroupForm::Dense(message) => {
            splice_dense(message, script, new).map(|columns| Spliced::Dense(Box::new(columns)))
        }
        GroupForm::Messages => {
            let mut messages = Vec::with_capacity(group.0.len() + GROWTH);
            splice_messages(group, script, new, options, &mut messages)?;
            Ok(Spliced::Messages(messages))
        }
    }
}

/// Returns the only group of a block, and the form of the group. Returns `None` if the block has no group or several
/// groups, or if [`group_form`] returns `None` for its group.
fn sole_group<'b, 'a>(
    block: &'b BlockOutline<'a>,
) -> FormatResult<Option<(&'b Group<'a>, GroupForm<'a>)>> {
    let [group] = block.groups.as_slice() else {
        return Ok(None);
    };
    Ok(group_form(group)?.map(|form| (group, form)))
}

enum GroupForm<'a> {
    Dense(&'a [u8]),
    Messages,
}

/// Returns the form of a group that consists of one DenseNodes message, of ways only or of relations only. Returns
/// `None` for other groups.
fn group_form<'a>(group: &Group<'a>) -> FormatResult<Option<GroupForm<'a>>> {
    let (mut dense, mut ways, mut relations, mut others) = (None, 0, 0, 0);
    group.try_for_each(|message| {
        match message {
            Message::Dense(_) if dense.is_some() => others += 1,
            Message::Dense(bytes) => dense = Some(bytes),
            Message::Way(_) => ways += 1,
            Message::Relation(_) => relations += 1,
            Message::Node(_) | Message::Other => others += 1,
        }
        Ok::<_, FormatError>(())
    })?;
    Ok(match (dense, ways, relations, others) {
        (Some(message), 0, 0, 0) => Some(GroupForm::Dense(message)),
        (None, 1.., 0, 0) | (None, 0, 1.., 0) => Some(GroupForm::Messages),
        _ => None,
    })
}

/// A new object, converted to the units and string ids of a block.
struct NewObject<'a> {
    object: &'a Object<'a>,
    info: RawInfo,
    tags: Vec<u32>,
    roles: Vec<u32>,
    location: (i64, i64),
    /// The encoded coordinates of the nodes. Empty unless the object is a way that is written with locations.
    locations_of_way: Vec<(i64, i64)>,
}

impl<'a> NewObject<'a> {
    /// Converts an object. Returns `None` if the block's units cannot express a time or a location exactly.
    fn prepare(
        object: &'a Object<'a>,
        units: &BlockUnits,
        options: SpliceOptions<'_>,
        strings: &mut GrowingTable<'_>,
    ) -> Option<Self> {
        let user_sid = strings.add_or_empty(object.info.user.unwrap_or(""));
        let info = object.raw_info(units, user_sid)?;
        let pairs = object.tags.iter().flat_map(|(key, value)| [key, value]);
        let mut new = Self {
            object,
            info,
            tags: pairs.map(|text| strings.add(text)).collect(),
            roles: Vec::new(),
            location: (0, 0),
            locations_of_way: Vec::new(),
        };
        match &object.body {
            ObjectBody::Node { location } => new.location = raw_location(units, *location)?,
            ObjectBody::Way { locations, .. } if options.new_locations => {
                let raw = |location: &Option<Location>| raw_location(units, *location);
                new.locations_of_way = locations.iter().map(raw).collect::<Option<_>>()?;
            }
            ObjectBody::Way { .. } => {}
            ObjectBody::Relation { members } => {
                let roles = members.iter().map(|member| member.role);
                new.roles = roles.map(|role| strings.add_or_empty(role)).collect();
            }
        }
        Some(new)
    }

    /// Appends a way or relation as a field of a group. Does nothing for a node, because nodes are inserted into the
    /// dense columns.
    fn put_message(&self, group: &mut Vec<u8>) {
        let head = Head {
            id: self.object.id,
            tags: &self.tags,
            info: self.info,
        };
        let (mut message, mut scratch) = (Vec::new(), Vec::new());
        match &self.object.body {
            ObjectBody::Node { .. } => {}
            ObjectBody::Way { refs, .. } => {
                let [mut run, mut lats, mut lons] = [const { Vec::new() }; 3];
                put_deltas(&mut run, refs.iter().copied());
                let locations = &self.locations_of_way;
                if locations.len() == refs.len() {
                    put_deltas(&mut lats, locations.iter().map(|place| place.0));
                    put_deltas(&mut lons, locations.iter().map(|place| place.1));
                }
                encode_way(&mut message, &mut scratch, &head, [&run, &lats, &lons]);
                put_bytes_field(group, primitive_group::WAYS, &message);
            }
            ObjectBody::Relation { members } => {
                let mut ids = Vec::new();
                put_deltas(&mut ids, members.iter().map(|member| member.id));
                let kinds: Vec<u8> = members.iter().map(|member| member.kind.number()).collect();
                let runs = [ids.as_slice(), &kinds];
                encode_relation(&mut message, &mut scratch, &head, &self.roles, runs);
                put_bytes_field(group, primitive_group::RELATIONS, &message);
            }
        }
    }
}

/// Applies the script to a group of ways or relations. Copies kept messages unchanged, except for coordinates that
/// `options` removes or replaces.
fn splice_messages(
    group: &Group<'_>,
    script: &EditScript,
    new: &[NewObject<'_>],
    options: SpliceOptions<'_>,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut fields = Fields::new(group.0);
    let mut ways = options.moved.map(MovedWayWriter::new);
    for edit in script.steps_without_final_drop() {
        match *edit {
            EditOp::Keep(count) => {
                for _ in 0..count {
                    let field = fields.next()?.ok_or(TOO_FEW_OBJECTS)?;
                    if options.drop_locations && field.number == primitive_group::WAYS {
                        put_way(field.bytes()?, [&[], &[]], out)?;
                    } else if let Some(ways) = &mut ways {
                        ways.put(&field, out)?;
                    } else {
                        out.extend_from_slice(field.raw);
                    }
                }
            }
            EditOp::Drop(count) => {
                for _ in 0..count {
                    fields.next()?.ok_or(TOO_FEW_OBJECTS)?;
                }
                if let Some(ways) = &mut ways {
                    ways.skip(count);
                }
            }
            EditOp::Insert(index) => new[index].put_message(out),
        }
    }
    Ok(())
}

const TOO_FEW_OBJECTS: FormatError =
    FormatError::new("the block has fewer objects than its edit script");

/// Applies the script to each column of a DenseNodes message.
fn splice_dense(
    message: &[u8],
    script: &EditScript,
    new: &[NewObject<'_>],
) -> FormatResult<DenseColumns> {
    let (dense, mut columns) = (DenseNodes::parse(message)?, DenseColumns::default());
    let id = |index: usize| new[index].object.id;
    let lat = |index: usize| new[index].location.0;
    let lon = |index: usize| new[index].location.1;
    splice_deltas(dense.ids.as_bytes(), script, id, &mut columns.ids)?;
    splice_deltas(dense.lats.as_bytes(), script, lat, &mut columns.lats)?;
    splice_deltas(dense.lons.as_bytes(), script, lon, &mut columns.lons)?;
    let sources = dense.info.columns();
    let is_needed = |column: &InfoColumn| {
        let is_set = |new: &NewObject<'_>| column.value(&new.info) != column.value_if_missing();
        new.iter().any(is_set) || !sources[*column as usize].0.is_empty()
    };
    let needed: Vec<_> = InfoColumn::ALL.into_iter().filter(is_needed).collect();
    for column in InfoColumn::written_columns(&needed) {
        let source = sources[column as usize].0;
        let value = |index: usize| column.value(&new[index].info);
        // If the block lacks the column, its nodes get the value that a missing column stands for.
        let filled;
        let source = if source.is_empty() {
            let mut bytes = Vec::with_capacity(dense.len());
            column.encode(
                std::iter::repeat_n(column.value_if_missing(), dense.len()),
                &mut bytes,
            );
            filled = bytes;
            filled.as_slice()
        } else {
            source.as_bytes()
        };
        let out = columns.info(column);
        if column.is_delta() {
            splice_deltas(source, script, value, out)?;
        } else {
            splice_varints(source, script, value, out)?;
        }
    }
    let (column, tags) = (dense.keys_vals.as_bytes(), |index: usize| {
        new[index].tags.as_slice()
    });
    splice_tags(column, script, tags, &mut columns.keys_vals)?;
    Ok(columns)
}

/// Applies the script to a column of plain varints.
fn splice_varints(
    column: &[u8],
    script: &EditScript,
    value: impl Fn(usize) -> i64,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut values = Varints::new(column);
    out.reserve(column.len() + GROWTH);
    for edit in script.steps_without_final_drop() {
        match *edit {
            EditOp::Keep(count) => {
                let start = values.position();
                for _ in 0..count {
                    values.read()?;
                }
                out.extend_from_slice(&column[start..values.position()]);
            }
            EditOp::Drop(count) => values.skip(count)?,
            EditOp::Insert(index) => put_varint(out, value(index) as u64),
        }
    }
    Ok(())
}

/// Applies the script to a delta-coded column. Re-encodes only the first delta after each change, and copies all other
/// deltas.
fn splice_deltas(
    column: &[u8],
    script: &EditScript,
    value: impl Fn(usize) -> i64,
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let (mut deltas, mut last_in, mut last_out) = (Varints::new(column), 0i64, 0i64);
    out.reserve(column.len() + GROWTH);
    for (step, edit) in script.steps_without_final_drop().iter().enumerate() {
        match *edit {
            EditOp::Keep(count) => {
                last_in = last_in.wrapping_add(deltas.read_sint()?);
                put_sint(out, last_in.wrapping_sub(last_out));
                let start = deltas.position();
                if script.is_last(step) {
                    out.extend_from_slice(&column[start..]);
                } else {
                    last_in = last_in.wrapping_add(deltas.sum_sints(count - 1)?);
                    out.extend_from_slice(&column[start..deltas.position()]);
                }
                last_out = last_in;
            }
            EditOp::Drop(count) => last_in = last_in.wrapping_add(deltas.sum_sints(count)?),
            EditOp::Insert(index) => {
                put_sint(out, value(index).wrapping_sub(last_out));
                last_out = value(index);
            }
        }
    }
    Ok(())
}

/// Applies the script to the column of tags (`keys_vals`). The column has, for each node, a run of string ids and a 0
/// that ends the run. `tags` returns the string ids of a new object's tags.
pub(super) fn splice_tags<'t>(
    column: &[u8],
    script: &EditScript,
    tags: impl Fn(usize) -> &'t [u32],
    out: &mut Vec<u8>,
) -> FormatResult<()> {
    let mut runs = Varints::new(column);
    out.reserve(column.len() + GROWTH);
    for edit in script.steps_without_final_drop() {
        match *edit {
            EditOp::Keep(mut count) => {
                let (start, mut is_ended) = (runs.position(), true);
                while count > 0 && !runs.is_done() {
                    let run_start = runs.position();
                    let run = next_tag_run(&mut runs)?;
                    is_ended = runs.position() > run_start + run.len();
                    count -= 1;
                }
                out.extend_from_slice(&column[start..runs.position()]);
                // The column may be absent, or lack its last 0.
                out.resize(out.len() + count + usize::from(!is_ended), 0);
            }
            EditOp::Drop(count) => {
                for _ in 0..count {
                    next_tag_run(&mut runs)?;
                }
            }
            EditOp::Insert(index) => {
                tags(index)
                    .iter()
                    .for_each(|&id| put_varint(out, u64::from(id)));
                out.push(0);
            }
        }
    }
    Ok(())
}
