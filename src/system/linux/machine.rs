//! Resources of the machine and of the process: memory, and properties of file systems.

use rustix::fs::{fstatfs, fstatvfs};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the size in bytes of the machine's physical memory.
pub(crate) fn physical_memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Returns the number of bytes of memory that the process can allocate without swapping. This is the minimum of the
/// machine's `MemAvailable` and the memory that each control group of the process still allows.
pub(crate) fn available_memory() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let info = read(Path::new("/proc/meminfo")).unwrap_or_default();
    let free = mem_available(&info).unwrap_or_else(physical_memory);
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    cgroup_directories(&groups)
        .iter()
        .filter_map(|folder| available_in_cgroup(|name| read(&folder.join(name))))
        .fold(free, u64::min)
}

/// Returns the value of `MemAvailable` in bytes. `info` is the content of `/proc/meminfo`.
fn mem_available(info: &str) -> Option<u64> {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the directories of the control groups that limit memory, and of all their parents. `groups` is the content
/// of `/proc/self/cgroup`. In a container, `groups` may contain names that are valid only outside of the container. In
/// this case, the directories with these names do not exist, and the root directory describes the container.
fn cgroup_directories(groups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(name)) = (parts.next(), parts.next()) else {
            continue;
        };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            controllers if controllers.split(',').any(|one| one == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let inner = root.join(name.trim_start_matches('/'));
        let around = inner
            .ancestors()
            .take_while(|folder| folder.starts_with(root));
        folders.extend(around.map(Path::to_owned));
    }
    folders
}

/// Returns the number of bytes of memory that a control group still allows. Returns `None` if the control group has no
/// limit or does not exist. `read` must return the content of the control group's file with the given name.
fn available_in_cgroup(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    // The control group counts the page cache as used memory. The kernel frees inactive file pages when memory is
    // short. Therefore, these pages count as available here.
    let cached = |key: &str| -> u64 {
        let stat = read("memory.stat").unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().parse().ok())
            .unwrap_or_default()
    };
    let (limit, used) = match number("memory.current") {
        Some(used) => {
            let limits = [number("memory.max"), number("memory.high")];
            (limits.into_iter().flatten().min()?, used)
        }
        None => (
            number("memory.limit_in_bytes")?,
            number("memory.usage_in_bytes")?,
        ),
    };
    Some(limit.saturating_sub(used.saturating_sub(cached("inactive_file "))))
}

/// Returns the block size in bytes of the file system with `file`, or 4096 if it is unknown.
pub(crate) fn block_len(file: &File) -> u64 {
    fstatvfs(file).map_or(4096, |system| system.f_bsize)
}

/// Whether the file system of `file` has a type that can share blocks between files (btrfs, xfs, bcachefs, zfs). On
/// such a file system, a copy that shares its blocks needs no space.
pub(crate) fn shares_blocks(file: &File) -> bool {
    const BTRFS: u64 = 0x9123_683e;
    const XFS: u64 = 0x5846_5342;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const ZFS: u64 = 0x2fc1_2fc1;
    fstatfs(file).is_ok_and(|system| [BTRFS, XFS, BCACHEFS, ZFS].contains(&(system.f_type as u64)))
}

/// Whether two files are known to be on the same file system.
pub(crate) fn are_on_same_file_system(one: &File, other: &File) -> bool {
    let device = |file: &File| file.metadata().map(|metadata| metadata.dev()).ok();
    device(one).is_some_and(|found| device(other) == Some(found))
}

/// Returns the number of free bytes on the file system of `directory` that this process may use. Returns `None` if the
/// file system does not report it.
pub(crate) fn free_space(directory: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(directory).ok()?;
    // A file system that reports a total of zero blocks does not know its free space.
    if system.f_blocks == 0 {
        return None;
    }
    let blocks = if rustix::process::geteuid().is_root() {
        system.f_bfree
    } else {
        system.f_bavail
    };
    blocks.checked_mul(system.f_frsize)
}

/// Returns the maximum resident memory of the process in bytes, or `None` if it is unknown.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the set of signals that the process ignores, with bit n - 1 for signal n. A new process inherits the set
/// from its parent, for example from `nohup`, or from a shell that starts a background process. Returns `None` if the
/// set is unknown.
#[cfg(feature = "cli")]
pub(crate) fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_of_machines_and_groups_is_read() {
        let info = "MemTotal:       24 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(mem_available(info), Some(1 << 20));
        let folders = cgroup_directories("0::/a/b\n");
        let names = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(folders, names.map(PathBuf::from));
        let folders = cgroup_directories("5:cpu,memory:/x\n3:pids:/x\n");
        assert_eq!(
            folders,
            ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"].map(PathBuf::from)
        );
        let two = |name: &str| {
            let text = match name {
                "memory.max" => "1000",
                "memory.high" => "max",
                "memory.current" => "600\n",
                "memory.stat" => "anon 5\ninactive_file 100\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(available_in_cgroup(two), Some(500));
        let one = |name: &str| match name {
            "memory.limit_in_bytes" => Some("900".into()),
            "memory.usage_in_bytes" => Some("1000".into()),
            _ => None,
        };
        assert_eq!(available_in_cgroup(one), Some(0));
        assert_eq!(available_in_cgroup(|_| None), None);
        assert!(available_memory() > 0);
    }
}
