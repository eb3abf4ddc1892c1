//! Where an agent said it would write, and that it did not write elsewhere.

use lula_gate::globs::Globs;
use lula_gate::invariants::{Invariants, Observed, Violation};
use lula_gate::rules::Act;
use lula_protocol::denial::{Attempt, Denial};
use lula_workspace::{Change, Kind, What};

use super::refusal::Refusal;

/// Most patterns, and the longest one.
const MOST: usize = 64;
const LONGEST: usize = 256;

/// What must hold for a workspace whose agent declared these patterns.
pub(super) fn invariants(patterns: &[String]) -> Result<Invariants, Refusal> {
    if patterns.len() > MOST || patterns.iter().any(|pattern| pattern.len() > LONGEST) {
        return Err(Refusal::BadRequest(format!(
            "write_scope takes at most {MOST} patterns of {LONGEST} bytes"
        )));
    }
    let write_scope = (!patterns.is_empty())
        .then(|| Globs::new(patterns))
        .transpose()
        .map_err(|error| Refusal::BadRequest(error.to_string()))?;
    Ok(Invariants {
        write_scope,
        ..Invariants::default()
    })
}

/// The act as that of an agent with this scope.
pub(super) fn within(act: Act, invariants: &Invariants) -> Act {
    match &invariants.write_scope {
        Some(scope) => act.within(scope.clone()),
        None => act,
    }
}

/// Why a change must not leave the workspace: commands write without saying where.
pub(super) fn denials<'a>(
    invariants: &Invariants,
    changes: impl Iterator<Item = &'a Change>,
) -> Vec<Denial> {
    let paths: Vec<String> = changes
        // A directory that appears is there for what is in it.
        .filter(|change| {
            let directory = |node: &lula_workspace::Node| node.kind == Kind::Directory;
            !(change.what == What::Added && change.new.as_ref().is_some_and(directory))
        })
        .map(|change| change.path.to_string())
        .collect();
    let observed = Observed {
        changed: &paths,
        base_tree: None,
        diff: "",
    };
    let violations = invariants.after(None, observed);
    violations.iter().filter_map(denial).collect()
}

/// The paths outside of what an agent declared.
pub(super) fn outside(invariants: &Invariants, paths: &[String]) -> Vec<String> {
    let observed = Observed {
        changed: paths,
        base_tree: None,
        diff: "",
    };
    let violations = invariants.after(None, observed);
    let denials = violations.iter().filter_map(denial);
    let paths = denials.filter_map(|denial| match denial.attempt {
        Attempt::Write { path } => Some(path),
        _ => None,
    });
    paths.collect()
}

fn denial(violation: &Violation) -> Option<Denial> {
    let (Violation::LeavesWorkspace { path }
    | Violation::OutsideScope { path, .. }
    | Violation::Protected { path }) = violation
    else {
        return None;
    };
    Some(Denial {
        attempt: Attempt::Write { path: path.clone() },
        rule: violation.to_string(),
        grant: None,
        count: 1,
    })
}
