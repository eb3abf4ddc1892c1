//! A build as it is seen at a terminal: the command, and the last line it printed.

use std::sync::Mutex;

use lula_env::RecipeStep;
use lula_runner::environments::BuildProgress;

use crate::session::CliSession;
use crate::term::{DIM, LiveProgress, TerminalScreen, WARN, paint, visible};

/// Longest part of a line that is shown.
const WIDTH: usize = 100;

pub(in crate::commands) struct BuildWatch<'a> {
    screen: &'a TerminalScreen,
    live: Mutex<Option<LiveProgress>>,
    /// The line that is being printed.
    line: Mutex<Vec<u8>>,
}

impl<'a> BuildWatch<'a> {
    pub(in crate::commands) fn new(session: &'a CliSession) -> Self {
        let screen = &session.screen;
        Self {
            screen,
            live: Mutex::new(Some(screen.live("looking at the project"))),
            line: Mutex::default(),
        }
    }

    /// Leaves the terminal to what follows.
    pub(in crate::commands) fn done(&self) {
        if let Ok(mut live) = self.live.lock() {
            live.take();
        }
    }

    fn with_live(&self, act: impl FnOnce(&LiveProgress)) {
        if let Ok(live) = self.live.lock()
            && let Some(live) = live.as_ref()
        {
            act(live);
        }
    }
}

impl BuildProgress for BuildWatch<'_> {
    fn step(&self, number: usize, of: usize, step: &RecipeStep, line: &str) {
        let because = if step.because.is_empty() {
            String::new()
        } else {
            paint(DIM, format!("  {}", visible(&step.because)))
        };
        let text = format!("{number}/{of} {}{because}", visible(line));
        self.with_live(|live| live.tell(&text));
    }

    fn output(&self, bytes: &[u8]) {
        let Ok(mut line) = self.line.lock() else {
            return;
        };
        for byte in bytes {
            if matches!(byte, b'\n' | b'\r') {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if text.is_empty() {
                    continue;
                }
                let shown: String = visible(&text).chars().take(WIDTH).collect();
                self.with_live(|live| live.show(&shown));
                self.screen.detail(&paint(DIM, visible(&text)));
            } else if line.len() < 4096 {
                line.push(*byte);
            }
        }
    }

    fn fell_back(&self, line: &str) {
        let text = format!("{} {}", paint(WARN, "that failed; instead"), visible(line));
        self.with_live(|live| live.tell(&text));
    }
}
