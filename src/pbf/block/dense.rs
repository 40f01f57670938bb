//! DenseNodes messages (osmformat.proto), which store many nodes column by column, mostly as deltas.

use super::delta::{Delta, STRIDE};
use super::messages::{RawInfo, string_id};
use crate::error::{FormatError, FormatResult};
use crate::pbf::wire::schema::{dense_nodes, info};
use crate::pbf::wire::{Fields, put_packed_field};
use crate::pbf::wire::{Packed, Varints};

/// The columns of a DenseNodes message. Column lengths are checked; values are not decoded yet.
#[derive(Debug, Clone, Default)]
pub struct DenseNodes<'a> {
    pub(crate) ids: Packed<'a>,
    pub(crate) lats: Packed<'a>,
    pub(crate) lons: Packed<'a>,
    pub(crate) keys_vals: Packed<'a>,
    pub(crate) info: DenseInfo<'a>,
    len: usize,
}

/// The columns of a DenseInfo message; an absent column is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct DenseInfo<'a> {
    pub versions: Packed<'a>,
    pub timestamps: Packed<'a>,
    pub changesets: Packed<'a>,
    pub uids: Packed<'a>,
    pub user_sids: Packed<'a>,
    pub visible: Packed<'a>,
}

impl<'a> DenseInfo<'a> {
    /// Adds the columns of a DenseInfo message.
    fn read_columns(&mut self, message: &'a [u8]) -> FormatResult<()> {
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("DenseInfo"))? {
            match field.number {
                info::VERSION => self.versions.add(&field)?,
                info::TIMESTAMP => self.timestamps.add(&field)?,
                info::CHANGESET => self.changesets.add(&field)?,
                info::UID => self.uids.add(&field)?,
                info::USER_SID => self.user_sids.add(&field)?,
                info::VISIBLE => self.visible.add(&field)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn columns(&self) -> [(&Packed<'a>, &'static str); 6] {
        [
            (&self.versions, "versions"),
            (&self.timestamps, "timestamps"),
            (&self.changesets, "changesets"),
            (&self.uids, "uids"),
            (&self.user_sids, "user names"),
            (&self.visible, "visible flags"),
        ]
    }

    fn columns_mut(&mut self) -> [&mut Packed<'a>; 6] {
        [
            &mut self.versions,
            &mut self.timestamps,
            &mut self.changesets,
            &mut self.uids,
            &mut self.user_sids,
            &mut self.visible,
        ]
    }
}

impl<'a> DenseNodes<'a> {
    /// Finds the columns of a message. Fails if the length of a column differs from that of the column of ids. The
    /// column of tags and absent columns of metadata are not checked.
    pub fn parse(message: &'a [u8]) -> Result<Self, FormatError> {
        let dense = Self::parse_unchecked(message)?;
        dense.check_lengths()?;
        Ok(dense)
    }

    /// Does the same as [`parse`](Self::parse), but leaves out columns of metadata whose length is wrong. Returns the
    /// columns, whether any were left out, and the result of checking the lengths of the remaining columns.
    pub(super) fn parse_without_damaged_columns(
        message: &'a [u8],
    ) -> FormatResult<(Self, bool, FormatResult<()>)> {
        let mut dense = Self::parse_unchecked(message)?;
        let (len, mut left_out) = (dense.len, false);
        for column in dense.info.columns_mut() {
            if !column.is_empty() && column.count() != len {
                *column = Packed::default();
                left_out = true;
            }
        }
        let lengths = dense.check_lengths();
        Ok((dense, left_out, lengths))
    }

    /// Finds the columns of a message, and does not check their lengths.
    fn parse_unchecked(message: &'a [u8]) -> FormatResult<Self> {
        let mut dense = Self::default();
        let mut fields = Fields::new(message);
        while let Some(field) = fields.next().map_err(|error| error.within("DenseNodes"))? {
            match field.number {
                dense_nodes::ID => dense.ids.add(&field)?,
                dense_nodes::DENSEINFO => dense.info.read_columns(field.bytes()?)?,
                dense_nodes::LAT => dense.lats.add(&field)?,
                dense_nodes::LON => dense.lons.add(&field)?,
                dense_nodes::KEYS_VALS => dense.keys_vals.add(&field)?,
                _ => {}
            }
        }
        dense.len = dense.ids.count();
        Ok(dense)
    }

    fn check_lengths(&self) -> FormatResult<()> {
        let needed = [(&self.lats, "latitudes"), (&self.lons, "longitudes")];
        let optional = self
            .info
            .columns()
            .into_iter()
            .filter(|(column, _)| !column.is_empty());
        for (column, name) in needed.into_iter().chain(optional) {
            let count = column.count();
            if count != self.len {
                return Err(FormatError::with(format!(
                    "DenseNodes: {} ids but {count} {name}",
                    self.len
                )));
            }
        }
        Ok(())
    }

    /// Returns the number of nodes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the message has no nodes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a cursor that reads the metadata of selected nodes, in ascending order of their indices.
    pub(in crate::pbf) fn info_cursor(&self) -> InfoCursor<'_> {
        InfoCursor::new(self.raw_nodes())
    }

    /// Calls `visit` with each selected node: its id, its stored latitude and longitude, and its metadata. Only the
    /// version and the visibility are set in the metadata. For `select` and `needs_location`, see
    /// [`for_each_selected_location`](Self::for_each_selected_location).
    pub(super) fn for_each_selected_version(
        &self,
        select: &mut impl FnMut(&[i64], &mut Vec<usize>),
        selected: &mut Vec<usize>,
        needs_location: &mut impl FnMut(i64) -> bool,
        mut visit: impl FnMut(i64, Option<(i64, i64)>, &RawInfo),
    ) -> FormatResult<()> {
        let mut infos = self.version_info_cursor();
        infos.nodes.timestamps = Delta::NONE;
        self.for_each_selected_location(select, selected, needs_location, |index, id, stored| {
            visit(id, stored, &infos.info_at(index)?);
            Ok(())
        })
    }

    /// Calls `visit` with each selected node: its index, its id, and its stored latitude and longitude. `select` is
    /// called with the ids of consecutive nodes. It appends the indices of the selected ids in this slice to
    /// `selected`, in ascending order. If `needs_location` returns `false` for all nodes that one call of `select` has
    /// selected, their coordinates are not read, and `visit` gets `None` for them.
    pub(super) fn for_each_selected_location(
        &self,
        select: &mut impl FnMut(&[i64], &mut Vec<usize>),
        selected: &mut Vec<usize>,
        needs_location: &mut impl FnMut(i64) -> bool,
        mut visit: impl FnMut(usize, i64, Option<(i64, i64)>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let [mut ids, mut lats, mut lons] = [&self.ids, &self.lats, &self.lons].map(Delta::new);
        let mut columns = [[0; STRIDE]; 3];
        // The number of preceding nodes whose coordinates have been neither read nor skipped.
        let mut unread = 0;
        for start in (0..self.len).step_by(STRIDE) {
            let count = (self.len - start).min(STRIDE);
            let [id_column, lat_column, lon_column] = &mut columns;
            ids.fill(&mut id_column[..count])?;
            selected.clear();
            select(&id_column[..count], selected);
            let has_location = selected.iter().any(|at| needs_location(id_column[*at]));
            if has_location {
                for (column, values) in
                    [(&mut lats, &mut *lat_column), (&mut lons, &mut *lon_column)]
                {
                    column.skip(unread)?;
                    column.fill(&mut values[..count])?;
                }
            }
            unread = if has_location { 0 } else { unread + count };
            for at in &*selected {
                let stored = has_location.then_some((lat_column[*at], lon_column[*at]));
                visit(start + *at, id_column[*at], stored)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` with each selected node. `select` is called with the ids of all nodes, and appends the indices of
    /// the selected ones to `selected`, in ascending order.
    pub(super) fn for_each_selected(
        &self,
        select: &mut impl FnMut(&[i64], &mut Vec<usize>),
        selected: &mut Vec<usize>,
        mut visit: impl FnMut(RawNode<'_>) -> FormatResult<()>,
    ) -> FormatResult<()> {
        let mut ids = vec![0; self.len];
        Delta::new(&self.ids).fill(&mut ids)?;
        selected.clear();
        select(&ids, selected);
        let (mut nodes, mut next) = (self.raw_nodes(), 0);
        for at in &*selected {
            nodes.skip(at - next)?;
            next = at + 1;
            if let Some(node) = nodes.next()? {
                visit(node)?;
            }
        }
        Ok(())
    }

    /// Returns a cursor like [`info_cursor`](Self::info_cursor), but without changesets and users. It does not read
    /// their columns.
    pub(super) fn version_info_cursor(&self) -> InfoCursor<'_> {
        let mut nodes = self.raw_nodes();
        (nodes.changesets, nodes.uids, nodes.user_sids) = (Delta::NONE, Delta::NONE, Delta::NONE);
        InfoCursor::new(nodes)
    }

    /// Returns a cursor over the nodes in order, with the block's string ids and units.
    pub(crate) fn raw_nodes(&self) -> RawNodes<'_> {
        RawNodes {
            left: self.len,
            ids: Delta::new(&self.ids),
            lats: Delta::new(&self.lats),
            lons: Delta::new(&self.lons),
            keys_vals: self.keys_vals.values(),
            versions: self.info.versions.values(),
            timestamps: Delta::new(&self.info.timestamps),
            changesets: Delta::new(&self.info.changesets),
            uids: Delta::new(&self.info.uids),
            user_sids: Delta::new(&self.info.user_sids),
            visible: self.info.visible.values(),
        }
    }
}

/// One dense node, with the units and string ids of its block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawNode<'a> {
    pub id: i64,
    pub lat: i64,
    pub lon: i64,
    /// The encoded string ids of the tags. Keys and values alternate, and there is no closing 0.
    pub keys_vals: &'a [u8],
    pub info: RawInfo,
}

/// A cursor that reads all columns of a DenseNodes message together, node by node.
#[derive(Debug, Clone)]
pub(crate) struct RawNodes<'a> {
    left: usize,
    ids: Delta<'a>,
    lats: Delta<'a>,
    lons: Delta<'a>,
    keys_vals: Varints<'a>,
    versions: Varints<'a>,
    timestamps: Delta<'a>,
    changesets: Delta<'a>,
    uids: Delta<'a>,
    user_sids: Delta<'a>,
    visible: Varints<'a>,
}

impl<'a> RawNodes<'a> {
    // Inlining is forced, so that the large return value is built directly in the caller.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> FormatResult<Option<RawNode<'a>>> {
        if self.left == 0 {
            return if self.keys_vals.is_done() {
                Ok(None)
            } else {
                Err(tags_beyond_nodes_error())
            };
        }
        self.left -= 1;
        Ok(Some(RawNode {
            id: self.ids.read()?,
            lat: self.lats.read_coordinate()?,
            lon: self.lons.read_coordinate()?,
            keys_vals: next_tag_run(&mut self.keys_vals)?,
            info: self.next_info()?,
        }))
    }

    /// Skips nodes. Adds up the deltas of all skipped nodes at once, which is several times as fast as reading each
    /// value.
    pub(super) fn skip(&mut self, skipped: usize) -> FormatResult<()> {
        self.left = self.left.saturating_sub(skipped);
        for column in [&mut self.ids, &mut self.lats, &mut self.lons] {
            column.skip(skipped)?;
        }
        if !self.keys_vals.is_done() {
            for _ in 0..skipped {
                next_tag_run(&mut self.keys_vals)?;
            }
        }
        self.skip_infos(skipped)
    }

    /// Skips the metadata of nodes.
    fn skip_infos(&mut self, skipped: usize) -> FormatResult<()> {
        for column in [&mut self.versions, &mut self.visible] {
            if !column.is_done() {
                column.skip(skipped)?;
            }
        }
        for column in [
            &mut self.timestamps,
            &mut self.changesets,
            &mut self.uids,
            &mut self.user_sids,
        ] {
            column.skip(skipped)?;
        }
        Ok(())
    }

    /// Skips the remaining nodes.
    pub(in crate::pbf) fn skip_rest(&mut self) {
        (self.left, self.keys_vals) = (0, Varints::new(&[]));
    }

    /// Reads the metadata of the next node.
    #[inline(always)]
    fn next_info(&mut self) -> FormatResult<RawInfo> {
        let version = if self.versions.is_done() {
            0
        } else {
            self.versions.read()? as i32
        };
        let visible = if self.visible.is_done() {
            None
        } else {
            Some(self.visible.read()? != 0)
        };
        Ok(RawInfo {
            version: i64::from(version),
            timestamp: self.timestamps.read_or_zero()?,
            changeset: self.changesets.read_or_zero()?,
            uid: self.uids.read_or_zero()?,
            user_sid: if self.user_sids.is_done() {
                None
            } else {
                Some(string_id(self.user_sids.read()? as u64)?)
            },
            visible,
        })
    }
}

/// A cursor that reads the metadata of selected nodes of a DenseNodes message. It adds up all deltas between two
/// selected nodes at once, which is several times as fast as reading each value.
#[derive(Debug, Clone)]
pub(in crate::pbf) struct InfoCursor<'a> {
    nodes: RawNodes<'a>,
    /// The index of the next node.
    next: usize,
    /// The metadata of the node that was read last, whose index is `next - 1`.
    last: RawInfo,
}

impl<'a> InfoCursor<'a> {
    fn new(nodes: RawNodes<'a>) -> Self {
        Self {
            nodes,
            next: 0,
            last: RawInfo::default(),
        }
    }

    /// Returns the metadata of the node at `index`, which must not be smaller than in the previous call.
    pub(in crate::pbf) fn info_at(&mut self, index: usize) -> FormatResult<RawInfo> {
        if index >= self.next {
            if index > self.next {
                self.nodes.skip_infos(index - self.next)?;
            }
            self.next = index + 1;
            self.last = self.nodes.next_info()?;
        }
        Ok(self.last)
    }
}

/// Facts about the tags of dense nodes.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::pbf) struct TagFacts {
    /// The largest string id.
    pub largest_string: u64,
    /// The number of nodes with tags.
    pub tagged: u64,
    /// The number of tags.
    pub tags: u64,
}

/// Checks the tags in `keys_vals`, and returns facts about them. For every key, calls `each_key(node, key)` with the
/// index of the node and the string id of the key. `nodes` is the number of nodes. Fails if a key has no value, or if
/// `keys_vals` has tags of more nodes.
pub(in crate::pbf) fn check_tags(
    mut keys_vals: Varints<'_>,
    nodes: usize,
    mut each_key: impl FnMut(usize, u64),
) -> FormatResult<TagFacts> {
    let (mut facts, mut ended, mut is_open) = (TagFacts::default(), 0, false);
    while !keys_vals.is_done() {
        let key = keys_vals.read()?;
        if key == 0 {
            ended += 1;
            is_open = false;
            continue;
        }
        if keys_vals.is_done() {
            return Err(key_without_value_error());
        }
        each_key(ended, key);
        facts.tagged += u64::from(!is_open);
        facts.tags += 1;
        is_open = true;
        facts.largest_string = facts.largest_string.max(key).max(keys_vals.read()?);
    }
    // Some writers omit the 0 after the tags of the last node. So tags without a closing 0 count as the tags of one
    // more node.
    if ended + usize::from(is_open) <= nodes {
        Ok(facts)
    } else {
        Err(tags_beyond_nodes_error())
    }
}

fn key_without_value_error() -> FormatError {
    FormatError::new("DenseNodes: keys_vals: a key without value")
}

fn tags_beyond_nodes_error() -> FormatError {
    FormatError::new("DenseNodes: keys_vals of more nodes than there are")
}

/// Appends the field `keys_vals` for nodes without tags. The format allows writers to omit the field, but some readers
/// then lose the nodes.
pub(in crate::pbf) fn put_empty_keys_vals(nodes: usize, out: &mut Vec<u8>) {
    put_packed_field(out, dense_nodes::KEYS_VALS, &vec![0; nodes]);
}

/// Skips nodes in `keys_vals` up to the next node with tags, but at most `most` nodes. Returns the number of skipped
/// nodes.
pub(super) fn skip_untagged(keys_vals: &mut Varints<'_>, most: usize) -> FormatResult<usize> {
    let ends = keys_vals.rest().iter().take(most);
    let untagged = ends.take_while(|byte| **byte == 0).count();
    keys_vals.skip(untagged)?;
    Ok(untagged)
}

/// Reads the string ids of the next node's tags from `keys_vals`, without the closing 0. At the end of the column,
/// returns an empty slice. This is no error: the column may be absent if no node has tags, and some writers omit the
/// last 0.
#[inline]
pub(crate) fn next_tag_run<'a>(keys_vals: &mut Varints<'a>) -> FormatResult<&'a [u8]> {
    let (rest, start) = (keys_vals.rest(), keys_vals.position());
    // Most nodes have no tags, so this case comes first.
    if rest.first() == Some(&0) {
        keys_vals.read()?;
        return Ok(&[]);
    }
    while !keys_vals.is_done() {
        let end = keys_vals.position() - start;
        if keys_vals.read()? == 0 {
            return Ok(&rest[..end]);
        }
        if keys_vals.is_done() {
            return Err(key_without_value_error());
        }
        keys_vals.read()?;
    }
    Ok(rest)
}
