//! Progress of a step: a spinner on a terminal, one plain line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{BAD, DIM, GOOD, paint, stderr_line};

/// One piece of work, from its start to its end.
#[derive(Debug)]
pub(crate) struct Step {
    what: String,
    begun: Instant,
    spinner: Option<ProgressBar>,
    quiet: bool,
}

impl Step {
    pub(super) fn begin(what: &str, live: bool, quiet: bool) -> Self {
        let spinner = live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self {
            what: what.to_owned(),
            begun: Instant::now(),
            spinner,
            quiet,
        }
    }

    /// It worked.
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
            let time = format!("({})", human(self.begun.elapsed()));
            stderr_line(&format!(
                "{mark} {}: {result} {}",
                self.what,
                paint(DIM, time)
            ));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // An error on the way: leave no half-drawn line behind.
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// `12 ms`, `3.4 s`, `2 min 5 s`.
fn human(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_like_people_say_them() {
        assert_eq!(human(Duration::from_millis(12)), "12 ms");
        assert_eq!(human(Duration::from_millis(3_400)), "3.4 s");
        assert_eq!(human(Duration::from_secs(125)), "2 min 5 s");
    }
}
