//! Where an agent said it would write, and that it did not write elsewhere.

use lula_gate::globs::PathGlobs;
use lula_gate::invariants::{ActInvariants, InvariantViolation, ObservedEffect};
use lula_gate::rules::GateAct;
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_workspace::{FileNodeKind, PathChange, PathChangeKind};

use super::refusal::RequestRefusal;

/// Most patterns, and the longest one.
const MOST: usize = 64;
const LONGEST: usize = 256;

/// What must hold for a workspace whose agent declared these patterns.
pub(super) fn invariants(patterns: &[String]) -> Result<ActInvariants, RequestRefusal> {
    if patterns.len() > MOST || patterns.iter().any(|pattern| pattern.len() > LONGEST) {
        return Err(RequestRefusal::BadRequest(format!(
            "write_scope takes at most {MOST} patterns of {LONGEST} bytes"
        )));
    }
    let write_scope = (!patterns.is_empty())
        .then(|| PathGlobs::new(patterns))
        .transpose()
        .map_err(|error| RequestRefusal::BadRequest(error.to_string()))?;
    Ok(ActInvariants {
        write_scope,
        ..ActInvariants::default()
    })
}

/// The act as that of an agent with this scope.
pub(super) fn within(act: GateAct, invariants: &ActInvariants) -> GateAct {
    match &invariants.write_scope {
        Some(scope) => act.within(scope.clone()),
        None => act,
    }
}

/// Why a change must not leave the workspace: commands write without saying where.
pub(super) fn denials<'a>(
    invariants: &ActInvariants,
    changes: impl Iterator<Item = &'a PathChange>,
) -> Vec<SandboxDenial> {
    let paths: Vec<String> = changes
        // A directory that appears is there for what is in it.
        .filter(|change| {
            let directory = |node: &lula_workspace::FileNode| node.kind == FileNodeKind::Directory;
            !(change.what == PathChangeKind::Added && change.new.as_ref().is_some_and(directory))
        })
        .map(|change| change.path.to_string())
        .collect();
    let observed = ObservedEffect {
        changed: &paths,
        base_tree: None,
        diff: "",
    };
    let violations = invariants.after(None, observed);
    violations.iter().filter_map(denial).collect()
}

/// The paths outside of what an agent declared.
pub(super) fn outside(invariants: &ActInvariants, paths: &[String]) -> Vec<String> {
    let observed = ObservedEffect {
        changed: paths,
        base_tree: None,
        diff: "",
    };
    let violations = invariants.after(None, observed);
    let denials = violations.iter().filter_map(denial);
    let paths = denials.filter_map(|denial| match denial.attempt {
        DeniedAttempt::Write { path } => Some(path),
        _ => None,
    });
    paths.collect()
}

fn denial(violation: &InvariantViolation) -> Option<SandboxDenial> {
    let (InvariantViolation::LeavesWorkspace { path }
    | InvariantViolation::OutsideScope { path, .. }
    | InvariantViolation::Protected { path }) = violation
    else {
        return None;
    };
    Some(SandboxDenial {
        attempt: DeniedAttempt::Write { path: path.clone() },
        rule: violation.to_string(),
        grant: None,
        count: 1,
    })
}
