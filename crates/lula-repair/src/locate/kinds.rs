//! What variables were seen to hold while the tests ran: a candidate that adds a number to a list
//! need not be tried.

use std::collections::BTreeMap;

/// Names of types by variable, by the first line of its function, by file.
pub(crate) type SeenTypes = BTreeMap<String, BTreeMap<usize, BTreeMap<String, Vec<String>>>>;

/// What was seen, by file, function and variable.
#[derive(Debug, Default, Clone)]
pub(crate) struct TypesByVariable {
    seen: SeenTypes,
}

/// What can be done with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueSort {
    /// It can be added, compared and the like.
    Number,
    /// It has the methods of a text.
    Text,
    /// It has a length.
    Sized,
    /// It takes an index or key.
    Indexed,
    /// It grows at its end.
    List,
    /// It has fields of its own.
    Object,
}

impl TypesByVariable {
    pub(crate) fn new(seen: SeenTypes) -> Self {
        Self { seen }
    }

    /// What the variables of the functions between two lines held.
    pub(crate) fn between(&self, path: &str, first: usize, last: usize) -> Variables {
        let mut found = Variables::default();
        let Some(functions) = self.seen.get(path) else {
            return found;
        };
        // A decorator stands before the line that the tree gives.
        for (_, variables) in functions.range(first.saturating_sub(1)..=last) {
            for (name, types) in variables {
                let known = found.types.entry(name.clone()).or_default();
                for kind in types {
                    if !known.contains(kind) {
                        known.push(kind.clone());
                    }
                }
            }
        }
        found
    }
}

/// Types by variable of one function.
#[derive(Debug, Default, Clone)]
pub(crate) struct Variables {
    types: BTreeMap<String, Vec<String>>,
}

impl Variables {
    /// Whether a variable may be of a sort; true where nothing is known of it.
    pub(crate) fn may_be(&self, name: &str, sort: ValueSort) -> bool {
        self.types
            .get(name)
            .is_none_or(|types| types.iter().any(|kind| is(kind, sort)))
    }

    /// Whether one variable may stand for another.
    pub(crate) fn alike(&self, a: &str, b: &str) -> bool {
        let (Some(first), Some(second)) = (self.types.get(a), self.types.get(b)) else {
            return true;
        };
        let number = |kind: &String| matches!(kind.as_str(), "int" | "float" | "bool" | "Decimal");
        first.iter().any(|x| {
            second
                .iter()
                .any(|y| x == y || number(x) && number(y) || x == "NoneType" || y == "NoneType")
        })
    }
}

fn is(kind: &str, sort: ValueSort) -> bool {
    let builtin = matches!(
        kind,
        "int"
            | "float"
            | "bool"
            | "str"
            | "list"
            | "tuple"
            | "dict"
            | "set"
            | "frozenset"
            | "bytes"
            | "NoneType"
            | "function"
            | "range"
    );
    match sort {
        ValueSort::Number => matches!(kind, "int" | "float" | "bool") || !builtin,
        ValueSort::Text => kind == "str" || !builtin,
        ValueSort::Sized => {
            !builtin
                || matches!(
                    kind,
                    "str" | "list" | "tuple" | "dict" | "set" | "frozenset" | "bytes" | "range"
                )
        }
        ValueSort::Indexed => {
            !builtin || matches!(kind, "str" | "list" | "tuple" | "dict" | "bytes" | "range")
        }
        ValueSort::List => kind == "list" || !builtin,
        ValueSort::Object => !builtin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_rules_out_what_cannot_be() {
        let names = |kinds: &[(&str, &str)]| {
            kinds
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), vec![(*kind).to_owned()]))
                .collect()
        };
        let functions = [(3, names(&[("n", "int"), ("xs", "list"), ("m", "float")]))].into();
        let kinds = TypesByVariable::new([("a.py".to_owned(), functions)].into());
        let here = kinds.between("a.py", 3, 9);
        assert!(here.may_be("n", ValueSort::Number) && !here.may_be("n", ValueSort::Sized));
        assert!(here.may_be("xs", ValueSort::List) && !here.may_be("xs", ValueSort::Text));
        assert!(here.may_be("unknown", ValueSort::Text));
        assert!(here.alike("n", "m") && !here.alike("n", "xs"));
        let elsewhere = kinds.between("a.py", 20, 30);
        assert!(elsewhere.may_be("n", ValueSort::Sized));
    }
}
