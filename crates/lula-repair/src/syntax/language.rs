//! Languages that patches can be written in, and their parsers.

use lula_edit::bounded_parse::{ParseBudget, parse_within};
use tree_sitter::{Parser, Tree};

/// A language that patches can be written in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum RepairLanguage {
    /// Python of version 3.
    Python,
    /// JavaScript, with or without JSX.
    JavaScript,
    TypeScript,
    Tsx,
    Rust,
}

impl RepairLanguage {
    /// By the ending of a path.
    pub fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "js" | "mjs" | "cjs" | "jsx" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            "rs" => Some(Self::Rust),
            _ => None,
        }
    }

    /// Whether it is one of the JavaScript family.
    pub fn is_script(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript | Self::Tsx)
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
        }
    }

    /// Parses a text; none where that would take more work than any ordinary text does.
    pub(crate) fn parse(self, text: &str) -> Option<Tree> {
        self.parse_from(text, None)
    }

    /// The same, starting from the tree of a text that differs where that tree was edited.
    pub(super) fn parse_from(self, text: &str, old: Option<&Tree>) -> Option<Tree> {
        let budget = ParseBudget::generous(text.len());
        let mut parser = Parser::new();
        parse_within(&mut parser, &self.grammar(), text.as_bytes(), old, budget)
    }
}
