//! The conversation: whose turn it is, and what comes of what is typed.

mod denials;
mod orders;

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::Receiver;

use lula_agents::chat::{ChatChoice, TurnEnd};
use lula_host::HostError;
use lula_host::chat::{ChatSession, ChatView, ChatWait, Heard};
use lula_host::report::{Notice, RunReport};
use lula_host::story::evidence;
use lula_host::story::facts::spend;
use lula_host::text::{plain, visible};
use lula_protocol::{ApprovalDecision, ApprovalId, RunExit};

use crate::ChatSetup;
use crate::code::size;
use crate::commands::Said;
use crate::editor::{LineEditor, Typed};
use crate::markdown::Markdown;
use crate::questions::{self, Agreement, ChatRule};
use crate::raw::RawKeys;
use crate::screen::ChatScreen;
use crate::style::{BAD, DIM, GOOD, NAME, STRONG, WARN, paint, wrapped};
use crate::told;
use crate::working::{self, TurnPause, Wish, WorkingView};

/// So often a driver that died is followed by another one.
const DRIVERS: u32 = 3;
/// Most files that are completed after `@`.
const FILES: usize = 20_000;
/// Most lines of a command's output that are shown.
const OUTPUT: usize = 60;

/// A conversation.
pub(crate) struct Talk<'a> {
    setup: &'a ChatSetup<'a>,
    screen: ChatScreen,
    editor: LineEditor,
    /// What is typed while no line is read waits here, and never on the screen.
    raw: RawKeys,
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
            raw: RawKeys::take().map_err(terminal)?,
            chat: None,
            unsent: String::new(),
            rules: Vec::new(),
            offered: BTreeSet::new(),
            granted: Vec::new(),
            commits: false,
            interrupted: false,
            exit: RunExit::Verified,
        };
        match &setup.run {
            Some(name) => talk.resume(name)?,
            None => {
                let task = (setup.task)("").ok();
                let rows = told::greeting(&setup.repository, task.as_ref(), talk.screen.columns());
                talk.print(&rows)?;
            }
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
        self.raw.again().map_err(terminal)?;
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

    /// Tells what the run came to rest with, as far as it was not seen as it came.
    fn rested(&mut self) -> Result<(), HostError> {
        let columns = self.screen.columns();
        let Some(chat) = &mut self.chat else {
            return Ok(());
        };
        let view = chat.session.view()?;
        let Some(state) = view.known.state.chat.as_deref() else {
            return Ok(());
        };
        let mut rows = Vec::new();
        let mut changed = false;
        if state.turns > chat.turns {
            chat.turns = state.turns;
            let unseen = unseen(&state.words, &chat.said);
            chat.said.clear();
            let mut markdown = Markdown::default();
            rows.extend(unseen.lines().flat_map(|line| markdown.line(line, columns)));
            match &state.ended {
                Some(TurnEnd::Stopped) => {
                    rows.push(paint(WARN, "■ stopped; what was done is kept"))
                }
                Some(TurnEnd::Refused) => {
                    rows.push(paint(WARN, "■ refused; the model waits for you"))
                }
                Some(TurnEnd::OutOfSteps) => {
                    rows.push(paint(
                        WARN,
                        "■ the turn has no steps left; say `go on` for more",
                    ));
                }
                Some(TurnEnd::Failed { why }) => {
                    rows.extend(wrapped(BAD, &format!("✗ {}", plain(why, 800)), columns));
                }
                Some(TurnEnd::Answered) | None => {}
            }
            changed = true;
        } else if state.number > chat.number
            && let Some(shown) = &state.shown
        {
            let lines: Vec<String> = shown.lines().filter_map(unframed).collect();
            let left = lines.len().saturating_sub(OUTPUT);
            let text = |line: &str| visible(&line.replace('\t', "    "));
            rows.extend(
                lines
                    .iter()
                    .skip(left)
                    .map(|line| format!("  {}", text(line))),
            );
            if left > 0 {
                rows.insert(0, paint(DIM, format!("  … {left} lines before")));
            }
            changed = true;
        }
        chat.number = state.number;
        let over = matches!(view.wait, ChatWait::Over);
        if changed && !over && !state.points.is_empty() && chat.session.ask_change() {
            match working::change(&chat.heard) {
                Some((diff, files)) if !files.is_empty() => {
                    let text = format!("{} changed", size(&diff, files.len()));
                    rows.push(paint(
                        DIM,
                        format!("{text} · /diff · /test · /commit · /undo"),
                    ));
                }
                _ => {}
            }
        }
        self.print(&rows)?;
        if over {
            return Ok(());
        }
        self.offer_grants()
    }

    /// A question of the runner: what is shown is what is done.
    fn approve(
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

    fn choose(&mut self, question: &str, options: &[String]) -> Result<Then, HostError> {
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
    fn deliver(&mut self, reason: &str) -> Result<Then, HostError> {
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

    fn budget(&mut self, text: &str) -> Result<Then, HostError> {
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

    /// The run is over: tells what came of it. What is said next begins another one.
    fn over(&mut self) -> Result<Then, HostError> {
        let Some(mut chat) = self.chat.take() else {
            return Ok(Then::Leave);
        };
        let view = chat.session.view()?;
        chat.session.leave();
        let report = view.report();
        self.exit = report.exit;
        let rows = ended(&report, &view);
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

/// A line without what only tells a model where output begins and ends, or that nothing went wrong.
fn unframed(line: &str) -> Option<String> {
    const FRAMES: [&str; 6] = [
        "exit status 0",
        "<stdout>",
        "</stdout>",
        "<stderr>",
        "</stderr>",
        "</test>",
    ];
    if FRAMES.contains(&line.trim_end()) {
        return None;
    }
    let test = line.strip_prefix("<test name=\"");
    let test = test.and_then(|rest| rest.strip_suffix("\">"));
    Some(test.unwrap_or(line).to_owned())
}

/// What the model said that was not seen as it came.
fn unseen<'t>(words: &'t str, said: &str) -> &'t str {
    let seen = said.trim();
    if seen.is_empty() {
        return words;
    }
    if seen.ends_with(words.trim()) {
        return "";
    }
    // What stands in a call is not streamed: it follows the words of the answer.
    let paragraphs = words.match_indices("\n\n").map(|(at, _)| at);
    let mut paragraphs: Vec<usize> = paragraphs.collect();
    paragraphs.reverse();
    let told = paragraphs
        .into_iter()
        .find(|at| seen.ends_with(words[..*at].trim()));
    told.map_or(words, |at| words[at..].trim_start())
}

/// What came of a run that is over.
fn ended(report: &RunReport, view: &ChatView) -> Vec<String> {
    let style = match report.exit {
        RunExit::Verified => GOOD,
        RunExit::Inconclusive => WARN,
        _ => BAD,
    };
    let word = paint(style, format!("{}:", report.word()));
    let mut rows = vec![format!("{word} {}", plain(&report.summary, 400))];
    for (name, text) in evidence::rows(&view.known.state) {
        rows.push(paint(DIM, format!("{name}: {}", visible(&text))));
    }
    for notice in report.delivery() {
        rows.push(match notice {
            Notice::Fact(text) => visible(&text),
            Notice::Hint(text) => paint(DIM, visible(&text)),
        });
    }
    rows
}

/// The files of a repository, as far as git does not ignore them.
fn files(repository: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(repository).hidden(true).build();
    let files = walk.filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let name = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(repository).ok()?;
        path.to_str().map(str::to_owned)
    };
    files.filter_map(name).take(FILES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_streamed_is_not_said_again() {
        assert_eq!(unseen("It works.", "Let me look.It works."), "");
        assert_eq!(unseen("It works.", ""), "It works.");
        assert_eq!(unseen("It works.\n\nSummary.", "It works."), "Summary.");
        assert_eq!(unseen("Another.", "It works."), "Another.");
    }
}
