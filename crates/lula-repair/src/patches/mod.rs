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

pub(crate) use forge::PatchGenerator;

use crate::locate::{Clues, Heat};
use crate::syntax::{ParsedSource, child, children, in_test_code, walk};

/// Replaces a range of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ByteRangeEdit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
}

/// What kind of mistake a patch supposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchFamily {
    /// A comparison by the wrong operator.
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
    /// The name of another variable.
    Variable,
    /// The wrong function or method.
    Call,
    /// The wrong expression, where the right one stands nearby.
    Expression,
    /// A value that needs a conversion, or must not have one.
    Conversion,
    /// A wrong end of a slice or range.
    Bounds,
    /// A case that the programmer did not think of.
    Guard,
    /// A missing value where there is none.
    Default,
    /// A statement that is missing.
    MissingStatement,
    /// A statement that should not be there.
    SurplusStatement,
    /// A statement in the wrong place.
    MovedStatement,
    /// The branch of another case is taken.
    Branch,
    /// Two of the above.
    Pair,
}

/// One patch, before tests show whether it works.
#[derive(Debug, Clone)]
pub(crate) struct CandidatePatch {
    pub(crate) path: String,
    pub(crate) edits: Vec<ByteRangeEdit>,
    pub(crate) family: PatchFamily,
    pub(crate) line: usize,
    pub(crate) suspicion: f64,
    pub(crate) prior: f64,
}

impl CandidatePatch {
    pub(crate) fn weight(&self) -> f64 {
        self.suspicion * self.prior
    }

    /// The file's new text; none where edits overlap or miss the text.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let mut edits: Vec<&ByteRangeEdit> = self.edits.iter().collect();
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
pub(crate) fn propose(source: &ParsedSource, heat: &Heat, clues: &Clues) -> Vec<CandidatePatch> {
    let mut forge = PatchGenerator::new(source, heat, clues);
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
    /// File, which of its parts, and what that spells.
    seen: HashSet<(String, Option<usize>, u64)>,
}

impl NormalForms {
    /// The patched text, if it is worth trying.
    pub(crate) fn admit(
        &mut self,
        source: &ParsedSource,
        candidate: &CandidatePatch,
    ) -> Option<String> {
        let text = candidate.apply(&source.text)?;
        let tree = source.reparse(&candidate.edits, &text)?;
        if tree.root_node().has_error() && !source.root().has_error() {
            return None;
        }
        let part = part_of(source, &tree, &candidate.edits);
        let node = part.and_then(|index| child(tree.root_node(), index));
        let form = form_of(node.unwrap_or_else(|| tree.root_node()), &text)?;
        self.seen
            .insert((source.path.clone(), part, form))
            .then_some(text)
    }

    /// Marks the file's own text as known.
    pub(crate) fn know(&mut self, source: &ParsedSource) {
        let mut cursor = source.root().walk();
        let parts = source.root().children(&mut cursor);
        let parts = parts.enumerate().map(|(index, node)| (Some(index), node));
        for (part, node) in parts.chain([(None, source.root())]) {
            if let Some(form) = form_of(node, &source.text) {
                self.seen.insert((source.path.clone(), part, form));
            }
        }
    }
}

/// The part of a file, a function or class, that holds all edits: the rest need not be compared.
fn part_of(
    source: &ParsedSource,
    tree: &tree_sitter::Tree,
    edits: &[ByteRangeEdit],
) -> Option<usize> {
    let root = source.root();
    if root.child_count() != tree.root_node().child_count() {
        return None;
    }
    let mut cursor = root.walk();
    root.children(&mut cursor).position(|part| {
        edits
            .iter()
            .all(|edit| part.start_byte() < edit.start && edit.end < part.end_byte())
    })
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

/// A digest of the tokens of a part of a text, without comments, spacing and needless brackets.
fn form_of(part: tree_sitter::Node<'_>, text: &str) -> Option<u64> {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    let mut skipped = HashSet::new();
    for node in walk(part) {
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
