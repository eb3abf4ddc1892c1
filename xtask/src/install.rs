//! Bringing what is missing to the machine, or saying exactly what a person has to bring.

use std::{
    io::{self, IsTerminal},
    process::{Command, Stdio},
};

use crate::{
    command,
    interrupt::Interrupt,
    report::{Failure, Report},
    repository::Repository,
    requirements::{Packages, REQUIREMENTS, Requirement, Source, program},
    steps::Check,
};

/// A system's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Apk,
    Pacman,
    Brew,
}

const MANAGERS: &[(Manager, &str)] = &[
    (Manager::Apt, "apt-get"),
    (Manager::Dnf, "dnf"),
    (Manager::Apk, "apk"),
    (Manager::Pacman, "pacman"),
    (Manager::Brew, "brew"),
];

/// What the checks need and this machine lacks.
pub(crate) fn missing(repository: &Repository, checks: &[Check]) -> Vec<&'static Requirement> {
    REQUIREMENTS
        .iter()
        .filter(|requirement| checks.contains(&requirement.needed_by))
        .filter(|requirement| requirement.applies_here() && !requirement.is_met(repository))
        .collect()
}

/// Reports what is missing as failed, without changing the machine.
pub(crate) fn refuse(missing: &[&Requirement], report: &mut Report) {
    for Requirement { name, why, .. } in missing {
        report.failed(Failure::new(name, format!("not installed; needed: {why}")));
    }
    if missing.is_empty() {
        report.passed("requirements");
    }
}

/// Installs what is missing; what cannot be had is reported as failed, each with its reason.
pub(crate) fn install(
    repository: &Repository,
    missing: &[&Requirement],
    report: &mut Report,
    interrupt: &Interrupt,
) {
    if missing.is_empty() {
        return report.passed("requirements");
    }
    for requirement in missing {
        println!("    missing: {} ({})", requirement.name, requirement.why);
    }
    let packages = install_packages(missing, interrupt).err();
    let mut complete = true;
    for requirement in missing {
        let reason = match &requirement.source {
            Source::Packages(_) => packages.clone(),
            Source::Cargo {
                package,
                version,
                features,
            } => install_cargo_tool(repository, package, version, features, interrupt).err(),
            Source::Npm(folder) => install_node_folder(repository, folder, interrupt).err(),
        };
        if !requirement.is_met(repository) {
            complete = false;
            let reason =
                reason.unwrap_or_else(|| "what was installed for it did not bring it".to_owned());
            let why = requirement.why;
            report.failed(Failure::new(
                requirement.name,
                format!("{reason}; needed: {why}"),
            ));
        }
    }
    if complete {
        report.passed("requirements");
    }
}

fn install_packages(missing: &[&Requirement], interrupt: &Interrupt) -> Result<(), String> {
    let wanted = missing
        .iter()
        .filter_map(|requirement| match &requirement.source {
            Source::Packages(packages) => Some((requirement.name, packages)),
            Source::Cargo { .. } | Source::Npm(_) => None,
        })
        .collect::<Vec<_>>();
    if wanted.is_empty() {
        return Ok(());
    }
    let everything = wanted
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ");
    let Some(manager) = MANAGERS.iter().find(|(_, name)| program(name).is_some()) else {
        return Err(format!(
            "no package manager known here (apt-get, dnf, apk, pacman, brew): install {everything} yourself"
        ));
    };
    let (packages, unknown) = names(manager.0, &wanted);
    if !packages.is_empty() {
        let Some(prefix) = authority(manager.0) else {
            let list = packages.join(" ");
            return Err(format!(
                "installing needs root, and sudo gave none: install {list}"
            ));
        };
        install_with(manager.0, prefix, &packages, interrupt)?;
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} has no package for {}: install it yourself",
            manager.1,
            unknown.join(", ")
        ))
    }
}

/// Installs the packages together, or, where that fails, each alone: one that the distribution
/// lacks does not keep the others away.
fn install_with(
    manager: Manager,
    prefix: &[&str],
    packages: &[&str],
    interrupt: &Interrupt,
) -> Result<(), String> {
    let run = |packages: &[&str]| {
        manager
            .commands(packages)
            .into_iter()
            .try_for_each(|words| {
                let line = prefix.iter().map(|word| (*word).to_owned()).chain(words);
                run_line(&line.collect::<Vec<_>>(), interrupt)
            })
    };
    match run(packages) {
        Err(_) if packages.len() > 1 && !interrupt.is_raised() => {
            let reasons = packages.iter().filter_map(|package| run(&[package]).err());
            let reasons = reasons.collect::<Vec<_>>();
            if reasons.is_empty() {
                Ok(())
            } else {
                Err(reasons.join("; "))
            }
        }
        outcome => outcome,
    }
}

/// The manager's package names, and the requirements it has no package for.
fn names<'a>(
    manager: Manager,
    wanted: &[(&'a str, &'a Packages)],
) -> (Vec<&'static str>, Vec<&'a str>) {
    let mut packages = Vec::new();
    let mut unknown = Vec::new();
    for (name, of) in wanted {
        let package = match manager {
            Manager::Apt => of.apt,
            Manager::Dnf => of.dnf,
            Manager::Apk => of.apk,
            Manager::Pacman => of.pacman,
            Manager::Brew => of.brew,
        };
        match package {
            Some(package) if packages.contains(&package) => {}
            Some(package) => packages.push(package),
            None => unknown.push(*name),
        }
    }
    (packages, unknown)
}

impl Manager {
    /// The command lines that install these packages, with a fresh index first.
    fn commands(self, packages: &[&str]) -> Vec<Vec<String>> {
        let lines: &[&[&str]] = match self {
            // Another apt-get may hold the lock, on a machine that has just come up for example.
            Self::Apt => &[
                &["apt-get", "update", "-qq", "-o", "DPkg::Lock::Timeout=600"],
                &[
                    "env",
                    "DEBIAN_FRONTEND=noninteractive",
                    "apt-get",
                    "install",
                    "-y",
                    "-qq",
                    "--no-install-recommends",
                    "-o",
                    "DPkg::Lock::Timeout=600",
                    "-o",
                    "Dpkg::Use-Pty=0",
                ],
            ],
            Self::Dnf => &[&["dnf", "install", "-y"]],
            Self::Apk => &[&["apk", "add", "--update-cache"]],
            Self::Pacman => &[&["pacman", "-Sy", "--needed", "--noconfirm"]],
            Self::Brew => &[&["brew", "install"]],
        };
        let mut lines = lines
            .iter()
            .map(|line| {
                line.iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>();
        if let Some(last) = lines.last_mut() {
            last.extend(packages.iter().map(|package| (*package).to_owned()));
        }
        lines
    }
}

/// What to put before a command that installs: nothing for root, sudo where it lets us.
fn authority(manager: Manager) -> Option<&'static [&'static str]> {
    if manager == Manager::Brew || rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    program("sudo")?;
    if io::stdin().is_terminal() {
        return Some(&["sudo"]);
    }
    let allowed = Command::new("sudo")
        .args(["-n", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    allowed.then_some(&["sudo", "-n"])
}

fn install_cargo_tool(
    repository: &Repository,
    package: &str,
    version: &str,
    features: &[&str],
    interrupt: &Interrupt,
) -> Result<(), String> {
    let mut install = repository.cargo(&format!(
        "install --locked {package} --version {version} --no-default-features"
    ));
    if !features.is_empty() {
        install.args(["--features", &features.join(",")]);
    }
    run_command(&mut install, interrupt)
}

/// What the folder's manifest names, and nothing that runs while it is installed. Without a lock file:
/// one that npm writes on one platform lacks the packages of others.
fn install_node_folder(
    repository: &Repository,
    folder: &str,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let words = [
        "install",
        "--ignore-scripts",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
    ];
    let mut install = Command::new("npm");
    install
        .args(words)
        .current_dir(repository.root().join(folder));
    run_command(&mut install, interrupt)
}

fn run_line(line: &[String], interrupt: &Interrupt) -> Result<(), String> {
    let Some((program, arguments)) = line.split_first() else {
        return Ok(());
    };
    run_command(Command::new(program).args(arguments), interrupt)
}

fn run_command(command: &mut Command, interrupt: &Interrupt) -> Result<(), String> {
    let spoken = command::spoken(command);
    println!("    {spoken}");
    match command::run_and_read(command.stdin(Stdio::null()), interrupt) {
        Ok((status, _)) if status.success() => Ok(()),
        Ok((status, _)) => Err(format!("`{spoken}` ended with {status}")),
        Err(error) => Err(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Packages = Packages {
        apt: Some("redis-server"),
        dnf: Some("redis"),
        apk: Some("redis"),
        pacman: Some("valkey"),
        brew: None,
    };

    #[test]
    fn each_manager_is_asked_by_its_own_names() {
        let wanted = [("Redis", &BOTH)];
        assert_eq!(names(Manager::Apt, &wanted), (vec!["redis-server"], vec![]));
        assert_eq!(names(Manager::Pacman, &wanted), (vec!["valkey"], vec![]));
        assert_eq!(names(Manager::Brew, &wanted), (vec![], vec!["Redis"]));
    }

    #[test]
    fn a_package_that_brings_two_things_is_asked_for_once() {
        assert_eq!(
            names(Manager::Apk, &[("Redis", &BOTH), ("its client", &BOTH)]).0,
            ["redis"]
        );
    }

    #[test]
    fn apt_reads_a_fresh_index_before_it_installs() {
        let lines = Manager::Apt.commands(&["git", "bubblewrap"]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains(&"update".to_owned()));
        assert!(lines[1].ends_with(&["git".to_owned(), "bubblewrap".to_owned()]));
    }

    /// What a manager does not package: a person brings it there, and is told so.
    const UNPACKAGED: &[(Manager, &str)] = &[
        (Manager::Apk, "PHPUnit"),
        (Manager::Dnf, "gVisor"),
        (Manager::Apk, "gVisor"),
        (Manager::Pacman, "gVisor"),
    ];

    #[test]
    fn every_linux_package_manager_can_bring_every_package() {
        for requirement in REQUIREMENTS {
            if let Source::Packages(packages) = &requirement.source {
                for manager in [Manager::Apt, Manager::Dnf, Manager::Apk, Manager::Pacman] {
                    if UNPACKAGED.contains(&(manager, requirement.name)) {
                        continue;
                    }
                    let (known, _) = names(manager, &[(requirement.name, packages)]);
                    assert_eq!(known.len(), 1, "{manager:?} has no {}", requirement.name);
                }
            }
        }
    }
}
