//! What a run asks on its way, and the person's answers.

use lula_host::HostError;
use lula_host::text::plain;
use lula_protocol::{ApprovalDecision, ApprovalId};

use super::{Talk, Then, terminal};
use crate::editor::Typed;
use crate::questions::{self, Agreement};
use crate::style::{BAD, DIM, WARN, paint, wrapped};

impl Talk<'_> {
    /// A question of the runner: what is shown is what is done.
    pub(super) fn approve(
        &mut self,
        approval: &ApprovalId,
        name: &str,
        reason: &str,
    ) -> Result<Then, HostError> {
        let Some(chat) = &mut self.chat else {
            return Ok(Then::Leave);
        };
        let Some(question) = chat.session.question(approval)? else {
            let text = format!("{approval} cannot be answered here: `lula approvals` tells more");
            self.print(&[paint(BAD, text)])?;
            return Ok(Then::Leave);
        };
        let known = questions::remembered(&self.rules, name, &question).cloned();
        let agreed = match known {
            Some(rule) => {
                let text = format!("» {} (/rules)", rule.told());
                self.screen.print(&[paint(DIM, text)]).map_err(terminal)?;
                if rule.allows {
                    Agreement::Yes
                } else {
                    Agreement::No
                }
            }
            None => questions::approve(&mut self.screen, name, reason, &question, &mut self.rules)
                .map_err(terminal)?,
        };
        let decision = match agreed {
            Agreement::Yes => ApprovalDecision::Approve,
            Agreement::No => ApprovalDecision::Reject,
            Agreement::Later => return Ok(Then::Leave),
        };
        chat.session.decide(&question, decision)?;
        Ok(Then::Work)
    }

    pub(super) fn choose(&mut self, question: &str, options: &[String]) -> Result<Then, HostError> {
        let chosen = questions::choose(&mut self.screen, question, options).map_err(terminal)?;
        let Some(option) = chosen.and_then(|at| options.get(at)) else {
            return Ok(Then::Leave);
        };
        let mut note = String::new();
        if Some(option) == options.last() && options.len() > 1 {
            // The last answer stands for the person's own words.
            match self.read("", "your answer")? {
                Typed::Line(line) if !line.is_empty() => note = line,
                _ => return Ok(Then::Prompt),
            }
        }
        let option = option.clone();
        self.chat_mut(|chat| chat.session.answer(&option, &note))?;
        Ok(Then::Work)
    }

    /// The run asks before it delivers.
    pub(super) fn deliver(&mut self, reason: &str) -> Result<Then, HostError> {
        let rows = wrapped(
            WARN,
            &format!("? {}", plain(reason, 400)),
            self.screen.columns(),
        );
        self.print(&rows)?;
        let keys = [('y', "yes".to_owned()), ('n', "no".to_owned())];
        let asked = questions::key(&mut self.screen, "Deliver exactly this change?", &keys);
        let decision = match asked.map_err(terminal)? {
            Some('y') => ApprovalDecision::Approve,
            Some('n') => ApprovalDecision::Reject,
            _ => return Ok(Then::Leave),
        };
        self.chat_mut(|chat| chat.session.decide_delivery(decision))?;
        Ok(Then::Work)
    }

    pub(super) fn budget(&mut self, text: &str) -> Result<Then, HostError> {
        let rows = wrapped(
            WARN,
            &format!("? {}", plain(text, 400)),
            self.screen.columns(),
        );
        self.print(&rows)?;
        let keys = [('y', "twice as much".to_owned())];
        let asked = questions::key(&mut self.screen, "Raise the limit?", &keys);
        if asked.map_err(terminal)? != Some('y') {
            return Ok(Then::Leave);
        }
        self.chat_mut(|chat| chat.session.raise())?;
        Ok(Then::Work)
    }
}
