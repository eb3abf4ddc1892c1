//! Progress of a step: a spinner on a terminal, one plain line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{BAD, DIM, GOOD, paint, rough_duration, stderr_line};

/// One piece of work, from its start to its end.
#[derive(Debug)]
pub(crate) struct ProgressStep {
    what: String,
    begun: Instant,
    spinner: Option<ProgressBar>,
    quiet: bool,
}

impl ProgressStep {
    pub(super) fn begin(what: &str, live: bool, quiet: bool) -> Self {
        let spinner = live.then(|| spinner(what));
        Self {
            what: what.to_owned(),
            begun: Instant::now(),
            spinner,
            quiet,
        }
    }

    /// Replaces the moving line by the result.
    pub(crate) fn done(self, result: &str) {
        self.end(&paint(GOOD, "✓"), result);
    }

    /// It did not, or what it found is bad.
    pub(crate) fn failed(self, result: &str) {
        self.end(&paint(BAD, "✗"), result);
    }

    fn end(&self, mark: &str, result: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        if !self.quiet {
            let time = format!("({})", rough_duration(self.begun.elapsed()));
            stderr_line(&format!(
                "{mark} {}: {result} {}",
                self.what,
                paint(DIM, time)
            ));
        }
    }
}

impl Drop for ProgressStep {
    fn drop(&mut self) {
        // An error on the way: leave no half-drawn line behind.
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// A part of the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalArea {
    pub(crate) width: usize,
    pub(crate) lines: usize,
}

/// Work whose steps are not known before: the latest thing it says is shown.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    spinner: Option<ProgressBar>,
    plain: bool,
}

impl LiveProgress {
    pub(super) fn begin(what: &str, live: bool, quiet: bool) -> Self {
        let spinner = live.then(|| spinner(what));
        Self {
            plain: spinner.is_none() && !quiet,
            spinner,
        }
    }

    /// Says something that stays.
    pub(crate) fn tell(&self, line: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.suspend(|| stderr_line(line));
        } else if self.plain {
            stderr_line(line);
        }
    }

    /// Shows or says what is going on now.
    pub(crate) fn say(&self, what: &str) {
        self.show(what);
        self.mention(&paint(DIM, what));
    }

    /// Shows what is going on now, on a terminal.
    pub(crate) fn show(&self, what: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(what.to_owned());
        }
    }

    /// Shows lines below that, on a terminal.
    pub(crate) fn show_below(&self, lines: &str) {
        let Some(spinner) = &self.spinner else { return };
        if let Ok(style) = ProgressStyle::with_template(ABOVE) {
            spinner.set_style(style);
        }
        spinner.set_prefix(lines.to_owned());
    }

    /// Whether it is drawn on a terminal.
    pub(crate) const fn is_drawn(&self) -> bool {
        self.spinner.is_some()
    }

    /// How much of the terminal may be drawn below what is going on now.
    #[expect(clippy::unused_self, reason = "only what is drawn has room")]
    pub(crate) fn room(&self) -> TerminalArea {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (width, height) = size.map_or((80, 24), |(width, height)| {
            (usize::from(width.0), usize::from(height.0))
        });
        TerminalArea {
            // The last column stays free: some terminals wrap behind it.
            width: width.saturating_sub(1),
            // Room is left for what was said before.
            lines: (height / 2).max(4),
        }
    }

    /// Says what is going on now off a terminal: each thing once, not every count.
    pub(crate) fn mention(&self, what: &str) {
        if self.plain && !what.contains(" tried") {
            stderr_line(what);
        }
    }
}

impl Drop for LiveProgress {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// One line, and lines below it.
const ABOVE: &str = "{spinner} {wide_msg} {elapsed}\n{prefix}";

fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
