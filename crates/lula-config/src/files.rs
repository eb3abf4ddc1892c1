//! The files: where they are, and reading them without trusting them.

use std::path::{Path, PathBuf};

use lula_files::FinalLink;

use crate::error::ConfigError;
use crate::layer::{ConfigLayer, ConfigSetting};
use crate::toml_layer;

/// Name of a repository's file, at its top.
pub const REPOSITORY_FILE: &str = ".lula.toml";
/// Where the machine's configuration lies, for every user of it.
pub const SYSTEM_FILE: &str = "/etc/lula/config.toml";

/// No configuration is longer than this.
const MAX_BYTES: u64 = 256 * 1024;

/// Where each file layer lives.
#[derive(Debug, Clone)]
pub struct ConfigFileLocations {
    pub system: PathBuf,
    /// The user's file; none where no home is known.
    pub user: Option<PathBuf>,
    /// The repository's file; none outside a repository.
    pub repository: Option<PathBuf>,
}

impl ConfigFileLocations {
    /// The usual places, from the variables of the process and the directory it works in.
    pub fn usual(variable: impl Fn(&str) -> Option<String>, directory: &Path) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let user = set(crate::variables::CONFIG_FILE)
            .map(PathBuf::from)
            .or_else(|| {
                set("XDG_CONFIG_HOME")
                    .map(PathBuf::from)
                    .filter(|path| path.is_absolute())
                    .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))
                    .map(|base| base.join("lula/config.toml"))
            });
        Self {
            system: SYSTEM_FILE.into(),
            user,
            repository: repository_top(directory).map(|top| top.join(REPOSITORY_FILE)),
        }
    }

    /// The file of a layer.
    pub fn of(&self, layer: ConfigLayer) -> Option<&Path> {
        match layer {
            ConfigLayer::System => Some(&self.system),
            ConfigLayer::User => self.user.as_deref(),
            ConfigLayer::Repository => self.repository.as_deref(),
            ConfigLayer::BuiltIn | ConfigLayer::Environment | ConfigLayer::Flag => None,
        }
    }

    /// Every setting in every file. A file that is not there says nothing.
    pub fn read(&self) -> Result<Vec<ConfigSetting>, ConfigError> {
        let mut settings = Vec::new();
        for layer in [
            ConfigLayer::System,
            ConfigLayer::User,
            ConfigLayer::Repository,
        ] {
            let Some(path) = self.of(layer) else { continue };
            if let Some(text) = read_text(path, layer)? {
                settings.extend(toml_layer::parse(&text, path, layer)?);
            }
        }
        Ok(settings)
    }
}

/// The top of the repository a directory belongs to.
pub fn repository_top(directory: &Path) -> Option<&Path> {
    directory
        .ancestors()
        .find(|ancestor| ancestor.join(".git").symlink_metadata().is_ok())
}

/// The text of a file, or `None` where there is none.
///
/// A repository's file is hostile: a link could point anywhere and a pipe would never end, so it
/// must be a plain file. People do link their own.
pub(crate) fn read_text(path: &Path, layer: ConfigLayer) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let link = match layer {
        ConfigLayer::Repository => FinalLink::Refused,
        _ => FinalLink::Followed,
    };
    lula_files::read_regular_text(path, MAX_BYTES, link)
        .map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository_with(make: impl FnOnce(&Path)) -> (tempfile::TempDir, ConfigFileLocations) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join(".git")).unwrap();
        std::fs::create_dir_all(top.path().join("src/deep")).unwrap();
        make(&top.path().join(REPOSITORY_FILE));
        let locations = ConfigFileLocations {
            system: top.path().join("no-system.toml"),
            ..ConfigFileLocations::usual(|_| None, &top.path().join("src/deep"))
        };
        (top, locations)
    }

    #[test]
    fn a_repository_is_found_from_its_depths() {
        let (_top, locations) = repository_with(|file| {
            std::fs::write(file, "[sandbox]\ntimeout = \"5s\"\n").unwrap();
        });
        assert_eq!(locations.read().unwrap()[0].spec.name, "sandbox.timeout");
    }

    #[test]
    fn a_repository_file_that_is_a_link_or_a_directory_is_refused() {
        let (_top, locations) = repository_with(|file| {
            std::os::unix::fs::symlink("/etc/passwd", file).unwrap();
        });
        let error = locations.read().unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");

        let (_top, locations) = repository_with(|file| std::fs::create_dir(file).unwrap());
        let error = locations.read().unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }

    #[test]
    fn an_endless_file_is_refused() {
        let (_top, locations) = repository_with(|file| {
            let size = usize::try_from(MAX_BYTES).unwrap() + 1;
            std::fs::write(file, "#".repeat(size)).unwrap();
        });
        assert!(
            locations
                .read()
                .unwrap_err()
                .to_string()
                .contains("larger than")
        );
    }

    #[test]
    fn the_users_file_follows_the_usual_variables() {
        let at = |pairs: &'static [(&str, &str)]| {
            let variable = move |name: &str| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            ConfigFileLocations::usual(variable, Path::new("/")).user
        };
        let path = |text| Some(PathBuf::from(text));
        assert_eq!(
            at(&[("HOME", "/home/a")]),
            path("/home/a/.config/lula/config.toml")
        );
        assert_eq!(
            at(&[("HOME", "/home/a"), ("XDG_CONFIG_HOME", "/c")]),
            path("/c/lula/config.toml")
        );
        assert_eq!(at(&[("LULA_CONFIG_FILE", "/x.toml")]), path("/x.toml"));
        assert_eq!(at(&[]), None);
    }
}
