//! Getting a usable answer from models of any strength: shaping the question to what the model
//! can do, and reading what it says without ever guessing an action.

pub mod capability;
pub mod gbnf;
pub mod lenient;
pub mod read;
pub mod schema;
pub mod shape;
pub mod text_calls;

pub use capability::OutputCapability;
pub use read::{AnswerFault, ModelAnswer, ask_again, ask_edits_again, read};
pub use shape::{ShapedRequest, shape};
