//! What can be named, and what has been said, around a place.

use std::collections::{BTreeSet, HashMap};

use tree_sitter::Node;

use super::habits::VariableHabits;
use crate::locate::{TypesByVariable, Variables};
use crate::syntax::{ParsedSource, binary, call, condition, is_expression, member, named, walk};

/// Longest piece of code that is worth repeating elsewhere.
const MAX_PIECE: usize = 80;

/// The vocabulary of one function.
#[derive(Debug, Default)]
pub(crate) struct FunctionVocabulary {
    /// Variables, in order of appearance.
    pub(crate) names: Vec<String>,
    /// Parameters, the receiver left out.
    pub(crate) params: Vec<String>,
    /// Names of the file's own constants and functions.
    pub(crate) outer: Vec<String>,
    /// Functions and methods that the file defines.
    pub(crate) functions: Vec<String>,
    /// Attributes that are read or written as `x.name` anywhere in the file, calls left out.
    pub(crate) fields: Vec<String>,
    /// Attributes that are written once and never read in the file.
    pub(crate) idle_fields: Vec<String>,
    /// Functions that the file defines and never calls.
    pub(crate) idle_functions: Vec<String>,
    /// Variables and the values that they start with.
    pub(crate) starts: Vec<(String, String)>,
    /// Conditions that the function tests.
    pub(crate) conditions: Vec<String>,
    /// Compound expressions that the function computes.
    pub(crate) expressions: Vec<String>,
    /// Values that the function returns.
    pub(crate) returns: Vec<String>,
    /// Statements of one line in the function.
    pub(crate) statements: Vec<String>,
    /// Statements of one line elsewhere in the file.
    pub(crate) file_statements: Vec<String>,
    /// Variables that are given a value and never asked for it.
    pub(crate) unused: Vec<String>,
    /// Numbers in the file.
    pub(crate) numbers: Vec<String>,
    /// Strings in the file, quotes included.
    pub(crate) strings: Vec<String>,
    /// What variables hold, and how they are used.
    pub(crate) habits: VariableHabits,
    /// What they were seen to hold.
    pub(crate) variables: Variables,
    /// Names that come in pairs: two parameters, or two variables that start alike.
    pub(crate) twins: Vec<(String, String)>,
}

fn push(list: &mut Vec<String>, text: &str) {
    if !text.is_empty()
        && text.len() <= MAX_PIECE
        && !text.contains('\n')
        && !list.iter().any(|known| known == text)
    {
        list.push(text.to_owned());
    }
}

impl FunctionVocabulary {
    pub(super) fn of(source: &ParsedSource, around: Node<'_>, kinds: &TypesByVariable) -> Self {
        let mut scope = Self {
            variables: kinds.between(
                &source.path,
                around.start_position().row + 1,
                around.end_position().row + 1,
            ),
            ..Self::default()
        };
        scope.read_function(source, around);
        scope.read_file(source, around);
        scope.habits = VariableHabits::of(source, around, &scope.params);
        scope.twins = scope
            .params
            .chunks(2)
            .filter_map(|pair| match pair {
                [a, b] => Some((a.clone(), b.clone())),
                _ => None,
            })
            .chain(
                scope
                    .starts
                    .windows(2)
                    .filter(|pair| pair[0].1 == pair[1].1 && pair[0].0 != pair[1].0)
                    .map(|pair| (pair[0].0.clone(), pair[1].0.clone())),
            )
            .take(4)
            .collect();
        scope
    }

    fn read_function(&mut self, source: &ParsedSource, around: Node<'_>) {
        if let Some(params) = around.child_by_field_name("parameters") {
            for param in named(params) {
                let name = param
                    .child_by_field_name("pattern")
                    .or_else(|| param.child_by_field_name("name"))
                    .or_else(|| param.child_by_field_name("left"))
                    .or_else(|| {
                        (param.kind() == "typed_parameter")
                            .then(|| named(param).first().copied())
                            .flatten()
                    })
                    .unwrap_or(param);
                let text = source.of(name);
                if is_word(text) && !matches!(text, "self" | "cls" | "this") {
                    push(&mut self.params, text);
                    push(&mut self.names, text);
                }
            }
        }
        let body = around.child_by_field_name("body").unwrap_or(around);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for node in walk(around) {
            if matches!(
                node.kind(),
                "identifier"
                    | "shorthand_property_identifier"
                    | "shorthand_property_identifier_pattern"
            ) {
                *seen.entry(source.of(node)).or_default() += 1;
            }
        }
        for node in walk(body) {
            if is_variable(source, node) {
                push(&mut self.names, source.of(node));
            }
            if let Some(found) = condition(node) {
                push(&mut self.conditions, source.of(found));
            }
            if let Some((left, operator, right)) = binary(node)
                && matches!(source.of(operator), "and" | "or" | "&&" | "||")
            {
                push(&mut self.conditions, source.of(left));
                push(&mut self.conditions, source.of(right));
            }
            if node.is_named() && is_expression(node) && node.named_child_count() > 0 {
                push(&mut self.expressions, source.of(node));
            }
            if matches!(node.kind(), "return_statement" | "return_expression")
                && let Some(value) = named(node).first()
            {
                push(&mut self.returns, source.of(*value));
            }
            if is_simple_statement(node) {
                push(&mut self.statements, source.of(node));
            }
            let (name, value) = match node.kind() {
                "assignment" => (
                    node.child_by_field_name("left"),
                    node.child_by_field_name("right"),
                ),
                "variable_declarator" => (
                    node.child_by_field_name("name"),
                    node.child_by_field_name("value"),
                ),
                "let_declaration" => (
                    node.child_by_field_name("pattern"),
                    node.child_by_field_name("value"),
                ),
                _ => (None, None),
            };
            if let (Some(name), Some(value)) = (name, value)
                && is_word(source.of(name))
                && source.of(value).len() <= 20
                && self.starts.len() < 12
            {
                self.starts
                    .push((source.of(name).to_owned(), source.of(value).to_owned()));
            }
        }
        self.unused = self
            .names
            .iter()
            .filter(|name| seen.get(name.as_str()) == Some(&1) && *name != "_")
            .cloned()
            .collect();
    }

    fn read_file(&mut self, source: &ParsedSource, around: Node<'_>) {
        let inside: BTreeSet<_> = self.statements.iter().cloned().collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for node in walk(source.root()) {
            match node.kind() {
                "integer" | "float" | "number" | "integer_literal" | "float_literal" => {
                    push(&mut self.numbers, source.of(node));
                }
                "string" | "string_literal" => push(&mut self.strings, source.of(node)),
                "function_definition"
                | "function_item"
                | "function_declaration"
                | "method_definition" => {
                    if let Some(name) = node.child_by_field_name("name") {
                        push(&mut self.functions, source.of(name));
                    }
                }
                _ => {}
            }
            if let Some((_, name)) = member(node) {
                *uses.entry(source.of(name)).or_default() += 1;
            }
            if let Some((_, name)) = member(node)
                && node
                    .parent()
                    .and_then(call)
                    .is_none_or(|(callee, _)| callee != node)
            {
                push(&mut self.fields, source.of(name));
            }
            let at_top = node.parent().is_some_and(|parent| {
                parent.parent().is_none()
                    || matches!(
                        parent.kind(),
                        "expression_statement"
                            | "lexical_declaration"
                            | "import_from_statement"
                            | "named_imports"
                    ) && parent
                        .parent()
                        .is_some_and(|above| above.parent().is_none())
            });
            if at_top
                && let Some(name) = node
                    .child_by_field_name("left")
                    .or_else(|| node.child_by_field_name("name"))
                && is_word(source.of(name))
            {
                push(&mut self.outer, source.of(name));
            }
            if is_simple_statement(node)
                && node.id() != around.id()
                && !inside.contains(source.of(node))
            {
                push(&mut self.file_statements, source.of(node));
            }
        }
        self.idle_functions = self
            .functions
            .iter()
            .filter(|name| source.text.matches(name.as_str()).count() == 1)
            .cloned()
            .collect();
        self.idle_fields = self
            .fields
            .iter()
            .filter(|field| uses.get(field.as_str()) == Some(&1))
            .cloned()
            .collect();
    }

    /// The same code for the other one of two: `b[j]` for `a[i]`.
    pub(crate) fn twin(&self, text: &str) -> Option<String> {
        let other = |word: &str| {
            self.twins.iter().find_map(|(a, b)| match word {
                word if word == a => Some(b.as_str()),
                word if word == b => Some(a.as_str()),
                _ => None,
            })
        };
        let mut out = String::with_capacity(text.len());
        let mut word = String::new();
        let mut changed = false;
        for c in text.chars().chain(['\n']) {
            if c.is_alphanumeric() || c == '_' || c == '$' {
                word.push(c);
                continue;
            }
            match other(&word).filter(|_| !out.ends_with('.')) {
                Some(other) => {
                    out.push_str(other);
                    changed = true;
                }
                None => out.push_str(&word),
            }
            word.clear();
            out.push(c);
        }
        out.pop();
        changed.then_some(out)
    }

    /// How much likelier a field is for being idle.
    pub(crate) fn idleness(&self, field: &str) -> f64 {
        if self.idle_fields.iter().any(|idle| idle == field) {
            2.5
        } else {
            1.0
        }
    }
}

/// Whether the node is one line that does something.
pub(super) fn is_simple_statement(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "expression_statement"
            | "return_statement"
            | "continue_statement"
            | "break_statement"
            | "raise_statement"
            | "throw_statement"
            | "let_declaration"
            | "lexical_declaration"
            | "delete_statement"
    ) && node.start_position().row == node.end_position().row
        && !node.child(0).is_some_and(|child| {
            matches!(
                child.kind(),
                "string"
                    | "if_expression"
                    | "match_expression"
                    | "for_expression"
                    | "while_expression"
                    | "loop_expression"
            )
        })
}

/// Whether an identifier stands for a variable whose value is used.
pub(super) fn is_variable(source: &ParsedSource, node: Node<'_>) -> bool {
    if !matches!(
        node.kind(),
        "identifier" | "shorthand_property_identifier_pattern"
    ) {
        return false;
    }
    let Some(parent) = node.parent() else {
        return false;
    };
    let field = |name| parent.child_by_field_name(name) == Some(node);
    match parent.kind() {
        "call" | "call_expression" | "new_expression" | "macro_invocation" => {
            !field("function") && !field("constructor") && !field("macro")
        }
        "attribute" => !field("attribute"),
        "keyword_argument" => !field("name"),
        "function_definition"
        | "function_declaration"
        | "function_item"
        | "class_definition"
        | "class_declaration"
        | "import_from_statement"
        | "dotted_name"
        | "aliased_import"
        | "scoped_identifier"
        | "scoped_type_identifier"
        | "type"
        | "tuple_struct_pattern"
        | "decorator"
        | "global_statement"
        | "struct_pattern" => false,
        _ => !source.of(node).starts_with(char::is_uppercase) || source.of(node).len() > 1,
    }
}

pub(super) fn is_word(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}
