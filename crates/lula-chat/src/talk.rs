//! The conversation: whose turn it is, and what comes of what is typed.

mod asks;
mod denials;
mod orders;
mod rest;

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::Receiver;

use lula_agents::chat::ChatChoice;
use lula_host::HostError;
use lula_host::chat::{ChatSession, ChatView, ChatWait, Heard};
use lula_host::story::facts::spend;
use lula_host::text::{plain, visible};
use lula_protocol::RunExit;

use crate::ChatSetup;
use crate::commands::Said;
use crate::editor::{LineEditor, Typed};
use crate::markdown::Markdown;
use crate::questions::ChatRule;
use crate::raw::RawKeys;
use crate::screen::ChatScreen;
use crate::style::{BAD, DIM, NAME, STRONG, WARN, paint, wrapped};
use crate::told;
use crate::working::{self, TurnPause, Wish, WorkingView};

/// So often a driver that died is followed by another one.
const DRIVERS: u32 = 3;
/// Most files that are completed after `@`.
const FILES: usize = 20_000;

pub(crate) struct Talk<'a> {
    setup: &'a ChatSetup<'a>,
    screen: ChatScreen,
    editor: LineEditor,
    /// What is typed while no line is read waits here, and never on the screen.
    _raw: RawKeys,
    chat: Option<OpenChat<'a>>,
    /// What is sent with the prompt already: typed while the model worked, and not sent.
    unsent: String,
    rules: Vec<ChatRule>,
    /// Names that were denied and asked about.
    offered: BTreeSet<String>,
    /// What was granted that the model was not told yet.
    granted: Vec<String>,
    /// Whether the change is being verified.
    commits: bool,
    /// Whether Ctrl-C was pressed at an empty prompt.
    interrupted: bool,
    exit: RunExit,
}

/// The run that is talked with.
struct OpenChat<'a> {
    session: ChatSession<'a>,
    heard: Receiver<Heard>,
    /// What was streamed of the turn under way.
    said: String,
    /// How many turns were told.
    turns: u32,
    /// The last thing that was told of what the person chose.
    number: u32,
}

/// What follows something that was typed.
pub(crate) enum Then {
    /// It is the person's turn again.
    Prompt,
    /// The run goes on.
    Work,
    Leave,
}

fn terminal(error: io::Error) -> HostError {
    HostError::Answer(error)
}

impl<'a> Talk<'a> {
    pub(crate) fn begin(setup: &'a ChatSetup<'a>) -> Result<Self, HostError> {
        let state = setup.installation.state_directory()?.join("chat");
        std::fs::create_dir_all(&state).map_err(|error| HostError::NoDirectory {
            path: state.clone(),
            error,
        })?;
        let place =
            lula_protocol::Digest::of_bytes(setup.repository.as_os_str().as_encoded_bytes());
        let history = state.join(format!("history-{}.txt", place.short()));
        let files = files(&setup.repository);
        let mut talk = Self {
            setup,
            screen: ChatScreen::new(setup.colour),
            editor: LineEditor::new(&history, files, setup.colour),
            _raw: RawKeys::take().map_err(terminal)?,
            chat: None,
            unsent: String::new(),
            rules: Vec::new(),
            offered: BTreeSet::new(),
            granted: Vec::new(),
            commits: false,
            interrupted: false,
            exit: RunExit::Verified,
        };
        if let Some(name) = &setup.run {
            talk.resume(name)?;
        } else {
            let begun = (setup.task)("").ok();
            let rows = told::greeting(&setup.repository, begun.as_ref(), talk.screen.columns());
            talk.print(&rows)?;
        }
        Ok(talk)
    }

    fn resume(&mut self, name: &str) -> Result<(), HostError> {
        let setup = self.setup;
        let opened = ChatSession::resume(name, setup.flags.clone(), setup.installation)?;
        let view = opened.0.view()?;
        let columns = self.screen.columns();
        let mut rows = vec![format!(
            "{} {}",
            paint(STRONG, "lula"),
            paint(DIM, format!("goes on with {}", view.known.progress.run))
        )];
        rows.extend(wrapped(
            NAME,
            &format!("› {}", plain(&view.known.state.task.text, 300)),
            columns,
        ));
        let mut markdown = Markdown::default();
        rows.extend(
            view.words()
                .lines()
                .flat_map(|line| markdown.line(line, columns)),
        );
        self.print(&rows)?;
        let chat = view.known.state.chat.as_ref();
        self.chat = Some(OpenChat {
            session: opened.0,
            heard: opened.1,
            said: String::new(),
            turns: chat.map_or(0, |chat| chat.turns),
            number: chat.map_or(0, |chat| chat.number),
        });
        Ok(())
    }

    /// Talks until the person leaves.
    pub(crate) fn go(mut self) -> Result<RunExit, HostError> {
        if let Some(words) = self.setup.words.clone() {
            let columns = self.screen.columns();
            self.print(&wrapped(
                NAME,
                &format!("› {}", plain(&words, 600)),
                columns,
            ))?;
            if let Then::Work = self.say(&words)? {
                self.work()?;
            }
        }
        loop {
            let wait = match &self.chat {
                Some(chat) => chat.session.view()?.wait,
                None => ChatWait::YourTurn,
            };
            let then = match wait {
                ChatWait::YourTurn => self.prompt()?,
                ChatWait::Driver => {
                    self.chat_mut(|chat| chat.session.go_on())?;
                    Then::Work
                }
                ChatWait::Choice { question, options } => self.choose(&question, &options)?,
                ChatWait::Approval {
                    approval,
                    name,
                    reason,
                } => self.approve(&approval, &name, &reason)?,
                ChatWait::Delivery { reason } => self.deliver(&reason)?,
                ChatWait::Budget { text } => self.budget(&text)?,
                ChatWait::Other { text } => {
                    self.print(&[paint(BAD, visible(&text))])?;
                    Then::Leave
                }
                ChatWait::Over => self.over()?,
            };
            match then {
                Then::Prompt => {}
                Then::Work => {
                    if !self.work()? {
                        return self.leave();
                    }
                }
                Then::Leave => return self.leave(),
            }
        }
    }

    fn print(&mut self, rows: &[String]) -> Result<(), HostError> {
        self.screen.print(rows).map_err(terminal)
    }

    fn chat_mut<T>(
        &mut self,
        act: impl FnOnce(&mut OpenChat<'a>) -> Result<T, HostError>,
    ) -> Result<Option<T>, HostError> {
        self.chat.as_mut().map(act).transpose()
    }

    fn read(&mut self, begun: &str, right: &str) -> Result<Typed, HostError> {
        let typed = self.editor.read(begun, right);
        RawKeys::again().map_err(terminal)?;
        typed.map_err(terminal)
    }

    /// Reads what the person says, and does it.
    fn prompt(&mut self) -> Result<Then, HostError> {
        let view = self
            .chat
            .as_ref()
            .map(|chat| chat.session.view())
            .transpose()?;
        let right = view.as_ref().map_or_else(String::new, |view| {
            let model = view.known.state.task.models.first();
            let model = model.map(|model| visible(&model.model));
            let cost = spend(&view.report().spent);
            let parts: Vec<String> = model.into_iter().chain(cost).collect();
            parts.join(" · ")
        });
        let begun = std::mem::take(&mut self.unsent);
        let typed = self.read(&begun, &right)?;
        self.screen.measure();
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Ended => return Ok(Then::Leave),
            Typed::Interrupted if self.interrupted => return Ok(Then::Leave),
            Typed::Interrupted => {
                self.interrupted = true;
                self.print(&[paint(DIM, "Ctrl-C again, or Ctrl-D, leaves")])?;
                return Ok(Then::Prompt);
            }
        };
        self.interrupted = false;
        match Said::read(&line) {
            Said::Nothing => Ok(Then::Prompt),
            Said::Words(text) => self.say(&text),
            Said::Shell(command) => self.order(ChatChoice::Run, &command),
            Said::Command(name, rest) => self.command(name, &rest),
            Said::Unknown(name, near) => {
                let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                let text = format!("there is no {name}{near} /help lists the commands");
                self.print(&[paint(WARN, visible(&text))])?;
                Ok(Then::Prompt)
            }
        }
    }

    /// Says something to the model; in a new chat where there is none.
    fn say(&mut self, text: &str) -> Result<Then, HostError> {
        let named = |view: &ChatView| view.known.state.task.models.is_empty();
        let (silent, no_model) = match &self.chat {
            Some(chat) => (false, named(&chat.session.view()?)),
            None => (true, (self.setup.task)(text)?.models.is_empty()),
        };
        if no_model {
            let rows = told::without_model(self.screen.columns());
            self.print(&rows)?;
            return Ok(Then::Prompt);
        }
        if silent {
            self.open(text)?;
            self.chat_mut(|chat| chat.session.go_on())?;
            return Ok(Then::Work);
        }
        let text = self.with_grants(text);
        self.order(ChatChoice::Say, &text)
    }

    /// Begins the run of a chat.
    fn open(&mut self, text: &str) -> Result<(), HostError> {
        let setup = self.setup;
        let task = (setup.task)(text)?;
        let (session, heard) = ChatSession::begin(
            &task,
            setup.limits.clone(),
            setup.flags.clone(),
            setup.installation,
        )?;
        self.chat = Some(OpenChat {
            session,
            heard,
            said: String::new(),
            turns: 0,
            number: 0,
        });
        Ok(())
    }

    /// Chooses what comes next; begins the chat where there is none yet.
    fn order(&mut self, choice: ChatChoice, note: &str) -> Result<Then, HostError> {
        if self.chat.is_none() {
            self.open("")?;
            self.chat_mut(|chat| chat.session.go_on())?;
            // The person goes first: the run waits for what they choose.
            if !self.work()? {
                return Ok(Then::Leave);
            }
        }
        self.commits = matches!(choice, ChatChoice::Commit | ChatChoice::Deliver);
        self.chat_mut(|chat| chat.session.choose(choice, note))?;
        Ok(Then::Work)
    }

    /// Follows the run until it rests. Tells whether the person stays.
    fn work(&mut self) -> Result<bool, HostError> {
        let mut drivers = 0;
        loop {
            let Some(chat) = &mut self.chat else {
                return Ok(true);
            };
            let mut view = WorkingView::new(&mut self.screen, self.commits);
            let mut trouble = None;
            let (session, heard) = (&mut chat.session, &chat.heard);
            let paused = view.follow(
                heard,
                |wish| match wish {
                    Wish::StopStep => session.stop(false),
                    Wish::StopTurn => session.stop(true),
                    Wish::Change => {
                        session.ask_change();
                    }
                    Wish::Note(text) => trouble = session.steer(&text).err(),
                },
                &mut self.unsent,
            );
            chat.said.push_str(&view.said);
            if let Some(error) = trouble {
                return Err(error);
            }
            match paused.map_err(terminal)? {
                TurnPause::Rested => {
                    self.rested()?;
                    return Ok(true);
                }
                TurnPause::Left => return Ok(false),
                TurnPause::Failed(error) => {
                    chat.session.driver_gone();
                    self.exit = error.exit;
                    self.print(&working::failed(&error))?;
                    return Ok(false);
                }
                TurnPause::Gone => {
                    chat.session.driver_gone();
                    if chat.session.is_at_rest()? {
                        self.rested()?;
                        return Ok(true);
                    }
                    drivers += 1;
                    if drivers > DRIVERS {
                        let text = "the driver of the run ends again and again; see `lula logs`";
                        self.print(&[paint(BAD, text)])?;
                        self.exit = RunExit::Failed;
                        return Ok(false);
                    }
                    self.print(&[paint(WARN, "! the driver is gone; another one goes on")])?;
                    self.chat_mut(|chat| chat.session.go_on())?;
                }
            }
        }
    }

    /// The run is over: tells what came of it. What is said next begins another one.
    fn over(&mut self) -> Result<Then, HostError> {
        let Some(mut chat) = self.chat.take() else {
            return Ok(Then::Leave);
        };
        let view = chat.session.view()?;
        chat.session.leave();
        let report = view.report();
        self.exit = report.exit;
        let rows = rest::ended(&report, &view);
        self.print(&rows)?;
        Ok(Then::Prompt)
    }

    fn leave(mut self) -> Result<RunExit, HostError> {
        if let Some(mut chat) = self.chat.take() {
            let run = chat.session.run().clone();
            self.screen
                .draw(&[], vec![paint(DIM, "leaving")])
                .map_err(terminal)?;
            chat.session.leave();
            let text = format!("lula chat {}", run.short());
            let rows = [format!(
                "{} {}",
                paint(STRONG, text),
                paint(DIM, "  goes on; the change is held until then")
            )];
            self.print(&rows)?;
        }
        Ok(self.exit)
    }
}

/// The files of a repository, as far as git does not ignore them.
fn files(repository: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(repository).hidden(true).build();
    let files = walk.filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(repository).ok()?;
        // A name that would act on the terminal is not completed.
        let name = path.to_str().filter(|name| visible(name) == *name)?;
        Some(name.to_owned())
    };
    files.filter_map(name).take(FILES).collect()
}
