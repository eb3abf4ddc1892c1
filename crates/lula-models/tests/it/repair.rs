//! Weak models: what they get wrong is quoted back, twice at most, and never acted on.

use std::sync::Arc;

use lula_models::normal::OutputShape;
use lula_models::output::{AnswerFault, OutputCapability};
use lula_models::script::{ModelScript, ScriptPlayer, ScriptTurn, ScriptedCall};
use lula_models::spend::UnlimitedSpend;
use lula_models::wire::{StreamDelta, WireProtocol};
use lula_models::{AskedModel, ModelError};
use serde_json::json;

use crate::world::{client_on, endpoint, patience, question, read_file};

async fn ask(
    script: ModelScript,
    capability: OutputCapability,
    output: Option<OutputShape>,
) -> (AskedModel, Vec<StreamDelta>) {
    let (client, _) = client_on(Arc::new(ScriptPlayer::new(script)));
    let mut endpoint = endpoint(WireProtocol::Chat, "http://x");
    endpoint.capability = capability;
    let request = match output {
        Some(output) => question("go").with_output(output),
        None => question("go").with_tools(vec![read_file()]),
    };
    let mut deltas = Vec::new();
    let asked = client
        .ask_well(
            &endpoint,
            &request,
            patience(true),
            &UnlimitedSpend,
            &mut |delta| deltas.push(delta),
        )
        .await;
    (asked, deltas)
}

fn when(words: &str, say: &str) -> ScriptTurn {
    ScriptTurn {
        when: Some(words.into()),
        say: Some(say.into()),
        ..ScriptTurn::default()
    }
}

#[tokio::test]
async fn a_bad_call_is_quoted_back_and_the_next_one_counts() {
    let script = ModelScript::say(
        "<tool_call>{\"name\": \"open_file\", \"arguments\": {}}</tool_call>",
    )
    .then(when(
        "there is no tool \"open_file\"; the tools are read_file",
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file\": \"a\"}}</tool_call>",
    ))
    .then(when(
        "the field \"path\" is missing",
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
    ));
    let (asked, deltas) = ask(script, OutputCapability::Text, None).await;
    let answer = asked.result.unwrap();
    assert_eq!(answer.calls[0].arguments, json!({"path": "a"}));
    assert_eq!((asked.faults.len(), asked.tries.len()), (2, 3));
    assert_eq!(
        deltas
            .iter()
            .filter(|delta| **delta == StreamDelta::Discarded)
            .count(),
        2
    );
}

#[tokio::test]
async fn broken_native_arguments_are_quoted_back_too() {
    let broken = ScriptTurn {
        call: vec![ScriptedCall {
            name: "read_file".into(),
            arguments: json!("{\"path\": \"a"),
        }],
        ..ScriptTurn::default()
    };
    let script = ModelScript::default().then(broken).then(ScriptTurn {
        when: Some("the arguments of read_file are not JSON".into()),
        call: vec![ScriptedCall {
            name: "read_file".into(),
            arguments: json!({"path": "a"}),
        }],
        ..ScriptTurn::default()
    });
    let (asked, _) = ask(script, OutputCapability::ToolCalls, None).await;
    assert_eq!(asked.result.unwrap().calls.len(), 1);
}

#[tokio::test]
async fn a_model_that_never_learns_is_given_up_after_two_repairs() {
    let script = ModelScript::default().then(ScriptTurn {
        say: Some("I cannot decide.".into()),
        times: Some(0),
        ..ScriptTurn::default()
    });
    let output = OutputShape::Json {
        name: "n".into(),
        schema: json!({"type": "object"}),
    };
    let (asked, _) = ask(script, OutputCapability::Text, Some(output)).await;
    let error = asked.result.unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Unusable {
                asked: 3,
                fault: AnswerFault::NotJson(_),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!((asked.faults.len(), asked.tries.len()), (3, 3));
}

#[tokio::test]
async fn a_refusal_is_not_argued_with() {
    let script = ModelScript::default().then(ScriptTurn {
        stop: Some("filter".into()),
        say: Some("…".into()),
        ..ScriptTurn::default()
    });
    let (asked, _) = ask(script, OutputCapability::ToolCalls, None).await;
    assert_eq!(asked.tries.len(), 1);
    assert!(matches!(
        asked.result,
        Err(ModelError::Unusable {
            fault: AnswerFault::Declined(_),
            ..
        })
    ));
}

#[tokio::test]
async fn edits_that_cannot_be_read_are_asked_for_again() {
    let good = "calc.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    let script = ModelScript::say("calc.py\n<<<<<<< SEARCH\na\n=======\nb\n")
        .then(when(
            "is not ended with \">>>>>>> REPLACE\"",
            "I changed a to b.",
        ))
        .then(when("there is no block", good));
    let output = OutputShape::Edits {
        format: lula_edit::EditFormat::SearchReplace,
    };
    let (asked, _) = ask(script, OutputCapability::Text, Some(output)).await;
    assert_eq!(asked.result.unwrap().edits.len(), 1);
}
