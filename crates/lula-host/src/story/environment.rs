//! What the tests lack on this machine, as a person needs it to give it to them.

use lula_repair::BrokenEnvironment;

use crate::text::{plain, visible};

/// Longest name of one thing, and of a command.
const LONGEST: usize = 400;

/// What is wrong, what is missing, with which interpreter, by which command, and what that printed.
pub fn lines(broken: &BrokenEnvironment) -> Vec<String> {
    let mut lines = vec![plain(&broken.what, LONGEST)];
    lines.extend(
        facts(broken)
            .into_iter()
            .map(|(name, text)| format!("{name}: {text}")),
    );
    let output: Vec<&str> = broken.output.lines().collect();
    if !output.is_empty() {
        lines.push("the last lines of its output:".to_owned());
        lines.extend(output.iter().map(|line| format!("  {}", visible(line))));
    }
    lines
}

/// The same without its sentence and its output, each with a name.
pub fn facts(broken: &BrokenEnvironment) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !broken.missing.is_empty() {
        facts.push(("missing", plain(&broken.missing.join(", "), LONGEST)));
    }
    if let Some(interpreter) = &broken.interpreter {
        facts.push(("interpreter", plain(interpreter, LONGEST)));
    }
    if !broken.command.is_empty() {
        facts.push(("command", plain(&broken.command, LONGEST)));
    }
    if let Some(remedy) = &broken.remedy {
        facts.push(("remedy", plain(remedy, LONGEST)));
        let other = "lula env build sets the project up in the sandbox";
        facts.push(("or", other.to_owned()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_helps_is_told_and_nothing_acts_on_a_terminal() {
        let broken = BrokenEnvironment {
            what: "pytest is not installed".to_owned(),
            missing: vec!["pytest".to_owned()],
            interpreter: Some("python3 3.12.1".to_owned()),
            command: "python3 -m pytest".to_owned(),
            output: "No module named pytest\u{1b}[2J".to_owned(),
            remedy: Some("pip install pytest".to_owned()),
        };
        let text = lines(&broken).join("\n");
        for part in [
            "missing: pytest",
            "3.12.1",
            "python3 -m pytest",
            "pip install pytest",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains("No module named pytest"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
