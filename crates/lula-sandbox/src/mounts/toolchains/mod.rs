//! Compilers and interpreters a person installed outside the system directories.
//!
//! Finds them by variables, names and links only; it runs nothing. `bounds.rs` says what may be
//! shown, `known.rs` by what toolchains are known, `virtualenv.rs` which Python is behind a virtual
//! environment. `HostToolchains::for_project` is the one environment of a project, for commands of an
//! operator, a model or a verifier alike. A virtual environment in the workspace is seen with the
//! workspace, and at its own path if the workspace is a copy. Package caches are next door
//! (`mounts/caches.rs`): each is an overlay at its real path, because tools write that path down;
//! the tool's home around them (`~/.cargo`) is a private directory on the sandbox's own file
//! system.

mod bounds;
mod known;
mod links;
#[cfg(test)]
mod tests;
mod virtualenv;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::environment::ProjectEnvironment;
use super::{SYSTEM, is_below};
use bounds::{credentials_in, is_plain};

pub(super) use bounds::HomeBounds;
pub use virtualenv::Virtualenv;

/// Directories of the system whose links may lead out of it.
const LINKING: [&str; 2] = ["/usr/local/bin", "/usr/bin"];

/// Toolchains of the host that a sandbox sees read-only: the prefixes that the directories of a search
/// path belong to, what variables name, and what stands behind links. Never the home as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostToolchains {
    directories: Vec<PathBuf>,
    search: Vec<String>,
    environment: BTreeMap<String, String>,
    hidden: Vec<PathBuf>,
    virtualenv: Option<Virtualenv>,
    project: Option<ProjectEnvironment>,
    home: Option<PathBuf>,
    /// Where variables of the host say that package caches are.
    caches: BTreeMap<&'static str, PathBuf>,
}

impl HostToolchains {
    /// None: only the system's programs.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those that this process's own variables lead to, with its home for the package caches.
    pub fn of_this_process() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Those on a search path. A home that is itself on the path, or a directory above one, is left
    /// out: other things than compilers lie there.
    pub fn on_path(path: &str, home: Option<&Path>) -> Self {
        Self::from_variables(|name| match name {
            "PATH" => Some(path.to_owned()),
            "HOME" => home.and_then(Path::to_str).map(str::to_owned),
            _ => None,
        })
    }

    /// The variables that [`HostToolchains::from_variables`] looks at. None of them holds a secret.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        ["PATH", "HOME", "VIRTUAL_ENV"]
            .into_iter()
            .chain(known::CACHES)
            .chain(known::DIRECTORIES)
            .chain(known::CHOICES)
            .chain(known::BUILDS)
    }

    /// Those that variables lead to: `PATH`, `HOME`, and the ones toolchains and package caches are
    /// known by, such as `GOROOT` and `CARGO_HOME`. What changes how code is compiled, such as
    /// `CARGO_INCREMENTAL` and `CFLAGS`, is passed on as it is.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let path_of = |name: &str| variable(name).map(PathBuf::from);
        let mut found = Self {
            home: path_of("HOME").filter(|home| is_plain(home)),
            ..Self::default()
        };
        let caches = known::CACHES.into_iter();
        found.caches = caches
            .filter_map(|name| Some((name, path_of(name).filter(|path| is_plain(path))?)))
            .collect();
        let bounds = HomeBounds::around(found.home.as_deref());
        found.search(&variable("PATH").unwrap_or_default(), &bounds);
        found.user_packages(&bounds);
        found.rustup(&bounds);
        for name in known::DIRECTORIES {
            if let Some(directory) = path_of(name) {
                found.named(name, &directory, &bounds);
            }
        }
        for name in known::CHOICES {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
            if let Some(choice) = variable(name)
                && !choice.is_empty()
                && choice.chars().all(plain)
            {
                found.environment.insert(name.to_owned(), choice);
            }
        }
        for name in known::BUILDS {
            if let Some(value) = variable(name).filter(|value| is_build_setting(value)) {
                found.environment.insert(name.to_owned(), value);
            }
        }
        if let Some(virtualenv) = path_of("VIRTUAL_ENV").and_then(|path| Virtualenv::at(&path)) {
            found.activate(virtualenv, &bounds);
        }
        found.links(&bounds);
        found.hide();
        found
    }

    /// The environment of a project: what this process's variables lead to, and the project's own
    /// virtual environment. The same for each command that runs in it, whether a
    /// person, a model or a verifier starts it.
    pub fn for_project(top: &Path, folder: &Path) -> Self {
        Self::of_this_process().in_project(top, folder)
    }

    /// These, and the virtual environment of a project: the one that is active already, else the nearest
    /// of `.venv`, `venv` and `env` from the project's folder up to the top of its repository. Its
    /// programs come first on the search path.
    #[must_use]
    pub fn in_project(mut self, top: &Path, folder: &Path) -> Self {
        if self.virtualenv.is_none()
            && let Some(virtualenv) = Virtualenv::nearest(top, folder)
        {
            let bounds = HomeBounds::around(self.home.as_deref());
            self.activate(virtualenv, &bounds);
            self.hide();
        }
        self
    }

    /// These, with an environment that was built for the project. Its programs come first.
    #[must_use]
    pub fn with_environment(mut self, made: ProjectEnvironment) -> Self {
        self.search.retain(|known| !made.path.contains(known));
        self.search.splice(0..0, made.path.iter().cloned());
        self.project = Some(made);
        self
    }

    fn search(&mut self, path: &str, bounds: &HomeBounds) {
        for entry in path.split(':') {
            if !is_plain(Path::new(entry)) || self.search.iter().any(|known| known == entry) {
                continue;
            }
            if is_system(entry) {
                self.search.push(entry.to_owned());
            } else if let Some(real) = bounds.allow_search(Path::new(entry)) {
                self.add_entry(entry, &real, bounds);
            }
        }
    }

    /// A directory of the search path that is not the system's own.
    fn add_entry(&mut self, entry: &str, real: &Path, bounds: &HomeBounds) {
        // Nothing of the host is seen below `/run`.
        let seen = match real.to_str() {
            Some(real) if is_below(entry, "/run") => real,
            _ => entry,
        };
        self.search.push(seen.to_owned());
        self.add_manager(entry, bounds);
        if self.shows(Path::new(seen)) {
            return;
        }
        self.add(Path::new(seen));
        self.add_prefix(Path::new(seen), bounds);
        if real != Path::new(seen) {
            self.add_prefix(real, bounds);
        }
    }

    /// The whole prefix of a directory of programs; where it is a virtual environment, that of its
    /// interpreter too.
    fn add_prefix(&mut self, programs: &Path, bounds: &HomeBounds) -> bool {
        let Some(prefix) = bounds.prefix_of(programs) else {
            return false;
        };
        let known = self.directories.contains(&prefix);
        self.add(&prefix);
        if !known && let Some(virtualenv) = Virtualenv::at(&prefix) {
            self.add_base(&virtualenv, bounds);
        }
        true
    }

    fn add_base(&mut self, virtualenv: &Virtualenv, bounds: &HomeBounds) {
        for programs in virtualenv.base() {
            // A repository may bring the environment with it: it names an interpreter, or nothing.
            let python = programs.parent().is_some_and(virtualenv::holds_python);
            if python && !is_system_path(&programs) && is_plain(&programs) {
                self.add_prefix(&programs, bounds);
            }
        }
    }

    /// The version manager a directory of the search path belongs to. It is found beside that
    /// directory, which need not be in this process's home.
    fn add_manager(&mut self, entry: &str, bounds: &HomeBounds) {
        for known in &known::MANAGERS {
            let sign = format!("/{}", known.shown_by);
            let Some((base, rest)) = entry.split_once(&sign) else {
                continue;
            };
            let place = Path::new(base).join(known.place);
            let whole = rest.is_empty() || rest.starts_with('/');
            if !whole || !(self.directories.contains(&place) || bounds.allow(&place)) {
                continue;
            }
            if let Some(variable) = known.variable {
                self.set(variable, &place);
            }
            self.add(&place);
        }
    }

    /// Python packages installed for the user, beside the programs that need them. Not the rest of
    /// `~/.local`: keyrings lie there.
    fn user_packages(&mut self, bounds: &HomeBounds) {
        let Some(local) = self.home.as_ref().map(|home| home.join(".local")) else {
            return;
        };
        let (programs, packages) = (local.join("bin"), local.join("lib"));
        let is_searched = self.search.iter().any(|known| Path::new(known) == programs);
        if is_searched && bounds.allow(&packages) {
            self.add(&packages);
            self.set("PYTHONUSERBASE", &local);
        }
    }

    /// Toolchains of a cargo that was moved: only its programs moved with it.
    fn rustup(&mut self, bounds: &HomeBounds) {
        let (Some(cargo), Some(home)) = (self.caches.get("CARGO_HOME"), &self.home) else {
            return;
        };
        let programs = cargo.join("bin");
        let place = home.join(".rustup");
        let is_searched = self.search.iter().any(|known| Path::new(known) == programs);
        if is_searched && !self.environment.contains_key("RUSTUP_HOME") && bounds.allow(&place) {
            self.add(&place);
            self.set("RUSTUP_HOME", &place);
        }
    }

    /// A toolchain that a variable names.
    fn named(&mut self, variable: &str, directory: &Path, bounds: &HomeBounds) {
        let is_shown = self.directories.iter().any(|known| known == directory);
        if is_shown || (is_system_path(directory) && directory.is_dir()) {
            self.set(variable, directory);
        } else if bounds.allow(directory) {
            self.add(directory);
            self.set(variable, directory);
            self.add_prefix(&directory.join("bin"), bounds);
        }
    }

    /// Puts a virtual environment before everything else.
    fn activate(&mut self, virtualenv: Virtualenv, bounds: &HomeBounds) {
        let programs = virtualenv.programs();
        let allowed = is_system_path(&virtualenv.directory) || bounds.allow(&virtualenv.directory);
        let Some(text) = programs.to_str().filter(|_| allowed) else {
            return;
        };
        self.search.retain(|known| known != text);
        self.search.insert(0, text.to_owned());
        if !is_system_path(&virtualenv.directory) {
            self.add(&virtualenv.directory);
        }
        self.set("VIRTUAL_ENV", &virtualenv.directory);
        self.add_base(&virtualenv, bounds);
        self.virtualenv = Some(virtualenv);
    }

    /// What stands behind links of the search path: interpreters by name, and tools that were installed
    /// into a virtual environment each, as pipx and uv do. In a prefix, links lead to what is shown with
    /// it; the system's other directories are those two under other names, or hold no interpreters.
    fn links(&mut self, bounds: &HomeBounds) {
        let mut found = BTreeSet::new();
        for entry in self.search.clone() {
            let directory = Path::new(&entry);
            let programs = if self.directories.iter().any(|known| known == directory) {
                links::listed(directory)
            } else if LINKING.contains(&entry.as_str()) {
                links::named(directory, &known::PROGRAMS)
            } else {
                continue;
            };
            for (name, leads_out) in programs {
                let link = directory.join(&name);
                let is_interpreter = known::PROGRAMS.contains(&name.as_str());
                // What a person starts by a name is the first of that name.
                let is_first = !is_interpreter || found.insert(name);
                if leads_out && is_first {
                    self.add_behind(&link, is_interpreter, bounds);
                }
            }
        }
    }

    /// The prefix of a program behind a link. Of an interpreter at least the directory it lies in; of
    /// another program only a virtual environment.
    fn add_behind(&mut self, link: &Path, is_interpreter: bool, bounds: &HomeBounds) {
        for file in links::followed(link) {
            // What of `/etc` is shown is decided elsewhere: alternatives are.
            if is_system_path(&file) || file.starts_with("/etc") || self.shows(&file) {
                continue;
            }
            let Some(programs) = file.parent() else {
                continue;
            };
            let is_tool = || {
                let prefix = programs.parent();
                prefix.is_some_and(|prefix| prefix.join("pyvenv.cfg").is_file())
            };
            let added = (is_interpreter || is_tool()) && self.add_prefix(programs, bounds);
            if is_interpreter && !added && bounds.allow(programs) {
                self.add(programs);
            }
        }
    }

    fn shows(&self, path: &Path) -> bool {
        self.directories.iter().any(|known| path.starts_with(known))
    }

    fn add(&mut self, directory: &Path) {
        if !self.shows(directory) {
            self.directories
                .retain(|known| !known.starts_with(directory));
            self.directories.push(directory.to_owned());
        }
    }

    fn set(&mut self, variable: &str, directory: &Path) {
        if let Some(text) = directory.to_str() {
            self.environment
                .insert(variable.to_owned(), text.to_owned());
        }
    }

    fn hide(&mut self) {
        let directories = self.directories.iter();
        self.hidden = directories
            .flat_map(|directory| credentials_in(directory))
            .collect();
    }

    /// Directories to show read-only.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Credentials inside them, which stay hidden.
    pub fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// The search path inside, with the system's own directories at the end.
    pub fn search_path(&self) -> String {
        let mut search = self.search.clone();
        for system in ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
            if !search.iter().any(|known| known == system) {
                search.push(system.to_owned());
            }
        }
        search.join(":")
    }

    /// Variables the toolchains need.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// The virtual environment whose programs come first, also where it is broken.
    pub fn virtualenv(&self) -> Option<&Virtualenv> {
        self.virtualenv.as_ref()
    }

    /// The environment that was built for the project.
    pub fn project_environment(&self) -> Option<&ProjectEnvironment> {
        self.project.as_ref()
    }

    /// The home package caches are taken from.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Where a variable of the host says that a package cache is.
    pub(super) fn cache(&self, variable: &str) -> Option<&Path> {
        self.caches.get(variable).map(PathBuf::as_path)
    }
}

/// Longest value of a variable that a build is told.
const BUILD_SETTING: usize = 4096;

/// Whether a value is one for a build: not empty, of a usual length, and one line. Cargo's encoded flags have
/// the unit separator between them.
fn is_build_setting(value: &str) -> bool {
    let fine = |c: char| c == '\u{1f}' || c == '\t' || !c.is_control();
    !value.is_empty() && value.len() <= BUILD_SETTING && value.chars().all(fine)
}

fn is_system(path: &str) -> bool {
    SYSTEM.iter().any(|system| is_below(path, system))
}

fn is_system_path(path: &Path) -> bool {
    path.to_str().is_some_and(is_system)
}
