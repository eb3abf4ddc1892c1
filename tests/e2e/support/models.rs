//! Models on a mock server: what they say and do.

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedCall};
use serde_json::{Value, json};

use super::env::{LulaEnv, Ran};
use super::repo::MENDED;

/// The models of a test.
pub(crate) struct Models;

impl Models {
    /// A model on a server that calls tools.
    pub(crate) fn strong(server: &MockModelServer) -> String {
        format!("anthropic@{}/v1/strong", server.url())
    }

    /// A model on a server that only writes text.
    pub(crate) fn weak(server: &MockModelServer) -> String {
        format!("llamacpp@{}/v1/weak", server.url())
    }

    /// A server whose models answer with these turns.
    pub(crate) fn scripted(turns: Vec<ScriptTurn>) -> MockModelServer {
        MockModelServer::start(ModelScript { turn: turns }).unwrap()
    }

    /// A model that mends the bug of [`super::Repo::buggy`], so many times.
    pub(crate) fn mending(times: usize) -> MockModelServer {
        let mut script = ModelScript::default();
        for _ in 0..times {
            script = script
                .then_call("edit_file", edit())
                .then_call("submit", json!({"summary": "done"}));
        }
        MockModelServer::start(script).unwrap()
    }
}

/// The edit that mends it.
pub(crate) fn edit() -> serde_json::Value {
    json!({"path": "items.py", "search": "    return items[len(items)]", "replace": MENDED})
}

/// A run by that model.
pub(crate) fn run_with(world: &LulaEnv, model: &str, task: &str, more: &[&str]) -> Ran {
    let fixed = [
        "run", "--json", "--task", task, "--model", model, "--coder", "model",
    ];
    world.run(&[&fixed[..], more].concat())
}

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
