//! Symbols and uses out of a file's bytes. The bytes are untrusted: every step is bounded.

use std::collections::{HashMap, HashSet};

use lula_edit::bounded_parse::{BracketCount, ParseBudget, parse_within};
use tree_sitter::{Node, Parser, Tree, TreeCursor};

use crate::language::IndexLanguage;
use crate::names;
use crate::rules::{DefinitionCondition, DefinitionRule, LanguageRules, NameAt, SyntaxNodeRole};
use crate::symbol::{FileTags, IndexSymbol, SkippedFileReason, SymbolKind};

/// Longest file that is parsed, in bytes.
pub const MAX_FILE: usize = 512 << 10;
/// Most definitions kept of a file.
pub const MAX_SYMBOLS: usize = 4_000;
/// Most different names kept of a file.
pub const MAX_USES: usize = 8_000;
/// Longest name, in bytes.
const MAX_NAME: usize = 120;
/// Longest signature, in characters.
const MAX_SIGNATURE: usize = 160;
/// Deepest nesting that is looked into.
const MAX_DEPTH: usize = 400;
/// Deepest a variable of a whole file can stand: in an exported declaration.
const TOP_DEPTH: usize = 3;
/// Deepest nesting of a name in its definition.
const MAX_NAMES_NESTED: usize = 32;
/// Files longer than this with lines longer than `GENERATED_LINE` on average were made by programs.
const GENERATED_FILE: usize = 16 << 10;
const GENERATED_LINE: usize = 400;
/// Where binary files show that they are.
const BINARY_LOOK: usize = 8 << 10;
/// Deepest nesting of brackets, right or wrong, in text that is parsed: at the end of a text with
/// many open brackets the parser copies them all over and over, in one operation.
const MAX_BRACKETS: usize = 250;
/// Most reports of the parser: twice what a file of ordinary text and greatest length needs.
const MAX_REPORTS: usize = 8_000;

/// Extracts one file after the other; the parsers are kept.
#[derive(Default)]
pub(crate) struct Extractor {
    parsers: HashMap<IndexLanguage, Parser>,
}

impl Extractor {
    pub(crate) fn tags(
        &mut self,
        language: IndexLanguage,
        text: &[u8],
    ) -> Result<FileTags, SkippedFileReason> {
        if let Some(reason) = unfit(text) {
            return Err(reason);
        }
        let rules = LanguageRules::of(language);
        let tree = self
            .parse(language, rules, text)
            .ok_or(SkippedFileReason::TooHard)?;
        Ok(Walk::new(rules, text).run(&tree))
    }

    fn parse(
        &mut self,
        language: IndexLanguage,
        rules: &LanguageRules,
        text: &[u8],
    ) -> Option<Tree> {
        let parser = self.parsers.entry(language).or_default();
        let budget = ParseBudget::sparing(text.len(), MAX_REPORTS);
        parse_within(parser, &rules.grammar, text, None, budget)
    }
}

/// What a file defines and uses, or why it was not looked at. Pure, and bounded for any bytes.
pub fn tags(language: IndexLanguage, text: &[u8]) -> Result<FileTags, SkippedFileReason> {
    Extractor::default().tags(language, text)
}

fn unfit(text: &[u8]) -> Option<SkippedFileReason> {
    if text.len() > MAX_FILE {
        return Some(SkippedFileReason::TooLarge);
    }
    if text[..text.len().min(BINARY_LOOK)].contains(&0) {
        return Some(SkippedFileReason::Binary);
    }
    if BracketCount::of(text).deepest > MAX_BRACKETS {
        return Some(SkippedFileReason::TooHard);
    }
    if text.len() > GENERATED_FILE {
        let lines = text.split(|&byte| byte == b'\n').count();
        if text.len() / lines > GENERATED_LINE {
            return Some(SkippedFileReason::Generated);
        }
    }
    None
}

/// A definition that the walk is inside of.
struct EnclosingSymbol {
    depth: usize,
    symbol: u32,
    kind: SymbolKind,
}

struct Walk<'a> {
    rules: &'static LanguageRules,
    text: &'a [u8],
    symbols: Vec<IndexSymbol>,
    uses: HashMap<&'a str, u32>,
    open: Vec<EnclosingSymbol>,
    /// Where names of definitions stand: these are no uses.
    named: HashSet<usize>,
}

impl<'a> Walk<'a> {
    fn new(rules: &'static LanguageRules, text: &'a [u8]) -> Self {
        Self {
            rules,
            text,
            symbols: Vec::new(),
            uses: HashMap::new(),
            open: Vec::new(),
            named: HashSet::new(),
        }
    }

    fn run(mut self, tree: &Tree) -> FileTags {
        let mut cursor = tree.walk();
        let mut parents: Vec<u16> = Vec::new();
        'walk: loop {
            let enter = self.visit(&cursor, parents.last().copied(), parents.len());
            let kind = cursor.node().kind_id();
            if enter && parents.len() < MAX_DEPTH && cursor.goto_first_child() {
                parents.push(kind);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    break 'walk;
                }
                parents.pop();
            }
            let depth = parents.len();
            while self.open.last().is_some_and(|open| open.depth >= depth) {
                self.open.pop();
            }
        }
        let mut uses: Vec<_> = self
            .uses
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        uses.sort_unstable();
        FileTags {
            symbols: self.symbols,
            uses,
        }
    }

    /// Looks at a node; whether its children are to be looked at.
    fn visit(&mut self, cursor: &TreeCursor<'_>, parent: Option<u16>, depth: usize) -> bool {
        let node = cursor.node();
        let field = cursor.field_id().map(u16::from);
        if field.is_some() && field == self.rules.module_path {
            return false;
        }
        match self
            .rules
            .roles
            .get(usize::from(node.kind_id()))
            .copied()
            .unwrap_or_default()
        {
            SyntaxNodeRole::Nothing => true,
            SyntaxNodeRole::Opaque => false,
            SyntaxNodeRole::Defines(defines) => {
                self.define(node, defines, depth);
                true
            }
            SyntaxNodeRole::Uses => {
                self.used(node, true);
                false
            }
            SyntaxNodeRole::MayUse => {
                // The number of an error is beyond every table.
                let marked =
                    |table: &[bool], number: u16| table.get(usize::from(number)) == Some(&true);
                let in_field = field.is_some_and(|id| marked(&self.rules.used_in_field, id));
                let below = parent.is_some_and(|parent| marked(&self.rules.used_below, parent));
                self.used(node, in_field || below);
                false
            }
        }
    }

    fn used(&mut self, node: Node<'_>, surely: bool) {
        if self.named.contains(&node.start_byte()) {
            return;
        }
        let Some(name) = self.word(node) else {
            return;
        };
        if !surely && !names::is_distinctive(name) {
            return;
        }
        if let Some(count) = self.uses.get_mut(name) {
            *count = count.saturating_add(1);
        } else if self.uses.len() < MAX_USES {
            self.uses.insert(name, 1);
        }
    }

    fn define(&mut self, node: Node<'_>, defines: DefinitionRule, depth: usize) {
        if self.symbols.len() >= MAX_SYMBOLS {
            return;
        }
        let function = function_value(node);
        let inside = self.open.last();
        let top = inside.is_none_or(|open| matches!(open.kind, SymbolKind::Module));
        let fits = match defines.when {
            DefinitionCondition::Always => true,
            DefinitionCondition::HasBody => node.child_by_field_name("body").is_some(),
            DefinitionCondition::TopLevel => top,
            // Functions without a name open no definition, but they nest.
            DefinitionCondition::TopLevelOrFunction => {
                (top && depth <= TOP_DEPTH) || function.is_some()
            }
            DefinitionCondition::IsFunction => function.is_some(),
            DefinitionCondition::Prototype => top && is_prototype(node),
        };
        let Some(at) = fits.then(|| name_of(node, defines.name)).flatten() else {
            return;
        };
        let Some(name) = self.word(at) else {
            return;
        };
        let kind = match defines.kind {
            SymbolKind::Function if inside.is_some_and(|open| open.kind.has_methods()) => {
                SymbolKind::Method
            }
            SymbolKind::Constant if function.is_some() => SymbolKind::Function,
            kind => kind,
        };
        // A variable whose name could be any word's is found by looking at its file.
        if kind == SymbolKind::Constant && name.len() < 3 {
            return;
        }
        let symbol = IndexSymbol {
            name: name.to_owned(),
            kind,
            line: line(node.start_position().row),
            end: line(node.end_position().row),
            parent: inside.map(|open| open.symbol),
            signature: self.signature(node, kind, function),
        };
        if kind != SymbolKind::Impl {
            self.named.insert(at.start_byte());
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "there are at most MAX_SYMBOLS"
        )]
        let number = self.symbols.len() as u32;
        self.symbols.push(symbol);
        self.open.push(EnclosingSymbol {
            depth,
            symbol: number,
            kind,
        });
    }

    /// The text of a leaf, if it is a name that can be looked for.
    fn word(&self, node: Node<'_>) -> Option<&'a str> {
        let bytes = self.text.get(node.byte_range())?;
        if bytes.is_empty() || bytes.len() > MAX_NAME {
            return None;
        }
        let name = std::str::from_utf8(bytes).ok()?;
        let first = name.chars().next()?;
        let named = first.is_alphabetic() || matches!(first, '_' | '$' | '#' | '~' | '@');
        (named && !name.contains(char::is_whitespace)).then_some(name)
    }

    /// A definition up to its body, in one line.
    fn signature(&self, node: Node<'_>, kind: SymbolKind, function: Option<Node<'_>>) -> String {
        let start = node.start_byte();
        let body = function
            .unwrap_or(node)
            .child_by_field_name("body")
            .or_else(|| body_of_type(node));
        let end = body.map_or(node.end_byte(), |body| body.start_byte());
        let text = self.text.get(start..end).unwrap_or_default();
        // Far more than is kept: blanks may be many.
        let text = &text[..text.len().min(MAX_SIGNATURE * 16)];
        let text = String::from_utf8_lossy(text);
        // Without a body, the first line says what it is.
        let text = if body.is_some() {
            text.as_ref()
        } else {
            text.lines().next().unwrap_or_default()
        };
        // The body of a macro has no name of its own in the grammars.
        let text = match text.split_once(" {") {
            Some((before, _)) if kind == SymbolKind::Macro => before,
            _ => text,
        };
        let mut line = String::new();
        for (number, word) in text.split_whitespace().enumerate() {
            if number > 0 && !line.ends_with('(') && !word.starts_with([')', ',']) {
                line.push(' ');
            }
            line.extend(word.chars().filter(|c| !names::is_unseen(*c)));
            if line.len() > MAX_SIGNATURE * 4 {
                break;
            }
        }
        // A comment between a definition and its body.
        if let Some(at) = [": #", "{ //", "{ /*"]
            .iter()
            .find_map(|mark| line.find(mark))
        {
            line.truncate(at);
        }
        let trimmed = line.trim_end_matches([' ', '{', ':', ';', '\u{fffd}']);
        let trimmed = trimmed.strip_suffix("=>").unwrap_or(trimmed).trim_end();
        match trimmed.char_indices().nth(MAX_SIGNATURE) {
            Some((cut, _)) => format!("{}…", &trimmed[..cut]),
            None => trimmed.to_owned(),
        }
    }
}

/// The function that a variable, field or assignment has as its value.
fn function_value(node: Node<'_>) -> Option<Node<'_>> {
    let value = node
        .child_by_field_name("value")
        .or_else(|| node.child_by_field_name("right"))?;
    let is_function = matches!(
        value.kind(),
        "arrow_function" | "function_expression" | "generator_function" | "lambda"
    );
    is_function.then_some(value)
}

/// The leaf that names a definition. Declarators, qualified names and members nest: the last name
/// counts.
fn name_of(node: Node<'_>, name: NameAt) -> Option<Node<'_>> {
    let mut at = match name {
        NameAt::Field(field) => node.child_by_field_name(field)?,
        NameAt::Declarator => node.child_by_field_name("declarator")?,
    };
    for _ in 0..MAX_NAMES_NESTED {
        let inner = ["declarator", "name", "property", "type"]
            .iter()
            .find_map(|field| at.child_by_field_name(field))
            .or_else(|| {
                let wraps = matches!(
                    at.kind(),
                    "reference_declarator" | "parenthesized_declarator"
                );
                wraps.then(|| at.named_child(0)).flatten()
            });
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    (at.named_child_count() == 0).then_some(at)
}

/// The body of Go's types, which is part of their value.
fn body_of_type(node: Node<'_>) -> Option<Node<'_>> {
    let inner = node.child_by_field_name("type")?;
    matches!(inner.kind(), "struct_type" | "interface_type")
        .then(|| inner.named_child(0))
        .flatten()
}

/// A declaration of a function, not of a variable.
fn is_prototype(node: Node<'_>) -> bool {
    let mut at = node.child_by_field_name("declarator");
    for _ in 0..8 {
        match at {
            Some(inner) if inner.kind() == "function_declarator" => return true,
            Some(inner) => at = inner.child_by_field_name("declarator"),
            None => return false,
        }
    }
    false
}

fn line(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX).saturating_add(1)
}
