//! Compares blobs with their entries in an index.
//!
//! An entry from a table of contents or a per-blob index may contradict its blob, because the blob has been changed
//! since or the index was wrong from the start. Therefore, every decoded blob is compared with its entry.

use super::entry::{BlobEntry, BlobFlags};
use super::id_facts::IdFacts;
use super::scan::{Bounds, scan_payload};
use crate::error::{Advice, FormatError, FormatResult};
use crate::osm::{KindSet, ObjectKind};
use crate::pbf::block::messages::{NodeMessage, object_id};
use crate::pbf::block::outline::{BlockOutline, Message};
use crate::pbf::block::parsed::Block;
use crate::pbf::block::parsed::BlockMessage;
use crate::pbf::wire::Fields;
use crate::pbf::wire::Packed;
use crate::pbf::wire::schema::dense_nodes;

/// Fails if the kinds, the number, the id range or the order of the objects in `payload` contradict `entry`. Does not
/// compare an entry that is verified or has no facts.
pub(crate) fn verify_entry(payload: &[u8], entry: &BlobEntry) -> FormatResult<()> {
    if entry.flags.has(BlobFlags::VERIFIED) || !entry.is_indexed() {
        return Ok(());
    }
    if entry.has_only_kinds_known() {
        return verify_kinds(payload, entry);
    }
    let mut found = *entry;
    scan_ids(payload, &mut found)?;
    let [is_sorted, is_hashed] =
        [BlobFlags::SORTED, BlobFlags::HASHED].map(|flag| entry.flags.has(flag));
    if is_sorted && !is_hashed && !found.flags.has(BlobFlags::UNIQUE_IDS) {
        // If an id occurs twice, `SORTED` also promises that the versions of the object do not decrease. Only a full
        // scan reads the versions.
        scan_payload(payload, &mut found)?;
    }
    match entry.id_mismatch(&found) {
        Some(mismatch) => Err(stale_index_error(mismatch)),
        None => Ok(()),
    }
}

/// Fills in the kinds, the ids and the order of the objects in the payload of a blob.
pub(crate) fn scan_ids(payload: &[u8], entry: &mut BlobEntry) -> FormatResult<()> {
    let mut ids = IdFacts::default();
    for group in &BlockOutline::parse(payload)?.groups {
        group.try_for_each(|message| add_ids(message, &mut ids))?;
    }
    ids.fill_entry(entry);
    Ok(())
}

/// Whether `entry` proves that its blob is sorted and has exactly the nodes with the ids `nodes`. The ids must have
/// been read from the blob. For negative ids, the result may be `false` even if the blob has exactly these nodes.
pub(crate) fn has_exactly_nodes(nodes: &[i64], entry: &BlobEntry) -> bool {
    let ends = nodes.first().zip(nodes.last());
    entry.kinds == KindSet::of(ObjectKind::Node)
        && entry.flags.has(BlobFlags::SORTED)
        && entry.count as usize == nodes.len()
        && ends == Some((&entry.min_id, &entry.max_id))
}

/// Fails if `payload` has objects of a kind that `entry` does not have. The kinds in `entry` follow from the declared
/// order of the file.
fn verify_kinds(payload: &[u8], entry: &BlobEntry) -> FormatResult<()> {
    for group in &BlockOutline::parse(payload)?.groups {
        group.try_for_each(|message| match message.kind() {
            Some(kind) if !entry.kinds.contains(kind) => Err(FormatError::new(
                "the blob is out of order, although the header declares the order nodes, ways, relations",
            )
            .advise(Advice::Sort)),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

fn add_ids(message: Message<'_>, ids: &mut IdFacts) -> FormatResult<()> {
    let (kind, message) = match message {
        Message::Dense(message) => return add_dense_ids(message, ids),
        Message::Node(message) => (ObjectKind::Node, message),
        Message::Way(message) => (ObjectKind::Way, message),
        Message::Relation(message) => (ObjectKind::Relation, message),
        Message::Other => return Ok(()),
    };
    ids.add(kind, object_id(message, kind)?, 0);
    Ok(())
}

/// Adds the ids in a DenseNodes message, without decoding its other columns.
fn add_dense_ids(message: &[u8], ids: &mut IdFacts) -> FormatResult<()> {
    let (mut fields, mut column) = (Fields::new(message), Packed::default());
    while let Some(field) = fields.next()? {
        if field.number == dense_nodes::ID {
            column.add(&field)?;
        }
    }
    if column.is_empty() || ids.add_id_column(column.values(), || Ok(0))? {
        return Ok(());
    }
    let (mut deltas, mut id) = (column.values(), 0i64);
    while !deltas.is_done() {
        id = id.wrapping_add(deltas.read_sint()?);
        ids.add(ObjectKind::Node, id, 0);
    }
    Ok(())
}

impl Block<'_> {
    /// Returns whether all nodes have a location within the world, and thus in the bounding box of `entry`. If the
    /// entry is not verified, fails if a node within the world lies more than 1e-7 degree outside of the box.
    pub(crate) fn has_all_nodes_in_box(&self, entry: &BlobEntry) -> FormatResult<bool> {
        let bounds = self.bounds()?;
        // Other programs may round coordinates between two units differently, so a difference of 1e-7 degree is
        // accepted.
        let is_verified = entry.flags.has(BlobFlags::VERIFIED);
        let found = &bounds.bbox;
        if is_verified || found.is_empty() || entry.bbox.widened(1).encloses(found) {
            Ok(!bounds.leaves_out)
        } else {
            Err(stale_index_error("nodes lie outside of the box"))
        }
    }
}

impl Block<'_> {
    /// Returns the bounding box of the nodes within the world.
    fn bounds(&self) -> FormatResult<Bounds> {
        let mut bounds = Bounds::default();
        let mut messages = self.messages();
        while let Some(message) = messages.next()? {
            match message {
                BlockMessage::Dense(dense) => bounds.add_dense(dense, &self.units)?,
                BlockMessage::Single(ObjectKind::Node, message) => {
                    let node = NodeMessage::parse(message)?;
                    bounds.add(node.lat, node.lon, &self.units);
                }
                BlockMessage::Single(..) => {}
            }
        }
        Ok(bounds)
    }

    /// Calls `visit` with the id of each node outside of the world, and with its latitude and longitude in nanodegrees.
    /// Omits deleted nodes and nodes without a location.
    pub(crate) fn for_each_node_outside_world(
        &self,
        mut visit: impl FnMut(i64, i64, i64),
    ) -> FormatResult<()> {
        // In nearly all blocks, the extreme coordinates show that all nodes lie within the world. The nodes of such a
        // block need not be visited.
        if !self.bounds()?.leaves_out {
            return Ok(());
        }
        self.for_each_stored_location(|id, (lat, lon), _| {
            if self.units.is_outside_world(lat, lon) {
                visit(id, self.units.nano_lat(lat), self.units.nano_lon(lon));
            }
        })
    }
}

/// Returns the error for a blob that contradicts its index. `what` describes the contradiction.
pub(crate) fn stale_index_error(what: &str) -> FormatError {
    let cause = format!(
        "the blob contradicts the index of the file ({what}): the file was changed in place"
    );
    FormatError::with(cause).advise(Advice::RebuildIndex)
}
