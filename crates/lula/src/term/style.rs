//! Few colours with fixed meanings. They are stripped where the reader is not a terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Effects, Style};

/// It works, or it was added.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// It does not work, or it was removed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
/// Something the operator should look at.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// Something that can be skipped in reading.
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
/// A heading or a name.
pub(crate) const STRONG: Style = Style::new().effects(Effects::BOLD);

/// The text in that style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
