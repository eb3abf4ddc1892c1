//! Who writes the change: the built-in repairer, a model with tools, or a model that only edits.

mod chat;
pub(crate) mod conversation;
mod edits;
mod findings;
pub(crate) mod prompt;
mod repairer;
mod submission;
pub(crate) mod tools;
mod with_tools;

use lula_edit::EditFormat;
use lula_graph::{NodeContext, NodeExit, NodeVisitFuture};
use lula_models::output::OutputCapability;

use crate::effects::RunEffect;
use crate::graph::{CodingGraph, NodeDeparture, RunNodeExit};
use crate::model_choice::{ChosenModel, ModelRole, VisitModelUsage, choose};
use crate::nodes::workspace;
use crate::recovery::{AttemptFailure, AttemptFailureClass};
use crate::task::{CoderChoice, ModelChoice, TaskIntent};
use crate::work::{CodingState, EarlyEnd, RunStateEvent};

pub(crate) use submission::SUBMIT;

/// The name the built-in repairer goes by.
pub(crate) const REPAIRER: &str = "repairer";

/// Which of the coders works on this attempt.
#[derive(Debug, PartialEq)]
enum AttemptCoder<'a> {
    Repairer,
    WithTools(ChosenModel<'a>),
    Editor(ChosenModel<'a>, EditFormat),
    /// A model that changes nothing and has no tools.
    Reader(ChosenModel<'a>),
    NoCoder(EarlyEnd),
}

pub(crate) async fn visit(
    work: &CodingState,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    if let Some(talk) = &work.chat {
        return chat::visit(work, talk, ctx).await;
    }
    let writer = writer(work);
    if let AttemptCoder::NoCoder(end) = writer {
        return Ok(NodeExit::by(RunNodeExit::NoCoder).with(RunStateEvent::Ending { end }));
    }
    // An attempt begins where the repository stands, unless it goes on with what was handed in.
    let reset = RunEffect::Reset {
        workspace: workspace(work)?,
    };
    let goes_on = match &writer {
        AttemptCoder::WithTools(chosen) => work.goes_on_with(&chosen.model.name).is_some(),
        _ => false,
    };
    if work.loops > 0 && !goes_on {
        ctx.effect::<()>(reset.request()).await?;
    }
    match writer {
        AttemptCoder::Repairer => repairer::write(work, ctx).await,
        AttemptCoder::WithTools(chosen) => {
            let mut tally = VisitModelUsage::default();
            let left = with_tools::write(work, &chosen, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        AttemptCoder::Editor(chosen, format) => {
            let mut tally = VisitModelUsage::default();
            let left = edits::write(work, &chosen, format, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        AttemptCoder::Reader(chosen) => {
            let mut tally = VisitModelUsage::default();
            let left = findings::read(work, &chosen, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        AttemptCoder::NoCoder(_) => Ok(NodeExit::by(RunNodeExit::NoCoder)),
    }
}

/// Writes down who was asked, why, and what that took.
pub(crate) fn asked(
    left: NodeDeparture,
    work: &CodingState,
    chosen: &ChosenModel<'_>,
    tally: VisitModelUsage,
) -> NodeDeparture {
    let part = chosen.part(work, tally);
    left.with(RunStateEvent::Asked { part })
}

/// An attempt that came to nothing.
fn gave_up(
    class: AttemptFailureClass,
    why: impl Into<String>,
    named: &[String],
    by: &str,
) -> NodeDeparture {
    let failure = AttemptFailure::new(class, why, named, by);
    NodeExit::by(RunNodeExit::Malformed).with(RunStateEvent::Failed { failure })
}

/// An attempt that left something in the workspace, or says that nothing is to be done.
fn done(way: RunNodeExit, by: &str, summary: String) -> NodeDeparture {
    NodeExit::by(way).with(RunStateEvent::Coded {
        by: by.to_owned(),
        summary,
    })
}

/// Whether there is a coder for another try.
pub(crate) fn is_left(work: &CodingState) -> bool {
    !matches!(writer(work), AttemptCoder::NoCoder(_))
}

/// The model that writes next, where one does and that is clear already.
pub(crate) fn next_model(work: &CodingState) -> Option<&ModelChoice> {
    // Before the tests were run, a task of failing tests may still be one for the search.
    let open = work.baseline_of(0).is_none() && work.task.intent != Some(TaskIntent::Change);
    if open && work.task.coder != CoderChoice::Model {
        return None;
    }
    match writer(work) {
        AttemptCoder::WithTools(chosen)
        | AttemptCoder::Editor(chosen, _)
        | AttemptCoder::Reader(chosen) => Some(chosen.model),
        AttemptCoder::Repairer | AttemptCoder::NoCoder(_) => None,
    }
}

/// Who writes next. Pure.
fn writer(work: &CodingState) -> AttemptCoder<'_> {
    let searched = work.failures.iter().find(|failure| failure.by == REPAIRER);
    let reads = work
        .task
        .handoff
        .as_ref()
        .is_some_and(|handoff| !handoff.role.writes);
    let choice = if reads {
        CoderChoice::Model
    } else {
        work.task.coder
    };
    if choice != CoderChoice::Model && work.intent() == TaskIntent::Repair && searched.is_none() {
        return AttemptCoder::Repairer;
    }
    if choice == CoderChoice::Repairer {
        let why = match searched {
            Some(failure) => failure.evidence.clone(),
            None => "the repairer mends failing tests, and this task is something else".to_owned(),
        };
        return AttemptCoder::NoCoder(EarlyEnd::Halted { why });
    }
    let going_on = work.conversation.as_ref().and_then(|open| {
        work.goes_on_with(&open.by)?;
        ChosenModel::going_on(work, ModelRole::Coder, &open.by)
    });
    let Some(chosen) = going_on.or_else(|| choose(work, ModelRole::Coder)) else {
        return AttemptCoder::NoCoder(no_coder(work, searched));
    };
    if chosen.model.capability == OutputCapability::ToolCalls {
        AttemptCoder::WithTools(chosen)
    } else if reads {
        AttemptCoder::Reader(chosen)
    } else {
        let format = format_for(work, chosen.model);
        AttemptCoder::Editor(chosen, format)
    }
}

fn no_coder(work: &CodingState, searched: Option<&AttemptFailure>) -> EarlyEnd {
    const HOW: &str = "name one with --model PROVIDER/MODEL, for example --model \
                       ollama/qwen2.5-coder:7b or, with a key in the environment, --model \
                       anthropic/claude-sonnet-4-5; `lula doctor` shows what is there";
    if let Some(failure) = searched {
        let why = format!(
            "{}; what search cannot mend needs a model: {HOW}",
            failure.evidence
        );
        return EarlyEnd::Halted { why };
    }
    if let Some(failure) = work.failures.last() {
        let why = format!("no other model is left to ask: {}", failure.evidence);
        return EarlyEnd::Halted { why };
    }
    let why = format!(
        "this task needs a model (without one only failing tests can be mended, with --repair): \
             {HOW}"
    );
    EarlyEnd::NeedsModel { why }
}

/// The format of edits: a weaker one for each time the stronger did not work.
fn format_for(work: &CodingState, model: &ModelChoice) -> EditFormat {
    let misses = work.failures.iter().filter(|failure| {
        failure.by == model.name
            && matches!(
                failure.class,
                AttemptFailureClass::Malformed
                    | AttemptFailureClass::EditApply
                    | AttemptFailureClass::NoChange
            )
    });
    let mut format = model.capability.edit_format();
    for _ in misses {
        format = format.weaker().unwrap_or(model.capability.edit_format());
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::RetryTarget;
    use crate::task::{ModelRates, RunTask};
    use crate::verdict::{ProjectTestResults, TestRunAttempt};
    use crate::work::{RetryPlan, TestBaseline};

    fn model(name: &str, capability: OutputCapability) -> ModelChoice {
        let rates = ModelRates {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        };
        ModelChoice {
            name: name.to_owned(),
            model: name.to_owned(),
            capability,
            rates,
            context: None,
            max_tokens: 1000,
            settings: crate::task::ModelSettings::default(),
        }
    }

    fn work(text: &str, failing: &[&str], models: &[ModelChoice]) -> CodingState {
        let work = CodingState::begin(RunTask {
            models: models.to_vec(),
            ..RunTask::new(text, "/r")
        });
        work.knowing(TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                failing: failing.iter().map(|id| (*id).to_owned()).collect(),
                ..ProjectTestResults::default()
            }),
            ..TestBaseline::default()
        })
    }

    fn fail(work: &mut CodingState, by: &str, class: AttemptFailureClass) {
        work.apply(&RunStateEvent::Failed {
            failure: AttemptFailure::new(class, "seen", &[], by),
        });
        work.apply(&RunStateEvent::Retrying {
            retry: RetryPlan {
                target: RetryTarget::Coder,
                another_model: true,
            },
        });
    }

    #[test]
    fn failing_tests_are_searched_first_and_a_model_asked_after() {
        let strong = model("a/strong", OutputCapability::ToolCalls);
        let mut work = work("fix the failing tests", &["t"], &[strong]);
        assert_eq!(writer(&work), AttemptCoder::Repairer);
        fail(&mut work, REPAIRER, AttemptFailureClass::NotFound);
        assert!(matches!(writer(&work), AttemptCoder::WithTools(_)));
    }

    #[test]
    fn without_a_model_other_tasks_say_what_they_need() {
        let work = work("add a flag", &[], &[]);
        let AttemptCoder::NoCoder(EarlyEnd::NeedsModel { why }) = writer(&work) else {
            panic!("{:?}", writer(&work));
        };
        assert!(why.contains("--model"), "{why}");
    }

    #[test]
    fn a_weak_model_edits_and_gets_easier_formats_when_it_fails() {
        let weak = model("a/weak", OutputCapability::JsonSchema);
        let mut work = work("add a flag", &[], std::slice::from_ref(&weak));
        let format = |work: &CodingState| match writer(work) {
            AttemptCoder::Editor(_, format) => format,
            other => panic!("{other:?}"),
        };
        assert_eq!(format(&work), EditFormat::SearchReplace);
        fail(&mut work, "a/weak", AttemptFailureClass::Malformed);
        assert_ne!(format(&work), EditFormat::SearchReplace);
    }
}
