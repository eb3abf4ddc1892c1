//! The conversation with a coder, kept while another attempt may go on in it.

use lula_models::normal::{MessagePart, ModelMessage};
use serde::{Deserialize, Serialize};

/// A conversation that ended with a change handed in. The next attempt can go on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenConversation {
    /// The model it is with.
    pub by: String,
    /// Everything that was said, the model's last answer included.
    pub messages: Vec<ModelMessage>,
    /// Results of the last calls that the model was not told yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<MessagePart>,
    /// The id of the call that handed in; none where the model only stopped calling tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
}
