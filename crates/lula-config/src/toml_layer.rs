//! A TOML file as a list of settings, each with the line it stands on.

use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use crate::error::ConfigError;
use crate::keys;
use crate::layer::{ConfigLayer, ConfigOrigin, ConfigSetting};
use crate::suggest::nearest;

/// Reads the text of a configuration file.
pub(crate) fn parse(
    text: &str,
    path: &Path,
    layer: ConfigLayer,
) -> Result<Vec<ConfigSetting>, ConfigError> {
    let file = File { text, path, layer };
    let document = Document::parse(text).map_err(|error| ConfigError::BadToml {
        origin: file.origin(error.span()),
        message: error.message().to_owned(),
    })?;
    let mut settings = Vec::new();
    file.collect(document.as_table(), "", &mut settings)?;
    Ok(settings)
}

struct File<'a> {
    text: &'a str,
    path: &'a Path,
    layer: ConfigLayer,
}

impl File<'_> {
    fn collect(
        &self,
        table: &dyn TableLike,
        prefix: &str,
        settings: &mut Vec<ConfigSetting>,
    ) -> Result<(), ConfigError> {
        for (part, item) in table.iter() {
            let name = if prefix.is_empty() {
                part.to_owned()
            } else {
                format!("{prefix}.{part}")
            };
            let span = table
                .key(part)
                .and_then(toml_edit::Key::span)
                .or_else(|| item.span());
            if let Some(spec) = keys::find(&name) {
                let value = spec
                    .kind
                    .parse_toml(item)
                    .ok_or_else(|| ConfigError::BadValue {
                        spec,
                        given: written(item),
                        origin: Some(self.origin(span.clone())),
                    })?;
                settings.push(ConfigSetting {
                    spec,
                    value,
                    layer: self.layer,
                    origin: self.origin(span),
                });
            } else if let Some(inner) = item.as_table_like().filter(|_| is_section(&name)) {
                self.collect(inner, &name, settings)?;
            } else {
                return Err(ConfigError::UnknownKey {
                    nearest: nearest(&name, keys::all().map(|spec| spec.name)),
                    origin: Some(self.origin(span)),
                    name,
                });
            }
        }
        Ok(())
    }

    fn origin(&self, span: Option<std::ops::Range<usize>>) -> ConfigOrigin {
        let start = self
            .text
            .floor_char_boundary(span.map_or(0, |span| span.start));
        let line = 1 + self.text[..start].matches('\n').count();
        ConfigOrigin::File {
            path: self.path.to_owned(),
            line,
        }
    }
}

/// Whether some key stands below that name.
fn is_section(name: &str) -> bool {
    keys::all().any(|spec| {
        spec.name
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// The item as it was written, on one line and short enough for a message.
fn written(item: &Item) -> String {
    let text = item.to_string();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.is_empty() => "a table".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_user(text: &str) -> Result<Vec<ConfigSetting>, ConfigError> {
        parse(text, Path::new("config.toml"), ConfigLayer::User)
    }

    #[track_caller]
    fn mistake(text: &str, line: usize) -> ConfigError {
        let error = parse_user(text).unwrap_err();
        let expected = ConfigOrigin::File {
            path: "config.toml".into(),
            line,
        };
        assert_eq!(error.origin(), Some(&expected), "{error}");
        error
    }

    #[test]
    fn settings_know_their_line() {
        let settings = parse_user("[sandbox]\n\nmin_tier = \"namespace\"\n").unwrap();
        assert_eq!(settings.len(), 1);
        assert_eq!(settings[0].spec.name, "sandbox.min_tier");
        assert_eq!(settings[0].origin.to_string(), "config.toml:3");
    }

    #[test]
    fn dotted_and_inline_forms_mean_the_same() {
        for text in ["output.color = \"never\"", "output = { color = \"never\" }"] {
            assert_eq!(
                parse_user(text).unwrap()[0].value.to_string(),
                "never",
                "{text}"
            );
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_neighbour() {
        let error = mistake("[sandbox]\nmin_teir = \"namespace\"\n", 2);
        assert_eq!(error.code().as_str(), "L0101");
        assert!(
            error.remedy().contains("`sandbox.min_tier`"),
            "{}",
            error.remedy()
        );
        mistake("[sandbx]\nmin_tier = \"namespace\"\n", 1);
    }

    #[test]
    fn a_bad_value_says_what_would_be_good() {
        let error = mistake("[output]\ncolor = \"pink\"\n", 2);
        assert_eq!(error.to_string(), "`output.color` cannot be \"pink\"");
        assert_eq!(error.remedy(), "write one of auto, always, never");
        mistake("sandbox.timeout = 5\n", 1);
        mistake("[sandbox.timeout]\nx = 1\n", 1);
    }

    #[test]
    fn broken_toml_is_located() {
        assert_eq!(mistake("[output]\ncolor = \n", 2).code().as_str(), "L0103");
    }

    proptest! {
        #[test]
        fn hostile_files_never_panic(text in "(?s).{0,200}") {
            let _ = parse_user(&text);
        }

        #[test]
        fn hostile_toml_never_panics(text in r#"(\[?(output|sandbox|x)(\.(color|timeout))?\]?( ?= ?("a"|1|\[\]|\{\}|true))?\n){0,5}"#) {
            let _ = parse_user(&text);
        }
    }
}
