//! Where control groups are mounted and which ones this process is in: parsers of
//! `/proc/self/mountinfo` and `/proc/self/cgroup`.

use std::collections::BTreeSet;

use crate::page;

/// A part of the kernel that limits or counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CgroupController {
    Memory,
    /// CPU time, as far as it is granted.
    Cpu,
    /// CPU time counted (v1 only; part of every v2 group).
    CpuAccounting,
    /// The number of processes and threads.
    Pids,
    /// Stopping (v1 only; part of every v2 group).
    Freezer,
}

impl CgroupController {
    /// The controller of that kernel name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "memory" => Self::Memory,
            "cpu" => Self::Cpu,
            "cpuacct" => Self::CpuAccounting,
            "pids" => Self::Pids,
            "freezer" => Self::Freezer,
            _ => return None,
        })
    }
}

/// Which generation of control groups a hierarchy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

/// A mounted hierarchy and the place of this process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupHierarchy {
    pub version: CgroupVersion,
    /// The v1 controllers bound to it that matter here. Empty for v2, where the files say.
    pub controllers: BTreeSet<CgroupController>,
    /// Where it is mounted.
    pub mount_point: String,
    /// Names from the mount point down to this process's own group.
    pub own: Vec<String>,
}

/// Those of this process, as the kernel says.
pub fn of_this_process() -> Vec<CgroupHierarchy> {
    let read = |path| page::read(path).unwrap_or_default();
    layout(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

/// The hierarchies that are mounted and hold this process, v2 first. A hierarchy whose own group
/// lies outside the mount is left out: nothing below it could be joined.
pub fn layout(mountinfo: &str, self_cgroup: &str) -> Vec<CgroupHierarchy> {
    let memberships: Vec<_> = self_cgroup.lines().filter_map(membership).collect();
    let mut found: Vec<CgroupHierarchy> = Vec::new();
    for mount in mountinfo.lines().filter_map(mount) {
        let joined = memberships.iter().find(|(version, names, _)| {
            *version == mount.version
                && (mount.version == CgroupVersion::V2
                    || names.iter().any(|name| mount.options.contains(name)))
        });
        let Some((_, _, path)) = joined else { continue };
        let Some(own) = below(&mount.root, path) else {
            continue;
        };
        let controllers = mount
            .options
            .iter()
            .filter_map(|name| CgroupController::from_name(name))
            .collect();
        let hierarchy = CgroupHierarchy {
            version: mount.version,
            controllers,
            mount_point: mount.at,
            own,
        };
        let useful = hierarchy.version == CgroupVersion::V2 || !hierarchy.controllers.is_empty();
        let repeated = found.iter().any(|other| {
            other.version == hierarchy.version && other.controllers == hierarchy.controllers
        });
        if useful && !repeated {
            found.push(hierarchy);
        }
    }
    found.sort_by_key(|hierarchy| std::cmp::Reverse(hierarchy.version));
    found
}

struct Mount<'a> {
    version: CgroupVersion,
    root: String,
    at: String,
    options: Vec<&'a str>,
}

/// One line of mountinfo: `id parent dev root mount_point options [optional…] - type source super`.
fn mount(line: &str) -> Option<Mount<'_>> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (unescape(place.next()?)?, unescape(place.next()?)?);
    let mut kind = kind.split(' ');
    let version = match kind.next()? {
        "cgroup" => CgroupVersion::V1,
        "cgroup2" => CgroupVersion::V2,
        _ => return None,
    };
    let options = kind.nth(1)?.split(',').collect();
    at.starts_with('/').then_some(Mount {
        version,
        root,
        at,
        options,
    })
}

/// One line of `/proc/self/cgroup`: `id:controllers:path`.
fn membership(line: &str) -> Option<(CgroupVersion, Vec<&str>, &str)> {
    let mut parts = line.splitn(3, ':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some(if id == "0" && controllers.is_empty() {
        (CgroupVersion::V2, Vec::new(), path)
    } else {
        (
            CgroupVersion::V1,
            controllers
                .split(',')
                .filter(|name| !name.is_empty())
                .collect(),
            path,
        )
    })
}

/// The names that lead from a mount's root to a group, `None` where it is not below it.
fn below(root: &str, path: &str) -> Option<Vec<String>> {
    let rest = if root == "/" {
        path
    } else {
        path.strip_prefix(root)?
    };
    if !(rest.is_empty() || rest.starts_with('/')) {
        return None;
    }
    let names: Vec<_> = rest.split('/').filter(|name| !name.is_empty()).collect();
    let plain = names
        .iter()
        .all(|name| !matches!(*name, "." | "..") && !name.contains('\0'));
    plain.then(|| names.into_iter().map(str::to_owned).collect())
}

/// Undoes the octal escapes of mountinfo (`\040` is a blank).
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let mut value = 0_u32;
        for _ in 0..3 {
            let digit = rest.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
            value = value * 8 + u32::from(digit - b'0');
        }
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(hierarchy: &CgroupHierarchy) -> String {
        hierarchy.own.join("/")
    }

    #[test]
    fn pure_v2_as_root_in_a_login_session() {
        let found = layout(
            "24 22 0:21 / /proc rw shared:5 - proc proc rw\n\
             29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
            "0::/user.slice/user-0.slice/session-3.scope\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].version, CgroupVersion::V2);
        assert_eq!(found[0].mount_point, "/sys/fs/cgroup");
        assert_eq!(names(&found[0]), "user.slice/user-0.slice/session-3.scope");
    }

    #[test]
    fn hybrid_has_v2_first_and_each_v1_controller_once() {
        let found = layout(
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             90 31 0:36 / /other/pids rw - cgroup cgroup rw,pids\n\
             40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "9:name=systemd:/\n8:pids:/\n4:memory:/box/1\n1:cpu:/\n0::/\n",
        );
        let shown: Vec<_> = found
            .iter()
            .map(|h| (h.version, h.mount_point.as_str(), names(h)))
            .collect();
        assert_eq!(
            shown,
            [
                (CgroupVersion::V2, "/sys/fs/cgroup/unified", String::new()),
                (CgroupVersion::V1, "/sys/fs/cgroup/cpu", String::new()),
                (
                    CgroupVersion::V1,
                    "/sys/fs/cgroup/memory",
                    "box/1".to_owned()
                ),
                (CgroupVersion::V1, "/sys/fs/cgroup/pids", String::new()),
            ]
        );
    }

    #[test]
    fn v1_with_controllers_mounted_together() {
        let found = layout(
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            "4:cpu,cpuacct:/jobs\n",
        );
        let both = [CgroupController::Cpu, CgroupController::CpuAccounting];
        assert_eq!(found[0].controllers, BTreeSet::from(both));
    }

    #[test]
    fn rootless_under_systemd() {
        let found = layout(
            "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope\n",
        );
        assert_eq!(found[0].own.len(), 5);
    }

    #[test]
    fn docker_on_v1_sees_its_own_group_as_the_mount() {
        let found = layout(
            "700 690 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            "4:memory:/docker/abc\n",
        );
        assert!(found[0].own.is_empty());
    }

    #[test]
    fn docker_on_v2_with_a_cgroup_namespace() {
        let found = layout(
            "700 690 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
            "0::/\n",
        );
        assert!(found[0].own.is_empty());
    }

    #[test]
    fn a_group_outside_the_mount_is_left_out() {
        let mount = "700 690 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert!(layout(mount, "0::/../other\n").is_empty());
        let mount = "700 690 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert!(layout(mount, "0::/docker/abcdef\n").is_empty());
    }

    #[test]
    fn nothing_mounted_is_nothing_found() {
        assert!(layout("", "0::/\n").is_empty());
        assert!(layout("24 22 0:21 / /proc rw - proc proc rw\n", "").is_empty());
    }

    #[test]
    fn blanks_in_mount_points_are_undone() {
        let found = layout("1 2 0:3 / /my\\040groups rw - cgroup2 x rw\n", "0::/\n");
        assert_eq!(found[0].mount_point, "/my groups");
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics_and_never_climbs(
            mounts in "([0-9]{1,2} 1 0:1 /[a./\\\\0-9]{0,8} /[a./\\\\]{0,8} rw - cgroup2? x [a-z,]{0,12}\n|\\PC{0,40}\n){0,4}",
            groups in "([0-9]:(memory|pids|):/[a./]{0,10}\n|\\PC{0,20}\n){0,4}",
        ) {
            for hierarchy in layout(&mounts, &groups) {
                prop_assert!(hierarchy.mount_point.starts_with('/'));
                for name in &hierarchy.own {
                    prop_assert!(!name.is_empty() && !name.contains('/') && name != "..");
                }
            }
        }
    }
}
