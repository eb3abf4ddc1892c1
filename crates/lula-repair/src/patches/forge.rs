//! Where families lay down what they propose.

use std::collections::HashMap;
use std::rc::Rc;

use tree_sitter::Node;

use super::scope::FunctionVocabulary;
use super::{ByteRangeEdit, CandidatePatch, PatchFamily};
use crate::locate::{Clues, Heat};
use crate::syntax::{ParsedSource, RepairLanguage, binary, function, named, statement};

/// One file under the hammer.
pub(crate) struct PatchGenerator<'a> {
    pub(crate) source: &'a ParsedSource,
    pub(crate) clues: &'a Clues,
    heat: &'a Heat,
    scopes: HashMap<usize, Rc<FunctionVocabulary>>,
    out: Vec<CandidatePatch>,
}

impl<'a> PatchGenerator<'a> {
    pub(super) fn new(source: &'a ParsedSource, heat: &'a Heat, clues: &'a Clues) -> Self {
        Self {
            source,
            clues,
            heat,
            scopes: HashMap::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn done(self) -> Vec<CandidatePatch> {
        self.out
    }

    pub(crate) fn python(&self) -> bool {
        self.source.language == RepairLanguage::Python
    }

    pub(crate) fn script(&self) -> bool {
        self.source.language.is_script()
    }

    pub(crate) fn rust(&self) -> bool {
        self.source.language == RepairLanguage::Rust
    }

    pub(crate) fn of(&self, node: Node<'_>) -> &'a str {
        self.source.of(node)
    }

    /// How suspicious the place of a node is: that of the lines from its statement to its own end.
    pub(crate) fn suspicion(&self, node: Node<'_>) -> f64 {
        let own = statement(node).unwrap_or(node);
        let (mut first, last) = (own.start_position().row, node.end_position().row);
        let start = node.start_position().row;
        // A compound statement is judged by its head, and a node in it by its own lines first.
        if start > first + 3 {
            first = start;
        }
        (first..=last.min(start + 3))
            .map(|row| self.heat.at(&self.source.path, row + 1))
            .fold(0.0, f64::max)
    }

    pub(super) fn is_warm(&self, node: Node<'_>) -> bool {
        self.heat.any(
            &self.source.path,
            node.start_position().row + 1,
            node.end_position().row + 1,
        )
    }

    /// What can be named around a node.
    pub(crate) fn scope(&mut self, node: Node<'_>) -> Rc<FunctionVocabulary> {
        let around = function(node).unwrap_or_else(|| self.source.root());
        let (source, kinds) = (self.source, self.clues.kinds());
        Rc::clone(
            self.scopes
                .entry(around.id())
                .or_insert_with(|| Rc::new(FunctionVocabulary::of(source, around, kinds))),
        )
    }

    /// Proposes to replace a node.
    pub(crate) fn replace(
        &mut self,
        node: Node<'_>,
        family: PatchFamily,
        prior: f64,
        text: impl Into<String>,
    ) {
        let text = text.into();
        if text == self.of(node) {
            return;
        }
        let prior = prior * self.taste(node, &text);
        if prior <= 0.0 {
            return;
        }
        let edit = ByteRangeEdit {
            start: node.start_byte(),
            end: node.end_byte(),
            text,
        };
        self.edit(node, family, prior, vec![edit]);
    }

    /// How much less likely a text is for what stands beside it: no programmer means `x - x`, `x = x` or
    /// `f(x, x)`.
    fn taste(&self, node: Node<'_>, text: &str) -> f64 {
        let Some(parent) = node.parent() else {
            return 1.0;
        };
        if let Some((left, operator, right)) = binary(parent) {
            let other = if left == node { right } else { left };
            if node != operator && self.of(other) == text {
                return match self.of(operator) {
                    "*" | "+" => 0.3,
                    _ => 0.1,
                };
            }
        }
        if ["left", "name", "pattern"]
            .iter()
            .filter_map(|field| parent.child_by_field_name(field))
            .any(|target| target != node && self.of(target) == text)
            && !matches!(
                parent.kind(),
                "pair" | "keyword_argument" | "default_parameter"
            )
        {
            return 0.0;
        }
        let list = matches!(parent.kind(), "arguments" | "argument_list" | "tuple");
        if list
            && named(parent)
                .into_iter()
                .any(|item| item != node && self.of(item) == text)
        {
            return 0.5;
        }
        1.0
    }

    /// Proposes to swap two nodes that do not overlap.
    pub(crate) fn swap(
        &mut self,
        family: PatchFamily,
        prior: f64,
        left: Node<'_>,
        right: Node<'_>,
    ) {
        if self.of(left) == self.of(right) {
            return;
        }
        let edits = vec![
            ByteRangeEdit {
                start: left.start_byte(),
                end: left.end_byte(),
                text: self.of(right).to_owned(),
            },
            ByteRangeEdit {
                start: right.start_byte(),
                end: right.end_byte(),
                text: self.of(left).to_owned(),
            },
        ];
        self.edit(left, family, prior, edits);
    }

    /// Proposes to put text before a byte.
    pub(crate) fn insert(
        &mut self,
        at: Node<'_>,
        byte: usize,
        family: PatchFamily,
        prior: f64,
        text: impl Into<String>,
    ) {
        let edit = ByteRangeEdit {
            start: byte,
            end: byte,
            text: text.into(),
        };
        self.edit(at, family, prior, vec![edit]);
    }

    /// Proposes a patch of any edits at one place.
    pub(crate) fn edit(
        &mut self,
        at: Node<'_>,
        family: PatchFamily,
        prior: f64,
        edits: Vec<ByteRangeEdit>,
    ) {
        let suspicion = self.suspicion(at);
        if suspicion <= 0.0 {
            return;
        }
        self.out.push(CandidatePatch {
            path: self.source.path.clone(),
            edits,
            family,
            line: ParsedSource::line(at),
            suspicion,
            prior: prior * self.clues.boost(family),
        });
    }
}
