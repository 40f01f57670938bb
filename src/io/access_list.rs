//! POSIX access control lists, as Linux stores them in an extended attribute (`linux/posix_acl_xattr.h`).

/// The version of the format.
const VERSION: u32 = 2;
/// The size of an entry in bytes. An entry has a tag and permissions of 16 bits each, and an id of 32 bits, all
/// little-endian.
const ENTRY: usize = 8;

/// The tag of the entry for the file's group.
const GROUP_OBJ: u16 = 0x04;
/// The tag of the entry for other users.
const OTHER: u16 = 0x20;
/// The tag of the mask. The mask limits all permissions except those of the file's owner and of other users.
const MASK: u16 = 0x10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AccessEntry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// An access control list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessList(Vec<AccessEntry>);

impl AccessList {
    /// Parses a list; `None` if its format is unknown.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != VERSION || !entries.len().is_multiple_of(ENTRY) {
            return None;
        }
        let (entries, _) = entries.as_chunks::<ENTRY>();
        let entry = |&[a, b, c, d, e, f, g, h]: &[u8; ENTRY]| AccessEntry {
            tag: u16::from_le_bytes([a, b]),
            permissions: u16::from_le_bytes([c, d]),
            id: u32::from_le_bytes([e, f, g, h]),
        };
        Some(Self(entries.iter().map(entry).collect()))
    }

    /// Returns the list in its stored format.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            bytes.extend(entry.tag.to_le_bytes());
            bytes.extend(entry.permissions.to_le_bytes());
            bytes.extend(entry.id.to_le_bytes());
        }
        bytes
    }

    fn permissions(&self, tag: u16) -> Option<u16> {
        let entry = self.0.iter().find(|entry| entry.tag == tag);
        entry.map(|entry| entry.permissions)
    }

    /// Returns the permissions that the mask allows; `None` if the list has no mask. The mask does not limit the file's
    /// owner and other users.
    pub(super) fn mask(&self) -> Option<u32> {
        self.permissions(MASK).map(u32::from)
    }

    /// Returns the effective permissions of the file's group.
    pub(super) fn group_permissions(&self) -> u32 {
        let group = self.permissions(GROUP_OBJ).unwrap_or(0);
        u32::from(group & self.permissions(MASK).unwrap_or(0o7))
    }

    /// Returns the permissions that the file's group and other users have in common.
    pub(super) fn shared_permissions(&self) -> u32 {
        self.group_permissions() & self.other_permissions()
    }

    /// Returns the permissions of other users.
    pub(super) fn other_permissions(&self) -> u32 {
        self.permissions(OTHER).map_or(0, u32::from)
    }

    /// Returns the list for the file after a change of its group. Members of the new group were other users before, and
    /// members of the old group become other users. Nobody may gain permissions, so the new group and other users both
    /// get only the permissions that the old group and other users had in common.
    pub(super) fn for_new_group(mut self) -> Self {
        let shared = self.shared_permissions() as u16;
        for entry in &mut self.0 {
            if matches!(entry.tag, GROUP_OBJ | OTHER) {
                entry.permissions = shared;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the list `user::rw-`, `user:1000:rw-`, `group::r--`, `mask::rw-`, `other::r--`.
    fn list() -> AccessList {
        let entry = |(tag, permissions, id)| AccessEntry {
            tag,
            permissions,
            id,
        };
        let none = u32::MAX;
        let entries = [
            (1, 6, none),
            (2, 6, 1000),
            (GROUP_OBJ, 4, none),
            (MASK, 6, none),
            (OTHER, 4, none),
        ];
        AccessList(entries.map(entry).to_vec())
    }

    #[test]
    fn a_list_is_read_as_it_is_stored() {
        let bytes = list().to_bytes();
        assert_eq!(bytes.len(), 4 + 5 * 8);
        assert_eq!(AccessList::parse(&bytes), Some(list()));
        assert_eq!(AccessList::parse(&bytes[..21]), None);
        assert_eq!(AccessList::parse(&[9, 0, 0, 0]), None);
        assert_eq!(AccessList::parse(&[]), None);
    }

    #[test]
    fn a_mask_is_not_the_permissions_of_the_group() {
        assert_eq!(list().mask(), Some(6));
        assert_eq!(list().group_permissions(), 4);
    }

    #[test]
    fn another_group_gets_only_what_group_and_others_both_had() {
        let with = |group: u16, mask: u16, other: u16| {
            let mut list = list();
            for entry in &mut list.0 {
                match entry.tag {
                    GROUP_OBJ => entry.permissions = group,
                    MASK => entry.permissions = mask,
                    OTHER => entry.permissions = other,
                    _ => {}
                }
            }
            list
        };
        for (group, mask, other, shared) in [
            (4, 6, 4, 4),
            (6, 6, 4, 4),
            (4, 6, 0, 0),
            (6, 2, 4, 0),
            (0, 6, 4, 0),
            (6, 7, 6, 6),
        ] {
            let list = with(group, mask, other).for_new_group();
            assert_eq!(list.shared_permissions(), shared);
            // The entry of a user, and the mask that limits it, stay as they are.
            assert_eq!(list, with(shared as u16, mask, shared as u16));
        }
    }
}
