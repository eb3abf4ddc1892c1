//! What an emulated machine boots into: a tree with the program, a shell and the kernel's modules, and the
//! script that runs the program in each scene.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Scene;
use crate::standing::TIERS;

/// The last line of a machine that did all it was to do.
pub(super) const THE_END: &str = "== the end";

/// A shell and its tools in one static file.
pub(super) const SHELL: &str = "busybox";

/// Modules that the program or its attacks need, where the kernel has them apart.
const MODULES: [&str; 2] = ["overlay", "dummy"];

/// Files by their paths, without the slash in front.
#[derive(Default)]
pub(super) struct FileTree(BTreeMap<String, TreeEntry>);

enum TreeEntry {
    Directory(u32),
    File(u32, Vec<u8>),
    Link(String),
}

impl FileTree {
    fn directory(&mut self, path: &str, mode: u32) {
        self.parents(path);
        self.0.insert(path.to_owned(), TreeEntry::Directory(mode));
    }

    fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        self.parents(path);
        let file = TreeEntry::File(mode, content.into());
        self.0.insert(path.to_owned(), file);
    }

    fn link(&mut self, path: &str, to: &str) {
        self.0
            .insert(path.to_owned(), TreeEntry::Link(to.to_owned()));
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            let parent = self.0.entry(path[..at].to_owned());
            parent.or_insert(TreeEntry::Directory(0o755));
        }
    }

    /// Everything below a folder of this machine.
    pub(super) fn copy(&mut self, from: &Path, to: &str) -> Result<()> {
        for entry in fs::read_dir(from)? {
            let (entry, name) = entry.map(|one| (one.path(), one.file_name()))?;
            let to = format!("{to}/{}", name.to_string_lossy());
            let kind = fs::symlink_metadata(&entry)?;
            if kind.is_dir() {
                self.directory(&to, 0o755);
                self.copy(&entry, &to)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&entry)?;
                self.link(&to, &target.to_string_lossy());
            } else if kind.is_file() {
                self.file(&to, kind.permissions().mode() & 0o777, fs::read(&entry)?);
            }
        }
        Ok(())
    }

    /// The archive that a kernel unpacks: `cpio` in its new ASCII form.
    pub(super) fn archive(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, (path, entry)) in self.0.iter().enumerate() {
            let (mode, content) = match entry {
                TreeEntry::Directory(mode) => (0o040_000 | mode, &[][..]),
                TreeEntry::File(mode, content) => (0o100_000 | mode, &content[..]),
                TreeEntry::Link(to) => (0o120_777, to.as_bytes()),
            };
            append(&mut out, number + 1, path, mode, content);
        }
        append(&mut out, 0, "TRAILER!!!", 0, &[]);
        out
    }
}

fn append(out: &mut Vec<u8>, number: usize, path: &str, mode: u32, content: &[u8]) {
    let mut header = String::from("070701");
    let size = content.len();
    // Inode, mode, owner, group, links, time, size, two devices of two numbers, length of the name, sum.
    for field in [
        number,
        mode as usize,
        0,
        0,
        1,
        0,
        size,
        0,
        0,
        0,
        0,
        path.len() + 1,
        0,
    ] {
        let _ = write!(header, "{field:08x}");
    }
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// The tree for one kernel, whose packages were unpacked at `kernel`.
pub(super) fn tree(
    program: &Path,
    shell: &Path,
    kernel: &Path,
    scenes: &[Scene],
) -> Result<FileTree> {
    let mut tree = FileTree::default();
    // Laid out as distributions do today.
    for directory in [
        "proc",
        "sys",
        "dev",
        "new",
        "run",
        "mnt",
        "etc",
        "root",
        "usr/bin",
        "usr/sbin",
        "usr/lib64",
        "usr/lib/x86_64-linux-gnu",
        "var/lib",
        "home/user",
    ] {
        tree.directory(directory, 0o755);
    }
    for directory in ["tmp", "var/tmp"] {
        tree.directory(directory, 0o1777);
    }
    for (link, to) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/sbin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        tree.link(link, to);
    }
    tree.file("usr/bin/busybox", 0o755, fs::read(shell)?);
    tree.file("usr/bin/lula", 0o755, fs::read(program)?);
    for library in libraries(program)? {
        let to = library.strip_prefix("/").unwrap_or(&library);
        let to = to.to_string_lossy();
        let to = if to.starts_with("usr/") {
            to.into_owned()
        } else {
            format!("usr/{to}")
        };
        tree.file(&to, 0o755, fs::read(&library)?);
    }
    tree.file(
        "etc/passwd",
        0o644,
        "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n",
    );
    tree.file("etc/group", 0o644, "root:x:0:\nuser:x:1000:\n");
    tree.file("etc/shadow", 0o600, "root:*:::::::\nuser:*:::::::\n");
    tree.file("etc/hostname", 0o644, "guest\n");
    tree.file("etc/hosts", 0o644, "127.0.0.1 localhost\n");
    for name in MODULES {
        if let Some(module) = module(kernel, name)? {
            tree.file(&format!("modules/{name}.ko"), 0o644, module);
        }
    }
    tree.file("init", 0o755, LEAVE_THE_ARCHIVE);
    tree.file("second", 0o755, script(scenes));
    Ok(tree)
}

/// The files that the dynamic linker loads for a program.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let listed = Command::new("ldd").arg(program).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

/// A module of a kernel as it is loaded; `None` where it is built in.
fn module(kernel: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let Some(file) = find(kernel, &format!("{name}.ko")) else {
        return Ok(None);
    };
    let unpack = match file.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return Ok(Some(fs::read(file)?)),
    };
    let unpacked = Command::new(unpack).arg("-dc").arg(&file).output();
    let unpacked =
        unpacked.with_context(|| format!("{unpack} is missing, which unpacks modules"))?;
    ensure!(
        unpacked.status.success(),
        "cannot unpack {}",
        file.display()
    );
    Ok(Some(unpacked.stdout))
}

/// The first file below a folder whose name begins so.
pub(super) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if entry.file_name().to_string_lossy().starts_with(name) {
                return Some(path);
            }
        }
    }
    None
}

/// The kernel never lets go of the tree that it unpacked, nor changes the root away from it: everything
/// moves to another one.
const LEAVE_THE_ARCHIVE: &str = "#!/bin/busybox sh
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs -o mode=0755,size=90% tmpfs /new
cd /
for d in bin sbin lib lib64 usr etc root home modules tmp var run mnt; do
    /bin/busybox cp -a /$d /new/
done
[ -e /guest ] && /bin/busybox cp -a /guest /new/
/bin/busybox cp /second /new/init
/bin/busybox mkdir /new/proc /new/sys /new/dev
exec /bin/busybox switch_root /new /init
";

const SET_UP: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs none /sys/kernel/security
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=0755 run /run
for module in /modules/*.ko; do insmod $module; done
chown -R 1000:1000 /home/user
hostname guest
ip link set lo up
ip link add dummy0 type dummy
ip address add 192.0.2.1/24 dev dummy0
ip link set dummy0 up
ip route add default dev dummy0
stty raw -F /dev/ttyS1
# The name of what is said, and the command that says it.
say() {
    echo \"== $1\" >/dev/ttyS1
    shift
    \"$@\" >/dev/ttyS1 2>/tmp/complaints
    tail -n 1 /tmp/complaints >/dev/console
}
";

/// What the machine does once it has booted.
fn script(scenes: &[Scene]) -> String {
    let mut script = SET_UP.to_owned();
    for scene in scenes {
        let _ = writeln!(script, "{}", scene.before);
        for arguments in questions(scene.attacked) {
            let line = arguments.join(" ");
            let run = if scene.user {
                format!("su user -c 'cd; lula {line}'")
            } else {
                format!("lula {line}")
            };
            let _ = writeln!(script, "say \"{} {line}\" {run}", scene.name);
        }
    }
    let _ = writeln!(script, "echo '{THE_END}' >/dev/ttyS1\nsleep 1\nreboot -f");
    script
}

fn questions(attacked: bool) -> Vec<Vec<&'static str>> {
    let attack = |tier| vec!["doctor", "--attack", "--tier", tier, "--json"];
    let mut all = vec![vec!["doctor", "--json"]];
    if attacked {
        all.extend(TIERS.map(attack));
    }
    all
}

/// What the machine said in a scene, where `lula` was run with these arguments.
pub(super) fn answer(said: &str, scene: &str, arguments: &[&str]) -> Result<Value> {
    let heading = format!("== {scene} {}\n", arguments.join(" "));
    let (_, rest) = said
        .split_once(&heading)
        .with_context(|| format!("the machine never came to {heading}"))?;
    let text = rest.split("\n== ").next().unwrap_or_default();
    serde_json::from_str(text)
        .with_context(|| format!("in {scene}, lula {arguments:?} said: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reads_what_is_archived() {
        let mut tree = FileTree::default();
        tree.file("a/b", 0o640, "hello");
        tree.link("c", "a/b");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("archive"), tree.archive()).unwrap();
        let listed = Command::new("sh")
            .args([
                "-c",
                "busybox cpio -it < archive 2>/dev/null || cpio -it --quiet < archive",
            ])
            .current_dir(folder.path())
            .output();
        // Where there is neither, the form of the first header is all that can be seen.
        match listed {
            Ok(listed) if listed.status.success() => {
                assert_eq!(String::from_utf8_lossy(&listed.stdout), "a\na/b\nc\n");
            }
            _ => assert!(tree.archive().starts_with(b"07070100000001000041ed")),
        }
    }

    #[test]
    fn what_was_said_in_a_scene_is_found_among_the_rest() {
        let said =
            "== root doctor --json\n{\"a\": 1}\n== user doctor --json\n{\"a\": 2}\n== the end\n";
        assert_eq!(answer(said, "root", &["doctor", "--json"]).unwrap()["a"], 1);
        assert_eq!(answer(said, "user", &["doctor", "--json"]).unwrap()["a"], 2);
        assert!(answer(said, "nobody", &["doctor", "--json"]).is_err());
    }
}
