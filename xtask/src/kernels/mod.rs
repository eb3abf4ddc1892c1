//! `cargo xtask kernels`: every tier, attacked on kernels that people have, as a table for the documentation.
//!
//! Each kernel is one that a distribution packages. It is booted under emulation, because a kernel cannot be
//! changed in any other way on a machine that is shared; so it takes minutes each, and is no part of the
//! tests.

pub(crate) mod archive;
mod guest;
mod machine;

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::archive::{Archive, Distribution, KernelPackage};
use crate::bench::program::{self, Profile};
use crate::interrupt::Interrupt;
use crate::repository::Repository;
use crate::requirements;
use crate::standing::{Standing, TierStanding, cell, put};

/// The page, and the lines between which the table stands.
const PAGE: &str = "docs/surroundings.md";
const BEGIN: &str = "<!-- begin: cargo xtask kernels -->\n";
const END: &str = "<!-- end of kernels -->\n";

#[derive(Args)]
pub(crate) struct Flags {
    /// Only these kernels; what the page says of the others is left as it is
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Program to try, instead of one that is built for it
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Say of each probe that does not hold what was seen
    #[arg(long)]
    verbose: bool,
}

/// A kernel, and in what scenes it is tried.
struct Kernel {
    name: &'static str,
    distribution: Distribution,
    suite: &'static str,
    package: KernelPackage,
    scenes: &'static [Scene],
}

/// How a machine is set up while the program runs.
struct Scene {
    name: &'static str,
    what: &'static str,
    /// Lines of a shell script.
    before: &'static str,
    /// Whether an ordinary user runs the program.
    user: bool,
    /// Whether every tier that works is attacked.
    attacked: bool,
    must: Must,
}

/// What has to come of a scene, beside that all that works holds.
#[derive(Clone, Copy)]
enum Must {
    /// Nothing that is asked for.
    Anything,
    /// The tier `namespace` works.
    Namespace,
    /// It does not, and the remedy has these words.
    Refuse(&'static str),
}

const ROOT: Scene = Scene {
    name: "root",
    what: "root, control groups v2",
    before: "mount -t cgroup2 none /sys/fs/cgroup",
    user: false,
    attacked: true,
    must: Must::Anything,
};

const USER: Scene = Scene {
    name: "user",
    what: "an ordinary user",
    before: "",
    user: true,
    attacked: true,
    must: Must::Anything,
};

const USUAL: &[Scene] = &[ROOT, USER];

/// How the `AppArmor` of Ubuntu stands in the way, and the shipped profile out of it.
const RESTRICTED: &[Scene] = &[
    ROOT,
    Scene {
        what: "an ordinary user, no restriction",
        before: "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        attacked: false,
        must: Must::Namespace,
        ..USER
    },
    Scene {
        name: "restricted",
        what: "`apparmor_restrict_unprivileged_userns=1`",
        before: "sysctl -w kernel.apparmor_restrict_unprivileged_userns=1",
        user: true,
        attacked: false,
        must: Must::Refuse("deploy/apparmor/lula"),
    },
    Scene {
        name: "profile",
        what: "the same with the shipped profile",
        before: "mount --rbind /proc /guest/proc; mount --rbind /sys /guest/sys; \
                 mount --rbind /dev /guest/dev; \
                 chroot /guest /sbin/apparmor_parser --replace /etc/apparmor.d/lula",
        user: true,
        attacked: true,
        must: Must::Namespace,
    },
    Scene {
        name: "removed",
        what: "the profile removed again",
        before: "chroot /guest /sbin/apparmor_parser --remove /etc/apparmor.d/lula",
        user: true,
        attacked: false,
        must: Must::Refuse("deploy/apparmor/lula"),
    },
];

/// Control groups of every kind that the machine of the other tests is not.
const GROUPS: &[Scene] = &[
    Scene {
        name: "no-groups",
        what: "root, no control groups",
        before: "",
        user: false,
        attacked: false,
        must: Must::Namespace,
    },
    Scene {
        name: "groups-v1",
        what: "root, control groups v1",
        before: "mount -t tmpfs groups /sys/fs/cgroup; for kind in memory pids cpu; do \
                 mkdir /sys/fs/cgroup/$kind; \
                 mount -t cgroup -o $kind $kind /sys/fs/cgroup/$kind; done",
        user: false,
        attacked: true,
        must: Must::Namespace,
    },
];

/// A user with a part of the control groups, as systemd hands it over.
const DELEGATED: &[Scene] = &[
    ROOT,
    USER,
    Scene {
        name: "delegated",
        what: "an ordinary user with control groups v2 handed over",
        before: "mkdir -p /sys/fs/cgroup/user/own; \
                 echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control; \
                 echo '+memory +pids +cpu' >/sys/fs/cgroup/user/cgroup.subtree_control; \
                 chown -R 1000:1000 /sys/fs/cgroup/user; \
                 echo $$ >/sys/fs/cgroup/user/own/cgroup.procs",
        user: true,
        attacked: false,
        must: Must::Namespace,
    },
];

const CLOUD: KernelPackage = KernelPackage::Newest("linux-image-cloud-amd64");

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "5.10",
        distribution: Distribution::Debian,
        suite: "bullseye",
        package: CLOUD,
        scenes: USUAL,
    },
    Kernel {
        name: "5.15",
        distribution: Distribution::Ubuntu,
        suite: "jammy-updates",
        package: KernelPackage::Newest("linux-image-virtual"),
        scenes: USUAL,
    },
    Kernel {
        name: "6.1",
        distribution: Distribution::Debian,
        suite: "bookworm",
        package: CLOUD,
        scenes: DELEGATED,
    },
    Kernel {
        name: "6.1-groups",
        distribution: Distribution::Debian,
        suite: "bookworm",
        package: CLOUD,
        scenes: GROUPS,
    },
    Kernel {
        name: "6.5",
        distribution: Distribution::Ubuntu,
        suite: "jammy-updates",
        package: KernelPackage::Between("linux-image-6.5.0-", "-generic"),
        scenes: USUAL,
    },
    Kernel {
        name: "6.8",
        distribution: Distribution::Ubuntu,
        suite: "noble-updates",
        package: KernelPackage::Newest("linux-image-virtual"),
        scenes: RESTRICTED,
    },
    Kernel {
        name: "6.12",
        distribution: Distribution::Debian,
        suite: "trixie",
        package: CLOUD,
        scenes: USUAL,
    },
    Kernel {
        name: "newest",
        distribution: Distribution::Debian,
        suite: "trixie-backports",
        package: CLOUD,
        scenes: USUAL,
    },
];

/// What an `AppArmor` profile is loaded with, in the suite of the kernel.
const APPARMOR: [&str; 4] = ["apparmor", "libc6", "libgcc-s1", "libstdc++6"];

/// What was found in one scene.
struct Row {
    kernel: &'static str,
    image: String,
    scene: &'static Scene,
    standing: Standing,
}

pub(crate) fn run(
    flags: &Flags,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    for (needed, package) in [
        (machine::EMULATOR, "qemu-system-x86"),
        (guest::SHELL, "busybox-static"),
        ("strip", "binutils"),
        ("dpkg-deb", "dpkg"),
    ] {
        if requirements::program(needed).is_none() {
            bail!("{needed} is missing: install the package {package}");
        }
    }
    let program = match &flags.program {
        Some(program) => program.clone(),
        None => match program::lula(repository, interrupt, Profile::Dev)? {
            ControlFlow::Continue(program) => program,
            ControlFlow::Break(failed) => return Ok(failed),
        },
    };
    let work = repository.root().join("target/kernels");
    std::fs::create_dir_all(&work)?;
    // The machine reads it from memory, where what only a debugger reads takes most of the room.
    let stripped = work.join("lula");
    let done = Command::new("strip")
        .arg("-o")
        .args([&stripped, &program])
        .status()?;
    ensure!(done.success(), "cannot strip {}", program.display());
    let chosen =
        |one: &&Kernel| flags.only.is_empty() || flags.only.iter().any(|name| name == one.name);
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for kernel in KERNELS.iter().filter(chosen) {
        if interrupt.is_raised() {
            return Ok(ExitCode::FAILURE);
        }
        let image = match kernel.fetch(&work, repository) {
            Ok(image) => image,
            Err(error) => {
                println!("FAIL {}: not to be had: {error:#}", kernel.name);
                missing.push((kernel, format!("{error:#}")));
                continue;
            }
        };
        let tried = kernel
            .attack(&image, &stripped, flags.verbose, &work, interrupt)
            .with_context(|| format!("on {image}"))?;
        for row in tried {
            println!("{}", line(&row));
            rows.push(row);
        }
    }
    let page = repository.root().join(PAGE);
    let text = std::fs::read_to_string(&page)?;
    let table = table(&text, &rows, &missing);
    std::fs::write(&page, put(&text, BEGIN, END, &table)?)?;
    let kept = !rows.is_empty() && missing.is_empty() && rows.iter().all(Row::is_kept);
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Kernel {
    fn folder(&self, work: &Path) -> PathBuf {
        work.join(format!("{}-{}", self.suite, self.name))
    }

    /// Brings the kernel here, unless it is, and tells the name of its package.
    fn fetch(&self, work: &Path, repository: &Repository) -> Result<String> {
        let folder = self.folder(work);
        let done = folder.join("package");
        if let Ok(image) = std::fs::read_to_string(&done) {
            return Ok(image);
        }
        let suite = Archive::of_this_machine(work)?.suite(self.distribution, self.suite)?;
        let image = suite.kernel(self.package, &folder.join("kernel"))?;
        if self.scenes.iter().any(|scene| scene.name == "profile") {
            let guest = folder.join("guest");
            for package in APPARMOR {
                suite.unpack(package, &guest)?;
            }
            for place in ["proc", "sys", "dev", "etc/apparmor.d"] {
                std::fs::create_dir_all(guest.join(place))?;
            }
            // Only the package of the base system has this one.
            if !guest.join("lib64").exists() {
                std::os::unix::fs::symlink("usr/lib64", guest.join("lib64"))?;
            }
            let profile = repository.root().join("deploy/apparmor/lula");
            std::fs::copy(profile, guest.join("etc/apparmor.d/lula"))?;
        }
        std::fs::write(done, &image)?;
        Ok(image)
    }

    /// Boots it, and tells what came of each scene.
    fn attack(
        &self,
        image: &str,
        program: &Path,
        verbose: bool,
        work: &Path,
        interrupt: &Interrupt,
    ) -> Result<Vec<Row>> {
        let folder = self.folder(work);
        let kernel = folder.join("kernel");
        let file =
            guest::find(&kernel.join("boot"), "vmlinuz").context("the package has no kernel")?;
        let shell = requirements::program(guest::SHELL).context("the shell is gone")?;
        let mut tree = guest::tree(program, &shell, &kernel, self.scenes)?;
        if folder.join("guest").exists() {
            tree.copy(&folder.join("guest"), "guest")?;
        }
        println!("     {image}: {} scenes", self.scenes.len());
        let said = machine::boot(&file, &tree, &folder.join("machine"), interrupt)?;
        let rows = self.scenes.iter().map(|scene| {
            let lula = |arguments: &[&str]| guest::answer(&said, scene.name, arguments);
            Ok(Row {
                kernel: self.name,
                image: image.trim_start_matches("linux-image-").to_owned(),
                scene,
                standing: Standing::found(lula, scene.attacked, verbose)?,
            })
        });
        rows.collect()
    }
}

impl Row {
    fn is_kept(&self) -> bool {
        let namespace = self.standing.tiers.first();
        let works = namespace.is_some_and(TierStanding::works);
        let remedy = self.standing.remedy.as_deref().unwrap_or_default();
        let must = match self.scene.must {
            Must::Anything => true,
            Must::Namespace => works,
            Must::Refuse(said) => !works && remedy.contains(said),
        };
        must && self.standing.is_kept()
    }
}

fn line(row: &Row) -> String {
    let tiers: Vec<_> = row.standing.tiers.iter().map(ToString::to_string).collect();
    let mark = if row.is_kept() { "ok  " } else { "FAIL" };
    format!(
        "{mark} {}, {}: {}",
        row.kernel,
        row.scene.what,
        tiers.join(" | ")
    )
}

/// The table, in which what the page says of kernels that were not tried now is kept.
fn table(page: &str, rows: &[Row], missing: &[(&Kernel, String)]) -> String {
    let mut out = String::from(
        "| kernel | its package | who, and what is around | namespace | landlock | what would give more |\n\
         |---|---|---|---|---|---|\n",
    );
    let earlier = page.split_once(BEGIN).map_or("", |(_, rest)| rest);
    let earlier = earlier.split_once(END).map_or("", |(table, _)| table);
    for kernel in KERNELS {
        let of_it: Vec<_> = rows
            .iter()
            .filter(|row| row.kernel == kernel.name)
            .collect();
        let gone = missing.iter().find(|(one, _)| one.name == kernel.name);
        for row in &of_it {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                row.kernel,
                row.image,
                row.scene.what,
                cell(&row.standing.tiers[0].to_string()),
                cell(&row.standing.tiers[1].to_string()),
                cell(row.standing.remedy.as_deref().unwrap_or(""))
            );
        }
        if let Some((_, why)) = gone {
            let _ = writeln!(
                out,
                "| {} | not to be had: {} | | | | |",
                kernel.name,
                cell(why)
            );
        }
        if of_it.is_empty() && gone.is_none() {
            let start = format!("| {} | ", kernel.name);
            for line in earlier.lines().filter(|line| line.starts_with(&start)) {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_tried_now_is_kept() {
        let page = format!("x\n{BEGIN}| 6.1 | a | b |\n| 6.12 | old | c |\n{END}y\n");
        let gone = KERNELS.iter().find(|kernel| kernel.name == "6.12").unwrap();
        let table = table(&page, &[], &[(gone, "no mirror".to_owned())]);
        assert!(table.contains("| 6.1 | a | b |\n"), "{table}");
        assert!(
            table.contains("| 6.12 | not to be had: no mirror |"),
            "{table}"
        );
        assert!(!table.contains("old"), "{table}");
    }
}
