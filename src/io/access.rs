//! Gives a file the access of the file that it replaces: owner, group, permissions, access control list and extended
//! attributes. The new file is never accessible to more users than the old one.

#[cfg(target_os = "linux")]
use attributes::has_access_list;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Copies the owner, group, permissions, access control list and extended attributes from the file at `path` to `file`,
/// which will replace it. An attribute that the process may not set keeps its value in `file`, but `file` is never
/// accessible to more users than the old file. If the group cannot be kept, the new group and other users get only the
/// permissions that the old group and other users had in common. Returns a warning if permissions of the old group, the
/// access control list or extended attributes could not be kept. Does nothing if there is no file at `path`.
#[cfg(unix)]
pub(super) fn copy_attributes(path: &Path, file: &File) -> Option<String> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let metadata = path.metadata().ok()?;
    let (owner, group) = (metadata.uid(), metadata.gid());
    let mut mode = metadata.permissions().mode();
    let is_kept =
        fchown(file, Some(owner), Some(group)).is_ok() || fchown(file, None, Some(group)).is_ok();
    // The members of the new group were other users before, and those of the old group become other users.
    let is_group_lost = !is_kept && file.metadata().is_ok_and(|own| own.gid() != group);
    #[cfg(target_os = "linux")]
    let lost = {
        let (copied, mut lost) = attributes::copy(path, file, is_group_lost);
        let old = mode;
        mode = mode & !0o070 | copied.group.map_or(mode, |bits| bits << 3) & 0o070;
        mode = match copied.others {
            Some(others) => mode & !0o007 | others & 0o007,
            None if is_group_lost => mode_for_new_group(mode),
            None => mode,
        };
        if mode != old && is_group_lost && copied.others.is_none() {
            lost.add("group");
        }
        lost.warning(path)
    };
    #[cfg(not(target_os = "linux"))]
    let lost = {
        if is_group_lost {
            mode = mode_for_new_group(mode);
        }
        None
    };
    let _ = file.set_permissions(Permissions::from_mode(mode));
    lost
}

/// Copies the attributes of the most restricted of the files at `paths` to `file`, as [`copy_attributes`] does. `file`
/// will replace all of these files. The group and other users get only the permissions that they have for each of the
/// files. The owner gets at least the permissions `least`. Returns the warning of [`copy_attributes`]. Does nothing if
/// none of the files exists.
#[cfg(unix)]
pub(super) fn copy_narrowest_access(paths: &[PathBuf], file: &File, least: u32) -> Option<String> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mut old: Vec<_> = paths
        .iter()
        .filter_map(|path| Some((path, path.metadata().ok()?)))
        .collect();
    old.sort_by_cached_key(|(path, metadata)| {
        (
            (metadata.mode() & 0o077).count_ones(),
            has_access_list(path),
        )
    });
    let ((narrowest, _), others) = old.split_first()?;
    let warning = copy_attributes(narrowest, file);
    let Ok(own) = file.metadata() else {
        return warning;
    };
    let shared = others.iter().fold(0o077_u32, |shared, (_, other)| {
        let mode = other.mode();
        let is_of_group = other.gid() == own.gid();
        shared
            & if is_of_group {
                mode
            } else {
                mode_for_new_group(mode)
            }
    });
    let mode = own.mode() & (!0o077 | shared) | least;
    if mode != own.mode() {
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
    warning
}

/// Returns `false`, because access control lists are not read on this system.
#[cfg(all(unix, not(target_os = "linux")))]
const fn has_access_list(_: &Path) -> bool {
    false
}

/// Returns the mode for a file of another group: the new group and other users get only the permissions that the old
/// group and other users had in common.
#[cfg(unix)]
const fn mode_for_new_group(mode: u32) -> u32 {
    let shared = (mode >> 3) & mode & 0o7;
    mode & !0o077 | shared << 3 | shared
}

/// Does nothing, because a new file has the permissions of its directory.
#[cfg(windows)]
pub(super) const fn copy_attributes(_: &Path, _: &File) -> Option<String> {
    None
}

/// Does nothing, because a new file has the permissions of its directory.
#[cfg(windows)]
pub(super) const fn copy_narrowest_access(_: &[PathBuf], _: &File, _: u32) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
mod attributes {
    use super::super::access_list::AccessList;
    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr};
    use std::ffi::{CStr, CString};
    use std::fs::File;
    use std::path::Path;

    /// The extended attribute that holds the access control list.
    const LIST: &CStr = c"system.posix_acl_access";
    /// Prefixes of the names of attributes that are not copied. Such attributes cannot be set, or describe the content
    /// of the file rather than the access to it.
    const OF_SYSTEM: [&str; 4] = ["system.", "security.ima", "security.evm", "btrfs."];

    /// The names of the attributes that could not be copied to the new file.
    #[derive(Debug, Default)]
    pub(super) struct Lost {
        names: Vec<String>,
    }

    /// The mode bits of the new file that follow from an access control list. A field is `None` if the bits are instead
    /// derived from the mode of the old file.
    #[derive(Debug, Default, Clone, Copy)]
    pub(super) struct Copied {
        /// The permissions of the group. If the new file has an access control list, these bits are its mask.
        pub group: Option<u32>,
        /// The permissions of other users in the access control list of the new file.
        pub others: Option<u32>,
    }

    impl Lost {
        /// Adds an attribute that could not be kept.
        pub(super) fn add(&mut self, name: &str) {
            self.names.push(name.to_owned());
        }

        pub(super) fn warning(&self, path: &Path) -> Option<String> {
            if self.names.is_empty() {
                return None;
            }
            Some(format!(
                "{}: the new file does not have these attributes of the old one: {}; access is not wider than before",
                path.display(),
                self.names.join(", ")
            ))
        }
    }

    /// Copies the extended attributes and the access control list of the file at `path` to `file`. `is_group_lost`
    /// tells whether `file` belongs to another group. Returns the bits of the mode that follow from the list, and the
    /// attributes that were lost.
    pub(super) fn copy(path: &Path, file: &File, is_group_lost: bool) -> (Copied, Lost) {
        let mut lost = Lost::default();
        for name in attribute_names(path) {
            let text = name.to_string_lossy();
            if OF_SYSTEM.iter().any(|prefix| text.starts_with(prefix)) {
                continue;
            }
            let is_set = attribute_value(path, &name).is_some_and(|value| {
                attribute_value_of_file(file, &name).as_ref() == Some(&value)
                    || fsetxattr(file, name.as_c_str(), &value, XattrFlags::empty()).is_ok()
            });
            if !is_set {
                lost.names.push(text.into_owned());
            }
        }
        let Some(list) = attribute_value(path, LIST) else {
            // The default access control list of the directory may give more users access to the new file than had
            // access to the old file.
            let _ = fremovexattr(file, LIST);
            return (Copied::default(), lost);
        };
        let with_group = |group| Copied {
            group: Some(group),
            others: None,
        };
        let Some(list) = AccessList::parse(&list) else {
            lost.add("access control list");
            let _ = fremovexattr(file, LIST);
            return (with_group(0), lost);
        };
        let (group, mut list) = (list.group_permissions(), list);
        if is_group_lost {
            let of_old_group = list.clone();
            list = list.for_new_group();
            if list != of_old_group {
                lost.add("group");
            }
        }
        if fsetxattr(file, LIST, &list.to_bytes(), XattrFlags::empty()).is_ok() {
            let copied = Copied {
                group: list.mask().or(Some(list.group_permissions())),
                others: Some(list.other_permissions()),
            };
            return (copied, lost);
        }
        let _ = fremovexattr(file, LIST);
        lost.add("access control list");
        (with_group(group), lost)
    }

    /// Whether the file at `path` has an access control list.
    pub(super) fn has_access_list(path: &Path) -> bool {
        attribute_value(path, LIST).is_some()
    }

    /// Returns the names of the extended attributes of a file. The list is empty if the file system does not support
    /// attributes.
    fn attribute_names(path: &Path) -> Vec<CString> {
        let mut names = Vec::with_capacity(1 << 16);
        if listxattr(path, rustix::buffer::spare_capacity(&mut names)).is_err() {
            return Vec::new();
        }
        names
            .split(|byte: &u8| *byte == 0)
            .filter(|name| !name.is_empty())
            .filter_map(|name| CString::new(name).ok())
            .collect()
    }

    /// Returns the value of an extended attribute of the file at `path`.
    fn attribute_value(path: &Path, name: &CStr) -> Option<Vec<u8>> {
        let mut value: Vec<u8> = Vec::with_capacity(1 << 16);
        getxattr(path, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
        Some(value)
    }

    /// Returns the value of an extended attribute of an open file.
    fn attribute_value_of_file(file: &File, name: &CStr) -> Option<Vec<u8>> {
        let mut value: Vec<u8> = Vec::with_capacity(1 << 16);
        rustix::fs::fgetxattr(file, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
        Some(value)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::mode_for_new_group;

    #[test]
    fn another_group_gets_only_what_group_and_others_both_had() {
        for (old, new) in [
            (0o644, 0o644),
            (0o664, 0o644),
            (0o640, 0o600),
            (0o660, 0o600),
            (0o666, 0o666),
            (0o755, 0o755),
            (0o751, 0o711),
            (0o604, 0o600),
            (0o600, 0o600),
            (0o100_644, 0o100_644),
        ] {
            assert_eq!(mode_for_new_group(old), new, "{old:o}");
        }
    }
}
