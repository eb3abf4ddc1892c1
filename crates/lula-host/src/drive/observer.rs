//! Who watches a run being driven: a terminal, a stream of a server, nothing at all.

use std::io;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_models::wire::StreamDelta;
use lula_protocol::ApprovalDecision;

use super::consent::RunApprovalQuestion;
use crate::story::{StoryEvent, StoryTeller};

/// Hears how a run goes, and answers what it asks. Each method does nothing where it is left out.
pub trait Observer: Send + Sync {
    /// Work on a run begins, whose log has so many events that need not be told again.
    fn begins(&self, _told: u64) {}

    /// The run was put down, for now or for good.
    fn rests(&self) {}

    /// The run goes into a node.
    fn visiting(&self, _node: &str) {}

    /// Something that takes a while is done.
    fn doing(&self, _what: &str) {}

    /// The same of an agent that works on a task.
    fn agent_doing(&self, _task: &str, _what: &str) {}

    /// A model's answer grows by this. For a display of the moment: what counts is in the log.
    fn answering(&self, _delta: &StreamDelta) {}

    /// Something is in the log.
    fn happened(&self, _moment: &StoryEvent, _teller: &StoryTeller) {}

    /// Something on the way that an observer should know.
    fn trouble(&self, _text: &str) {}

    /// Something that may surprise afterwards.
    fn warning(&self, _text: &str) {}

    /// Something only the curious want to know.
    fn detail(&self, _text: &str) {}

    /// What a person says to a question; nothing where there is no person to be asked now.
    fn decide(
        &self,
        _known: &RunState<CodingState>,
        _: &RunApprovalQuestion,
    ) -> io::Result<Option<ApprovalDecision>> {
        Ok(None)
    }
}

/// For a driver that is watched by its log alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
