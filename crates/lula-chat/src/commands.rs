//! What a person can type beside words.

/// A command and what it does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandHelp {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) about: &'static str,
}

const fn row(name: &'static str, arguments: &'static str, about: &'static str) -> CommandHelp {
    CommandHelp {
        name,
        arguments,
        about,
    }
}

/// Every command, in the order of the help.
pub(crate) const COMMANDS: &[CommandHelp] = &[
    row("/diff", "", "the change so far (also Ctrl-G, at any time)"),
    row("/test", "", "run the tests on the change as it is"),
    row(
        "/commit",
        "[anyway]",
        "verify the change and deliver it; `anyway` also without proof",
    ),
    row("/undo", "", "take back what was changed last"),
    row("/redo", "", "bring back what was taken back"),
    row(
        "/repair",
        "",
        "search for a fix of failing tests, without a model",
    ),
    row("/cost", "", "what was spent so far"),
    row("/context", "", "what fills the model's context"),
    row(
        "/model",
        "[NAME]",
        "show the models of this chat, or go on with another one",
    ),
    row("/rules", "[forget N]", "what you agreed to for this chat"),
    row(
        "/net",
        "",
        "what the sandbox reached, and what it was denied",
    ),
    row(
        "/grant",
        "NAME[:PORT]",
        "let the sandbox reach one more name",
    ),
    row(
        "/export",
        "[FILE]",
        "write the whole record of the run into a file",
    ),
    row(
        "/leave",
        "",
        "leave the change held; `lula chat RUN` goes on (also Ctrl-D)",
    ),
    row("/discard", "", "drop the change and end the run"),
    row("/help", "", "this list"),
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Words for the model.
    Words(String),
    /// A command for the sandbox.
    Shell(String),
    /// A command for this program, and what stands behind it.
    Command(&'static str, String),
    /// Something that begins like a command and is none, with the nearest one.
    Unknown(String, Option<&'static str>),
    Nothing,
}

impl Said {
    /// What a line means.
    pub(crate) fn read(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        if let Some(command) = line.strip_prefix('!') {
            let command = command.trim();
            return if command.is_empty() {
                Self::Nothing
            } else {
                Self::Shell(command.to_owned())
            };
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        // A path is no command.
        if !name.starts_with('/') || name[1..].contains('/') || name == "/" {
            return Self::Words(line.to_owned());
        }
        let name = match name {
            "/quit" | "/exit" => "/leave",
            other => other,
        };
        if let Some(found) = COMMANDS.iter().find(|one| one.name == name) {
            Self::Command(found.name, rest.trim().to_owned())
        } else {
            let begins = |one: &&CommandHelp| one.name.starts_with(name);
            let near = COMMANDS.iter().find(begins).map(|one| one.name);
            Self::Unknown(name.to_owned(), near)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_a_command_of_the_sandbox_or_one_of_this_program() {
        let words = |text: &str| Said::Words(text.to_owned());
        assert_eq!(Said::read(" mend it "), words("mend it"));
        assert_eq!(Said::read("/etc/hosts is odd"), words("/etc/hosts is odd"));
        assert_eq!(Said::read("!ls -l"), Said::Shell("ls -l".to_owned()));
        assert_eq!(
            Said::read("/commit anyway"),
            Said::Command("/commit", "anyway".to_owned())
        );
        assert_eq!(Said::read("/exit"), Said::Command("/leave", String::new()));
        assert_eq!(
            Said::read("/com"),
            Said::Unknown("/com".to_owned(), Some("/commit"))
        );
        assert_eq!(Said::read("  "), Said::Nothing);
    }
}
