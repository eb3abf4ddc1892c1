//! What a verdict rests on, for people and for programs: commands, tests by name, what they said.

use lula_agents::CodingState;
use lula_agents::verdict::{AcceptanceBaseline, TestComparison};
use lula_repair::CodeOrigin;
use serde::Serialize;

use crate::text::{plain, visible};

/// Most tests of a kind that are named to a person.
const NAMED: usize = 12;
/// Most tests whose words are shown to a person, and most lines of each.
const SHOWN: usize = 3;
const LINES: usize = 40;

/// What was there before anything was done.
#[derive(Debug, Serialize)]
pub struct BaselineView {
    /// The exact command that ran the tests.
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
    /// Where the tested code came from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    origins: Vec<CodeOrigin>,
    /// Tests that failed already.
    given: Vec<String>,
    /// Those of them that the task is about.
    goal: Vec<String>,
    /// What the failing tests said.
    messages: Vec<(String, String)>,
    /// What acceptance commands did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accept: Vec<AcceptanceBaseline>,
}

impl BaselineView {
    /// What is known of it.
    pub fn of(work: &CodingState) -> Option<Self> {
        let baseline = work.baseline_of(0)?;
        Some(Self {
            command: baseline.command.clone(),
            interpreter: baseline.interpreter.clone(),
            origins: baseline.origins.clone(),
            given: baseline.given().into_iter().collect(),
            goal: work.goal(0).into_iter().collect(),
            messages: baseline.messages.clone(),
            accept: baseline.accept.clone(),
        })
    }
}

/// Tests before and with the change, by name, where both ran.
pub fn compared(work: &CodingState) -> Option<TestComparison> {
    let evidence = work.evidence.as_ref()?;
    evidence.after.results()?;
    Some(TestComparison::of(evidence))
}

/// The same for a person, each with a name: what is as it should be only in numbers.
pub fn rows(work: &CodingState) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(before) = BaselineView::of(work) {
        rows.extend(
            before
                .command
                .map(|command| ("tests", plain(&command, 400))),
        );
        rows.extend(
            before
                .interpreter
                .map(|text| ("interpreter", plain(&text, 200))),
        );
        for origin in &before.origins {
            let text = format!("{} from {}", origin.name, origin.path);
            rows.push(("tested code", plain(&text, 200)));
        }
        let goal = &before.goal;
        let given: Vec<String> = before.given;
        let given: Vec<String> = given.into_iter().filter(|id| !goal.contains(id)).collect();
        rows.extend(listed("failed before", &given));
        for tried in &before.accept {
            let came = match (tried.succeeds, tried.timed_out) {
                (true, _) => "succeeded before any change, so it shows nothing",
                (false, true) => "did not end in time before any change",
                (false, false) => "failed before any change",
            };
            rows.push(("accept", format!("{}: {came}", plain(&tried.command, 200))));
        }
    }
    let Some(evidence) = &work.evidence else {
        return rows;
    };
    let command = evidence.command.as_ref();
    let changed = command.filter(|command| evidence.command_before.as_ref() != Some(command));
    rows.extend(changed.map(|command| ("tests after", plain(command, 400))));
    if !evidence.touched_tests.is_empty() {
        let text = plain(&evidence.touched_tests.join(", "), 400);
        rows.push((
            "put back",
            format!("{text} (existing tests count as they were)"),
        ));
    }
    if let Some(compared) = compared(work) {
        rows.extend(listed("now passing", &compared.fail_to_pass));
        rows.extend(listed("new, passing", &compared.new_passing));
        rows.extend(listed("still failing", &compared.still_failing));
        rows.extend(listed("newly failing", &compared.broken));
        rows.extend(listed("new, failing", &compared.new_failing));
        rows.extend(listed("no longer run", &compared.lost));
        rows.extend(listed("now and then", &compared.unsteady));
    }
    rows
}

fn listed(name: &'static str, ids: &[String]) -> Option<(&'static str, String)> {
    let shown: Vec<String> = ids.iter().take(NAMED).map(|id| plain(id, 120)).collect();
    let more = match ids.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!ids.is_empty()).then(|| (name, format!("{}{more}", shown.join(", "))))
}

/// What tests said that are worse than they should be, for a person.
pub fn said(work: &CodingState) -> Vec<String> {
    let (Some(evidence), Some(compared)) = (&work.evidence, compared(work)) else {
        return Vec::new();
    };
    let goal = work.goal(0);
    let worse = |id: &String| {
        compared.broken.contains(id)
            || compared.new_failing.contains(id)
            || (goal.contains(id) && compared.still_failing.contains(id))
    };
    let mut lines = Vec::new();
    for (id, message) in evidence
        .messages
        .iter()
        .filter(|(id, _)| worse(id))
        .take(SHOWN)
    {
        lines.push(format!("{}:", plain(id, 200)));
        let all: Vec<&str> = message.lines().collect();
        let from = all.len().saturating_sub(LINES);
        if from > 0 {
            lines.push(format!("  [… {from} lines left out …]"));
        }
        lines.extend(
            all[from..]
                .iter()
                .map(|line| format!("  {}", visible(line))),
        );
    }
    lines
}
