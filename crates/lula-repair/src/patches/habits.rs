//! What the variables of a function hold, and what is done with them: where something is asked for
//! and never provided, that is what is missing.

use std::collections::HashMap;

use tree_sitter::Node;

use super::scope::{is_variable, is_word};
use crate::syntax::{
    ParsedSource, RepairLanguage, call, child, children, condition, member, named, walk,
};

/// What a variable starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialValue {
    /// A list, array or vector.
    List,
    /// A queue with two ends.
    Queue,
    Set,
    /// A map, dictionary or plain object.
    Map,
    Text,
    Number,
}

/// How the variables of one function are used.
#[derive(Debug, Default)]
pub(crate) struct VariableHabits {
    /// Containers and what they are, in order of appearance.
    pub(crate) containers: Vec<(String, InitialValue)>,
    /// Containers that are asked and never filled.
    pub(crate) never_filled: Vec<String>,
    /// Variables that decide something and never change after their start.
    pub(crate) frozen: Vec<String>,
    /// Pairs of what is looked for and where.
    pub(crate) memberships: Vec<(String, String)>,
    /// Elements like `xs[i]` that conditions ask about.
    pub(crate) asked_elements: Vec<String>,
    /// Variables that loops give out.
    pub(crate) loop_names: Vec<String>,
    /// Tuples and pairs that are built.
    pub(crate) tuples: Vec<String>,
    /// Small branches that could stand elsewhere too: text and indentation.
    pub(crate) branches: Vec<(String, String)>,
    /// The function's own name.
    pub(crate) own_name: Option<String>,
}

fn push<T: PartialEq>(list: &mut Vec<T>, value: T, most: usize) {
    if list.len() < most && !list.contains(&value) {
        list.push(value);
    }
}

impl VariableHabits {
    pub(super) fn of(source: &ParsedSource, around: Node<'_>, params: &[String]) -> Self {
        let mut habits = Self::default();
        let mut given: HashMap<String, usize> = HashMap::new();
        let mut asked: Vec<String> = Vec::new();
        let mut filled: Vec<String> = Vec::new();
        if let Some(name) = around.child_by_field_name("name") {
            habits.own_name = Some(source.of(name).to_owned());
        }
        for node in walk(around) {
            habits.note_value(source, node);
            habits.note_membership(source, node);
            for name in assigned(source, node) {
                *given.entry(name).or_default() += 1;
            }
            if let Some(name) = fills(source, node) {
                push(&mut filled, name, 24);
            }
            habits.note_use(source, node);
            if let Some(test) = condition(node) {
                for inner in walk(test) {
                    if is_variable(source, inner) {
                        push(&mut asked, source.of(inner).to_owned(), 24);
                    }
                    if is_element(inner) && source.of(inner).len() <= 30 {
                        push(&mut habits.asked_elements, source.of(inner).to_owned(), 6);
                    }
                }
            }
            if matches!(node.kind(), "tuple" | "tuple_expression") && source.of(node).len() <= 40 {
                push(&mut habits.tuples, source.of(node).to_owned(), 6);
            }
            if matches!(node.kind(), "if_statement" | "if_expression") {
                let text = source.of(node);
                if text.lines().count() <= 4 && text.len() <= 160 {
                    let entry = (text.to_owned(), source.indent(node).to_owned());
                    push(&mut habits.branches, entry, 6);
                }
            }
            habits.note_loop(source, node);
        }
        habits.frozen = asked
            .iter()
            .filter(|name| {
                let changes = given.get(*name).copied().unwrap_or(0);
                if params.contains(name) {
                    changes == 0
                } else {
                    changes == 1 && !habits.loop_names.contains(name)
                }
            })
            .cloned()
            .collect();
        habits.never_filled = habits
            .containers
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !filled.contains(name))
            .cloned()
            .collect();
        habits
    }

    /// How much likelier a change of a variable is for there being none.
    pub(crate) fn lacks_change(&self, name: &str) -> f64 {
        if self.frozen.iter().any(|known| known == name) {
            2.5
        } else {
            1.0
        }
    }

    pub(crate) fn holds(&self, name: &str) -> Option<InitialValue> {
        self.containers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, holds)| *holds)
    }

    fn note_value(&mut self, source: &ParsedSource, node: Node<'_>) {
        let (name, value) = match node.kind() {
            "assignment" => ("left", "right"),
            "variable_declarator" => ("name", "value"),
            "let_declaration" => ("pattern", "value"),
            _ => return,
        };
        if let (Some(name), Some(value)) = (
            node.child_by_field_name(name),
            node.child_by_field_name(value),
        ) {
            let name = source.of(name).trim_start_matches("mut ");
            if let Some(holds) = kind_of(source, value)
                && is_word(name)
                && self.holds(name).is_none()
            {
                self.containers.push((name.to_owned(), holds));
            }
        }
    }

    /// A list shows by what is put into it, wherever it comes from.
    fn note_use(&mut self, source: &ParsedSource, node: Node<'_>) {
        if let Some((callee, _)) = call(node)
            && let Some((object, method)) = member(callee)
            && object.kind() == "identifier"
        {
            let name = source.of(object);
            let holds = match source.of(method) {
                "append" | "push" => InitialValue::List,
                "popleft" | "appendleft" | "push_back" | "pop_front" => InitialValue::Queue,
                "add" => InitialValue::Set,
                _ => return,
            };
            if self.holds(name).is_none() {
                self.containers.push((name.to_owned(), holds));
            }
        }
    }

    fn note_membership(&mut self, source: &ParsedSource, node: Node<'_>) {
        if node.kind() == "comparison_operator" && children(node) == 3 {
            if let (Some(item), Some(operator), Some(place)) =
                (child(node, 0), child(node, 1), child(node, 2))
                && matches!(source.of(operator), "in" | "not in")
                && source.of(item).len() <= 40
                && source.of(place).len() <= 40
            {
                let pair = (source.of(item).to_owned(), source.of(place).to_owned());
                push(&mut self.memberships, pair, 8);
            }
        } else if let Some((callee, arguments)) = call(node)
            && let Some((object, method)) = member(callee)
            && matches!(
                source.of(method),
                "has" | "includes" | "contains" | "contains_key" | "indexOf"
            )
            && let [item] = named(arguments).as_slice()
        {
            let item = source.of(*item).trim_start_matches('&');
            let pair = (item.to_owned(), source.of(object).to_owned());
            push(&mut self.memberships, pair, 8);
        }
    }

    fn note_loop(&mut self, source: &ParsedSource, node: Node<'_>) {
        let names = match node.kind() {
            "for_statement" | "for_in_clause" | "for_in_statement" => {
                node.child_by_field_name("left")
            }
            "for_expression" => node.child_by_field_name("pattern"),
            _ => None,
        };
        if let Some(names) = names {
            for inner in walk(names) {
                if inner.kind() == "identifier" {
                    push(&mut self.loop_names, source.of(inner).to_owned(), 12);
                }
            }
        }
    }
}

fn is_element(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "subscript" | "subscript_expression" | "index_expression"
    )
}

/// What a value makes of the variable that it starts.
fn kind_of(source: &ParsedSource, value: Node<'_>) -> Option<InitialValue> {
    let text = source.of(value);
    let starts = |heads: &[&str]| heads.iter().any(|head| text.starts_with(head));
    match value.kind() {
        "list" | "list_comprehension" | "array" => return Some(InitialValue::List),
        "set" | "set_comprehension" => return Some(InitialValue::Set),
        "dictionary" | "dictionary_comprehension" | "object" => return Some(InitialValue::Map),
        "string" | "template_string" => return Some(InitialValue::Text),
        "integer" | "number" | "float" | "integer_literal" | "float_literal" => {
            return Some(InitialValue::Number);
        }
        _ => {}
    }
    if starts(&["deque(", "collections.deque(", "VecDeque::"]) {
        Some(InitialValue::Queue)
    } else if starts(&["set(", "new Set", "HashSet::", "BTreeSet::"]) {
        Some(InitialValue::Set)
    } else if starts(&[
        "dict(",
        "defaultdict(",
        "Counter(",
        "new Map",
        "HashMap::",
        "BTreeMap::",
    ]) {
        Some(InitialValue::Map)
    } else if starts(&["list(", "[", "Vec::", "vec!", "new Array", "sorted("]) {
        Some(InitialValue::List)
    } else if starts(&["String::new", "String::from"]) {
        Some(InitialValue::Text)
    } else {
        None
    }
}

/// Variables that a node gives a value.
fn assigned(source: &ParsedSource, node: Node<'_>) -> Vec<String> {
    let target = match node.kind() {
        "assignment"
        | "augmented_assignment"
        | "assignment_expression"
        | "augmented_assignment_expression"
        | "compound_assignment_expr" => node.child_by_field_name("left"),
        "variable_declarator" => node.child_by_field_name("name"),
        "let_declaration" => node.child_by_field_name("pattern"),
        "update_expression" => node.child_by_field_name("argument"),
        _ => None,
    };
    target.map_or_else(Vec::new, |target| {
        if is_element(target) || member(target).is_some() {
            return Vec::new();
        }
        walk(target)
            .into_iter()
            .filter(|inner| inner.kind() == "identifier")
            .map(|inner| source.of(inner).to_owned())
            .collect()
    })
}

/// The container that a node puts something into.
fn fills(source: &ParsedSource, node: Node<'_>) -> Option<String> {
    if let Some((callee, _)) = call(node)
        && let Some((object, method)) = member(callee)
        && matches!(
            source.of(method),
            "append"
                | "appendleft"
                | "extend"
                | "add"
                | "update"
                | "insert"
                | "setdefault"
                | "push"
                | "push_back"
                | "push_front"
                | "push_str"
                | "unshift"
                | "set"
                | "splice"
                | "fill"
                | "entry"
        )
    {
        return Some(source.of(object).to_owned());
    }
    // A list that is handed to another function may be filled there.
    if matches!(node.kind(), "argument_list" | "arguments") {
        let only = named(node).first().copied()?;
        let called = node
            .parent()
            .and_then(call)
            .map(|(callee, _)| source.of(callee));
        let reads = called.is_some_and(|name| {
            matches!(
                name,
                "len"
                    | "sorted"
                    | "sum"
                    | "list"
                    | "set"
                    | "tuple"
                    | "max"
                    | "min"
                    | "any"
                    | "all"
                    | "enumerate"
                    | "zip"
                    | "str"
                    | "reversed"
            ) || name.rsplit('.').next() == Some("join")
        });
        return (only.kind() == "identifier" && !reads).then(|| source.of(only).to_owned());
    }
    let target = match node.kind() {
        "assignment" | "assignment_expression" => {
            let left = node.child_by_field_name("left")?;
            is_element(left).then_some(left)?
        }
        "augmented_assignment" | "augmented_assignment_expression" | "compound_assignment_expr" => {
            node.child_by_field_name("left")?
        }
        _ => return None,
    };
    let text = source.of(target);
    Some(text.split('[').next().unwrap_or(text).to_owned())
}

/// How a language puts an item into a container.
pub(super) fn filling(
    language: RepairLanguage,
    holds: InitialValue,
    name: &str,
    item: &str,
) -> Option<String> {
    let text = match (language, holds) {
        (RepairLanguage::Python, InitialValue::List | InitialValue::Queue) => {
            format!("{name}.append({item})")
        }
        (RepairLanguage::Python, InitialValue::Set) => format!("{name}.add({item})"),
        (RepairLanguage::Python, InitialValue::Text) => format!("{name} += {item}"),
        (RepairLanguage::Rust, InitialValue::Queue) => format!("{name}.push_back({item});"),
        (RepairLanguage::Rust, InitialValue::Set) => format!("{name}.insert({item});"),
        (_, InitialValue::List) => format!("{name}.push({item});"),
        (_, InitialValue::Set) => format!("{name}.add({item});"),
        (_, InitialValue::Text) if language != RepairLanguage::Rust => format!("{name} += {item};"),
        _ => return None,
    };
    Some(text)
}
