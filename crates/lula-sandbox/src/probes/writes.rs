//! Writing where nothing was granted. The attack checks afterwards that every target is unchanged.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::act::{HERE, at, call, create, done, open_to_write, path, plant};
use super::probe::{AttackBodyResult, AttackExpectation, AttackFamily, AttackProbe};
use super::scene::AttackScene;
use super::stage::BESIDE;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Writes, name, attempts, body).by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    )
}

/// A probe of something in the workspace that the filter refuses.
const fn refused(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Writes, name, attempts, body)
}

/// A new file in the workspace.
fn own_file(
    scene: &AttackScene,
    name: &str,
) -> Result<std::path::PathBuf, super::probe::AttackObservation> {
    let file = scene.workspace().join(name);
    let _ = std::fs::remove_file(&file);
    std::fs::write(&file, "mine")?;
    Ok(file)
}

/// A system directory that exists but is read-only, or refused where the root is shared.
const READ_ONLY: [Option<AttackExpectation>; 2] = [
    Some(AttackExpectation::Fails(&[libc::EROFS, libc::EACCES])),
    Some(AttackExpectation::Fails(&[libc::EACCES])),
];

fn make_node(scene: &AttackScene, mode: u32, device: u64) -> AttackBodyResult {
    let name = scene.workspace().join("node");
    let _ = std::fs::remove_file(&name);
    let name = path(&name);
    done("mknodat", &[HERE, at(&name), mode.into(), device])
}

fn attribute(scene: &AttackScene, key: &std::ffi::CStr, value: &[u8]) -> AttackBodyResult {
    let file = path(&own_file(scene, "attributed")?);
    let (key, value) = ((key.as_ptr().addr()) as u64, value);
    done(
        "setxattr",
        &[
            at(&file),
            key,
            value.as_ptr().addr() as u64,
            value.len() as u64,
            0,
        ],
    )
}

/// A minimal `security.capability` value: revision 2, `CAP_SETUID` permitted and effective.
const CAPABILITY: [u8; 20] = [
    1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

pub(super) const PROBES: &[AttackProbe] = &[
    probe("overwrite", "overwrite a file of the user", |s| {
        std::fs::write(s.target(), "changed")?;
        Ok(String::new())
    })
    // A private root takes new names only where it is writable.
    .by_tier(
        Some(AttackExpectation::Fails(&[
            libc::ENOENT,
            libc::EROFS,
            libc::EACCES,
        ])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    ),
    probe("append", "append to a file of the user", |s| {
        std::fs::OpenOptions::new().append(true).open(s.target())?;
        Ok(String::new())
    }),
    probe("truncate", "truncate a file of the user", |s| {
        let name = path(&s.target());
        done("truncate", &[at(&name), 0])
    }),
    probe("remove", "remove a file of the user", |s| {
        std::fs::remove_file(s.target())?;
        Ok(String::new())
    }),
    probe(
        "rename_away",
        "move a file of the user into the workspace",
        |s| {
            std::fs::rename(s.target(), s.workspace().join("stolen"))?;
            Ok(String::new())
        },
    )
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES, libc::EXDEV])),
    ),
    probe(
        "hard_link",
        "link a file of the user into the workspace",
        |s| {
            let name = s.workspace().join("linked");
            let _ = std::fs::remove_file(&name);
            std::fs::hard_link(s.target(), name)?;
            Ok(String::new())
        },
    )
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES, libc::EXDEV])),
    ),
    probe(
        "through_link",
        "write through a symbolic link that leads out",
        |s| {
            let link = s.workspace().join("link-out");
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(s.target(), &link)?;
            open_to_write(link)
        },
    ),
    probe("through_proc_root", "write through /proc/self/root", |s| {
        open_to_write(
            Path::new("/proc/self/root")
                .join(s.target().strip_prefix("/").unwrap_or(Path::new(""))),
        )
    }),
    probe(
        "beside_workspace",
        "create a file beside the workspace",
        |s| create(s.workspace().join("..").join(BESIDE)),
    )
    .by_tier(
        Some(AttackExpectation::WorksInPrivate),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    ),
    probe("rename_workspace", "move the workspace itself away", |s| {
        std::fs::rename(s.workspace(), s.workspace().with_extension("moved"))?;
        std::fs::rename(s.workspace().with_extension("moved"), s.workspace())?;
        Ok(String::new())
    })
    .by_tier(
        Some(AttackExpectation::Fails(&[
            libc::EBUSY,
            libc::EROFS,
            libc::EACCES,
        ])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    ),
    probe("system_program", "replace a program in /usr/bin", |_| {
        plant("/usr/bin/lula-probe")
    })
    .controlled_by(|_| writable("/usr/bin"))
    .by_tier(READ_ONLY[0], READ_ONLY[1])
    .privileged(),
    probe("system_library", "plant a library in /usr/lib", |_| {
        plant("/usr/lib/lula-probe.so")
    })
    .controlled_by(|_| writable("/usr/lib"))
    .by_tier(READ_ONLY[0], READ_ONLY[1])
    .privileged(),
    probe("accounts", "change the list of accounts", |_| {
        open_to_write("/etc/passwd")
    })
    .by_tier(READ_ONLY[0], READ_ONLY[1])
    .privileged(),
    probe("preload", "make every program load a library", |_| {
        plant("/etc/ld.so.preload")
    })
    .controlled_by(|_| writable("/etc"))
    .by_tier(READ_ONLY[0], READ_ONLY[1])
    .privileged(),
    probe(
        "root_directory",
        "create a file in the root directory",
        |_| plant("/lula-probe"),
    )
    .controlled_by(|_| writable("/"))
    .by_tier(READ_ONLY[0], READ_ONLY[1])
    .privileged(),
    refused(
        "set_user_id",
        "leave a program that runs as its owner, by chmod",
        |s| {
            let file = own_file(s, "setuid-by-chmod")?;
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o4755))?;
            Ok(String::new())
        },
    ),
    refused(
        "set_user_id_at_creation",
        "the same, by the mode of a new file",
        |s| {
            let name = s.workspace().join("setuid-by-open");
            let _ = std::fs::remove_file(&name);
            let name = path(&name);
            let flags = u64::from((libc::O_CREAT | libc::O_WRONLY).unsigned_abs());
            done("openat", &[HERE, at(&name), flags, 0o4755])
        },
    ),
    refused(
        "set_user_id_unnamed",
        "the same, by an unnamed file that is linked later",
        |s| {
            let folder = path(&s.workspace());
            let flags = u64::from((libc::O_TMPFILE | libc::O_WRONLY).unsigned_abs());
            done("openat", &[HERE, at(&folder), flags, 0o4755])
        },
    ),
    refused("set_user_id_by_new_call", "the same, by fchmodat2", |s| {
        let file = path(&own_file(s, "setuid-by-fchmodat2")?);
        done("fchmodat2", &[HERE, at(&file), 0o4755, 0])
    })
    .outside(AttackExpectation::Works),
    refused(
        "open_behind_pointer",
        "the same, where no filter can read the mode (openat2)",
        |s| {
            let name = s.workspace().join("setuid-by-openat2");
            let _ = std::fs::remove_file(&name);
            let name = path(&name);
            let how = [
                u64::from((libc::O_CREAT | libc::O_WRONLY).unsigned_abs()),
                0o4755,
                0,
            ];
            done(
                "openat2",
                &[HERE, at(&name), how.as_ptr().addr() as u64, 24],
            )
        },
    )
    .inside(AttackExpectation::Fails(&[libc::ENOSYS])),
    refused("character_device", "make a device node (/dev/mem)", |s| {
        make_node(s, 0o020_666, 0x101)
    })
    .privileged(),
    refused("block_device", "make a block device node", |s| {
        make_node(s, 0o060_666, 0x700)
    })
    .privileged(),
    refused(
        "forged_whiteout",
        "forge a deletion in the overlay (character device 0:0)",
        |s| make_node(s, 0o020_000, 0),
    ),
    refused("file_capability", "give a program a capability", |s| {
        attribute(s, c"security.capability", &CAPABILITY)
    })
    .privileged(),
    refused("forged_overlay_mark", "forge an overlay attribute", |s| {
        attribute(s, c"trusted.overlay.opaque", b"y")
    })
    .privileged(),
    refused("give_away", "give a file to another user", |s| {
        let file = own_file(s, "given")?;
        std::os::unix::fs::chown(file, Some(1), Some(1))?;
        Ok(String::new())
    })
    .inside(AttackExpectation::Fails(&[libc::EPERM, libc::EINVAL]))
    .privileged(),
    refused(
        "handle_race",
        "swap a directory for a link while it is being used",
        |s| {
            // Whichever way the race goes, the write must not arrive outside.
            let (dir, aside) = (
                s.workspace().join("racing"),
                s.workspace().join("racing-aside"),
            );
            let _ = std::fs::remove_dir_all(&dir);
            let _ = std::fs::remove_file(&dir);
            let _ = std::fs::remove_dir_all(&aside);
            std::fs::create_dir(&dir)?;
            std::fs::rename(&dir, &aside)?;
            let parent = s.target().parent().map(Path::to_owned).unwrap_or_default();
            std::os::unix::fs::symlink(parent, &dir)?;
            let name = s
                .target()
                .file_name()
                .map(std::ffi::OsStr::to_owned)
                .unwrap_or_default();
            std::fs::OpenOptions::new()
                .append(true)
                .open(dir.join(name))?;
            Ok(String::new())
        },
    )
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    ),
];

/// Whether this user could write there, without doing it.
fn writable(place: &str) -> AttackBodyResult {
    let name = path(Path::new(place));
    call(
        "faccessat",
        &[HERE, at(&name), u64::from(libc::W_OK.unsigned_abs())],
    )?;
    Ok(String::new())
}
