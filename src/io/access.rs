//! Gives a file the access of the file that it replaces: owner, group, permissions, access control list and extended
//! attributes. The new file is never accessible to more users than the old one.

use std::fs::File;
use std::path::Path;

/// Copies the owner, group, permissions, access control list and extended attributes from the file at `path` to `file`,
/// which will replace it. An attribute that the process may not set keeps its value in `file`, but `file` is never
/// accessible to more users than the old file. Returns a warning if the access control list or extended attributes
/// could not be kept. Does nothing if there is no file at `path`.
#[cfg(unix)]
pub(super) fn keep(path: &Path, file: &File) -> Option<String> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let metadata = path.metadata().ok()?;
    let (owner, group) = (metadata.uid(), metadata.gid());
    let mut mode = metadata.permissions().mode();
    let is_kept =
        fchown(file, Some(owner), Some(group)).is_ok() || fchown(file, None, Some(group)).is_ok();
    // If the new file has another group, that group must not get the permissions of the old file's group.
    let is_group_lost = !is_kept && file.metadata().is_ok_and(|own| own.gid() != group);
    #[cfg(target_os = "linux")]
    let lost = {
        let (group_mode, lost) = attributes::copy(path, file, is_group_lost);
        mode = mode & !0o070 | group_mode.map_or(mode, |bits| bits << 3) & 0o070;
        if is_group_lost && !lost.has_list {
            mode &= !0o070;
        }
        lost.warning(path)
    };
    #[cfg(not(target_os = "linux"))]
    let lost = {
        if is_group_lost {
            mode &= !0o070;
        }
        None
    };
    let _ = file.set_permissions(Permissions::from_mode(mode));
    lost
}

/// Does nothing, because a new file has the permissions of its directory.
#[cfg(windows)]
pub(super) const fn keep(_: &Path, _: &File) -> Option<String> {
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
    /// Prefixes of the names of attributes that are not copied, because they describe the content rather than the
    /// access, or cannot be set.
    const OF_SYSTEM: [&str; 4] = ["system.", "security.ima", "security.evm", "btrfs."];

    /// The result of copying attributes to the new file: the names of those that could not be copied, and whether the
    /// access control list was copied.
    #[derive(Debug, Default)]
    pub(super) struct Lost {
        /// Whether the access control list was copied.
        pub has_list: bool,
        names: Vec<String>,
    }

    impl Lost {
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

    /// Copies extended attributes and the access control list of the file at `path`. `is_group_lost` tells whether the
    /// new file belongs to another group. Returns the group permissions for the mode of the new file, or `None` if they
    /// are the same as in the mode of the old file. Also returns which attributes were lost.
    pub(super) fn copy(path: &Path, file: &File, is_group_lost: bool) -> (Option<u32>, Lost) {
        let mut lost = Lost::default();
        for name in names(path) {
            let text = name.to_string_lossy();
            if OF_SYSTEM.iter().any(|prefix| text.starts_with(prefix)) {
                continue;
            }
            let is_set = value(path, &name).is_some_and(|value| {
                value_of(file, &name).as_ref() == Some(&value)
                    || fsetxattr(file, name.as_c_str(), &value, XattrFlags::empty()).is_ok()
            });
            if !is_set {
                lost.names.push(text.into_owned());
            }
        }
        let Some(list) = value(path, LIST) else {
            // The default access control list of the directory may give more users access to the new file than had
            // access to the old file.
            let _ = fremovexattr(file, LIST);
            return (None, lost);
        };
        let Some(list) = AccessList::parse(&list) else {
            lost.names.push("access control list".to_owned());
            let _ = fremovexattr(file, LIST);
            return (Some(0), lost);
        };
        let group = list.group_permissions();
        let list = if is_group_lost {
            list.without_group()
        } else {
            list
        };
        if fsetxattr(file, LIST, &list.to_bytes(), XattrFlags::empty()).is_ok() {
            // If a file has an access control list, the group bits of its mode stand for the mask of the list.
            lost.has_list = true;
            return (list.mask(), lost);
        }
        let _ = fremovexattr(file, LIST);
        lost.names.push("access control list".to_owned());
        (Some(group), lost)
    }

    /// Returns the names of the extended attributes of a file. The list is empty if the file system has no attributes.
    fn names(path: &Path) -> Vec<CString> {
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

    fn value(path: &Path, name: &CStr) -> Option<Vec<u8>> {
        let mut value: Vec<u8> = Vec::with_capacity(1 << 16);
        getxattr(path, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
        Some(value)
    }

    fn value_of(file: &File, name: &CStr) -> Option<Vec<u8>> {
        let mut value: Vec<u8> = Vec::with_capacity(1 << 16);
        rustix::fs::fgetxattr(file, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
        Some(value)
    }
}
