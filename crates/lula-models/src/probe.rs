//! Trying a model out: what `lula models test` does.

use serde_json::json;

use crate::client::{Client, Patience};
use crate::error::ModelError;
use crate::name::Endpoint;
use crate::normal::{Message, ModelRequest, Output, Tool, Usage};
use crate::output::{Capability, read, shape};
use crate::spend::Purse;

/// What a model was seen to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// It answered in words, or why not.
    pub words: Result<(), ModelError>,
    /// It called an offered tool by itself.
    pub tool_calls: bool,
    /// Its server held it to a JSON schema.
    pub json_schema: bool,
    /// Its server said what it used.
    pub counts: bool,
    /// What the trial used, as far as the server said.
    pub usage: Usage,
    /// The capability to use it with.
    pub capability: Capability,
}

/// Asks three small questions.
pub async fn probe(
    client: &Client,
    endpoint: &Endpoint,
    model: &str,
    patience: Patience,
    purse: &dyn Purse,
) -> Probe {
    let mut probe = Probe {
        words: Ok(()),
        tool_calls: false,
        json_schema: false,
        counts: false,
        usage: Usage::default(),
        capability: Capability::Text,
    };
    let ask = |text: &str| {
        let mut request = ModelRequest::new(model, vec![Message::user(text)], 64);
        request.temperature = Some(0.0);
        request
    };
    let request = ask("Say the word ready and nothing else.");
    match client
        .complete(endpoint, &request, patience, purse, &mut |_| {})
        .await
        .result
    {
        Ok(response) => {
            probe.counts = response.usage.is_some();
            probe.add(response.usage);
        }
        Err(error) => {
            probe.words = Err(error);
            return probe;
        }
    }
    let request = ask("Which day has the number 3? Call the tool.").with_tools(vec![Tool {
        name: "pick_day".into(),
        description: "Picks a day by its number.".into(),
        parameters: json!({"type": "object", "required": ["number"],
            "properties": {"number": {"type": "integer"}}}),
    }]);
    let exchange = client
        .complete(endpoint, &request, patience, purse, &mut |_| {})
        .await;
    if let (Ok(response), Ok(shaped)) = (exchange.result, shape(&request, Capability::ToolCalls)) {
        probe.add(response.usage);
        let native = response.calls().next().is_some();
        probe.tool_calls = native && read(&shaped, &response).is_ok();
    }
    let schema = json!({"type": "object", "required": ["color"], "additionalProperties": false,
        "properties": {"color": {"enum": ["red", "green"]}}});
    // The question asks for what the schema forbids: only a server that holds the model to the
    // schema answers within it.
    let request =
        ask("Write the word blue as plain text, without JSON.").with_output(Output::Json {
            name: "color".into(),
            schema,
        });
    let exchange = client
        .complete(endpoint, &request, patience, purse, &mut |_| {})
        .await;
    if let (Ok(response), Ok(shaped)) = (exchange.result, shape(&request, Capability::JsonSchema)) {
        probe.add(response.usage);
        probe.json_schema = read(&shaped, &response).is_ok();
    }
    probe.capability = if probe.tool_calls {
        Capability::ToolCalls
    } else if probe.json_schema {
        Capability::JsonSchema
    } else {
        Capability::Text
    };
    probe
}

impl Probe {
    fn add(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        self.usage.input = self.usage.input.saturating_add(usage.input);
        self.usage.output = self.usage.output.saturating_add(usage.output);
    }
}
