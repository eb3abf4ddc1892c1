//! A plan while it is worked on, as lines that are drawn again and again: each task, who is at it, and
//! what they are doing. Pure.

use std::collections::BTreeMap;

use lula_agents::plan::{PlanGraph, PlanStepEntry, StepStatus};
use lula_host::story::board::{chosen, counted, progress_of};
use unicode_width::UnicodeWidthStr;

use super::plan::mark;
use crate::term::{BAD, DIM, GOOD, STRONG, TerminalArea, WARN, paint, plain};

/// Widest name of a task; longer ones are cut.
const NAME: usize = 24;
/// The column of roles is no wider than this.
const ROLE: usize = 10;
/// Narrower than this there is no room for roles.
const ROOMY: usize = 60;

/// The board: one line for each task, each after what it needs. Where there are too many, those that
/// say most are shown and the others are counted.
pub(crate) fn board(
    dag: &PlanGraph,
    doing: &BTreeMap<String, String>,
    room: TerminalArea,
) -> String {
    let wanted = |entry: &&PlanStepEntry| {
        !matches!(entry.status, StepStatus::Superseded | StepStatus::Cancelled)
    };
    let entries: Vec<&PlanStepEntry> = dag.in_order().into_iter().filter(wanted).collect();
    let shown = chosen(&entries, room.lines);
    let names = shown.iter().map(|entry| name(entry).width());
    let names = names.max().unwrap_or(0);
    let mut lines: Vec<String> = shown
        .iter()
        .map(|entry| row(dag, entry, doing, names, room.width))
        .collect();
    let left: Vec<&&PlanStepEntry> = entries
        .iter()
        .filter(|entry| !shown.iter().any(|other| other.step.id == entry.step.id))
        .collect();
    if !left.is_empty() {
        lines.push(paint(DIM, plain(&counted(&left), room.width)));
    }
    lines.join("\n")
}

fn name(entry: &PlanStepEntry) -> String {
    plain(entry.step.id.as_str(), NAME)
}

fn row(
    dag: &PlanGraph,
    entry: &PlanStepEntry,
    doing: &BTreeMap<String, String>,
    names: usize,
    width: usize,
) -> String {
    let name = name(entry);
    let gap = " ".repeat(names.saturating_sub(name.width()));
    let (mut used, mut role) = (2 + names + 2, String::new());
    if width >= ROOMY {
        role = format!("{:<ROLE$}  ", plain(&entry.step.role, ROLE));
        used += ROLE + 2;
    }
    let text = plain(&progress_of(dag, entry, doing), width.saturating_sub(used));
    let (name, text) = match &entry.status {
        StepStatus::Leased { .. } | StepStatus::AwaitingMerge { .. } => (paint(STRONG, name), text),
        StepStatus::Merged { .. } => (name, paint(GOOD, text)),
        StepStatus::Failed { .. } => (name, paint(BAD, text)),
        StepStatus::Conflict { .. } => (name, paint(WARN, text)),
        _ => (paint(DIM, name), paint(DIM, text)),
    };
    format!(
        "{} {name}{gap}  {}{text}",
        mark(&entry.status),
        paint(DIM, role)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lula_agents::plan::{
        PathScope, PlanBounds, PlanStep, StepFailurePolicy, StepFailureReason, StepId,
        StepTransition,
    };
    use lula_protocol::{BudgetAmounts, RunId};

    fn id(name: &str) -> StepId {
        StepId::new(name).unwrap()
    }

    fn dag(steps: &[(&str, &str, &[&str])]) -> PlanGraph {
        let steps = steps.iter().map(|(name, role, needs)| PlanStep {
            id: id(name),
            repo: 0,
            goal: "x".to_owned(),
            deps: needs.iter().map(|name| id(name)).collect(),
            scope: PathScope::new(&[name]).unwrap(),
            budget: BudgetAmounts::none(),
            acceptance: Vec::new(),
            role: (*role).to_owned(),
            interfaces: String::new(),
        });
        let bounds = PlanBounds {
            repositories: 1,
            roles: &["coder", "reviewer", "tester"],
            left: BudgetAmounts::none(),
        };
        PlanGraph::new(steps.collect(), StepFailurePolicy::Isolated, &bounds).unwrap()
    }

    fn begin(dag: &mut PlanGraph, name: &str) {
        let run = RunId::from_parts(1, [1; 10]);
        dag.advance(&StepTransition::Leased { id: id(name), run })
            .unwrap();
    }

    fn finish(dag: &mut PlanGraph, name: &str) {
        begin(dag, name);
        let id = id(name);
        dag.advance(&StepTransition::AwaitingMerge { id: id.clone() })
            .unwrap();
        let commit = Some("c".to_owned());
        dag.advance(&StepTransition::Merged { id, commit }).unwrap();
    }

    fn shown(dag: &PlanGraph, width: usize, lines: usize) -> String {
        let doing = [
            (
                "parser",
                "writes src/parser/expressions_and_statements.py, all of it, from the top to the very end",
            ),
            ("lexer", "asks anthropic/claude-sonnet-4-5"),
        ];
        let doing = doing.map(|(name, what)| (name.to_owned(), what.to_owned()));
        let board = board(dag, &doing.into(), TerminalArea { width, lines });
        let plain = anstream::adapter::strip_str(&board).to_string();
        for line in plain.lines() {
            assert!(line.width() <= width, "{} columns: {line}", line.width());
        }
        plain
    }

    fn plan() -> PlanGraph {
        let mut dag = dag(&[
            ("grammar", "coder", &[]),
            ("lexer", "coder", &[]),
            ("parser", "coder", &["grammar"]),
            ("parser-tests", "tester", &["grammar"]),
            ("docs", "coder", &[]),
            ("review", "reviewer", &["parser", "parser-tests"]),
            ("wrong", "coder", &[]),
        ]);
        finish(&mut dag, "grammar");
        for name in ["lexer", "parser", "docs", "wrong", "parser-tests"] {
            begin(&mut dag, name);
        }
        dag.advance(&StepTransition::AwaitingMerge { id: id("docs") })
            .unwrap();
        let said = "both sides changed docs/index.md\nand more".to_owned();
        dag.advance(&StepTransition::Conflict {
            id: id("docs"),
            said,
        })
        .unwrap();
        let reason = StepFailureReason::NotDone {
            said: "2 tests that passed no longer do".to_owned(),
        };
        dag.advance(&StepTransition::Failed {
            id: id("wrong"),
            reason,
        })
        .unwrap();
        dag
    }

    #[test]
    fn each_task_has_a_line_that_says_who_is_at_it_and_what_they_do() {
        insta::assert_snapshot!(shown(&plan(), 80, 20), @r"
        ◑ docs          coder       does not fit: both sides changed docs/index.md
        ● grammar       coder       merged
        ◐ lexer         coder       asks anthropic/claude-sonnet-4-5
        ◐ parser        coder       writes src/parser/expressions_and_statements.py, al…
        ◐ parser-tests  tester      begins
        ○ review        reviewer    waits for parser, parser-tests
        ✗ wrong         coder       failed: 2 tests that passed no longer do
        ");
    }

    #[test]
    fn a_narrow_terminal_drops_the_roles() {
        insta::assert_snapshot!(shown(&plan(), 44, 20), @r"
        ◑ docs          does not fit: both sides ch…
        ● grammar       merged
        ◐ lexer         asks anthropic/claude-sonne…
        ◐ parser        writes src/parser/expressio…
        ◐ parser-tests  begins
        ○ review        waits for parser, parser-te…
        ✗ wrong         failed: 2 tests that passed…
        ");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_whoever_works_is_shown() {
        insta::assert_snapshot!(shown(&plan(), 80, 5), @r"
        ◑ docs          coder       does not fit: both sides changed docs/index.md
        ◐ lexer         coder       asks anthropic/claude-sonnet-4-5
        ◐ parser        coder       writes src/parser/expressions_and_statements.py, al…
        ◐ parser-tests  tester      begins
        and 3 more: 1 failed, 1 merged, 1 pending
        ");
    }

    #[test]
    fn nothing_an_agent_says_acts_on_the_terminal() {
        let dag = plan();
        let doing = [("lexer".to_owned(), "runs \u{1b}[2J\nx".to_owned())];
        let room = TerminalArea {
            width: 80,
            lines: 20,
        };
        let board = board(&dag, &doing.into(), room);
        assert!(!board.contains("\u{1b}[2J"), "{board}");
        assert_eq!(board.lines().count(), 7);
    }
}
