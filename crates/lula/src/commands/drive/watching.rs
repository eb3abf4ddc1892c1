//! The terminal as the observer of a run.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::drive::Observer;
use lula_host::drive::consent::RunApprovalQuestion;
use lula_host::story::{StoryEvent, StoryTeller};
use lula_protocol::ApprovalDecision;

use super::ApprovalSource;
use crate::runs::view::LiveRunView;
use crate::term::{GOOD, TerminalScreen, WARN, paint, visible};

/// Shows a run while it is driven, and asks the person.
pub(super) struct Terminal {
    screen: TerminalScreen,
    answers: ApprovalSource,
    /// While the run is worked on.
    view: Mutex<Option<Arc<LiveRunView>>>,
}

impl Terminal {
    pub(super) fn new(screen: TerminalScreen, answers: ApprovalSource) -> Self {
        Self {
            screen,
            answers,
            view: Mutex::default(),
        }
    }

    fn show(&self, view: Option<LiveRunView>) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view.map(Arc::new);
    }

    fn viewed(&self, tell: impl FnOnce(&LiveRunView)) {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let view = view.clone();
        if let Some(view) = view {
            tell(&view);
        }
    }

    fn can_ask(&self) -> bool {
        !self.screen.is_json() && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Shows what is asked and reads the answer.
    fn ask(
        &self,
        known: &RunState<CodingState>,
        question: &RunApprovalQuestion,
    ) -> io::Result<Option<ApprovalDecision>> {
        if let Some(proposal) = &known.state.proposal {
            self.screen.write_patch(&proposal.diff)?;
        }
        if let Some(verdict) = &known.state.verdict {
            let text = format!("{}: {}", verdict.name(), visible(verdict.why()));
            self.screen.note(&text);
        }
        let mut screen = anstream::stderr();
        write!(
            screen,
            "{} {}. Agree to exactly this? yes, no, or later: ",
            paint(WARN, "?"),
            visible(&question.reason)
        )?;
        screen.flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(match line.trim().to_lowercase().as_str() {
            "yes" | "y" => Some(ApprovalDecision::Approve),
            "no" | "n" => Some(ApprovalDecision::Reject),
            _ => None,
        })
    }
}

impl Observer for Terminal {
    fn begins(&self, told: u64) {
        self.show(Some(LiveRunView::new(self.screen.live("starting"), told)));
    }

    fn rests(&self) {
        self.show(None);
    }

    fn visiting(&self, node: &str) {
        self.viewed(|view| view.visiting(node));
    }

    fn doing(&self, what: &str) {
        self.viewed(|view| view.doing(what));
    }

    fn agent_doing(&self, task: &str, what: &str) {
        self.viewed(|view| view.agent_doing(task, what));
    }

    fn happened(&self, moment: &StoryEvent, teller: &StoryTeller) {
        self.viewed(|view| view.happened(moment, teller));
    }

    fn trouble(&self, text: &str) {
        self.viewed(|view| view.warn(text));
    }

    fn warning(&self, text: &str) {
        self.screen.warn(text);
    }

    fn detail(&self, text: &str) {
        self.screen.detail(text);
    }

    fn decide(
        &self,
        known: &RunState<CodingState>,
        question: &RunApprovalQuestion,
    ) -> io::Result<Option<ApprovalDecision>> {
        match self.answers {
            ApprovalSource::Yes => {
                let text = format!("approved beforehand: {}", visible(&question.reason));
                self.screen.note(&format!("{} {text}", paint(GOOD, "»")));
                Ok(Some(ApprovalDecision::Approve))
            }
            ApprovalSource::Terminal if self.can_ask() => self.ask(known, question),
            ApprovalSource::Terminal => Ok(None),
        }
    }
}
