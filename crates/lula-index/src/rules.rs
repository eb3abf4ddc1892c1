//! What in each grammar defines a name and what uses one, as tables.

use std::sync::OnceLock;

use tree_sitter::Language as Grammar;

use crate::language::Language;
use crate::symbol::Kind;

/// Where a definition's name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameAt {
    /// In a field of the node.
    Field(&'static str),
    /// At the end of C's nested declarators.
    Declarator,
}

/// When a node counts as a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// With a body: otherwise it only names the thing.
    HasBody,
    /// Outside functions and classes: there it is a variable of nobody's concern.
    TopLevel,
    /// Outside functions and classes, or anywhere when a function is its value.
    TopLevelOrFunction,
    /// When a function is its value.
    IsFunction,
    /// A prototype outside functions.
    Prototype,
}

/// How a node defines a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defines {
    pub(crate) kind: Kind,
    pub(crate) name: NameAt,
    pub(crate) when: When,
}

/// What a kind of node means.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Role {
    /// Only its children may mean something.
    #[default]
    Nothing,
    Defines(Defines),
    /// A leaf that names something for sure: a type, a field.
    Uses,
    /// A leaf that may be a local variable as well.
    MayUse,
    /// Nothing inside means anything: comments, plain strings.
    Opaque,
}

/// The tables of a language, by the numbers of its grammar.
pub(crate) struct Rules {
    pub(crate) grammar: Grammar,
    pub(crate) roles: Vec<Role>,
    /// Fields in which a leaf that may be a variable is a use: what is called.
    pub(crate) used_in_field: Vec<bool>,
    /// Nodes whose direct leaves are uses: imports, decorators, base classes.
    pub(crate) used_below: Vec<bool>,
    /// The field of a module's path, whose parts are no names of definitions.
    pub(crate) module_path: Option<u16>,
}

const fn field(kind: Kind, when: When) -> Defines {
    Defines {
        kind,
        name: NameAt::Field("name"),
        when,
    }
}

const fn at(kind: Kind, name: &'static str, when: When) -> Defines {
    Defines {
        kind,
        name: NameAt::Field(name),
        when,
    }
}

const fn declared(kind: Kind, when: When) -> Defines {
    Defines {
        kind,
        name: NameAt::Declarator,
        when,
    }
}

use When::{Always, HasBody, IsFunction, Prototype, TopLevel, TopLevelOrFunction};

const C: &[(&str, Defines)] = &[
    ("function_definition", declared(Kind::Function, Always)),
    ("declaration", declared(Kind::Function, Prototype)),
    ("struct_specifier", field(Kind::Struct, HasBody)),
    ("union_specifier", field(Kind::Struct, HasBody)),
    ("enum_specifier", field(Kind::Enum, HasBody)),
    ("type_definition", declared(Kind::Type, Always)),
    ("preproc_def", field(Kind::Macro, Always)),
    ("preproc_function_def", field(Kind::Macro, Always)),
];
const CPP: &[(&str, Defines)] = &[
    ("class_specifier", field(Kind::Class, HasBody)),
    ("namespace_definition", field(Kind::Module, Always)),
    ("alias_declaration", field(Kind::Type, Always)),
    ("concept_definition", field(Kind::Trait, Always)),
];
const GO: &[(&str, Defines)] = &[
    ("function_declaration", field(Kind::Function, Always)),
    ("method_declaration", field(Kind::Method, Always)),
    ("method_elem", field(Kind::Method, Always)),
    ("type_spec", field(Kind::Type, Always)),
    ("type_alias", field(Kind::Type, Always)),
    ("const_spec", field(Kind::Constant, TopLevel)),
    ("var_spec", field(Kind::Constant, TopLevel)),
];
const JAVA: &[(&str, Defines)] = &[
    ("class_declaration", field(Kind::Class, Always)),
    ("record_declaration", field(Kind::Class, Always)),
    ("enum_declaration", field(Kind::Enum, Always)),
    ("interface_declaration", field(Kind::Interface, Always)),
    (
        "annotation_type_declaration",
        field(Kind::Interface, Always),
    ),
    ("method_declaration", field(Kind::Method, Always)),
    ("constructor_declaration", field(Kind::Method, Always)),
];
const JAVASCRIPT: &[(&str, Defines)] = &[
    ("function_declaration", field(Kind::Function, Always)),
    (
        "generator_function_declaration",
        field(Kind::Function, Always),
    ),
    ("class_declaration", field(Kind::Class, Always)),
    ("method_definition", field(Kind::Method, Always)),
    (
        "variable_declarator",
        field(Kind::Constant, TopLevelOrFunction),
    ),
    ("field_definition", at(Kind::Method, "property", IsFunction)),
    (
        "assignment_expression",
        at(Kind::Function, "left", IsFunction),
    ),
    ("pair", at(Kind::Method, "key", IsFunction)),
];
const TYPESCRIPT: &[(&str, Defines)] = &[
    ("abstract_class_declaration", field(Kind::Class, Always)),
    ("interface_declaration", field(Kind::Interface, Always)),
    ("type_alias_declaration", field(Kind::Type, Always)),
    ("enum_declaration", field(Kind::Enum, Always)),
    ("internal_module", field(Kind::Module, Always)),
    ("function_signature", field(Kind::Function, Always)),
    ("method_signature", field(Kind::Method, Always)),
    ("abstract_method_signature", field(Kind::Method, Always)),
    ("public_field_definition", field(Kind::Method, IsFunction)),
];
const PYTHON: &[(&str, Defines)] = &[
    ("class_definition", field(Kind::Class, Always)),
    ("function_definition", field(Kind::Function, Always)),
    ("assignment", at(Kind::Constant, "left", TopLevel)),
];
const RUBY: &[(&str, Defines)] = &[
    ("class", field(Kind::Class, Always)),
    ("module", field(Kind::Module, Always)),
    ("method", field(Kind::Method, Always)),
    ("singleton_method", field(Kind::Method, Always)),
    ("assignment", at(Kind::Constant, "left", TopLevel)),
];
const RUST: &[(&str, Defines)] = &[
    ("function_item", field(Kind::Function, Always)),
    ("function_signature_item", field(Kind::Function, Always)),
    ("struct_item", field(Kind::Struct, Always)),
    ("union_item", field(Kind::Struct, Always)),
    ("enum_item", field(Kind::Enum, Always)),
    ("trait_item", field(Kind::Trait, Always)),
    ("type_item", field(Kind::Type, Always)),
    ("const_item", field(Kind::Constant, TopLevel)),
    ("static_item", field(Kind::Constant, TopLevel)),
    ("mod_item", field(Kind::Module, HasBody)),
    ("macro_definition", field(Kind::Macro, Always)),
    ("impl_item", at(Kind::Impl, "type", Always)),
];

/// Leaves that name something for sure, in any grammar.
const USES: [&str; 6] = [
    "type_identifier",
    "field_identifier",
    "property_identifier",
    "private_property_identifier",
    "constant",
    "namespace_identifier",
];
const MAY_USE: [&str; 3] = [
    "identifier",
    "shorthand_property_identifier",
    "shorthand_field_identifier",
];
const OPAQUE: [&str; 7] = [
    "comment",
    "line_comment",
    "block_comment",
    "string_content",
    "string_fragment",
    "escape_sequence",
    "regex",
];
const USED_IN_FIELD: [&str; 7] = [
    "function",
    "attribute",
    "constructor",
    "macro",
    "method",
    "property",
    "superclass",
];
const USED_BELOW: [&str; 20] = [
    "decorator",
    "dotted_name",
    "type",
    "import_specifier",
    "jsx_opening_element",
    "jsx_self_closing_element",
    "class_heritage",
    "extends_clause",
    "nested_identifier",
    "scoped_identifier",
    "scoped_use_list",
    "use_list",
    "use_declaration",
    "macro_invocation",
    "annotation",
    "marker_annotation",
    "method_invocation",
    "qualified_identifier",
    "generic_function",
    "template_function",
];

impl Rules {
    /// The tables of a language, made once.
    pub(crate) fn of(language: Language) -> &'static Self {
        static TABLES: [OnceLock<Rules>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        TABLES[language as usize].get_or_init(|| Self::new(language))
    }

    fn new(language: Language) -> Self {
        let grammar = language.grammar();
        let definitions: &[&[(&str, Defines)]] = match language {
            Language::C => &[C],
            Language::Cpp => &[C, CPP],
            Language::Go => &[GO],
            Language::Java => &[JAVA],
            Language::JavaScript => &[JAVASCRIPT],
            Language::Python => &[PYTHON],
            Language::Ruby => &[RUBY],
            Language::Rust => &[RUST],
            Language::TypeScript | Language::Tsx => &[JAVASCRIPT, TYPESCRIPT],
        };
        let kinds = grammar.node_kind_count();
        let mut roles = vec![Role::Nothing; kinds];
        let mut used_below = vec![false; kinds];
        // A grammar may give one name several numbers: aliases.
        for number in 0..u16::try_from(kinds).unwrap_or(u16::MAX) {
            if !grammar.node_kind_is_named(number) {
                continue;
            }
            let Some(kind) = grammar.node_kind_for_id(number) else {
                continue;
            };
            let at = usize::from(number);
            let defines = definitions
                .iter()
                .flat_map(|table| table.iter())
                .find(|(name, _)| *name == kind);
            roles[at] = if let Some((_, defines)) = defines {
                Role::Defines(*defines)
            } else if USES.contains(&kind) {
                Role::Uses
            } else if MAY_USE.contains(&kind) {
                Role::MayUse
            } else if OPAQUE.contains(&kind)
                || (language == Language::Python && kind == "import_statement")
            {
                Role::Opaque
            } else {
                Role::Nothing
            };
            used_below[at] = USED_BELOW.contains(&kind);
        }
        let mut used_in_field = vec![false; grammar.field_count() + 1];
        for name in USED_IN_FIELD {
            if let Some(id) = grammar.field_id_for_name(name) {
                used_in_field[usize::from(id.get())] = true;
            }
        }
        let module_path = grammar.field_id_for_name("module_name").map(Into::into);
        Self {
            grammar,
            roles,
            used_in_field,
            used_below,
            module_path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_names_a_node_that_its_grammar_has() {
        for (language, table) in [
            (Language::C, C),
            (Language::Cpp, C),
            (Language::Cpp, CPP),
            (Language::Go, GO),
            (Language::Java, JAVA),
            (Language::JavaScript, JAVASCRIPT),
            (Language::TypeScript, TYPESCRIPT),
            (Language::Tsx, TYPESCRIPT),
            (Language::Python, PYTHON),
            (Language::Ruby, RUBY),
            (Language::Rust, RUST),
        ] {
            let grammar = language.grammar();
            for (node, defines) in table {
                assert_ne!(
                    grammar.id_for_node_kind(node, true),
                    0,
                    "{language:?} {node}"
                );
                if let NameAt::Field(field) = defines.name {
                    assert!(
                        grammar.field_id_for_name(field).is_some(),
                        "{language:?} {node} {field}"
                    );
                }
            }
        }
    }
}
