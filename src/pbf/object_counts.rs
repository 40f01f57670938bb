//! Counts of objects, tags and metadata attributes in a block. Dense nodes are counted column by column, without
//! decoding them one by one.

use super::block::Block;
use super::dense::{Delta, DenseNodes};
use super::message_list::BlockMessage;
use super::messages::{NodeMessage, RawInfo, RelationMessage, WayMessage};
use super::outline::StringTable;
use crate::error::FormatError;
use crate::osm::ObjectKind;
use crate::pbf::wire::Packed;

/// Counts of objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ObjectCounts {
    pub objects: u64,
    pub with_version: u64,
    pub with_timestamp: u64,
    pub with_changeset: u64,
    pub with_uid: u64,
    pub with_user: u64,
    pub deleted: u64,
    pub tagged: u64,
    pub tags: u64,
    /// The number of references: nodes of ways, or members of relations.
    pub references: u64,
    /// The largest number of references of one object.
    pub most_references: u64,
    /// The earliest and the latest timestamp, in the units of the block; `None` if no object has a timestamp.
    pub times: Option<(i64, i64)>,
}

impl Block<'_> {
    /// The counts for nodes, ways and relations, in this order. Fails if a message is damaged.
    pub(crate) fn object_counts(&self) -> Result<[ObjectCounts; 3], FormatError> {
        let mut facts = [ObjectCounts::default(); 3];
        for message in self.messages() {
            let found = &mut facts[message.kind() as usize];
            match message {
                BlockMessage::Dense(dense) => found.add_dense(dense, &self.strings)?,
                BlockMessage::Single(ObjectKind::Node, bytes) => {
                    let node = NodeMessage::parse(bytes)?;
                    found.add_object(&node.info, &node.keys, &Packed::default(), &self.strings)?;
                }
                BlockMessage::Single(ObjectKind::Way, bytes) => {
                    let way = WayMessage::parse(bytes)?;
                    let info = RawInfo::parse_optional(way.info)?;
                    found.add_object(&info, &way.keys, &way.refs, &self.strings)?;
                }
                BlockMessage::Single(ObjectKind::Relation, bytes) => {
                    let relation = RelationMessage::parse(bytes)?;
                    let info = RawInfo::parse_optional(relation.info)?;
                    let (keys, ids) = (&relation.keys, &relation.member_ids);
                    found.add_object(&info, keys, ids, &self.strings)?;
                }
            }
        }
        Ok(facts)
    }
}

impl ObjectCounts {
    fn add_object(
        &mut self,
        info: &RawInfo,
        keys: &Packed<'_>,
        references: &Packed<'_>,
        strings: &StringTable<'_>,
    ) -> Result<(), FormatError> {
        self.objects += 1;
        self.with_version += u64::from(info.version > 0);
        self.with_changeset += u64::from(info.changeset > 0);
        self.with_uid += u64::from(info.uid > 0);
        self.with_user += u64::from(names_a_user(info.user_sid.into(), strings)?);
        self.deleted += u64::from(info.visible == Some(false));
        if info.timestamp != 0 {
            self.with_timestamp += 1;
            self.add_time(info.timestamp);
        }
        let (tags, references) = (keys.count() as u64, references.count() as u64);
        self.tagged += u64::from(tags > 0);
        self.tags += tags;
        self.references += references;
        self.most_references = self.most_references.max(references);
        Ok(())
    }

    fn add_time(&mut self, time: i64) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }

    fn add_dense(
        &mut self,
        dense: &DenseNodes<'_>,
        strings: &StringTable<'_>,
    ) -> Result<(), FormatError> {
        let info = &dense.info;
        self.objects += dense.len() as u64;
        let mut versions = info.versions.values();
        while !versions.is_done() {
            self.with_version += u64::from(versions.read()? as i32 > 0);
        }
        self.with_changeset += count_positive(&info.changesets)?;
        self.with_uid += count_positive(&info.uids)?;
        let mut users = Delta::new(&info.user_sids);
        // Consecutive nodes often have the same user.
        let (mut last, mut has_name) = (0, false);
        while !users.is_done() {
            let user = users.read()?;
            if user != last {
                (last, has_name) = (user, names_a_user(user as u64, strings)?);
            }
            self.with_user += u64::from(has_name);
        }
        let mut visible = info.visible.values();
        while !visible.is_done() {
            self.deleted += u64::from(visible.read()? == 0);
        }
        let mut times = Delta::new(&info.timestamps);
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        while !times.is_done() {
            let time = times.read()?;
            if time != 0 {
                self.with_timestamp += 1;
                (first, last) = (first.min(time), last.max(time));
            }
        }
        if first <= last {
            self.add_time(first);
            self.add_time(last);
        }
        self.add_dense_tags(dense)
    }

    fn add_dense_tags(&mut self, dense: &DenseNodes<'_>) -> Result<(), FormatError> {
        let mut ids = dense.keys_vals.values();
        let mut tags = 0;
        while !ids.is_done() {
            if ids.read()? == 0 {
                self.tagged += u64::from(tags > 0);
                self.tags += tags;
                tags = 0;
            } else {
                ids.read()?;
                tags += 1;
            }
        }
        // Some writers omit the last 0.
        self.tagged += u64::from(tags > 0);
        self.tags += tags;
        Ok(())
    }
}

fn count_positive(column: &Packed<'_>) -> Result<u64, FormatError> {
    let (mut values, mut count) = (Delta::new(column), 0);
    while !values.is_done() {
        count += u64::from(values.read()? > 0);
    }
    Ok(count)
}

fn names_a_user(sid: u64, strings: &StringTable<'_>) -> Result<bool, FormatError> {
    Ok(sid != 0 && !strings.get(sid)?.is_empty())
}
