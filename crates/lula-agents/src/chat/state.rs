//! What a chat adds up to. Pure.

use lula_models::normal::{MessagePart, MessageRole, ModelMessage};
use serde::{Deserialize, Serialize};

use super::{ChatEvent, ChatTurn, TurnEnd};
use crate::work::OpenConversation;

/// What a chat adds up to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatState {
    /// How many things happened in it.
    pub number: u32,
    /// Whether anything was said yet.
    pub begun: bool,
    /// Everything that was said between person and model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Box<OpenConversation>>,
    /// What the model is told with its next turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// How many turns the model had.
    pub turns: u32,
    /// The model's last words, and how its last turn ended.
    pub words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TurnEnd>,
    /// What the model said at the end of the last turn that changed something.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub made: String,
    /// What a person is shown of what they chose last: output, or why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Snapshots of the files, the oldest first: each from before something changed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<String>,
    /// At which of them the files are; none where they are as they were changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<usize>,
    /// Whether the change is being verified to be delivered, and also without proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committing: Option<bool>,
    /// Whether the search without a model works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairing: bool,
}

impl ChatState {
    /// A chat that begins with words, or without.
    pub(crate) fn begin(silent: bool) -> Self {
        Self {
            begun: !silent,
            ..Self::default()
        }
    }

    /// Takes one event into account. What is said first of all is the task, which the caller keeps.
    pub(crate) fn apply(&mut self, event: &ChatEvent) {
        self.number += 1;
        if !matches!(event, ChatEvent::Kept { .. }) {
            self.shown = None;
        }
        match event {
            ChatEvent::Said { text } => {
                if self.begun {
                    self.untold.push(text.clone());
                }
                self.begun = true;
            }
            ChatEvent::Ran {
                command, output, ..
            } => {
                self.shown = Some(output.clone());
                self.untold.push(format!(
                    "The person you work for ran {command:?} in the workspace:\n<output>\n{output}\n</output>"
                ));
            }
            ChatEvent::TurnEnded { turn } => self.turn_ended(turn),
            ChatEvent::Kept { snapshot } => {
                if let Some(at) = self.at.take() {
                    self.points.truncate(at);
                }
                self.points.push(snapshot.clone());
            }
            ChatEvent::Returned { to, tip } => {
                self.points.extend(tip.clone());
                let back = self.at.is_none_or(|at| *to < at);
                let done = if back { "taken back" } else { "brought back" };
                self.shown = Some(format!("what was changed last is {done}"));
                self.at = Some(*to);
                self.untold.push(
                    "The person you work for took changes back or brought them back: the files are not as \
                     you left them. Read what matters again."
                        .to_owned(),
                );
            }
            ChatEvent::Committing { unverified } => self.committing = Some(*unverified),
            ChatEvent::Repairing => self.repairing = true,
            ChatEvent::Noted { text, told } => {
                self.shown = Some(text.clone());
                if *told {
                    self.untold.push(text.clone());
                }
            }
        }
    }

    fn turn_ended(&mut self, turn: &ChatTurn) {
        self.turns += 1;
        self.untold.clear();
        self.conversation = Some(Box::new(turn.conversation.clone()));
        self.words.clone_from(&turn.words);
        if turn.changed {
            self.made.clone_from(&turn.words);
        }
        self.ended = Some(turn.ended.clone());
    }

    /// A verification, or a search, brought the change back to the person.
    pub(crate) fn came_back(&mut self, why: &str) {
        self.committing = None;
        self.repairing = false;
        self.shown = Some(why.to_owned());
        self.untold.push(format!("The change was judged: {why}"));
    }

    /// Whether a change of which nothing shows that it is right may be delivered.
    pub(crate) fn takes_unverified(&self) -> bool {
        self.committing == Some(true)
    }

    /// The name for the next snapshot.
    pub(crate) fn next_point(&self) -> String {
        format!("chat-{}", self.number)
    }

    /// Where one step back leads; none where nothing was changed before.
    pub fn back(&self) -> Option<usize> {
        match self.at {
            Some(at) => at.checked_sub(1),
            None => self.points.len().checked_sub(1),
        }
    }

    /// Where one step forward leads.
    pub fn forward(&self) -> Option<usize> {
        let next = self.at? + 1;
        (next < self.points.len()).then_some(next)
    }

    /// The conversation so far with what the model was not told yet, at its end.
    pub(crate) fn messages(&self, begin: impl FnOnce() -> Vec<ModelMessage>) -> Vec<ModelMessage> {
        let mut parts = Vec::new();
        let mut messages = match &self.conversation {
            Some(open) => {
                parts.clone_from(&open.untold);
                if let Some(id) = &open.submitted {
                    parts.push(MessagePart::Result {
                        id: id.clone(),
                        name: crate::coder::SUBMIT.to_owned(),
                        content: "The person you work for sees it and answers.".to_owned(),
                        failed: false,
                    });
                }
                open.messages.clone()
            }
            None => begin(),
        };
        let goes_on = messages
            .last()
            .is_some_and(|last| last.role == MessageRole::User);
        for (at, text) in self.untold.iter().enumerate() {
            // Some providers join the texts of a message as they are.
            let apart = if at > 0 || goes_on { "\n\n" } else { "" };
            parts.push(MessagePart::text(format!("{apart}{text}")));
        }
        if parts.is_empty() {
            return messages;
        }
        match messages.last_mut() {
            Some(last) if goes_on => last.parts.extend(parts),
            _ => messages.push(ModelMessage {
                role: MessageRole::User,
                parts,
                cache_here: false,
            }),
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(chat: &mut ChatState) {
        let snapshot = chat.next_point();
        chat.apply(&ChatEvent::Kept { snapshot });
    }

    #[test]
    fn changes_are_taken_back_and_brought_back_one_by_one() {
        let mut chat = ChatState::begin(false);
        assert_eq!(chat.back(), None);
        kept(&mut chat);
        kept(&mut chat);
        assert_eq!((chat.back(), chat.forward()), (Some(1), None));
        let tip = Some(chat.next_point());
        chat.apply(&ChatEvent::Returned { to: 1, tip });
        assert_eq!((chat.back(), chat.forward()), (Some(0), Some(2)));
        chat.apply(&ChatEvent::Returned { to: 0, tip: None });
        assert_eq!((chat.back(), chat.forward()), (None, Some(1)));
        chat.apply(&ChatEvent::Returned { to: 1, tip: None });
        // What comes now goes on from there: what was taken back is gone.
        kept(&mut chat);
        assert_eq!((chat.points.len(), chat.at), (2, None));
        assert_eq!(chat.forward(), None);
    }

    #[test]
    fn the_model_is_told_once_what_was_said_since_its_turn() {
        let mut chat = ChatState::begin(false);
        let open = OpenConversation {
            by: "a/model".to_owned(),
            messages: vec![ModelMessage::user("the task")],
            untold: Vec::new(),
            submitted: Some("call-1".to_owned()),
        };
        let turn = ChatTurn {
            conversation: open,
            words: "done".to_owned(),
            ended: TurnEnd::Answered,
            changed: true,
        };
        chat.apply(&ChatEvent::TurnEnded {
            turn: Box::new(turn),
        });
        chat.apply(&ChatEvent::Ran {
            command: "ls".to_owned(),
            output: "a.py".to_owned(),
            failed: false,
        });
        chat.apply(&ChatEvent::Said {
            text: "and the other one".to_owned(),
        });
        let messages = chat.messages(Vec::new);
        let last = messages.last().unwrap();
        assert!(
            matches!(last.parts[1], MessagePart::Result { .. }),
            "{last:?}"
        );
        let words = last.words();
        assert!(
            words.contains("ran \"ls\"") && words.contains("and the other one"),
            "{words}"
        );
    }

    #[test]
    fn what_is_said_first_is_the_task_and_not_said_twice() {
        let mut chat = ChatState::begin(true);
        chat.apply(&ChatEvent::Said {
            text: "add a flag".to_owned(),
        });
        assert!(chat.untold.is_empty() && chat.begun);
    }
}
