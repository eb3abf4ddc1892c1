//! The programs of this machine that environments are made with: those a developer gets by name, asked for
//! their version. Programs of the project are never asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lula_env::{MachineTools, ProgramVersion};

use crate::network::answer;

/// Programs whose presence decides, and how each says its version, where that matters.
const PROGRAMS: [(&str, &[&str]); 11] = [
    ("node", &["--version"]),
    ("npm", &[]),
    ("pnpm", &[]),
    ("yarn", &[]),
    ("bun", &[]),
    ("cargo", &["--version"]),
    ("go", &["env", "GOVERSION"]),
    ("mvn", &[]),
    ("cmake", &[]),
    ("bundle", &[]),
    ("composer", &[]),
];
const WHICH: &str = "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])";

/// Looks what is there, beside the project.
pub(super) fn tools(project: &Path) -> MachineTools {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let apart = |directory: &PathBuf| {
        let real = directory.canonicalize();
        directory.is_absolute() && real.is_ok_and(|real| !real.starts_with(project))
    };
    let search: Vec<PathBuf> = std::env::split_paths(&path).filter(apart).collect();
    let find = |name: &str| {
        let mut places = search.iter().map(|directory| directory.join(name));
        places.find(|path| path.is_file())
    };
    let mut programs = BTreeMap::new();
    for (name, question) in PROGRAMS {
        let Some(program) = find(name) else { continue };
        let said = (!question.is_empty())
            .then(|| answer(&program, question))
            .flatten();
        let version = said.and_then(|text| {
            let digits = text.find(|c: char| c.is_ascii_digit())?;
            text[digits..].parse().ok()
        });
        programs.insert(name.to_owned(), version);
    }
    MachineTools {
        pythons: pythons(&search, find("python3")),
        programs,
    }
}

/// Interpreters, the usual one first, each by its own path: what a version manager puts before them
/// chooses by the folder at hand.
fn pythons(search: &[PathBuf], usual: Option<PathBuf>) -> Vec<ProgramVersion> {
    let mut candidates: Vec<PathBuf> = usual.into_iter().collect();
    let versioned = |name: &str| {
        let rest = name.strip_prefix("python3.");
        rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    };
    let managed = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(Path::new(&home).join(".pyenv"))
        });
    let mut directories: Vec<PathBuf> = search.to_vec();
    if let Some(managed) = managed {
        let versions = std::fs::read_dir(managed.join("versions"))
            .into_iter()
            .flatten();
        directories.extend(versions.flatten().map(|entry| entry.path().join("bin")));
    }
    for directory in directories.iter().filter(|one| !one.ends_with("shims")) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| versioned(name))
            .collect();
        names.sort();
        candidates.extend(names.into_iter().map(|name| directory.join(name)));
    }
    let mut found: Vec<ProgramVersion> = Vec::new();
    for candidate in candidates {
        let Some(said) = answer(&candidate, &["-I", "-c", WHICH]) else {
            continue;
        };
        let mut lines = said.lines();
        let (Some(program), Some(version)) = (lines.next(), lines.next()) else {
            continue;
        };
        let Ok(version) = version.parse::<lula_env::VersionNumber>() else {
            continue;
        };
        let program = program.to_owned();
        let known = |one: &ProgramVersion| one.version.minor() == version.minor();
        if !program.is_empty() && !found.iter().any(known) {
            found.push(ProgramVersion { program, version });
        }
    }
    found
}

/// Programs that went into an environment, each with what tells it from another version; the path is the last
/// word.
pub(super) fn named_in(recipe: &lula_env::EnvironmentRecipe, tools: &MachineTools) -> Vec<String> {
    let lines = recipe
        .steps
        .iter()
        .flat_map(|step| std::iter::once(&step.run).chain(&step.otherwise));
    let text: String = lines.flat_map(|line| [" ", line.as_str(), " "]).collect();
    let pythons = tools.pythons.iter();
    let mut found: Vec<String> = pythons
        .filter(|python| text.contains(&format!(" {} ", python.program)))
        .map(|python| format!("python {} at {}", python.version, python.program))
        .collect();
    for name in ["node", "go", "cargo"] {
        let uses = match name {
            "node" => ["npm ", "pnpm ", "yarn "]
                .iter()
                .any(|word| text.contains(word)),
            name => text.contains(&format!("{name} ")),
        };
        if let Some(version) = tools.version(name).filter(|_| uses) {
            let place = which(name).unwrap_or_default();
            found.push(format!("{name} {version} at {place}"));
        }
    }
    found
}

fn which(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(name));
    places
        .find(|path| path.is_file())
        .map(|path| path.display().to_string())
}
