//! A task as the API takes it.

use std::time::Duration;

use lula_agents::route::TaskLane;
use lula_agents::{CoderChoice, DeliverMode};
use lula_protocol::BudgetAmounts;
use serde_json::{Value, json};

use crate::error::HostError;
use crate::task::{ApprovalMode, TaskRequest};

/// How long the search takes where nothing else is asked for.
const SEARCH: Duration = Duration::from_mins(2);

fn not_there(flag: &str) -> HostError {
    HostError::TaskRefused {
        why: format!("a server does not take {flag}: it is decided by its configuration"),
        remedy: "leave the flag out, or run it on the machine of the server without --server",
    }
}

/// The body of `POST /v1/runs`. What a server does not take is refused here, by the name of its flag.
pub fn create_run(asked: &TaskRequest, limits: &BudgetAmounts) -> Result<Value, HostError> {
    let team = asked.team.as_ref();
    let refused = [
        (asked.repositories.len() > 1, "several --repo"),
        (!asked.finish.is_empty(), "--finish"),
        (asked.effort.is_some(), "--effort"),
        (!asked.judges.is_empty(), "--judge"),
        (asked.coder != CoderChoice::Auto, "--coder"),
        (asked.search != SEARCH, "--search"),
        (team.is_some_and(|team| team.plan_only), "--plan-only"),
        (team.is_some_and(|team| team.fail_fast), "--fail-fast"),
        (team.is_some_and(|team| !team.commit_per_task), "--squash"),
        (asked.deliver == DeliverMode::Worktree, "--deliver worktree"),
    ];
    if let Some((_, flag)) = refused.into_iter().find(|(given, _)| *given) {
        return Err(not_there(flag));
    }
    let repository = asked
        .repositories
        .first()
        .map(|name| name.to_string_lossy());
    let mut body = json!({
        "task": asked.text,
        "repair": asked.repair,
        "accept": asked.accept,
        "models": asked.models,
        "lane": match asked.lane {
            None => "auto",
            Some(TaskLane::DeepPlanning) => "deep",
            Some(_) => "interactive",
        },
        "deliver": match asked.deliver {
            DeliverMode::Patch => "patch",
            DeliverMode::None => "none",
            _ => "branch",
        },
        "consent": match asked.approval {
            ApprovalMode::First => "always",
            ApprovalMode::Unsure => "unless_sure",
            // What is asked all the same is answered by this person as it comes.
            ApprovalMode::ByRules | ApprovalMode::Beforehand => "by_rules",
        },
        "max_loops": asked.max_loops,
        "max_turns": asked.max_turns,
        "limits": limits,
    });
    let optional = [
        ("repository", repository.map(|name| json!(name))),
        ("tests", asked.tests.as_ref().map(|tests| json!(tests))),
        ("agents", team.map(|team| json!(team.at_once))),
        ("best_of", asked.best_of.map(|many| json!(many))),
    ];
    if let Value::Object(fields) = &mut body {
        let given = optional.into_iter();
        fields.extend(given.filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    Ok(body)
}
