//! Trying a model out: what `lula models test` does.

use serde_json::json;

use crate::client::{CallPatience, ModelClient};
use crate::error::ModelError;
use crate::name::ModelEndpoint;
use crate::normal::{ModelMessage, ModelRequest, ModelTool, OutputShape, TokenUsage};
use crate::output::{OutputCapability, read, shape};
use crate::spend::SpendAccount;

/// What a model was seen to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelProbe {
    /// It answered in words, or why not.
    pub words: Result<(), ModelError>,
    /// It called an offered tool by itself.
    pub tool_calls: bool,
    /// Its server held it to a JSON schema.
    pub json_schema: bool,
    /// Its server said what it used.
    pub counts: bool,
    /// What the trial used, as far as the server said.
    pub usage: TokenUsage,
    /// The capability to use it with.
    pub capability: OutputCapability,
}

/// Asks three small questions.
pub async fn probe(
    client: &ModelClient,
    endpoint: &ModelEndpoint,
    model: &str,
    patience: CallPatience,
    purse: &dyn SpendAccount,
) -> ModelProbe {
    let mut probe = ModelProbe {
        words: Ok(()),
        tool_calls: false,
        json_schema: false,
        counts: false,
        usage: TokenUsage::default(),
        capability: OutputCapability::Text,
    };
    let ask = |text: &str| {
        let mut request = ModelRequest::new(model, vec![ModelMessage::user(text)], 64);
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
    let request = ask("Which day has the number 3? Call the tool.").with_tools(vec![ModelTool {
        name: "pick_day".into(),
        description: "Picks a day by its number.".into(),
        parameters: json!({"type": "object", "required": ["number"],
            "properties": {"number": {"type": "integer"}}}),
    }]);
    let exchange = client
        .complete(endpoint, &request, patience, purse, &mut |_| {})
        .await;
    if let (Ok(response), Ok(shaped)) = (
        exchange.result,
        shape(&request, OutputCapability::ToolCalls),
    ) {
        probe.add(response.usage);
        let native = response.calls().next().is_some();
        probe.tool_calls = native && read(&shaped, &response).is_ok();
    }
    let schema = json!({"type": "object", "required": ["color"], "additionalProperties": false,
        "properties": {"color": {"enum": ["red", "green"]}}});
    // The question asks for what the schema forbids: only a server that holds the model to the
    // schema answers within it.
    let request =
        ask("Write the word blue as plain text, without JSON.").with_output(OutputShape::Json {
            name: "color".into(),
            schema,
        });
    let exchange = client
        .complete(endpoint, &request, patience, purse, &mut |_| {})
        .await;
    if let (Ok(response), Ok(shaped)) = (
        exchange.result,
        shape(&request, OutputCapability::JsonSchema),
    ) {
        probe.add(response.usage);
        probe.json_schema = read(&shaped, &response).is_ok();
    }
    probe.capability = if probe.tool_calls {
        OutputCapability::ToolCalls
    } else if probe.json_schema {
        OutputCapability::JsonSchema
    } else {
        OutputCapability::Text
    };
    probe
}

impl ModelProbe {
    fn add(&mut self, usage: Option<TokenUsage>) {
        let Some(usage) = usage else { return };
        self.usage.input = self.usage.input.saturating_add(usage.input);
        self.usage.output = self.usage.output.saturating_add(usage.output);
    }
}
