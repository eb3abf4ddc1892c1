//! What one row of the table of acts holds. The table itself, and how to add an act, is in
//! [`crate::deeds`].

use lula_protocol::EffectClass;

use crate::effects::{ACTS, Showing};

/// One act of a run: how it is named, what may be done with it, and how a person sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    /// What it is called in the log. A name that a log holds stays.
    pub name: &'static str,
    /// What may be done again after a crash.
    pub(crate) class: EffectClass,
    /// What kind of work it is: its colour in a trace.
    pub tone: Tone,
    /// How its result is told.
    pub showing: Showing,
    /// What a person hears while it goes on, `{}` being what it is about; nothing where it is quick.
    pub(crate) doing: &'static str,
    /// By which other names a model asks for it.
    aliases: &'static [&'static str],
}

/// What kind of work an act is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A model thinks.
    Think,
    /// Something is run.
    Test,
    /// Something is changed.
    Write,
    /// Something is looked at.
    Look,
}

/// A row of the table.
pub(crate) const fn row(
    name: &'static str,
    class: EffectClass,
    tone: Tone,
    showing: Showing,
    doing: &'static str,
) -> Act {
    Act {
        name,
        class,
        tone,
        showing,
        doing,
        aliases: &[],
    }
}

impl Act {
    /// The same, which a model asks for by other names too.
    #[must_use]
    pub(crate) const fn or_asked(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The act that a log calls so; none where another version wrote it.
    pub fn named(name: &str) -> Option<&'static Self> {
        ACTS.iter().copied().find(|act| act.name == name)
    }

    /// Whether a model asks for it by that name.
    pub fn is_asked_as(&self, asked: &str) -> bool {
        asked == self.name || self.aliases.contains(&asked)
    }
}
