//! The commands of this program.

use std::fs::File;
use std::path::PathBuf;

use lula_agents::chat::ChatChoice;
use lula_host::HostError;
use lula_host::network::journal::NetworkLogFilter;
use lula_host::text::visible;

use super::{Talk, Then, terminal};
use crate::code::{diff_rows, size};
use crate::questions;
use crate::style::{BAD, DIM, GOOD, WARN, paint};
use crate::{told, working};

/// Most connections that are listed.
const CONNECTIONS: usize = 20;

impl Talk<'_> {
    /// Does what a command says.
    pub(super) fn command(&mut self, name: &str, rest: &str) -> Result<Then, HostError> {
        match name {
            "/diff" => self.diff()?,
            "/test" => return self.order(ChatChoice::Test, ""),
            "/commit" if rest.is_empty() => return self.started(ChatChoice::Commit),
            "/commit" if rest == "anyway" => return self.started(ChatChoice::Deliver),
            "/commit" => self.tell(WARN, "/commit, or /commit anyway")?,
            "/undo" => return self.started(ChatChoice::Undo),
            "/redo" => return self.started(ChatChoice::Redo),
            "/repair" => return self.order(ChatChoice::Repair, ""),
            "/model" if !rest.is_empty() => {
                let rest = rest.to_owned();
                return self.order(ChatChoice::Model, &rest);
            }
            "/model" => {
                let task = match &self.chat {
                    Some(chat) => (*chat.session.view()?.known.state).clone().task,
                    None => (self.setup.task)("")?,
                };
                self.print(&told::models(&task))?;
            }
            "/cost" | "/context" => {
                let view = self.chat.as_ref().map(|chat| chat.session.view());
                let rows = match view.transpose()? {
                    Some(view) if name == "/cost" => told::cost(&view),
                    Some(view) => told::context(&view),
                    None => vec!["nothing was said yet".to_owned()],
                };
                self.print(&rows)?;
            }
            "/rules" => self.rules(rest)?,
            "/net" => self.net()?,
            "/grant" => self.grant(rest)?,
            "/export" => self.export(rest)?,
            "/help" => self.print(&told::help())?,
            "/leave" => return Ok(Then::Leave),
            "/discard" => return self.discard(),
            _ => {}
        }
        Ok(Then::Prompt)
    }

    fn tell(&mut self, style: anstyle::Style, text: &str) -> Result<(), HostError> {
        self.print(&[paint(style, visible(text))])
    }

    /// Something that needs a chat in which something was done.
    fn started(&mut self, choice: ChatChoice) -> Result<Then, HostError> {
        if self.chat.is_some() {
            return self.order(choice, "");
        }
        self.tell(DIM, "nothing was changed so far")?;
        Ok(Then::Prompt)
    }

    fn diff(&mut self) -> Result<(), HostError> {
        if let Some(chat) = &mut self.chat
            && !chat.session.has_driver()
        {
            chat.session.go_on()?;
            self.work()?;
        }
        let found = match &mut self.chat {
            Some(chat) => {
                chat.session.ask_change();
                working::change(&chat.heard)
            }
            None => Some((String::new(), Vec::new())),
        };
        let Some((diff, files)) = found else {
            return self.tell(BAD, "the change cannot be shown now");
        };
        if files.is_empty() {
            return self.tell(DIM, "nothing was changed so far");
        }
        let mut rows = diff_rows(&diff);
        rows.push(paint(DIM, size(&diff, files.len())));
        self.print(&rows)
    }

    fn rules(&mut self, rest: &str) -> Result<(), HostError> {
        if let Some(number) = rest.strip_prefix("forget") {
            let place = number.trim().parse::<usize>().ok();
            let place = place.and_then(|number| number.checked_sub(1));
            return match place.filter(|place| *place < self.rules.len()) {
                Some(place) => {
                    let rule = self.rules.remove(place);
                    self.tell(GOOD, &format!("forgotten: {}", rule.told()))
                }
                None => self.tell(WARN, "/rules forget N, with the number of a rule"),
            };
        }
        if self.rules.is_empty() {
            return self.tell(
                DIM,
                "nothing was agreed to for this chat; `lula policy list` shows the rules that ask",
            );
        }
        let rules = self.rules.iter().enumerate();
        let rows: Vec<String> = rules
            .map(|(at, rule)| format!("{}) {}", at + 1, rule.told()))
            .collect();
        self.print(&rows)
    }

    /// What the sandbox reached, and what it was denied.
    fn net(&mut self) -> Result<(), HostError> {
        let Some(chat) = &self.chat else {
            return self.tell(DIM, "nothing was run so far");
        };
        let filter = NetworkLogFilter {
            door: Some(chat.session.run().as_str()),
            denied: false,
            lines: CONNECTIONS,
        };
        let entries = filter.read(self.setup.installation)?;
        if entries.is_empty() {
            let text = "no connection was tried, or the sandbox has no network: begin the chat with \
                        --net NAME to let it reach one";
            return self.tell(DIM, text);
        }
        let rows: Vec<String> = entries
            .iter()
            .map(|entry| {
                let style = if entry.record.denial.is_some() {
                    BAD
                } else {
                    GOOD
                };
                let place = visible(&entry.place());
                format!(
                    "{} {place} {}",
                    paint(style, entry.verdict()),
                    paint(DIM, visible(&entry.detail()))
                )
            })
            .collect();
        self.print(&rows)
    }

    /// Lets the sandboxes of this chat reach one more name.
    fn grant(&mut self, rule: &str) -> Result<(), HostError> {
        let Some(chat) = &self.chat else {
            return self.tell(DIM, "nothing was run so far");
        };
        if rule.is_empty() {
            return self.tell(WARN, "/grant NAME[:PORT]");
        }
        let run = chat.session.run().to_string();
        self.grant_now(&run, rule)
    }

    fn export(&mut self, file: &str) -> Result<(), HostError> {
        let Some(chat) = &self.chat else {
            return self.tell(DIM, "nothing was said yet");
        };
        let usual = format!("{}.lula", chat.session.run().short());
        let path = PathBuf::from(if file.is_empty() { &usual } else { file });
        let written = File::create_new(&path).map_err(terminal);
        let exported = written.and_then(|file| chat.session.export(file));
        match exported {
            Ok(()) => self.tell(
                GOOD,
                &format!(
                    "{} has the whole record; `lula verify` checks it",
                    path.display()
                ),
            ),
            Err(error) => self.tell(BAD, &format!("{}: {error}", path.display())),
        }
    }

    fn discard(&mut self) -> Result<Then, HostError> {
        if self.chat.is_none() {
            self.tell(DIM, "nothing was changed so far")?;
            return Ok(Then::Prompt);
        }
        let keys = [('y', "yes, drop it".to_owned()), ('n', "no".to_owned())];
        let asked = questions::key(&mut self.screen, "Drop the change and end the run?", &keys);
        if asked.map_err(terminal)? != Some('y') {
            return Ok(Then::Prompt);
        }
        let Some(mut chat) = self.chat.take() else {
            return Ok(Then::Prompt);
        };
        let summary = chat.session.discard()?;
        self.tell(DIM, &format!("{summary}; what you say next begins anew"))?;
        Ok(Then::Prompt)
    }
}
