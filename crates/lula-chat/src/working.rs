//! While the model has its turn: its words and steps as they come, one line that says what is waited for,
//! and a line that the person types meanwhile.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use lula_host::chat::{DriverNews, Heard};
use lula_host::text::plain;
use lula_protocol::FailureReport;
use lula_protocol::units::rough_duration;

use crate::code::{diff_rows, size};
use crate::markdown::Markdown;
use crate::screen::ChatScreen;
use crate::story::{Moment, moment};
use crate::style::{BAD, DIM, NAME, PLAIN, STRONG, WARN, clipped, paint, wrapped};

/// How long keys are waited for before the news are looked at again.
const LOOK: Duration = Duration::from_millis(12);
/// How often the moving line moves.
const FRAME: Duration = Duration::from_millis(100);
/// Most news that are taken between two looks at the keyboard.
const AT_ONCE: usize = 512;
/// A second Escape within this time ends the turn.
const TWICE: Duration = Duration::from_secs(2);
/// Most rows of an unfinished line that move.
const PARTIAL: usize = 6;
/// Most rows of a diff that is shown while the model works.
const DIFF: usize = 200;
const TURNING: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Why the person's side does not follow the turn any more.
#[derive(Debug)]
pub(crate) enum TurnPause {
    /// The run waits, or is over.
    Rested,
    /// The driver is gone without a word.
    Gone,
    /// The driver could not go on.
    Failed(FailureReport),
    /// The person leaves the run to itself.
    Left,
}

/// What the person wants while the model works.
pub(crate) enum Wish {
    StopStep,
    StopTurn,
    Change,
    Note(String),
}

/// The turn as it is seen.
pub(crate) struct WorkingView<'a> {
    screen: &'a mut ChatScreen,
    markdown: Markdown,
    /// The line that is not whole yet.
    partial: String,
    /// What was streamed since the turn began: what the log holds of it is not printed again.
    pub(crate) said: String,
    thinking: bool,
    node: String,
    doing: String,
    /// What was looked at since the last row.
    looked: Vec<String>,
    /// The line that the person types.
    note: String,
    begun: Instant,
    escaped: Option<Instant>,
    stopping: Option<bool>,
    stay: Vec<String>,
    /// Whether a change is being verified: the first tests are those without it.
    commits: bool,
}

impl<'a> WorkingView<'a> {
    pub(crate) fn new(screen: &'a mut ChatScreen, commits: bool) -> Self {
        screen.measure();
        Self {
            screen,
            markdown: Markdown::default(),
            partial: String::new(),
            said: String::new(),
            thinking: false,
            node: String::new(),
            doing: String::new(),
            looked: Vec::new(),
            note: String::new(),
            begun: Instant::now(),
            escaped: None,
            stopping: None,
            stay: Vec::new(),
            commits,
        }
    }

    /// Follows the turn until it rests. What was typed and not sent is left in `unsent`.
    pub(crate) fn follow(
        &mut self,
        heard: &Receiver<Heard>,
        mut wish: impl FnMut(Wish),
        unsent: &mut String,
    ) -> io::Result<TurnPause> {
        let mut drawn = Instant::now();
        self.draw()?;
        let pause = loop {
            let mut news = false;
            if let Some(pause) = self.hear(heard, &mut news) {
                break pause;
            }
            let mut typed = false;
            while event::poll(if typed || news { Duration::ZERO } else { LOOK })? {
                typed = true;
                if let Some(pause) = self.key(event::read()?, &mut wish) {
                    std::mem::swap(unsent, &mut self.note);
                    self.finish()?;
                    return Ok(pause);
                }
            }
            if news || typed || drawn.elapsed() >= FRAME {
                drawn = Instant::now();
                self.draw()?;
            }
        };
        std::mem::swap(unsent, &mut self.note);
        self.finish()?;
        Ok(pause)
    }

    /// Takes what came, as much as may be between two looks at the keyboard.
    fn hear(&mut self, heard: &Receiver<Heard>, news: &mut bool) -> Option<TurnPause> {
        for _ in 0..AT_ONCE {
            match heard.try_recv() {
                Ok(Heard::News(DriverNews::Rested)) => return Some(TurnPause::Rested),
                Ok(Heard::News(DriverNews::Failed { error })) => {
                    return Some(TurnPause::Failed(error));
                }
                Ok(Heard::News(one)) => {
                    *news = true;
                    self.take(one);
                }
                Ok(Heard::Gone) | Err(TryRecvError::Disconnected) => return Some(TurnPause::Gone),
                Err(TryRecvError::Empty) => return None,
            }
        }
        None
    }

    fn take(&mut self, news: DriverNews) {
        match news {
            DriverNews::Words { text } => self.words(&text),
            DriverNews::Thinking { .. } => self.thinking = true,
            DriverNews::Calling { tool } => {
                self.end_words();
                self.doing = format!("prepares {}", plain(&tool, 40));
            }
            DriverNews::Discarded => {
                self.end_words();
                let text = "the answer broke off, and is asked for anew";
                self.stay.push(paint(DIM, text));
            }
            DriverNews::Visiting { node } => {
                self.node = node;
                self.doing.clear();
            }
            DriverNews::Doing { what } => {
                self.doing = plain(&what, 160);
                self.thinking = false;
            }
            DriverNews::Trouble { text } => {
                self.end_words();
                let rows = wrapped(
                    WARN,
                    &format!("! {}", plain(&text, 400)),
                    self.screen.columns(),
                );
                self.stay.extend(rows);
            }
            DriverNews::Change { diff, files } => self.change(&diff, files.len()),
            DriverNews::Happened { .. } => self.happened(&news),
            DriverNews::Ready | DriverNews::Rested | DriverNews::Failed { .. } => {}
        }
    }

    fn words(&mut self, text: &str) {
        self.looks();
        self.thinking = false;
        self.doing.clear();
        self.said.push_str(text);
        for c in text.chars() {
            if c == '\n' {
                self.end_line();
            } else {
                self.partial.push(c);
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        let rows = self.markdown.line(&line, self.screen.columns());
        self.stay.extend(rows);
    }

    /// What is said is not said further.
    fn end_words(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
    }

    fn happened(&mut self, news: &DriverNews) {
        match moment(news) {
            Moment::Nothing => {}
            Moment::Answer => {
                self.end_words();
                self.markdown = Markdown::default();
            }
            Moment::Look(text) => {
                self.end_words();
                self.looked.push(text);
            }
            Moment::Row(style, mark, text) => {
                self.end_words();
                self.looks();
                let before = self.commits && self.node == "chat";
                let told = if before { "without the change, " } else { "" };
                let text = format!("{mark} {told}{text}");
                let columns = self.screen.columns();
                self.stay.push(paint(style, clipped(&text, columns)));
            }
        }
    }

    /// Tells in one row what was looked at.
    fn looks(&mut self) {
        if self.looked.is_empty() {
            return;
        }
        let text = format!("  · {}", std::mem::take(&mut self.looked).join(", "));
        self.stay
            .push(paint(DIM, clipped(&text, self.screen.columns())));
    }

    fn change(&mut self, diff: &str, files: usize) {
        self.end_words();
        self.looks();
        if diff.is_empty() {
            self.stay.push(paint(DIM, "nothing was changed so far"));
            return;
        }
        let mut rows = diff_rows(diff);
        let left = rows.len().saturating_sub(DIFF);
        rows.truncate(DIFF);
        self.stay.extend(rows);
        if left > 0 {
            let text = format!("… {left} more lines; /diff shows all of them");
            self.stay.push(paint(DIM, text));
        }
        self.stay
            .push(paint(DIM, format!("so far: {}", size(diff, files))));
    }

    /// Takes a key; where the person leaves, the turn is followed no more.
    fn key(&mut self, event: Event, wish: &mut impl FnMut(Wish)) -> Option<TurnPause> {
        match event {
            Event::Resize(..) => self.screen.measure(),
            Event::Paste(text) => self.note.push_str(&text.replace(['\r', '\n'], " ")),
            Event::Key(key) if key.kind != KeyEventKind::Release => return self.pressed(key, wish),
            _ => {}
        }
        None
    }

    fn pressed(&mut self, key: KeyEvent, wish: &mut impl FnMut(Wish)) -> Option<TurnPause> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => {
                let again = self.escaped.is_some_and(|before| before.elapsed() < TWICE);
                self.stop(again, wish);
            }
            KeyCode::Char('c') if control && self.stopping == Some(true) => {
                return Some(TurnPause::Left);
            }
            KeyCode::Char('c') if control => self.stop(true, wish),
            KeyCode::Char('g') if control => wish(Wish::Change),
            KeyCode::Char('u') if control => self.note.clear(),
            KeyCode::Char('w') if control => {
                let kept = self.note.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.note.truncate(kept);
            }
            KeyCode::Backspace => {
                self.note.pop();
            }
            KeyCode::Enter => {
                let note = std::mem::take(&mut self.note);
                let note = note.trim();
                if !note.is_empty() {
                    let columns = self.screen.columns();
                    let shown = wrapped(NAME, &format!("» {}", plain(note, 2000)), columns);
                    self.end_words();
                    self.stay.extend(shown);
                    wish(Wish::Note(note.to_owned()));
                }
            }
            KeyCode::Char(c) if !control => self.note.push(c),
            _ => {}
        }
        None
    }

    fn stop(&mut self, turn: bool, wish: &mut impl FnMut(Wish)) {
        self.escaped = Some(Instant::now());
        self.stopping = Some(turn);
        wish(if turn { Wish::StopTurn } else { Wish::StopStep });
    }

    fn status(&self) -> String {
        let frame = usize::try_from(self.begun.elapsed().as_millis() / FRAME.as_millis());
        let turning = TURNING[frame.unwrap_or(0) % TURNING.len()];
        let what = match self.stopping {
            Some(true) => "stopping the turn; Ctrl-C again leaves the run to itself".to_owned(),
            Some(false) if self.escaped.is_some_and(|it| it.elapsed() < TWICE) => {
                "stopping this step; Esc again ends the turn".to_owned()
            }
            _ if self.thinking => "the model thinks".to_owned(),
            _ if !self.doing.is_empty() => self.doing.trim().to_owned(),
            _ if !self.partial.is_empty() => "the model answers".to_owned(),
            _ if self.node.is_empty() => "starting the sandbox".to_owned(),
            _ => self.node.replace('_', " "),
        };
        let time = rough_duration(self.begun.elapsed());
        let keys = "Esc stops · Ctrl-G diff";
        let text = format!("{what} {time}");
        let columns = self.screen.columns().saturating_sub(3);
        format!(
            "{} {}{}",
            paint(NAME, turning),
            clipped(&text, columns),
            if text.chars().count() + keys.len() + 4 < columns {
                paint(DIM, format!("  {keys}"))
            } else {
                String::new()
            }
        )
    }

    fn draw(&mut self) -> io::Result<()> {
        let columns = self.screen.columns();
        let mut live = Vec::new();
        if !self.partial.is_empty() {
            let rows = self.markdown.clone().line(&self.partial, columns);
            let most = PARTIAL.min(self.screen.rows().saturating_sub(3)).max(1);
            let first = rows.len().saturating_sub(most);
            live.extend_from_slice(&rows[first..]);
        }
        live.push(self.status());
        if !self.note.is_empty() {
            let shown = plain(&self.note, 4000);
            let long = shown.chars().count();
            let tail: String = shown
                .chars()
                .skip(long.saturating_sub(columns - 3))
                .collect();
            live.push(format!("{}{}", paint(STRONG, "» "), paint(PLAIN, tail)));
        }
        let stay = std::mem::take(&mut self.stay);
        self.screen.draw(&stay, live)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.end_words();
        self.looks();
        let stay = std::mem::take(&mut self.stay);
        self.screen.print(&stay)
    }
}

/// Waits for the change that was asked for.
pub(crate) fn change(heard: &Receiver<Heard>) -> Option<(String, Vec<String>)> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Heard::News(DriverNews::Change { diff, files })) => return Some((diff, files)),
            Ok(Heard::News(DriverNews::Trouble { .. }) | Heard::Gone)
            | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            Ok(Heard::News(_)) => {}
        }
    }
}

/// The row of something that failed.
pub(crate) fn failed(error: &FailureReport) -> Vec<String> {
    let mut rows = vec![paint(
        BAD,
        format!("error[{}]: {}", error.code, plain(&error.message, 600)),
    )];
    if let Some(remedy) = &error.remedy {
        rows.push(format!(
            "  {} {}",
            paint(STRONG, "help:"),
            plain(remedy, 600)
        ));
    }
    rows
}
