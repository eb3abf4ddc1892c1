//! A machine that is emulated: it boots a kernel with a tree of files, and what it writes to its second
//! serial line is what it was started for.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::guest::FileTree;
use crate::command;
use crate::interrupt::Interrupt;

pub(super) const EMULATOR: &str = "qemu-system-x86_64";

/// How long a machine may run, in seconds. Emulation is thirty times slower than the processor.
const LONGEST: &str = "3600";

/// Boots, waits until the machine has switched itself off, and gives what it said.
pub(super) fn boot(
    kernel: &Path,
    tree: &FileTree,
    folder: &Path,
    interrupt: &Interrupt,
) -> Result<String> {
    fs::create_dir_all(folder)?;
    let place = |name: &str| folder.join(name);
    fs::write(place("initrd"), tree.archive())?;
    let line = |name: &str| format!("file:{}", place(name).display());
    let mut machine = Command::new("timeout");
    machine
        .args(["--kill-after=10", LONGEST, "nice", "-n", "10", EMULATOR])
        .args(["-M", "pc", "-accel", "tcg,thread=single", "-smp", "1"])
        // A page table more makes emulation slower.
        .args(["-cpu", "max,la57=off", "-m", "2048"])
        .args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ])
        .arg("-sandbox")
        .arg("on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(place("initrd"))
        .args(["-serial", &line("console"), "-serial", &line("said")])
        .args(["-append", "console=ttyS0 panic=-1 reboot=t mitigations=off"])
        .stdin(Stdio::null());
    let mut running = machine
        .spawn()
        .with_context(|| format!("cannot start {EMULATOR}"))?;
    let ended = command::wait(&mut running, interrupt)?;
    fs::remove_file(place("initrd"))?;
    let said = fs::read(place("said")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).replace('\r', "");
    if !ended.success() || !said.contains(super::guest::THE_END) {
        let console = fs::read(place("console")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console).into_owned();
        let last: Vec<_> = console.lines().rev().take(15).collect();
        bail!(
            "the machine ended with {ended} before it was done; the last of its console ({}):\n{}",
            place("console").display(),
            last.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }
    Ok(said)
}
