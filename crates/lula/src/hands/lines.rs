//! What the runner says of a merge, as whoever tries again is told.

use std::fmt::Write;

use lula_agents::hands::Joined;
use lula_runner::api::Integration;

/// What came of an attempt to integrate, as whoever tries again is told.
pub(super) fn joined(came: Integration) -> Joined {
    match came {
        Integration::Integrated { commit, tests } => Joined::Integrated { commit, tests },
        Integration::Unclear { why, .. } => Joined::Unclear { why },
        Integration::Conflict {
            files,
            ours,
            theirs,
            ..
        } => {
            let names: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
            let mut said = format!("both sides changed {}\n", names.join(", "));
            for hunk in files.iter().flat_map(|file| &file.hunks) {
                let _ = writeln!(said, "{}", hunk.text);
            }
            let _ = writeln!(
                said,
                "What the others did:\n{ours}\nWhat this task did:\n{theirs}"
            );
            Joined::Misfit {
                said,
                files: names,
                textual: true,
            }
        }
        Integration::TestConflict {
            failing,
            messages,
            accept,
            why,
            ..
        } => {
            let mut said = format!("it merges, and then: {why}\n");
            for test in &failing {
                let _ = writeln!(said, "- {test}");
            }
            for (test, message) in &messages {
                let _ = writeln!(said, "{test}:\n{message}");
            }
            for command in &accept {
                let _ = writeln!(said, "{:?}: {}", command.command, command.output);
            }
            Joined::Misfit {
                said,
                files: Vec::new(),
                textual: false,
            }
        }
    }
}
