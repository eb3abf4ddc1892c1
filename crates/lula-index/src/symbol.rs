//! What a file defines and which names it uses.

use serde::{Deserialize, Serialize};

/// What kind of thing a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolKind {
    Class,
    /// A constant or variable of a whole file.
    Constant,
    Enum,
    Function,
    /// A block of methods of a type defined elsewhere: it defines no name of its own.
    Impl,
    Interface,
    Macro,
    /// A function of a class or type.
    Method,
    /// A module or namespace.
    Module,
    /// A struct or union.
    Struct,
    /// A trait or concept.
    Trait,
    /// A type or an alias of one.
    Type,
}

impl SymbolKind {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Constant => "constant",
            Self::Enum => "enum",
            Self::Function => "function",
            Self::Impl => "impl",
            Self::Interface => "interface",
            Self::Macro => "macro",
            Self::Method => "method",
            Self::Module => "module",
            Self::Struct => "struct",
            Self::Trait => "trait",
            Self::Type => "type",
        }
    }

    /// Whether functions inside are its methods.
    pub(crate) const fn has_methods(self) -> bool {
        matches!(
            self,
            Self::Class | Self::Struct | Self::Impl | Self::Interface | Self::Trait | Self::Enum
        )
    }
}

/// A definition in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSymbol<N = String> {
    pub name: N,
    pub kind: SymbolKind,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line, from 1 and included.
    pub end: u32,
    /// The symbol it stands in, by its place in the file's list, which is before its own.
    pub parent: Option<u32>,
    /// What it looks like without its body, in one line.
    pub signature: String,
}

/// All that is kept of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTags<N = String> {
    /// What it defines, in the order of the text.
    pub symbols: Vec<IndexSymbol<N>>,
    /// Which names it uses and how often, in the order of the names.
    pub uses: Vec<(N, u32)>,
}

impl<N> Default for FileTags<N> {
    fn default() -> Self {
        Self {
            symbols: Vec::new(),
            uses: Vec::new(),
        }
    }
}

/// Why a file of a known language has no symbols here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkippedFileReason {
    /// Longer than what is parsed.
    TooLarge,
    /// Bytes that are not text.
    Binary,
    /// Lines that no person wrote: made by a program.
    Generated,
    /// Parsing it takes more steps than text of its length deserves.
    TooHard,
    /// It could not be read.
    Unreadable,
}

impl SkippedFileReason {
    /// What to tell people.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLarge => "too large",
            Self::Binary => "not text",
            Self::Generated => "generated",
            Self::TooHard => "too hard to parse",
            Self::Unreadable => "unreadable",
        }
    }
}
