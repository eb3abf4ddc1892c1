//! Who writes the change: the built-in repairer, a model with tools, or a model that only edits.

pub(crate) mod conversation;
mod edits;
mod findings;
pub(crate) mod prompt;
mod repairer;
mod tools;

use lula_edit::Format;
use lula_graph::{Ctx, Leave, Visit};
use lula_models::output::Capability;

use crate::choose::{Chosen, Role, Tally, choose};
use crate::deeds::Deed;
use crate::graph::{Coding, Left, Way};
use crate::nodes::workspace;
use crate::recover::{Failure, FailureClass};
use crate::task::{CoderChoice, Intent, Mind};
use crate::work::{End, Event, Work};

/// The name the built-in repairer goes by.
pub(crate) const REPAIRER: &str = "repairer";

/// Who writes next.
#[derive(Debug, PartialEq)]
enum Writer<'a> {
    Repairer,
    WithTools(Chosen<'a>),
    Editor(Chosen<'a>, Format),
    /// Somebody who changes nothing and has no tools.
    Reader(Chosen<'a>),
    Nobody(End),
}

pub(crate) async fn visit(work: &Work, ctx: &mut Ctx<'_>) -> Visit<Coding> {
    let writer = writer(work);
    if let Writer::Nobody(end) = writer {
        return Ok(Leave::by(Way::Nobody).with(Event::Ending { end }));
    }
    // Every attempt begins where the repository stands.
    let reset = Deed::Reset {
        workspace: workspace(work)?,
    };
    if work.loops > 0 {
        ctx.effect::<()>(reset.effect()).await?;
    }
    match writer {
        Writer::Repairer => repairer::write(work, ctx).await,
        Writer::WithTools(chosen) => {
            let mut tally = Tally::default();
            let left = tools::write(work, &chosen, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        Writer::Editor(chosen, format) => {
            let mut tally = Tally::default();
            let left = edits::write(work, &chosen, format, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        Writer::Reader(chosen) => {
            let mut tally = Tally::default();
            let left = findings::read(work, &chosen, &mut tally, ctx).await?;
            Ok(asked(left, work, &chosen, tally))
        }
        Writer::Nobody(_) => Ok(Leave::by(Way::Nobody)),
    }
}

/// Writes down who was asked, why, and what that took.
pub(crate) fn asked(left: Left, work: &Work, chosen: &Chosen<'_>, tally: Tally) -> Left {
    let part = chosen.part(work, tally);
    left.with(Event::Asked { part })
}

/// An attempt that came to nothing.
fn gave_up(class: FailureClass, why: impl Into<String>, named: &[String], by: &str) -> Left {
    let failure = Failure::new(class, why, named, by);
    Leave::by(Way::Malformed).with(Event::Failed { failure })
}

/// An attempt that left something in the workspace, or says that nothing is to be done.
fn done(way: Way, by: &str, summary: String) -> Left {
    Leave::by(way).with(Event::Coded {
        by: by.to_owned(),
        summary,
    })
}

/// Who writes next. Pure.
fn writer(work: &Work) -> Writer<'_> {
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
    if choice != CoderChoice::Model && work.intent() == Intent::Repair && searched.is_none() {
        return Writer::Repairer;
    }
    if choice == CoderChoice::Repairer {
        let why = match searched {
            Some(failure) => failure.evidence.clone(),
            None => "the repairer mends failing tests, and this task is something else".to_owned(),
        };
        return Writer::Nobody(End::Halted { why });
    }
    let Some(chosen) = choose(work, Role::Coder) else {
        return Writer::Nobody(nobody(work, searched));
    };
    if chosen.mind.capability == Capability::ToolCalls {
        Writer::WithTools(chosen)
    } else if reads {
        Writer::Reader(chosen)
    } else {
        let format = format_for(work, chosen.mind);
        Writer::Editor(chosen, format)
    }
}

fn nobody(work: &Work, searched: Option<&Failure>) -> End {
    const HOW: &str = "name one with --model PROVIDER/MODEL, for example --model \
                       ollama/qwen2.5-coder:7b or, with a key in the environment, --model \
                       anthropic/claude-sonnet-4-5; `lula doctor` shows what is there";
    if let Some(failure) = searched {
        let why = format!(
            "{}; what search cannot mend needs a model: {HOW}",
            failure.evidence
        );
        return End::Halted { why };
    }
    if let Some(failure) = work.failures.last() {
        let why = format!("no other model is left to ask: {}", failure.evidence);
        return End::Halted { why };
    }
    let why = format!(
        "this task needs a model (without one only failing tests can be mended, with --repair): \
             {HOW}"
    );
    End::NeedsModel { why }
}

/// The format of edits: a weaker one for each time the stronger did not work.
fn format_for(work: &Work, mind: &Mind) -> Format {
    let misses = work.failures.iter().filter(|failure| {
        failure.by == mind.name
            && matches!(
                failure.class,
                FailureClass::Malformed | FailureClass::EditApply | FailureClass::NoChange
            )
    });
    let mut format = mind.capability.edit_format();
    for _ in misses {
        format = format.weaker().unwrap_or(mind.capability.edit_format());
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recover::Target;
    use crate::task::{Rates, Task};
    use crate::verdict::{Looked, Results};
    use crate::work::{Baseline, Retry};

    fn mind(name: &str, capability: Capability) -> Mind {
        let rates = Rates {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
        };
        Mind {
            name: name.to_owned(),
            model: name.to_owned(),
            capability,
            rates,
            context: None,
            max_tokens: 1000,
        }
    }

    fn work(text: &str, failing: &[&str], minds: &[Mind]) -> Work {
        let mut work = Work::begin(Task {
            models: minds.to_vec(),
            ..Task::new(text, "/r")
        });
        work.baseline = Some(Baseline {
            looked: Looked::Ran(Results {
                failing: failing.iter().map(|id| (*id).to_owned()).collect(),
                ..Results::default()
            }),
            ..Baseline::default()
        });
        work
    }

    fn fail(work: &mut Work, by: &str, class: FailureClass) {
        work.apply(&Event::Failed {
            failure: Failure::new(class, "seen", &[], by),
        });
        work.apply(&Event::Retrying {
            retry: Retry {
                target: Target::Coder,
                another_mind: true,
            },
        });
    }

    #[test]
    fn failing_tests_are_searched_first_and_a_model_asked_after() {
        let strong = mind("a/strong", Capability::ToolCalls);
        let mut work = work("fix the failing tests", &["t"], &[strong]);
        assert_eq!(writer(&work), Writer::Repairer);
        fail(&mut work, REPAIRER, FailureClass::NotFound);
        assert!(matches!(writer(&work), Writer::WithTools(_)));
    }

    #[test]
    fn without_a_model_other_tasks_say_what_they_need() {
        let work = work("add a flag", &[], &[]);
        let Writer::Nobody(End::NeedsModel { why }) = writer(&work) else {
            panic!("{:?}", writer(&work));
        };
        assert!(why.contains("--model"), "{why}");
    }

    #[test]
    fn a_weak_model_edits_and_gets_easier_formats_when_it_fails() {
        let weak = mind("a/weak", Capability::JsonSchema);
        let mut work = work("add a flag", &[], std::slice::from_ref(&weak));
        let format = |work: &Work| match writer(work) {
            Writer::Editor(_, format) => format,
            other => panic!("{other:?}"),
        };
        assert_eq!(format(&work), Format::SearchReplace);
        fail(&mut work, "a/weak", FailureClass::Malformed);
        assert_ne!(format(&work), Format::SearchReplace);
    }
}
