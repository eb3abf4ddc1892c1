//! What the sandbox was denied over the network, and the smallest grant that would have let it through.

use std::collections::BTreeSet;

use lula_host::HostError;
use lula_host::network::grants;
use lula_host::network::journal::{NetworkLogEntry, NetworkLogFilter};
use lula_host::text::visible;

use super::{Talk, terminal};
use crate::questions;
use crate::screen::ChatScreen;
use crate::style::{BAD, GOOD, WARN, paint};

/// Most connections that are looked at.
const LINES: usize = 500;
/// Most names that are asked about at once: a command can try any number.
const ASKED: usize = 3;

/// The rule that would have let a connection through, without the flag that names it.
fn rule_of(entry: &NetworkLogEntry) -> Option<String> {
    let denial = entry.record.denial.as_ref()?;
    let rule = denial.grant.as_deref()?;
    Some(rule.strip_prefix("--net ").unwrap_or(rule).to_owned())
}

impl Talk<'_> {
    /// Asks about each name that was denied since it was asked last.
    pub(super) fn offer_grants(&mut self) -> Result<(), HostError> {
        let Some(chat) = &self.chat else {
            return Ok(());
        };
        let run = chat.session.run().to_string();
        let filter = NetworkLogFilter {
            door: Some(&run),
            denied: true,
            lines: LINES,
        };
        let entries = filter.read(self.setup.installation)?;
        let rules: BTreeSet<String> = entries.iter().filter_map(rule_of).collect();
        let mut asked = 0;
        for rule in rules {
            if !self.offered.insert(rule.clone()) {
                continue;
            }
            asked += 1;
            if asked > ASKED {
                let text = "more names were denied: /net lists them";
                self.print(&[paint(WARN, text)])?;
                return Ok(());
            }
            self.offer(&run, &rule)?;
        }
        Ok(())
    }

    fn offer(&mut self, run: &str, rule: &str) -> Result<(), HostError> {
        ChatScreen::bell();
        let question = format!("The sandbox was denied {}.", visible(rule));
        let keys = [
            ('g', "grant exactly this to this chat".to_owned()),
            ('n', "no".to_owned()),
        ];
        let answer = questions::key(&mut self.screen, &question, &keys).map_err(terminal)?;
        if answer == Some('g') {
            self.grant_now(run, rule)?;
        }
        Ok(())
    }

    /// Lets the sandboxes of a run reach one more name.
    pub(super) fn grant_now(&mut self, run: &str, rule: &str) -> Result<(), HostError> {
        match grants::change(run, rule, false, self.setup.installation) {
            Ok(_) => {
                self.granted.push(rule.to_owned());
                let text = format!("granted to the sandboxes of this chat: {}", visible(rule));
                self.print(&[paint(GOOD, text)])
            }
            Err(error) => self.print(&[paint(BAD, visible(&error.to_string()))]),
        }
    }

    /// What was granted since the model had its last turn, before what is said to it.
    pub(super) fn with_grants(&mut self, text: &str) -> String {
        if self.granted.is_empty() {
            return text.to_owned();
        }
        let granted = std::mem::take(&mut self.granted).join(", ");
        format!("[Commands can reach {granted} from now on.]\n\n{text}")
    }
}
