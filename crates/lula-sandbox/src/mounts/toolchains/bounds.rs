//! Which directories of the host may be shown as part of a toolchain, and which never.

use std::fs;
use std::path::{Path, PathBuf};

/// Too wide to be one toolchain's: other people's files lie there too.
const WIDE: [&str; 17] = [
    "/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
    "/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/tmp",
];

/// Directories of a home that hold toolchains beside other things.
const SHARED: [&str; 6] = [
    ".cache",
    ".cargo",
    ".config",
    ".local",
    ".local/share",
    ".local/state",
];

/// Directories of a home in which nothing is shown, whatever a variable or a link says.
const CLOSED: [&str; 14] = [
    ".aws",
    ".azure",
    ".claude",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/state",
    ".mozilla",
    ".password-store",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
];

/// Files with credentials, by where they lie in a prefix. They are hidden where the prefix is shown.
const CREDENTIALS: [(&str, &[&str]); 2] = [
    (
        "",
        &[
            ".aws",
            ".condarc",
            ".env",
            ".git-credentials",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".ssh",
            "auth.json",
            "credentials",
            "credentials.toml",
            "pip.conf",
        ],
    ),
    ("etc", &["npmrc", "pip.conf"]),
];

/// One of these beside a `bin` makes the directory around it a prefix.
const SIGNS: [&str; 8] = [
    "lib",
    "pyvenv.cfg",
    "lib64",
    "libexec",
    "conda-meta",
    "pkg/tool",
    "jre",
    "shared",
];

/// Where programs lie in a prefix.
const PROGRAMS: [&str; 3] = ["bin", "sbin", "condabin"];

/// The home of the person, as it is named and as it really is.
#[derive(Debug)]
pub(crate) struct HomeBounds {
    homes: Vec<PathBuf>,
}

impl HomeBounds {
    pub(crate) fn around(home: Option<&Path>) -> Self {
        let named = home.filter(|home| home.is_absolute());
        let real = named.and_then(|home| home.canonicalize().ok());
        let mut homes: Vec<PathBuf> = named.map(Path::to_owned).into_iter().collect();
        homes.extend(real.filter(|real| Some(real.as_path()) != named));
        Self { homes }
    }

    /// Where a path lies in the home.
    fn in_home<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.homes
            .iter()
            .find_map(|home| path.strip_prefix(home).ok())
    }

    fn holds_a_home(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| home.starts_with(path))
    }

    /// Whether a directory is neither the home nor above it, nor everybody's.
    pub(crate) fn is_narrow(&self, path: &Path) -> bool {
        let wide = WIDE.iter().any(|wide| path == Path::new(wide));
        !wide && !self.holds_a_home(path)
    }

    fn is_closed(&self, path: &Path) -> bool {
        let closed = |inside: &Path| CLOSED.iter().any(|place| inside.starts_with(place));
        self.in_home(path).is_some_and(closed)
    }

    /// Whether a directory may be shown with everything in it, by its name and by where it really is.
    pub(crate) fn allow(&self, directory: &Path) -> bool {
        self.allow_name(directory)
            && real_directory(directory).is_some_and(|real| self.allow_name(&real))
    }

    /// The same by its name alone.
    fn allow_name(&self, path: &Path) -> bool {
        let shared = |inside: &Path| SHARED.iter().any(|place| inside == Path::new(place));
        is_plain(path)
            && self.is_narrow(path)
            && !self.is_closed(path)
            && !self.in_home(path).is_some_and(shared)
    }

    /// Where a directory of the search path really is, if it may be shown. A person who puts a part of `~/.config` on
    /// it keeps programs there.
    pub(super) fn allow_search(&self, entry: &Path) -> Option<PathBuf> {
        let in_config = |path: &Path| {
            let inside = self.in_home(path);
            inside.is_some_and(|inside| {
                inside.starts_with(".config") && inside.components().count() > 2
            })
        };
        let allowed =
            |path: &Path| self.is_narrow(path) && (in_config(path) || !self.is_closed(path));
        if !is_plain(entry) || !allowed(entry) {
            return None;
        }
        real_directory(entry).filter(|real| allowed(real))
    }

    /// The prefix that a directory of programs belongs to, where it is one that may be shown.
    pub(super) fn prefix_of(&self, programs: &Path) -> Option<PathBuf> {
        let name = programs.file_name()?.to_str()?;
        let around = programs.parent()?;
        // The name alone rules out most, and costs nothing.
        if !self.allow_name(around) {
            return None;
        }
        let is_prefix = if PROGRAMS.contains(&name) {
            // A checkout with `bin` and `lib` is a project, not a toolchain.
            SIGNS.iter().any(|sign| around.join(sign).exists()) && !around.join(".git").exists()
        } else {
            name == ".bin" && around.ends_with("node_modules")
        };
        (is_prefix && self.allow(around)).then(|| around.to_owned())
    }
}

fn real_directory(path: &Path) -> Option<PathBuf> {
    // One look tells what is not there; finding the real path takes one for each part.
    path.is_dir().then(|| path.canonicalize().ok()).flatten()
}

/// An absolute path without surprises, as text.
pub(super) fn is_plain(path: &Path) -> bool {
    path.to_str().is_some_and(|text| {
        text.starts_with('/')
            && !text.split('/').any(|part| part == "..")
            && !text.chars().any(|c| c.is_control() || c == ':')
    })
}

/// What of a shown directory must stay hidden.
pub(super) fn credentials_in(directory: &Path) -> Vec<PathBuf> {
    // One look at the names costs less than asking for each.
    let mut found = Vec::new();
    for (place, names) in CREDENTIALS {
        let entries = fs::read_dir(directory.join(place)).into_iter().flatten();
        let telling = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| names.contains(&name))
        });
        // Where a link leads is what has to be hidden, and it is there that it may be shown.
        found.extend(telling.filter_map(|entry| entry.path().canonicalize().ok()));
    }
    found
}
