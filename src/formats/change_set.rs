//! Change sets: the changes of one or more change files.

mod draft;
mod limits;
mod newest;
mod objects;
#[cfg(test)]
mod tests;

pub(super) use draft::Draft;
pub(crate) use newest::KeptVersions;
pub(super) use newest::NewestChanges;

use super::change_action::ChangeAction;
use super::change_state::ChangeState;
use super::document_header::{DocumentHeader, Replication};
use crate::osm::{Age, Location, ObjectId, ObjectKind, StringPool, TypeThenId, Unversioned};
use crate::pbf::{Info, Member, Object, ObjectBody};
use crate::runtime::{Context, sort_by};
use limits::check_lens_fit_u32;
use std::cmp::Ordering;
use std::ops::Range;

/// One change of one object. Its strings and lists are stored in the [`ChangeSet`].
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// The sort key of the object in canonical order.
    pub key: TypeThenId,
    /// The effect of the change on the object.
    pub action: ChangeAction,
    /// Version of the object. `None` counts as newer than any version.
    pub version: Option<u32>,
    /// Time of the version in seconds since 1970.
    pub timestamp: Option<i64>,
    /// The number of the change file. Files are counted from 0 in the order of reading.
    pub(crate) file: u32,
    pub(super) changeset: Option<i64>,
    pub(super) uid: Option<i32>,
    pub(super) user: u32,
    pub(super) location: Option<Location>,
    pub(super) tags: Span,
    pub(super) refs: Span,
    /// For a way, the locations of its nodes, one per entry of `refs`; empty if the file gives no locations. For a
    /// relation, the kinds and roles of its members.
    pub(super) details: Span,
}

// The documentation of commands states this size.
const _: () = assert!(size_of::<Change>() <= 112);

/// The placeholder in node references for a node whose id the file does not give. Only files that are read for geometry
/// may have such nodes.
pub(crate) const NO_ID: i64 = i64::MIN;

/// A way that is a member of a relation, with the nodes that the relation lists for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberWay {
    /// The id of the way.
    pub id: i64,
    /// The locations of the nodes; `None` for nodes that were left out because they lie outside of a box.
    pub locations: Vec<Option<Location>>,
}

/// A range of one of the lists of a [`ChangeSet`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    fn slice<'a, T>(&self, list: &'a [T]) -> &'a [T] {
        &list[self.start as usize..self.end as usize]
    }

    /// Returns the range of the same entries after `start` other entries were prepended to the list.
    const fn shifted_by(self, start: u32) -> Self {
        Self {
            start: self.start + start,
            end: self.end + start,
        }
    }
}

/// The rule that selects among changes of one object with equal versions and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameTime {
    /// Keeps the change that was read last.
    LastRead,
    /// Prefers a modification to a creation, and a creation to a deletion, whatever the order of the files. This is the
    /// rule for change files of several extracts for the same period.
    Existing,
}

impl Change {
    /// Returns the precedence of the action under [`SameTime::Existing`]. If an object moves to an adjacent extract,
    /// the change file of the old extract deletes the object, although it still exists. The change file of the new
    /// extract creates the object, although it is not new.
    const fn precedence(&self) -> u8 {
        match self.action {
            ChangeAction::Delete => 0,
            ChangeAction::Create => 1,
            ChangeAction::Modify => 2,
        }
    }

    /// Whether the change deletes the object.
    pub fn is_deletion(&self) -> bool {
        self.action == ChangeAction::Delete
    }

    /// Whether two changes are different versions of one object. Returns false if a version number is missing.
    pub(crate) fn is_other_version_of(&self, other: &Self) -> bool {
        let versions = self.version.zip(other.version);
        self.key == other.key && versions.is_some_and(|(one, two)| one != two)
    }

    /// Whether this change replaces its object in the base file. `version` and `timestamp` are those of the object in
    /// the base file. A change replaces an object without a version, and an object with a lower version. If the
    /// versions are equal, the change replaces an object without a time, and an object that is not newer than the
    /// change.
    pub fn replaces(&self, version: Option<u32>, timestamp: Option<i64>) -> bool {
        let Some(base_version) = version else {
            return true;
        };
        match self.rank().0.cmp(&base_version) {
            Ordering::Equal => timestamp.is_none_or(|base_time| self.rank().1 >= base_time),
            order => order == Ordering::Greater,
        }
    }

    /// Whether this change replaces `kept`, an earlier change of the same object.
    fn supersedes(&self, kept: &Self, same_time: SameTime) -> bool {
        let age = |change: &Self| Age {
            version: change.version,
            timestamp: change.timestamp,
        };
        match same_time {
            SameTime::LastRead => age(self).supersedes(age(kept), Unversioned::Newest),
            // The result must not depend on the order of the files, so even a change without a version or a time has a
            // rank.
            SameTime::Existing => {
                (self.rank(), self.precedence()) >= (kept.rank(), kept.precedence())
            }
        }
    }

    /// Returns the rank among changes of one object: version, then time. A missing version or time ranks highest.
    fn rank(&self) -> (u32, i64) {
        (
            self.version.unwrap_or(u32::MAX),
            self.timestamp.unwrap_or(i64::MAX),
        )
    }
}

/// Changes of any number of objects. In a set from [`read_change_files`](super::read_change_files), the changes are in
/// canonical order, with at most one change per object. In the sets that `read_texts` passes to its closure, the
/// changes are in file order.
#[derive(Debug, Default)]
pub struct ChangeSet {
    changes: Vec<Change>,
    pub(super) strings: StringPool,
    /// String ids of keys and values, alternating.
    pub(super) tags: Vec<u32>,
    /// Node ids of ways, member ids of relations.
    pub(super) refs: Vec<i64>,
    /// Kind and role (a string id) of the members of relations.
    pub(super) roles: Vec<(ObjectKind, u32)>,
    /// The locations of nodes of ways; `None` for nodes whose location the file does not give.
    pub(super) locations: Vec<Option<Location>>,
    /// The nodes that relations list for member ways, in a file that was read for geometry.
    pub(crate) member_ways: Vec<MemberWay>,
    pub(super) document_header: DocumentHeader,
    /// The replication states of the change files. A file without a state has no entry.
    states: Vec<ChangeState>,
    /// Whether the input looks like a history file: some object is marked as deleted (`visible="false"` in XML, `dD` in
    /// OPL), or several versions of one object follow each other.
    pub(super) is_history: bool,
    /// The messages of the server that wrote the file (`<remark>`).
    pub(super) remarks: Vec<String>,
    /// The number of objects that were left out because the user of an editor deleted them.
    pub(super) deleted_in_editor: u64,
    /// The number of changesets that were left out.
    pub(super) changesets: u64,
}

impl ChangeSet {
    /// Returns the changes, in canonical order if the set was sorted.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the replication state after all files that were read into this set.
    pub const fn replication(&self) -> &Replication {
        &self.document_header.replication
    }

    /// Returns the replication states of the change files in this set. A file without a state has no entry.
    pub fn states(&self) -> &[ChangeState] {
        &self.states
    }

    /// Returns the document header of the text file. If several files were read, their headers are combined.
    pub const fn document_header(&self) -> &DocumentHeader {
        &self.document_header
    }

    /// Whether the input looks like a history file: some object is marked as deleted (`visible="false"` in XML, `dD` in
    /// OPL), or several versions of one object follow each other.
    pub const fn is_history(&self) -> bool {
        self.is_history
    }

    /// Returns the messages of the server that wrote the file (`<remark>`). They mean that data may be missing.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the number of objects that were left out because the user of an editor deleted them (`action="delete"`).
    pub const fn deleted_in_editor(&self) -> u64 {
        self.deleted_in_editor
    }

    /// Returns the number of changesets that were left out.
    pub(crate) const fn changesets(&self) -> u64 {
        self.changesets
    }

    /// Sets the number of the change file, for all changes of the set.
    pub(super) fn set_file(&mut self, number: u32) {
        self.changes
            .iter_mut()
            .for_each(|change| change.file = number);
    }

    /// Sorts the changes into canonical order, and keeps the newest change of each object.
    pub(crate) fn keep_newest(&mut self, ctx: &Context) {
        self.sort_and_keep(KeptVersions::Newest, SameTime::LastRead, ctx);
    }

    pub(super) fn set_states(&mut self, states: Vec<ChangeState>) {
        for state in &states {
            self.document_header.replication.add(&state.after);
        }
        self.states = states;
    }

    /// Appends the changes of another set. Fails if the lists or strings become longer than 32 bits can address.
    pub(crate) fn append(&mut self, other: Self) -> Result<(), String> {
        if self.changes.is_empty() && self.strings.is_empty() {
            let empty = std::mem::replace(self, other);
            self.document_header.add(empty.document_header);
            self.is_history |= empty.is_history;
            self.remarks.extend(empty.remarks);
            self.member_ways.extend(empty.member_ways);
            self.deleted_in_editor += empty.deleted_in_editor;
            self.changesets += empty.changesets;
            return Ok(());
        }
        let strings: Vec<u32> = (0..other.strings.len() as u32)
            .map(|id| self.strings.add(other.strings.get(id)))
            .collect();
        let string = |id: u32| strings[id as usize];
        let starts = [
            self.tags.len(),
            self.refs.len(),
            self.locations.len(),
            self.roles.len(),
        ];
        self.tags.extend(other.tags.iter().map(|id| string(*id)));
        self.refs.extend_from_slice(&other.refs);
        let roles = other
            .roles
            .iter()
            .map(|(kind, role)| (*kind, string(*role)));
        self.roles.extend(roles);
        self.locations.extend_from_slice(&other.locations);
        let lens = [self.tags.len(), self.refs.len(), self.locations.len()];
        check_lens_fit_u32(&self.strings, lens)?;
        let [tags, refs, locations, roles] = starts.map(|start| start as u32);
        self.changes
            .extend(other.changes.iter().map(|change| Change {
                user: string(change.user),
                tags: change.tags.shifted_by(tags),
                refs: change.refs.shifted_by(refs),
                details: change.details.shifted_by(match change.kind() {
                    ObjectKind::Relation => roles,
                    ObjectKind::Node | ObjectKind::Way => locations,
                }),
                ..*change
            }));
        self.document_header.add(other.document_header);
        self.is_history |= other.is_history;
        self.remarks.extend(other.remarks);
        self.member_ways.extend(other.member_ways);
        self.deleted_in_editor += other.deleted_in_editor;
        self.changesets += other.changesets;
        Ok(())
    }

    /// Sorts the changes into canonical order, and keeps the wanted versions of each object. If several changes have
    /// the same version, the change with the latest time is kept. If their times are equal or missing, `same_time`
    /// decides. Changes without a version count as one version if they have the same time and changeset.
    pub(super) fn sort_and_keep(
        &mut self,
        versions: KeptVersions,
        same_time: SameTime,
        ctx: &Context,
    ) {
        // The sort is stable, so changes that are equal under the order keep the order in which they were read.
        sort_by(&mut self.changes, ctx, |one, other| {
            one.key.cmp(&other.key).then_with(|| match versions {
                KeptVersions::Newest => Ordering::Equal,
                KeptVersions::All => one.rank().cmp(&other.rank()),
            })
        });
        self.changes.dedup_by(|later, kept| {
            let is_same_version = match later.version {
                Some(_) => later.version == kept.version,
                None => (later.rank(), later.changeset) == (kept.rank(), kept.changeset),
            };
            let same =
                later.key == kept.key && (versions == KeptVersions::Newest || is_same_version);
            if same && later.supersedes(kept, same_time) {
                *kept = *later;
            }
            same
        });
    }

    /// Returns the indexes of the changes from key `first` to key `last`, both included. The set must be in canonical
    /// order.
    pub fn range(&self, first: TypeThenId, last: TypeThenId) -> Range<usize> {
        let start = self.changes.partition_point(|change| change.key < first);
        let rest = &self.changes[start..];
        // The range is mostly short, so its end is first searched among few changes, and then among twice as many.
        let mut most = 1;
        while most < rest.len() && rest[most - 1].key <= last {
            most *= 2;
        }
        let rest = &rest[..most.min(rest.len())];
        start..start + rest.partition_point(|change| change.key <= last)
    }

    /// Returns the location that a change gives its node; `None` for a deletion or a location that is not on earth.
    pub(crate) fn location(change: &Change) -> Option<Location> {
        if change.is_deletion() {
            None
        } else {
            change.location.filter(|location| location.is_on_earth())
        }
    }

    /// Whether a change lists tags of the object. A deletion can list tags, too.
    pub(crate) const fn has_tags(change: &Change) -> bool {
        change.tags.start < change.tags.end
    }

    /// Returns the node ids of a changed way; none for a deletion or for another kind of object.
    pub(crate) fn refs(&self, change: &Change) -> &[i64] {
        match change.key.0 {
            ObjectKind::Way if !change.is_deletion() => change.refs.slice(&self.refs),
            _ => &[],
        }
    }

    /// Returns the locations that a changed way gives its nodes, in the order of [`refs`](Self::refs). Returns no
    /// locations for a deletion, for another kind of object, or if the file has none.
    pub(crate) fn way_locations(&self, change: &Change) -> &[Option<Location>] {
        match change.key.0 {
            ObjectKind::Way if !change.is_deletion() => self.given_locations(change),
            _ => &[],
        }
    }

    /// Returns the ids of the node members of a changed relation; none for another kind of object. Unlike
    /// [`refs`](Self::refs), also returns members that a deletion lists.
    pub(crate) fn node_members(&self, change: &Change) -> impl Iterator<Item = i64> {
        let kinds = self.roles(change).iter().map(|(kind, _)| *kind);
        let members = change.refs.slice(&self.refs).iter().copied().zip(kinds);
        members
            .filter(|(_, kind)| *kind == ObjectKind::Node)
            .map(|(id, _)| id)
    }

    /// Returns the members of a changed relation; none for a deletion or for another kind of object.
    pub(crate) fn member_ids(&self, change: &Change) -> impl Iterator<Item = ObjectId> {
        let roles = if change.is_deletion() {
            &[]
        } else {
            self.roles(change)
        };
        let kinds = roles.iter().map(|(kind, _)| *kind);
        let ids = change.refs.slice(&self.refs).iter().copied().zip(kinds);
        ids.map(|(id, kind)| ObjectId { kind, id })
    }

    /// Returns the locations that the change file gives the nodes of a changed or deleted way, in the order of its node
    /// references. Returns no locations for another kind of object, or if the file has none.
    pub(crate) fn given_locations(&self, change: &Change) -> &[Option<Location>] {
        match change.kind() {
            ObjectKind::Way => change.details.slice(&self.locations),
            ObjectKind::Node | ObjectKind::Relation => &[],
        }
    }

    /// Returns the kinds and roles of the members of a changed relation, in the order of its refs. Returns none for
    /// another kind of object.
    fn roles(&self, change: &Change) -> &[(ObjectKind, u32)] {
        match change.kind() {
            ObjectKind::Relation => change.details.slice(&self.roles),
            ObjectKind::Node | ObjectKind::Way => &[],
        }
    }

    /// Removes the changes that `is_kept` rejects.
    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&Change) -> bool) {
        self.changes.retain(is_kept);
    }

    /// Sets the node locations of all created and modified ways to the results of `find`. Calls `find` with the id of
    /// each node and its location in the change file. Removes the node locations of all other changes.
    pub(crate) fn set_way_locations(
        &mut self,
        mut find: impl FnMut(i64, Option<Location>) -> Option<Location>,
    ) {
        let mut locations = Vec::new();
        for change in &mut self.changes {
            if change.kind() != ObjectKind::Way {
                continue;
            }
            if change.is_deletion() {
                change.details = Span::default();
                continue;
            }
            let refs = change.refs.slice(&self.refs);
            let given = change.details.slice(&self.locations);
            let start = locations.len() as u32;
            locations.extend(
                refs.iter()
                    .enumerate()
                    .map(|(at, id)| find(*id, given.get(at).copied().flatten())),
            );
            change.details = Span {
                start,
                end: locations.len() as u32,
            };
        }
        self.locations = locations;
    }

    /// Returns the ids of the objects of all changes, in order.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let changes = self.changes.iter();
        changes.map(Change::object_id)
    }

    /// Returns the objects of all changes, in order, each with its change.
    pub fn iter(&self) -> impl Iterator<Item = (&Change, Object<'_>)> {
        let changes = self.changes.iter();
        changes.map(|change| (change, self.object(change)))
    }

    /// Returns the object that a change creates, modifies or deletes.
    pub fn object(&self, change: &Change) -> Object<'_> {
        let user = self.string(change.user);
        let tags = change.tags.slice(&self.tags).chunks_exact(2);
        Object {
            id: change.id(),
            info: Info {
                version: change.version,
                timestamp: change.timestamp,
                changeset: change.changeset,
                uid: change.uid,
                user: (!user.is_empty()).then_some(user),
                visible: !change.is_deletion(),
            },
            tags: tags
                .map(|pair| (self.string(pair[0]), self.string(pair[1])))
                .collect(),
            body: match change.key.0 {
                ObjectKind::Node => ObjectBody::Node {
                    location: change.location,
                },
                ObjectKind::Way => ObjectBody::Way {
                    refs: change.refs.slice(&self.refs).into(),
                    locations: self.given_locations(change).into(),
                },
                ObjectKind::Relation => ObjectBody::Relation {
                    members: self.members(change).collect(),
                },
            },
        }
    }

    /// Returns the members of a relation.
    fn members(&self, change: &Change) -> impl Iterator<Item = Member<'_>> {
        let refs = change.refs.slice(&self.refs).iter();
        let members = refs.zip(self.roles(change));
        members.map(|(&id, &(kind, role))| Member {
            kind,
            id,
            role: self.string(role),
        })
    }

    fn string(&self, id: u32) -> &str {
        self.strings.get(id)
    }
}

impl Change {
    /// Returns the kind of the object.
    pub const fn kind(&self) -> ObjectKind {
        self.key.0
    }

    /// Returns the id of the object.
    pub const fn id(&self) -> i64 {
        self.object_id().id
    }

    /// Returns the kind and the id of the object.
    pub(crate) const fn object_id(&self) -> ObjectId {
        ObjectId::from_sort_key(self.key)
    }

    /// Returns the changeset that the change belongs to; `None` if it is unknown.
    pub(crate) const fn changeset(&self) -> Option<i64> {
        self.changeset
    }

    /// Returns the location that the change gives its node; `None` for another kind of object, for a deletion, and for
    /// a location that is not on earth.
    pub fn location(&self) -> Option<Location> {
        ChangeSet::location(self)
    }
}
