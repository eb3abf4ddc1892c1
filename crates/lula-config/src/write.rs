//! Changing a file: the one key asked for, comments and order kept, all or nothing.

use std::io::Write;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table};

use crate::error::ConfigError;
use crate::files::read_text;
use crate::keys::{ConfigKeySpec, RepositoryKeyRule};
use crate::layer::ConfigLayer;
use crate::resolve::never_reason;
use crate::toml_layer;

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFileChange {
    pub path: PathBuf,
    /// Its text before; empty where it did not exist.
    pub before: String,
    pub after: String,
}

/// Writes a value into the file of a layer. The file is checked before and after.
pub fn set(
    path: &Path,
    layer: ConfigLayer,
    spec: &'static ConfigKeySpec,
    text: &str,
) -> Result<ConfigFileChange, ConfigError> {
    if layer == ConfigLayer::Repository && spec.repository == RepositoryKeyRule::Never {
        return Err(ConfigError::RepositoryOverreach {
            spec,
            reason: never_reason(spec),
        });
    }
    let value = spec.kind.parse(text).ok_or_else(|| ConfigError::BadValue {
        spec,
        given: format!("{text:?}"),
        origin: None,
    })?;
    change(path, layer, |document| {
        let (section, name) = split(spec);
        let table = document
            .entry(section)
            .or_insert_with(|| Item::Table(Table::new()));
        if let Some(table) = table.as_table_like_mut() {
            let decor = table
                .get(name)
                .and_then(Item::as_value)
                .map(|old| old.decor().clone());
            let mut value = value.to_toml();
            if let Some(decor) = decor {
                *value.decor_mut() = decor;
            }
            table.insert(name, Item::Value(value));
        }
    })
}

/// Removes a key from the file of a layer.
pub fn unset(
    path: &Path,
    layer: ConfigLayer,
    spec: &'static ConfigKeySpec,
) -> Result<ConfigFileChange, ConfigError> {
    change(path, layer, |document| {
        let (section, name) = split(spec);
        if let Some(table) = document.get_mut(section).and_then(Item::as_table_like_mut) {
            table.remove(name);
        }
    })
}

fn split(spec: &ConfigKeySpec) -> (&'static str, &'static str) {
    spec.name.split_once('.').unwrap_or(("", spec.name))
}

fn change(
    path: &Path,
    layer: ConfigLayer,
    edit: impl FnOnce(&mut DocumentMut),
) -> Result<ConfigFileChange, ConfigError> {
    let before = read_text(path, layer)?.unwrap_or_default();
    toml_layer::parse(&before, path, layer)?;
    let mut document: DocumentMut = before.parse().unwrap_or_default();
    edit(&mut document);
    let after = document.to_string();
    toml_layer::parse(&after, path, layer)?;
    if after != before {
        replace(path, &after).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    }
    Ok(ConfigFileChange {
        path: path.to_owned(),
        before,
        after,
    })
}

/// A reader sees the old file or the new one, also after a crash.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A linked file is changed where it really is.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new()
        .prefix(".lula-config-")
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = path.metadata() {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path)?;
    std::fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn setting_keeps_comments_and_order() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sub/config.toml");
        set(&file, ConfigLayer::User, keys::OUTPUT_COLOR.spec(), "never").unwrap();
        std::fs::write(&file, "# mine\n[output]\ncolor = \"never\" # no paint\n").unwrap();
        set(
            &file,
            ConfigLayer::User,
            keys::OUTPUT_COLOR.spec(),
            "always",
        )
        .unwrap();
        set(
            &file,
            ConfigLayer::User,
            keys::SANDBOX_TIMEOUT.spec(),
            "90s",
        )
        .unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "# mine\n[output]\ncolor = \"always\" # no paint\n\n[sandbox]\ntimeout = \"90s\"\n"
        );
        let change = unset(&file, ConfigLayer::User, keys::OUTPUT_COLOR.spec()).unwrap();
        assert!(change.before.contains("color") && !change.after.contains("color"));
        let nothing = unset(&file, ConfigLayer::User, keys::OUTPUT_COLOR.spec()).unwrap();
        assert_eq!(nothing.before, nothing.after);
    }

    #[test]
    fn a_bad_value_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        assert!(set(&file, ConfigLayer::User, keys::OUTPUT_COLOR.spec(), "pink").is_err());
        assert!(!file.exists());
    }

    #[test]
    fn a_broken_file_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        std::fs::write(&file, "[output\n").unwrap();
        assert!(set(&file, ConfigLayer::User, keys::OUTPUT_COLOR.spec(), "never").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[output\n");
    }

    #[test]
    fn a_repository_file_cannot_be_given_an_endpoint() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".lula.toml");
        let spec = keys::MODELS_OLLAMA_URL.spec();
        let error = set(&file, ConfigLayer::Repository, spec, "http://127.0.0.1:1").unwrap_err();
        assert_eq!(error.code().as_str(), "L0105");
        assert!(!file.exists());
    }
}
