//! What scripted models say and do.

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

/// A tool with its arguments.
pub(crate) type Act = (&'static str, Value);

/// A turn of these calls, for requests that hold something.
pub(crate) fn acts(when: &str, calls: &[Act]) -> ScriptTurn {
    let call = calls.iter().map(|(name, arguments)| ScriptedCall {
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    ScriptTurn {
        when: Some(when.to_owned()),
        call: call.collect(),
        ..ScriptTurn::default()
    }
}

/// The same, and that it is done, where nothing else says so.
pub(crate) fn does(when: &str, calls: &[Act]) -> ScriptTurn {
    let submit = ("submit", json!({"summary": "done"}));
    let has_end = calls.iter().any(|(name, _)| *name == "submit");
    let mut calls = calls.to_vec();
    calls.extend((!has_end).then_some(submit));
    acts(when, &calls)
}

/// A turn as often as it is asked for.
pub(crate) fn always(turn: ScriptTurn) -> ScriptTurn {
    ScriptTurn {
        times: Some(0),
        ..turn
    }
}

/// A turn that is answered only when a request has come that holds this.
pub(crate) fn after(text: &str, turn: ScriptTurn) -> ScriptTurn {
    ScriptTurn {
        after: Some(text.to_owned()),
        ..turn
    }
}

pub(crate) fn server(turns: Vec<ScriptTurn>) -> MockModelServer {
    MockModelServer::start(ModelScript { turn: turns }).unwrap()
}
