//! What one row of the table of acts holds. The table itself, and how to add an act, is in
//! [`crate::effects`].

use lula_protocol::EffectClass;

use crate::effects::{ACTS, ResultDisplay};

/// One act of a run: how it is named, what may be done with it, and how a person sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    /// What it is called.
    pub name: &'static str,
    /// What logs call it. A name that a log holds stays, since replay compares it.
    pub(crate) logged: &'static str,
    /// What may be done again after a crash.
    pub(crate) class: EffectClass,
    /// What kind of work it is: its colour in a trace.
    pub tone: Tone,
    /// How its result is told.
    pub display: ResultDisplay,
    /// What a person hears while it goes on, `{}` being what it is about; nothing where it is quick.
    pub(crate) doing: &'static str,
    /// By which other names a model asks for it.
    aliases: &'static [&'static str],
}

/// What kind of work an act is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A model is asked and thinks.
    Think,
    /// Tests or a command are run.
    Test,
    /// Files or repositories are changed.
    Write,
    /// Something is looked at.
    Look,
}

/// A row of the table.
pub(crate) const fn row(
    name: &'static str,
    class: EffectClass,
    tone: Tone,
    display: ResultDisplay,
    doing: &'static str,
) -> Act {
    Act {
        name,
        logged: name,
        class,
        tone,
        display,
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

    /// The same under the name that logs of earlier versions have for it.
    #[must_use]
    pub(crate) const fn logged_as(mut self, logged: &'static str) -> Self {
        self.logged = logged;
        self
    }

    /// The act of this name, ours or that of logs; none where another version wrote it.
    pub fn named(name: &str) -> Option<&'static Self> {
        let is = |act: &&Self| act.logged == name || act.name == name;
        ACTS.iter().copied().find(is)
    }

    /// Whether a model asks for it by that name.
    pub fn is_asked_as(&self, asked: &str) -> bool {
        asked == self.name || self.aliases.contains(&asked)
    }
}
