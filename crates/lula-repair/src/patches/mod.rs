//! Candidate patches: small edits of the syntax tree, the likely ones first.
//!
//! A family looks at one node and proposes edits of it. How likely a proposal is, is its family's
//! prior times how suspicious the place is; proposals that spell the same program are one.

mod bounds;
mod branches;
mod calls;
mod conditions;
mod constants;
mod conversions;
mod defaults;
mod filters;
mod forge;
mod gather;
mod guards;
mod habits;
mod moves;
mod names;
mod operators;
mod order;
mod recursion;
mod scope;
mod shapes;
mod statements;
mod throughout;
mod wraps;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub(crate) use forge::Forge;

use crate::locate::{Clues, Heat};
use crate::syntax::{Source, child, children, in_test_code, walk};

/// Replaces a range of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Edit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
}

/// What kind of mistake a patch supposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// A wrong comparison.
    Comparison,
    /// A wrong arithmetic, bit or assignment operator.
    Operator,
    /// `and` for `or`, or the other way.
    Logic,
    /// A wrong number, string or truth value.
    Constant,
    /// One too many or one too few.
    OffByOne,
    /// A condition that is the wrong way round.
    Negation,
    /// A condition that lacks a part, or has one too many.
    MissingCondition,
    /// Arguments in the wrong order, missing or surplus.
    Arguments,
    /// Operands in the wrong order.
    Operands,
    /// The wrong variable.
    Variable,
    /// The wrong function or method.
    Call,
    /// The wrong expression, where the right one stands nearby.
    Expression,
    /// A value that needs a conversion, or must not have one.
    Conversion,
    /// A wrong end of a slice or range.
    Bounds,
    /// A case that nobody thought of.
    Guard,
    /// A missing value where there is none.
    Default,
    /// A missing statement.
    MissingStatement,
    /// A surplus statement.
    SurplusStatement,
    /// A statement in the wrong place.
    MovedStatement,
    /// The wrong branch.
    Branch,
    /// Two of the above.
    Pair,
}

/// One patch, before anybody knows whether it works.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) path: String,
    pub(crate) edits: Vec<Edit>,
    pub(crate) family: Family,
    pub(crate) line: usize,
    pub(crate) suspicion: f64,
    pub(crate) prior: f64,
}

impl Candidate {
    pub(crate) fn weight(&self) -> f64 {
        self.suspicion * self.prior
    }

    /// The file's new text; none where edits overlap or miss the text.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let mut edits: Vec<&Edit> = self.edits.iter().collect();
        edits.sort();
        let mut out = String::with_capacity(text.len() + 64);
        let mut at = 0;
        for edit in edits {
            out.push_str(text.get(at..edit.start)?);
            out.push_str(&edit.text);
            at = edit.end;
        }
        out.push_str(text.get(at..)?);
        Some(out)
    }
}

/// Every patch that the families can think of in one file, unordered.
pub(crate) fn propose(source: &Source, heat: &Heat, clues: &Clues) -> Vec<Candidate> {
    let mut forge = Forge::new(source, heat, clues);
    for node in walk(source.root()) {
        if !node.is_named() || node.is_error() || !forge.is_warm(node) || in_test_code(source, node)
        {
            continue;
        }
        operators::propose(&mut forge, node);
        constants::propose(&mut forge, node);
        conditions::propose(&mut forge, node);
        filters::propose(&mut forge, node);
        order::propose(&mut forge, node);
        names::propose(&mut forge, node);
        calls::propose(&mut forge, node);
        conversions::propose(&mut forge, node);
        bounds::propose(&mut forge, node);
        guards::propose(&mut forge, node);
        defaults::propose(&mut forge, node);
        statements::propose(&mut forge, node);
        moves::propose(&mut forge, node);
        branches::propose(&mut forge, node);
        shapes::propose(&mut forge, node);
        gather::propose(&mut forge, node);
        wraps::propose(&mut forge, node);
        recursion::propose(&mut forge, node);
        throughout::propose(&mut forge, node);
    }
    forge.done()
}

/// Keeps what parses and spells a program that was not proposed before.
#[derive(Debug, Default)]
pub(crate) struct NormalForms {
    seen: HashSet<(String, u64)>,
}

impl NormalForms {
    /// The patched text, if it is worth trying.
    pub(crate) fn admit(&mut self, source: &Source, candidate: &Candidate) -> Option<String> {
        let text = candidate.apply(&source.text)?;
        let tree = source.reparse(&candidate.edits, &text)?;
        let form = form_of(source, &tree, &text)?;
        self.seen
            .insert((source.path.clone(), form))
            .then_some(text)
    }

    /// Marks the file's own text as known.
    pub(crate) fn know(&mut self, source: &Source) {
        if let Some(form) = form_of(source, &source.tree, &source.text) {
            self.seen.insert((source.path.clone(), form));
        }
    }
}

/// Text of a node that belongs to none of its children, as in strings and format specifiers.
fn between(text: &str, node: tree_sitter::Node<'_>, hasher: &mut impl std::hash::Hasher) {
    use std::hash::Hash;
    let mut at = node.start_byte();
    let mut cursor = node.walk();
    for part in node.children(&mut cursor) {
        let gap = text.get(at..part.start_byte()).unwrap_or_default();
        if !gap.trim().is_empty() {
            gap.hash(hasher);
        }
        at = part.end_byte();
    }
    let gap = text.get(at..node.end_byte()).unwrap_or_default();
    if !gap.trim().is_empty() {
        gap.hash(hasher);
    }
}

/// A digest of a text's tokens without comments, spacing and needless brackets; none for a text
/// that does not parse where the original did.
fn form_of(source: &Source, tree: &tree_sitter::Tree, text: &str) -> Option<u64> {
    use std::hash::{Hash, Hasher};
    if tree.root_node().has_error() && !source.root().has_error() {
        return None;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    let mut skipped = HashSet::new();
    for node in walk(tree.root_node()) {
        if node.kind().contains("comment") {
            continue;
        }
        if node.kind() == "parenthesized_expression"
            && node.parent().is_some_and(|parent| {
                matches!(
                    parent.kind(),
                    "return_statement"
                        | "parenthesized_expression"
                        | "argument_list"
                        | "arguments"
                        | "assignment"
                )
            })
        {
            skipped.extend(child(node, 0).map(|node| node.id()));
            skipped.extend(child(node, children(node) - 1).map(|node| node.id()));
        }
        if children(node) == 0 && !skipped.contains(&node.id()) {
            text.get(node.byte_range())?.trim().hash(&mut hasher);
        } else if matches!(node.kind(), "block" | "statement_block") {
            // Indentation is meaning in Python; everywhere else the braces say it.
            (node.kind(), node.named_child_count()).hash(&mut hasher);
        }
        if node.child_count() > 0 {
            between(text, node, &mut hasher);
        }
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests;
