//! What in each grammar defines a name and what uses one, as tables.

use std::sync::OnceLock;

use tree_sitter::Language as Grammar;

use crate::language::IndexLanguage;
use crate::symbol::SymbolKind;

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
pub(crate) enum DefinitionCondition {
    Always,
    /// With a body: otherwise it only names the thing.
    HasBody,
    /// Outside functions and classes: inside, it is a variable that does not count.
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
pub(crate) struct DefinitionRule {
    pub(crate) kind: SymbolKind,
    pub(crate) name: NameAt,
    pub(crate) when: DefinitionCondition,
}

/// What a kind of node means.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum SyntaxNodeRole {
    /// Only its children may mean something.
    #[default]
    Nothing,
    Defines(DefinitionRule),
    /// A leaf that names something for sure: a type, a field.
    Uses,
    /// A leaf that may be a local variable as well.
    MayUse,
    /// Nothing inside means anything: comments, plain strings.
    Opaque,
}

/// The tables of a language, by the numbers of its grammar.
pub(crate) struct LanguageRules {
    pub(crate) grammar: Grammar,
    pub(crate) roles: Vec<SyntaxNodeRole>,
    /// Fields in which a leaf that may be a variable is a use: what is called.
    pub(crate) used_in_field: Vec<bool>,
    /// Nodes whose direct leaves are uses: imports, decorators, base classes.
    pub(crate) used_below: Vec<bool>,
    /// The field of a module's path, whose parts are no names of definitions.
    pub(crate) module_path: Option<u16>,
}

const fn field(kind: SymbolKind, when: DefinitionCondition) -> DefinitionRule {
    DefinitionRule {
        kind,
        name: NameAt::Field("name"),
        when,
    }
}

const fn at(kind: SymbolKind, name: &'static str, when: DefinitionCondition) -> DefinitionRule {
    DefinitionRule {
        kind,
        name: NameAt::Field(name),
        when,
    }
}

const fn declared(kind: SymbolKind, when: DefinitionCondition) -> DefinitionRule {
    DefinitionRule {
        kind,
        name: NameAt::Declarator,
        when,
    }
}

use DefinitionCondition::{Always, HasBody, IsFunction, Prototype, TopLevel, TopLevelOrFunction};

const C: &[(&str, DefinitionRule)] = &[
    (
        "function_definition",
        declared(SymbolKind::Function, Always),
    ),
    ("declaration", declared(SymbolKind::Function, Prototype)),
    ("struct_specifier", field(SymbolKind::Struct, HasBody)),
    ("union_specifier", field(SymbolKind::Struct, HasBody)),
    ("enum_specifier", field(SymbolKind::Enum, HasBody)),
    ("type_definition", declared(SymbolKind::Type, Always)),
    ("preproc_def", field(SymbolKind::Macro, Always)),
    ("preproc_function_def", field(SymbolKind::Macro, Always)),
];
const CPP: &[(&str, DefinitionRule)] = &[
    ("class_specifier", field(SymbolKind::Class, HasBody)),
    ("namespace_definition", field(SymbolKind::Module, Always)),
    ("alias_declaration", field(SymbolKind::Type, Always)),
    ("concept_definition", field(SymbolKind::Trait, Always)),
];
const GO: &[(&str, DefinitionRule)] = &[
    ("function_declaration", field(SymbolKind::Function, Always)),
    ("method_declaration", field(SymbolKind::Method, Always)),
    ("method_elem", field(SymbolKind::Method, Always)),
    ("type_spec", field(SymbolKind::Type, Always)),
    ("type_alias", field(SymbolKind::Type, Always)),
    ("const_spec", field(SymbolKind::Constant, TopLevel)),
    ("var_spec", field(SymbolKind::Constant, TopLevel)),
];
const JAVA: &[(&str, DefinitionRule)] = &[
    ("class_declaration", field(SymbolKind::Class, Always)),
    ("record_declaration", field(SymbolKind::Class, Always)),
    ("enum_declaration", field(SymbolKind::Enum, Always)),
    (
        "interface_declaration",
        field(SymbolKind::Interface, Always),
    ),
    (
        "annotation_type_declaration",
        field(SymbolKind::Interface, Always),
    ),
    ("method_declaration", field(SymbolKind::Method, Always)),
    ("constructor_declaration", field(SymbolKind::Method, Always)),
];
const JAVASCRIPT: &[(&str, DefinitionRule)] = &[
    ("function_declaration", field(SymbolKind::Function, Always)),
    (
        "generator_function_declaration",
        field(SymbolKind::Function, Always),
    ),
    ("class_declaration", field(SymbolKind::Class, Always)),
    ("method_definition", field(SymbolKind::Method, Always)),
    (
        "variable_declarator",
        field(SymbolKind::Constant, TopLevelOrFunction),
    ),
    (
        "field_definition",
        at(SymbolKind::Method, "property", IsFunction),
    ),
    (
        "assignment_expression",
        at(SymbolKind::Function, "left", IsFunction),
    ),
    ("pair", at(SymbolKind::Method, "key", IsFunction)),
];
const TYPESCRIPT: &[(&str, DefinitionRule)] = &[
    (
        "abstract_class_declaration",
        field(SymbolKind::Class, Always),
    ),
    (
        "interface_declaration",
        field(SymbolKind::Interface, Always),
    ),
    ("type_alias_declaration", field(SymbolKind::Type, Always)),
    ("enum_declaration", field(SymbolKind::Enum, Always)),
    ("internal_module", field(SymbolKind::Module, Always)),
    ("function_signature", field(SymbolKind::Function, Always)),
    ("method_signature", field(SymbolKind::Method, Always)),
    (
        "abstract_method_signature",
        field(SymbolKind::Method, Always),
    ),
    (
        "public_field_definition",
        field(SymbolKind::Method, IsFunction),
    ),
];
const PYTHON: &[(&str, DefinitionRule)] = &[
    ("class_definition", field(SymbolKind::Class, Always)),
    ("function_definition", field(SymbolKind::Function, Always)),
    ("assignment", at(SymbolKind::Constant, "left", TopLevel)),
];
const RUBY: &[(&str, DefinitionRule)] = &[
    ("class", field(SymbolKind::Class, Always)),
    ("module", field(SymbolKind::Module, Always)),
    ("method", field(SymbolKind::Method, Always)),
    ("singleton_method", field(SymbolKind::Method, Always)),
    ("assignment", at(SymbolKind::Constant, "left", TopLevel)),
];
const RUST: &[(&str, DefinitionRule)] = &[
    ("function_item", field(SymbolKind::Function, Always)),
    (
        "function_signature_item",
        field(SymbolKind::Function, Always),
    ),
    ("struct_item", field(SymbolKind::Struct, Always)),
    ("union_item", field(SymbolKind::Struct, Always)),
    ("enum_item", field(SymbolKind::Enum, Always)),
    ("trait_item", field(SymbolKind::Trait, Always)),
    ("type_item", field(SymbolKind::Type, Always)),
    ("const_item", field(SymbolKind::Constant, TopLevel)),
    ("static_item", field(SymbolKind::Constant, TopLevel)),
    ("mod_item", field(SymbolKind::Module, HasBody)),
    ("macro_definition", field(SymbolKind::Macro, Always)),
    ("impl_item", at(SymbolKind::Impl, "type", Always)),
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

impl LanguageRules {
    /// The tables of a language, made once.
    pub(crate) fn of(language: IndexLanguage) -> &'static Self {
        static TABLES: [OnceLock<LanguageRules>; IndexLanguage::ALL.len()] =
            [const { OnceLock::new() }; IndexLanguage::ALL.len()];
        TABLES[language as usize].get_or_init(|| Self::new(language))
    }

    fn new(language: IndexLanguage) -> Self {
        let grammar = language.grammar();
        let definitions: &[&[(&str, DefinitionRule)]] = match language {
            IndexLanguage::C => &[C],
            IndexLanguage::Cpp => &[C, CPP],
            IndexLanguage::Go => &[GO],
            IndexLanguage::Java => &[JAVA],
            IndexLanguage::JavaScript => &[JAVASCRIPT],
            IndexLanguage::Python => &[PYTHON],
            IndexLanguage::Ruby => &[RUBY],
            IndexLanguage::Rust => &[RUST],
            IndexLanguage::TypeScript | IndexLanguage::Tsx => &[JAVASCRIPT, TYPESCRIPT],
        };
        let kinds = grammar.node_kind_count();
        let mut roles = vec![SyntaxNodeRole::Nothing; kinds];
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
                SyntaxNodeRole::Defines(*defines)
            } else if USES.contains(&kind) {
                SyntaxNodeRole::Uses
            } else if MAY_USE.contains(&kind) {
                SyntaxNodeRole::MayUse
            } else if OPAQUE.contains(&kind)
                || (language == IndexLanguage::Python && kind == "import_statement")
            {
                SyntaxNodeRole::Opaque
            } else {
                SyntaxNodeRole::Nothing
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
            (IndexLanguage::C, C),
            (IndexLanguage::Cpp, C),
            (IndexLanguage::Cpp, CPP),
            (IndexLanguage::Go, GO),
            (IndexLanguage::Java, JAVA),
            (IndexLanguage::JavaScript, JAVASCRIPT),
            (IndexLanguage::TypeScript, TYPESCRIPT),
            (IndexLanguage::Tsx, TYPESCRIPT),
            (IndexLanguage::Python, PYTHON),
            (IndexLanguage::Ruby, RUBY),
            (IndexLanguage::Rust, RUST),
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
