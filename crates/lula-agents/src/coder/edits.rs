//! A model that only edits: it is shown the files that matter and answers with edits, which are
//! matched and checked in memory. Nothing is written until every edit has found its place.

use std::collections::BTreeMap;
use std::fmt::Write;

use lula_edit::syntax::SyntaxVerdict;
use lula_edit::{EditBatchResult, EditFormat, anchor, apply_all, functions};
use lula_graph::{NodeContext, NodeVisitFuture, VisitStop};
use lula_models::REPAIRS;
use lula_models::normal::{ModelMessage, ModelRequest, OutputShape};
use lula_models::output::{AnswerFault, ask_again, ask_edits_again};
use lula_protocol::call::WriteFile;
use lula_protocol::{ToolAction, WorkspaceId};

use super::conversation::CoderConversation;
use super::{done, gave_up, prompt};
use crate::effects::RunEffect;
use crate::graph::{CodingGraph, RunNodeExit};
use crate::model_choice::{ChosenModel, VisitModelUsage};
use crate::nodes::workspace;
use crate::recovery::AttemptFailureClass;
use crate::runner_port::{Reply, ToolRefusal};
use crate::task::ModelChoice;
use crate::work::CodingState;

/// Most bytes of files that are shown.
const SHOWN: usize = 48_000;

/// What a model is told whose edits leave everything as it is.
const UNCHANGED: &str = "they leave every file as it was, so nothing is mended; find the line that \
                         makes it fail and write it differently";

/// Files by path; `None` for one that does not exist.
type FileTexts = BTreeMap<String, Option<String>>;

pub(super) async fn write(
    work: &CodingState,
    chosen: &ChosenModel<'_>,
    format: EditFormat,
    tally: &mut VisitModelUsage,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let model = chosen.model;
    let place = workspace(work)?;
    let mut texts = FileTexts::new();
    let mut shown = String::new();
    let likely = work.brief.as_ref().map(|brief| brief.likely.clone());
    for path in likely.unwrap_or_default() {
        let Some(text) = fetch(&place, &path, &mut texts, ctx).await? else {
            continue;
        };
        let view = view(format, &path, &text);
        if !shown.is_empty() && shown.len() + view.len() > SHOWN {
            continue;
        }
        let text = view.trim_end_matches('\n');
        let _ = writeln!(shown, "<file path={path:?}>\n{text}\n</file>");
    }
    // The task last: a small model answers what it read last.
    let words = format!("{shown}\n{}\nAnswer with the edits.", prompt::task(work));
    let messages = vec![
        ModelMessage::system(prompt::rules(work, prompt::EDITOR)),
        ModelMessage::user(words),
    ];
    let request = ModelRequest::new(&model.model, messages, model.max_tokens)
        .with_output(OutputShape::Edits { format });
    let unusable = |why: String| {
        Ok(gave_up(
            AttemptFailureClass::Malformed,
            why,
            &[],
            &model.name,
        ))
    };
    let mut talk = match CoderConversation::begin(chosen, request, tally) {
        Ok(talk) => talk,
        Err(why) => return unusable(why),
    };
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    let mut class = AttemptFailureClass::EditApply;
    for asked in 0..=REPAIRS {
        let answer = match talk.ask(ctx).await? {
            Ok(answer) => answer,
            Err(trouble) if trouble.unavailable => {
                let class = AttemptFailureClass::ModelUnavailable;
                return Ok(gave_up(class, trouble.message, &[], &model.name));
            }
            Err(trouble) => return unusable(trouble.message),
        };
        for edit in &answer.edits {
            fetch(&place, edit.path(), &mut texts, ctx).await?;
        }
        let now = |path: &str| {
            kept.get(path)
                .cloned()
                .or_else(|| texts.get(path).cloned()?)
        };
        let batch: EditBatchResult = apply_all(&answer.edits, now);
        kept.extend(batch.files.clone());
        let response = talk.response.take();
        if !batch.is_whole() {
            class = AttemptFailureClass::EditApply;
            last = batch
                .failures()
                .map(|(_, error)| error.to_string())
                .collect::<Vec<_>>()
                .join("\n");
            let again = response.and_then(|said| ask_edits_again(&talk.shaped, &said, &batch));
            match again {
                Some(again) => talk.shaped = again,
                None => break,
            }
            continue;
        }
        let broken = batch.broken(|path| texts.get(path).cloned()?);
        if let Some((path, SyntaxVerdict::Broken { .. })) = broken.first() {
            class = AttemptFailureClass::Syntax;
            last = format!("{path} does not parse with these edits: {:?}", broken[0].1);
            kept.clear();
            if let Some(said) = response {
                talk.shaped = ask_again(&talk.shaped, &said, &AnswerFault::BadEdits(last.clone()));
            }
            continue;
        }
        // Small models like to hand back what they were shown.
        let same = |(path, text): (&String, &String)| {
            texts.get(path).and_then(Option::as_ref) == Some(text)
        };
        if asked < REPAIRS && kept.iter().all(same) {
            if let Some(said) = response {
                let fault = AnswerFault::BadEdits(UNCHANGED.to_owned());
                talk.shaped = ask_again(&talk.shaped, &said, &fault);
            }
            kept.clear();
            continue;
        }
        return finish(&place, &kept, &texts, model, ctx).await;
    }
    Ok(gave_up(class, last, &[], &model.name))
}

/// Writes the files that differ.
async fn finish(
    place: &WorkspaceId,
    kept: &BTreeMap<String, String>,
    texts: &FileTexts,
    model: &ModelChoice,
    ctx: &mut NodeContext<'_>,
) -> NodeVisitFuture<CodingGraph> {
    let mut written = Vec::new();
    for (path, text) in kept {
        if texts.get(path).and_then(Option::as_ref) == Some(text) {
            continue;
        }
        let action = ToolAction::WriteFile(WriteFile {
            path: path.clone(),
            content: text.clone(),
            executable: false,
        });
        let effect = RunEffect::Act {
            workspace: place.clone(),
            action,
            shown: None,
        };
        let said: Reply = ctx.effect(effect.request()).await?;
        if said.failed {
            let named = [path.clone()];
            let class = said
                .refused
                .map_or(AttemptFailureClass::EditApply, ToolRefusal::class);
            return Ok(gave_up(class, said.text, &named, &model.name));
        }
        written.push(path.as_str());
    }
    if written.is_empty() {
        return Ok(done(
            RunNodeExit::NoOp,
            &model.name,
            "no edit changes anything".to_owned(),
        ));
    }
    Ok(done(
        RunNodeExit::Edits,
        &model.name,
        format!("edited {}", written.join(", ")),
    ))
}

/// A file, read once.
async fn fetch(
    place: &WorkspaceId,
    path: &str,
    texts: &mut FileTexts,
    ctx: &mut NodeContext<'_>,
) -> Result<Option<String>, VisitStop> {
    if let Some(known) = texts.get(path) {
        return Ok(known.clone());
    }
    let effect = RunEffect::Fetch {
        workspace: place.clone(),
        path: path.to_owned(),
    };
    let text: Option<String> =
        crate::nodes::tried(ctx.effect(effect.request()).await)?.unwrap_or(None);
    texts.insert(path.to_owned(), text.clone());
    Ok(text)
}

/// A file as this format wants it shown.
fn view(format: EditFormat, path: &str, text: &str) -> String {
    match format {
        EditFormat::SearchReplace | EditFormat::Whole => text.to_owned(),
        EditFormat::LineRange => anchor::show(text),
        EditFormat::Function => functions::show(path, text),
    }
}
