//! The words of commits: what the commit of a task says, on the way through the merge queue and on the
//! branch that is delivered.

use lula_protocol::RunId;
use lula_runner_api::TaskCommit;

use crate::agent_pool::AgentResult;
use crate::plan::{PlanStep, StepStatus};
use crate::work::CodingState;

/// Longest first line of a commit's message.
const SUBJECT: usize = 72;
/// Longest body of a commit's message.
const BODY: usize = 4_000;

/// What the commit of a task says.
pub(super) struct TaskCommitWords {
    subject: String,
    body: String,
    trailers: String,
}

impl TaskCommitWords {
    pub(super) fn of(run: &RunId, step: &PlanStep, returned: &AgentResult) -> Self {
        let own = returned.said.trim();
        let body = if own.is_empty() {
            returned.summary.trim()
        } else {
            own
        };
        Self {
            subject: subject(&step.goal),
            body: self::body(body),
            trailers: format!(
                "Lula-Run: {run}\nLula-Task: {}\nLula-Model: {}\n",
                step.id, returned.by
            ),
        }
    }

    pub(super) fn trailers(&self) -> &str {
        &self.trailers
    }

    pub(super) fn message(&self) -> String {
        format!("{}\n\n{}{}", self.subject, self.body, self.trailers)
    }
}

/// What was said of a change as the body of a commit's message, with the blank line behind it; nothing
/// where nothing was said.
pub(super) fn body(said: &str) -> String {
    let said = said.trim();
    if said.is_empty() {
        return String::new();
    }
    let said: String = said.chars().take(BODY).collect();
    // A line of it must not be read as a trailer.
    let said = format!("\n{said}").replace("\nLula-", "\n Lula-");
    format!("{}\n\n", said.trim_start_matches('\n'))
}

/// The first line of a goal as the subject of a commit: a capital letter, no full stop, and at most so
/// many characters, cut between words.
pub(super) fn subject(goal: &str) -> String {
    let line = goal.trim().lines().next().unwrap_or_default().trim();
    let line = line.trim_end_matches(['.', ':', ';']);
    let mut letters = line.chars();
    let line: String = match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => return "Change what the task asks for".to_owned(),
    };
    if line.chars().count() <= SUBJECT {
        return line;
    }
    let mut short = String::new();
    for word in line.split_whitespace() {
        let room = SUBJECT - 1;
        if short.chars().count() + 1 + word.chars().count() > room {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    if short.is_empty() {
        short = line.chars().take(SUBJECT - 1).collect();
    }
    format!("{short}…")
}

/// The commits of a plan's tasks in a repository as they are to be delivered, in no order: the
/// branch knows in which they came together.
pub(super) fn task_commits(work: &CodingState, run: &RunId, repo: usize) -> Vec<TaskCommit> {
    let Some(joint) = &work.joint else {
        return Vec::new();
    };
    let entries = joint.dag.steps.values();
    let own = entries.filter(|entry| entry.step.repo == repo);
    let commits = own.filter_map(|entry| {
        let StepStatus::Merged {
            commit: Some(commit),
        } = &entry.status
        else {
            return None;
        };
        let returned = joint.returned.get(&entry.step.id)?;
        let words = TaskCommitWords::of(run, &entry.step, returned);
        Some(TaskCommit {
            commit: commit.clone(),
            message: words.message(),
        })
    });
    commits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_goal_becomes_a_subject_that_is_worth_reading() {
        assert_eq!(
            subject("add a --quiet flag.\nIt hides all."),
            "Add a --quiet flag"
        );
        let long = "teach the parser to read nested lists of any depth without recursion and say where one ends";
        let short = subject(long);
        assert_eq!(
            short,
            "Teach the parser to read nested lists of any depth without recursion…"
        );
        assert_eq!(subject(" "), "Change what the task asks for");
    }

    proptest! {
        #[test]
        fn a_subject_is_one_short_line(goal in ".{0,200}") {
            let subject = subject(&goal);
            prop_assert!(subject.chars().count() <= SUBJECT, "{}", subject);
            prop_assert!(!subject.contains('\n') && !subject.is_empty());
        }
    }
}
