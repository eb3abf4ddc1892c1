//! `cargo xtask aarch64`: what can be known of 64-bit ARM on a machine of another processor.
//!
//! The whole workspace is compiled for it; the tests of pure code are run under emulation of a user's
//! programs; and the tables of system calls are held against the kernel's headers for both processors. Under
//! such an emulation there are no namespaces, no Landlock and no seccomp, so sandboxes are not run.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::command;
use crate::interrupt::Interrupt;
use crate::kernels::archive::{Archive, Distribution};
use crate::repository::Repository;
use crate::requirements;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Where packages put the other processor's C library.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// The newest headers that a stable release packages, one tree for all processors.
const HEADERS: (&str, &str) = ("trixie-backports", "linux-libc-dev");

/// Crates whose tests need neither a kernel of their own nor a network, and which parts of theirs.
const PURE: &[(&str, &str)] = &[
    ("lula-protocol", "all()"),
    ("lula-gate", "all()"),
    ("lula-edit", "all()"),
    (
        "lula-sandbox",
        "kind(lib) & (test(seccomp::tests) | test(policy) | test(frames) | test(receipt) | \
         test(landlock) | test(idmap) | test(init::numbers) | test(cgroup::layout) | test(tiers) | \
         test(probes))",
    ),
];

pub(crate) fn run(repository: &Repository, interrupt: &Interrupt) -> Result<ExitCode> {
    for (needed, package) in [
        (
            "aarch64-linux-gnu-gcc",
            "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
        ),
        ("qemu-aarch64", "qemu-user"),
        ("cc", "gcc"),
    ] {
        if requirements::program(needed).is_none() {
            bail!("{needed} is missing: install {package}");
        }
    }
    let mut kept = vec![("tables of system calls", headers(repository, interrupt)?)];
    let added = Command::new("rustup")
        .args(["target", "add", TARGET])
        .current_dir(repository.root())
        .status();
    ensure!(
        added.is_ok_and(|status| status.success()),
        "rustup cannot bring the standard library of {TARGET}"
    );
    let lines = [
        format!("check --workspace --exclude xtask --target {TARGET}"),
        format!("build -p lula --target {TARGET}"),
    ];
    for line in &lines {
        kept.push(("compiles", cargo(repository, line, &[], interrupt)?));
    }
    for (package, tests) in PURE {
        let line = format!("nextest run --target {TARGET} -p {package} -E");
        kept.push((package, cargo(repository, &line, &[tests], interrupt)?));
    }
    let program = repository
        .root()
        .join("target")
        .join(TARGET)
        .join("debug/lula");
    let said = Command::new("qemu-aarch64")
        .args(["-L", SYSROOT])
        .arg(&program)
        .arg("--version")
        .output()
        .context("cannot start qemu-aarch64")?;
    let said_version = said.stdout.starts_with(b"lula ");
    kept.push(("lula --version", said.status.success() && said_version));
    println!();
    for (what, kept) in &kept {
        println!("{} {what}", if *kept { "ok  " } else { "FAIL" });
    }
    println!("     not run: sandboxes, which emulation of a user's programs has no kernel for");
    Ok(if kept.iter().all(|(_, kept)| *kept) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn cargo(
    repository: &Repository,
    line: &str,
    more: &[&str],
    interrupt: &Interrupt,
) -> Result<bool> {
    let mut cargo = repository.cargo(line);
    cargo
        .args(more)
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        )
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("qemu-aarch64 -L {SYSROOT}"),
        );
    println!("     {}", command::spoken(&cargo));
    Ok(command::run(&mut cargo, interrupt)? == ExitCode::SUCCESS)
}

/// Holds the tables against the headers of a kernel that is newer than the one of this machine.
fn headers(repository: &Repository, interrupt: &Interrupt) -> Result<bool> {
    let work = repository.root().join("target/kernels");
    let folder = work.join("headers");
    if !folder.join("usr").exists() {
        let (suite, package) = HEADERS;
        let suite = Archive::of_this_machine(&work)?.suite(Distribution::Debian, suite)?;
        suite.unpack(package, &folder)?;
    }
    let mut test = repository.cargo("nextest run -p lula-sandbox -E");
    test.arg("test(has_the_number_of_the_kernels_headers)");
    for (name, triple) in [
        ("LULA_TEST_X86_HEADERS", "x86_64-linux-gnu"),
        ("LULA_TEST_ARM_HEADERS", "aarch64-linux-gnu"),
    ] {
        test.env(name, folder.join("usr/include").join(triple));
    }
    Ok(command::run(&mut test, interrupt)? == ExitCode::SUCCESS)
}
