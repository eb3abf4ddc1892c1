//! A workspace laid over the real tree.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lula_protocol::IsolationTier;
use lula_protocol::receipt::{CommandEnding, WorkspaceMode};
use lula_sandbox::{
    FinishedCommand, HostToolchains, OverlayWorkspace, Sandbox, SandboxCommand, SandboxError,
};
use tempfile::TempDir;

use crate::support::{build_policy, engine, new_engine, workspace};
use crate::unprivileged::as_ordinary_user;

/// A real tree and a layer above it.
struct Ground {
    real: TempDir,
    state: TempDir,
}

impl Ground {
    fn new() -> Self {
        let ground = Self {
            real: workspace(),
            state: workspace(),
        };
        let real = ground.real.path();
        std::fs::write(real.join("keep"), "keep\n").unwrap();
        std::fs::write(real.join("change"), "before\n").unwrap();
        std::fs::write(real.join("remove"), "gone soon\n").unwrap();
        std::fs::create_dir_all(real.join("folder/below")).unwrap();
        std::fs::write(real.join("folder/below/file"), "deep\n").unwrap();
        std::fs::create_dir(real.join("swept")).unwrap();
        std::fs::write(real.join("swept/old"), "old\n").unwrap();
        std::os::unix::fs::symlink("keep", real.join("link")).unwrap();
        std::fs::create_dir(ground.upper()).unwrap();
        std::fs::create_dir(ground.state.path().join("work")).unwrap();
        ground
    }

    fn upper(&self) -> PathBuf {
        self.state.path().join("upper")
    }

    fn overlay(&self) -> OverlayWorkspace {
        OverlayWorkspace {
            lowers: vec![self.real.path().to_owned()],
            upper: self.upper(),
            work: self.state.path().join("work"),
        }
    }

    fn run(&self, line: &str) -> FinishedCommand {
        let finished = engine()
            .run(&sandbox(self.overlay()), &SandboxCommand::shell(line))
            .unwrap();
        assert!(finished.succeeded(), "{line}: {}", finished.stderr.text());
        finished
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // The kernel leaves a directory without read permission: an ordinary user can remove it by name
        // only.
        let _ = std::fs::remove_dir(self.state.path().join("work/work"));
    }
}

fn sandbox(overlay: OverlayWorkspace) -> Sandbox {
    Sandbox::over(build_policy(), overlay)
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none())
}

/// Everything about a tree: kinds, modes, owners, times of change, contents.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            left.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if metadata.is_symlink() {
            path.read_link().unwrap().display().to_string()
        } else {
            std::fs::read_to_string(&path).unwrap()
        };
        found.insert(
            path,
            format!(
                "{:o} {} {} {}.{} {content}",
                metadata.mode(),
                metadata.uid(),
                metadata.gid(),
                metadata.mtime(),
                metadata.mtime_nsec(),
            ),
        );
    }
    found
}

const READ_LONG_AGO: [&str; 4] = ["", "keep", "folder", "folder/below/file"];

/// Makes a tree look as if it had not been read for long: then the kernel notes the next reading.
fn age(root: &Path) {
    let unchanged = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    let long_ago = rustix::fs::Timespec {
        tv_sec: 1_000_000,
        tv_nsec: 0,
    };
    for name in READ_LONG_AGO {
        rustix::fs::utimensat(
            rustix::fs::CWD,
            root.join(name),
            &rustix::fs::Timestamps {
                last_access: long_ago,
                last_modification: unchanged,
            },
            rustix::fs::AtFlags::empty(),
        )
        .unwrap();
    }
}

fn accessed(root: &Path) -> [i64; 4] {
    READ_LONG_AGO.map(|name| root.join(name).symlink_metadata().unwrap().atime())
}

const CHANGES: &str = "echo after > change && rm remove && mv folder moved && chmod 700 keep \
    && ln -s /nowhere dangling && rm -r swept && mkdir swept && echo new > swept/new \
    && mkdir made && echo x > made/file && mv made/file made/renamed";

/// Changes of every kind, as an ordinary command makes them, never reach the real tree.
fn change_everything() {
    let ground = Ground::new();
    let before = picture(ground.real.path());
    age(ground.real.path());
    let finished = ground.run(&format!(
        "cat keep folder/below/file > /dev/null && ls -R > /dev/null && {CHANGES}"
    ));
    assert_eq!(finished.receipt.workspace, WorkspaceMode::Overlay);
    assert_eq!(accessed(ground.real.path()), [1_000_000; 4]);
    assert_eq!(picture(ground.real.path()), before);

    // A second sandbox on the same layer sees what the first one did.
    let said = ground.run(
        "cat change keep moved/below/file swept/new made/renamed; readlink dangling; stat -c %a keep; \
         ls; ls swept; stat -c '%u %g' made change",
    );
    assert_eq!(
        said.stdout.text(),
        "after\nkeep\ndeep\nnew\nx\n/nowhere\n700\n\
         change\ndangling\nkeep\nlink\nmade\nmoved\nswept\nnew\n1000 1000\n1000 1000\n"
    );
    assert_eq!(picture(ground.real.path()), before);

    // On disk: files of the layer's owner, a mark where something went, another where a folder
    // was replaced.
    let upper = ground.upper();
    let owner = upper.metadata().unwrap().uid();
    for made in [
        "change",
        "made",
        "made/renamed",
        "moved/below/file",
        "dangling",
    ] {
        let metadata = upper.join(made).symlink_metadata().unwrap();
        assert_eq!(metadata.uid(), owner, "{made}");
    }
    for gone in ["remove", "folder"] {
        let mark = upper.join(gone).symlink_metadata().unwrap();
        assert!(mark.file_type().is_char_device(), "{gone}");
        assert_eq!(mark.rdev(), 0, "{gone}");
    }
    assert_eq!(attribute(&upper.join("swept"), "user.overlay.opaque"), b"y");
    assert!(!upper.join("swept/old").exists());
}

fn attribute(path: &Path, name: &str) -> Vec<u8> {
    let mut value = [0_u8; 64];
    let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap();
    value[..length].to_vec()
}

#[test]
fn the_real_tree_never_changes() {
    change_everything();
}

#[test]
fn an_ordinary_user_has_layers_too() {
    as_ordinary_user("overlay::ordinary");
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn ordinary() {
    assert!(!rustix::process::geteuid().is_root());
    change_everything();
}

#[test]
fn a_tree_of_somebody_else_can_be_changed_by_an_engine_that_may() {
    if !rustix::process::geteuid().is_root() {
        return as_ordinary_user("overlay::ordinary");
    }
    let ground = Ground::new();
    for (path, _) in picture(ground.real.path()) {
        std::os::unix::fs::lchown(path, Some(4321), Some(4321)).unwrap();
    }
    let before = picture(ground.real.path());
    ground.run(CHANGES);
    assert_eq!(picture(ground.real.path()), before);
    let changed = ground.upper().join("change").metadata().unwrap();
    assert_eq!((changed.uid(), changed.gid()), (0, 0));
}

#[test]
fn layers_stack() {
    let ground = Ground::new();
    ground.run(CHANGES);
    let frozen = picture(&ground.upper().join("made"));
    let second = workspace();
    for name in ["upper", "work"] {
        std::fs::create_dir(second.path().join(name)).unwrap();
    }
    let overlay = OverlayWorkspace {
        lowers: vec![ground.upper(), ground.real.path().to_owned()],
        upper: second.path().join("upper"),
        work: second.path().join("work"),
    };
    let line = "ls; ls swept; cat change; rm change made/renamed; echo y > made/other";
    let finished = engine()
        .run(&sandbox(overlay), &SandboxCommand::shell(line))
        .unwrap();
    assert_eq!(
        finished.stdout.text(),
        "change\ndangling\nkeep\nlink\nmade\nmoved\nswept\nnew\nafter\n"
    );
    assert_eq!(picture(&ground.upper().join("made")), frozen);
    assert!(ground.upper().join("change").is_file());
    assert!(second.path().join("upper/made/other").is_file());
}

#[test]
fn the_layers_themselves_are_out_of_reach() {
    let ground = Ground::new();
    let line = format!(
        "ls -A /run; ls {} 2>/dev/null || echo hidden; ls /run/w /run/w0 2>/dev/null || echo covered",
        ground.upper().display()
    );
    assert_eq!(ground.run(&line).stdout.text(), "hidden\ncovered\n");
}

#[test]
fn marks_of_the_overlay_cannot_be_forged_from_inside() {
    let ground = Ground::new();
    ground.run(
        "mkdir trap; python3 -c \"import os\ntry: os.setxattr('trap', 'user.overlay.opaque', b'y')\nexcept OSError: pass\"; \
         mknod whiteout c 0 0 2>/dev/null || true",
    );
    let trap = ground.upper().join("trap");
    let mut value = [0_u8; 8];
    assert!(rustix::fs::lgetxattr(&trap, "user.overlay.opaque", &mut value).is_err());
}

#[test]
fn a_read_only_workspace_in_layers_is_read_only() {
    let ground = Ground::new();
    let asked = sandbox(ground.overlay()).read_only_workspace();
    let finished = engine()
        .run(
            &asked,
            &SandboxCommand::shell("cat keep; echo x > keep || echo refused"),
        )
        .unwrap();
    assert_eq!(finished.stdout.text(), "keep\nrefused\n");
    assert_eq!(finished.receipt.workspace, WorkspaceMode::ReadOnly);
}

#[test]
fn the_receipt_says_what_writing_does_in_every_tier() {
    for tier in [IsolationTier::Namespace, IsolationTier::Landlock] {
        let place = workspace();
        let mut policy = build_policy();
        policy.min_tier = tier;
        let asked = Sandbox::new(policy, place.path())
            .tier(tier)
            .toolchains(HostToolchains::none());
        let command = SandboxCommand::shell("touch new; true");
        let written = engine().run(&asked, &command).unwrap();
        assert_eq!(written.receipt.workspace, WorkspaceMode::Direct, "{tier}");
        std::fs::remove_file(place.path().join("new")).unwrap();
        let refused = engine()
            .run(&asked.read_only_workspace(), &command)
            .unwrap();
        assert_eq!(refused.receipt.workspace, WorkspaceMode::ReadOnly, "{tier}");
        assert!(!place.path().join("new").exists());
    }
}

#[test]
fn a_tier_without_mounts_refuses_layers() {
    let ground = Ground::new();
    for tier in [IsolationTier::Landlock, IsolationTier::Process] {
        let mut policy = build_policy();
        policy.min_tier = tier;
        policy.required_layers.clear();
        let asked = Sandbox::over(policy, ground.overlay()).tier(tier);
        let refused = new_engine().open(&asked);
        assert!(
            matches!(refused, Err(SandboxError::OverlayNeedsNamespaces { tier: said }) if said == tier)
        );
    }
}

#[test]
fn layers_that_make_no_sense_are_refused() {
    let ground = Ground::new();
    let good = ground.overlay();
    let refuse = |overlay: OverlayWorkspace| {
        let refused = engine().open(&sandbox(overlay));
        assert!(matches!(refused, Err(SandboxError::Path { .. })));
    };
    refuse(OverlayWorkspace {
        lowers: Vec::new(),
        ..good.clone()
    });
    refuse(OverlayWorkspace {
        work: ground.real.path().join("folder"),
        ..good.clone()
    });
    refuse(OverlayWorkspace {
        work: good.upper.clone(),
        ..good.clone()
    });
    refuse(OverlayWorkspace {
        upper: "/nowhere".into(),
        ..good
    });
}

#[test]
fn a_workspace_that_grows_beyond_the_disk_limit_ends_the_command() {
    let ground = Ground::new();
    let mut policy = build_policy();
    policy.limits.disk = "8MiB".parse().unwrap();
    let asked = Sandbox::over(policy.clone(), ground.overlay())
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none());
    // Many files, each well within the limit.
    let fill = "i=0; while true; do i=$((i+1)); head -c 1048576 /dev/zero > file$i || exit 7; done";
    for sandbox in [
        asked,
        Sandbox::new(policy, ground.real.path())
            .owned_workspace()
            .tier(IsolationTier::Namespace)
            .toolchains(HostToolchains::none()),
    ] {
        let finished = engine()
            .run(&sandbox, &SandboxCommand::shell(fill))
            .unwrap();
        let ended = CommandEnding::LimitReached {
            limit: "disk".to_owned(),
        };
        assert_eq!(finished.receipt.ended, ended);
        let denial = &finished.receipt.denials[0];
        assert_eq!(denial.rule, "limits.disk");
        assert_eq!(denial.grant.as_deref(), Some("limits.disk above 8MiB"));
        let mut said = finished.receipt.not_applied.iter();
        assert!(said.any(|one| one.reason.contains("measured")));
    }
}

#[test]
fn git_works_in_layers() {
    let ground = Ground::new();
    let said = ground.run(
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm one && git mv keep kept \
         && git status --short",
    );
    assert_eq!(said.stdout.text(), "R  keep -> kept\n");
    assert!(!ground.real.path().join(".git").exists());
    let mode = ground
        .upper()
        .join(".git")
        .metadata()
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o755);
}

#[test]
fn an_unflushed_layer_holds_what_was_written_and_is_marked_until_somebody_flushes() {
    let ground = Ground::new();
    let unflushed = || sandbox(ground.overlay()).unflushed_layer();
    let run = |line: &str| engine().run(&unflushed(), &SandboxCommand::shell(line));
    assert!(run("echo new > made; sync").unwrap().succeeded());
    assert_eq!(
        std::fs::read_to_string(ground.upper().join("made")).unwrap(),
        "new\n"
    );
    let work = ground.state.path().join("work/work");
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(work.join("incompat").is_dir());
    assert!(matches!(run("true"), Err(SandboxError::Setup { .. })));
    std::fs::remove_dir_all(work.join("incompat")).unwrap();
    assert!(run("test -f made").unwrap().succeeded());
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::remove_dir_all(work).unwrap();
}
