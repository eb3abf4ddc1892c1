//! Who may name whom in a manifest.

use super::{DOCUMENT, Violation, table::Table};
use crate::repository::{Dependency, Metadata, Package};

/// The one crate that speaks to models, and so to the network as a client.
const SPEAKS_HTTP: &str = "lula-models";

/// Crates that make requests of their own. `hyper` is none: it speaks HTTP for the servers of this workspace
/// and for `lula-egress`, which relays the requests of a sandbox and makes none of its own.
const HTTP_CLIENTS: &[&str] = &[
    "attohttpc",
    "awc",
    "curl",
    "isahc",
    "minreq",
    "reqwest",
    "reqwest-eventsource",
    "reqwest-middleware",
    "surf",
    "ureq",
];

/// A crate, the client it may have all the same, and why.
const HTTP_EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Direct dependencies of every kind; what an allowed crate uses in turn is its own affair.
pub(crate) fn check(table: &Table, metadata: &Metadata) -> Vec<Violation> {
    let is_ours = |name: &str| {
        table.has(name) || metadata.packages.iter().any(|package| package.name == name)
    };
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let Some(may_know) = table.may_know(&package.name) else {
            violations.push(Violation(format!(
                "{} is not in the table of {DOCUMENT}: give it a row, with what it may know",
                package.name
            )));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            // A crate's tests may use the crate itself with other features.
            if is_ours(name) && name != package.name && !may_know.contains(name) {
                violations.push(forbidden(package, dependency));
            }
            if HTTP_CLIENTS.contains(&name) && !may_speak_http(&package.name, name) {
                violations.push(Violation(format!(
                    "{} depends on the HTTP client {name}, but only {SPEAKS_HTTP} speaks to a \
                     model: ask it, or list an exception with its reason",
                    package.name
                )));
            }
        }
    }
    violations
}

fn forbidden(package: &Package, dependency: &Dependency) -> Violation {
    let kind = dependency
        .kind
        .as_deref()
        .map_or(String::new(), |kind| format!(" ({kind})"));
    Violation(format!(
        "{} depends on {}{kind}, which the table of {DOCUMENT} does not let it know",
        package.name, dependency.name
    ))
}

fn may_speak_http(package: &str, client: &str) -> bool {
    package == SPEAKS_HTTP
        || HTTP_EXCEPTIONS
            .iter()
            .any(|(name, allowed, _)| *name == package && *allowed == client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::table;

    const TABLE: &str = "## Crates\n\n| crate | room | may know |\n|---|---|---|\n\
        | `lula-agents` | nodes | graph, models, runner-api, protocol |\n\
        | `lula-models` | speaks to models | protocol |\n\
        | `lula-graph` | runs | store, protocol |\n\
        | `lula-store` | keeps | protocol |\n\
        | `lula-runner` | tools | runner-api, workspace, sandbox, gate, protocol |\n\
        | `lula-runner-api` | what is asked of it | protocol |\n\
        | `lula-gate` | rules | protocol |\n\
        | `lula-workspace` | changes | sandbox, protocol |\n\
        | `lula-sandbox` | layers | protocol |\n\
        | `lula-protocol` | types | nothing |\n";

    fn complaints(package: &str, dependency: &str, kind: &str) -> Vec<String> {
        let metadata = format!(
            r#"{{"packages": [{{"name": "{package}", "manifest_path": "/m/Cargo.toml",
                "dependencies": [{{"name": "{dependency}", "kind": {kind}}}]}}]}}"#
        );
        check(
            &table::parse(TABLE).unwrap(),
            &serde_json::from_str(&metadata).unwrap(),
        )
        .iter()
        .map(ToString::to_string)
        .collect()
    }

    #[test]
    fn what_the_table_lists_is_allowed() {
        assert!(complaints("lula-graph", "lula-store", "null").is_empty());
        assert!(complaints("lula-graph", "serde", "null").is_empty());
        assert!(complaints("lula-models", "reqwest", "null").is_empty());
    }

    #[test]
    fn the_protocol_may_not_know_the_store() {
        assert_eq!(
            complaints("lula-protocol", "lula-store", "null"),
            [
                "lula-protocol depends on lula-store, which the table of ARCHITECTURE.md does not let it know"
            ]
        );
    }

    #[test]
    fn models_may_not_know_the_runner_not_even_in_tests_or_build_scripts() {
        for (kind, said) in [
            ("null", ""),
            ("\"dev\"", " (dev)"),
            ("\"build\"", " (build)"),
        ] {
            assert_eq!(
                complaints("lula-models", "lula-runner", kind),
                [format!(
                    "lula-models depends on lula-runner{said}, which the table of ARCHITECTURE.md does not let it know"
                )]
            );
        }
    }

    #[test]
    fn agents_may_know_what_a_runner_is_asked_and_nothing_behind_it() {
        assert!(complaints("lula-agents", "lula-runner-api", "null").is_empty());
        for behind in ["lula-runner", "lula-sandbox", "lula-workspace", "lula-gate"] {
            assert_eq!(
                complaints("lula-agents", behind, "null"),
                [format!(
                    "lula-agents depends on {behind}, which the table of ARCHITECTURE.md does not let it know"
                )]
            );
        }
    }

    /// The same of the table that is in force.
    #[test]
    fn the_table_of_this_repository_keeps_agents_from_the_runner() {
        let root = crate::repository::Repository::around_here().unwrap();
        let document = std::fs::read_to_string(root.root().join(DOCUMENT)).unwrap();
        let table = table::parse(&document).unwrap();
        let may_know = table.may_know("lula-agents").unwrap();
        assert!(may_know.contains("lula-runner-api"));
        for behind in ["lula-runner", "lula-sandbox", "lula-workspace", "lula-gate"] {
            assert!(table.has(behind) && !may_know.contains(behind), "{behind}");
        }
    }

    #[test]
    fn the_store_may_know_the_graph_neither_directly_nor_because_the_graph_knows_it() {
        assert_eq!(complaints("lula-store", "lula-graph", "null").len(), 1);
    }

    #[test]
    fn only_models_have_an_http_client() {
        let said = complaints("lula-store", "reqwest", "\"dev\"");
        assert_eq!(said.len(), 1);
        assert!(
            said[0].contains("lula-store depends on the HTTP client reqwest"),
            "{said:?}"
        );
    }

    #[test]
    fn a_crate_without_a_row_is_a_violation() {
        let said = complaints("lula-extra", "serde", "null");
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("lula-extra is not in the table"),
            "{said:?}"
        );
    }
}
