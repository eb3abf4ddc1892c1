//! Patterns over the words of a command.

use crate::shell::{SimpleCommand, Word};

/// A program, words that follow it, and arguments that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// At each place, the words that may stand there. `*` stands for any characters.
    pub(super) words: Vec<Vec<String>>,
    /// One of these must be among the arguments, where any is named.
    pub(super) with: Vec<String>,
}

/// How well a command fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PatternFit {
    No,
    /// It depends on words that are known only when it runs.
    Maybe,
    Yes,
}

impl Pattern {
    /// How a command fits. Options may stand before and between the words that are asked for, so
    /// that `kubectl -n prod delete` is a `kubectl delete`.
    pub(super) fn fits(&self, command: &SimpleCommand) -> PatternFit {
        let mut reached = vec![0];
        for (place, alternatives) in self.words.iter().enumerate() {
            let mut next = Vec::new();
            for at in reached {
                let positions = if place == 0 {
                    vec![at]
                } else {
                    behind_options(&command.words, at)
                };
                for position in positions {
                    match command.words.get(position) {
                        Some(Word::Unknown) => return PatternFit::Maybe,
                        Some(Word::Known(word))
                            if alternatives.iter().any(|pattern| wild(pattern, word)) =>
                        {
                            next.push(position + 1);
                        }
                        _ => {}
                    }
                }
            }
            if next.is_empty() {
                return PatternFit::No;
            }
            next.sort_unstable();
            next.dedup();
            reached = next;
        }
        if self.with.is_empty() {
            PatternFit::Yes
        } else {
            self.has_argument(command.words.get(1..).unwrap_or_default())
        }
    }

    /// How a command fits word by word, with nothing skipped: what is allowed must be exactly that.
    pub(super) fn fits_exactly(&self, command: &SimpleCommand) -> bool {
        command.words.len() >= self.words.len()
            && command.words.iter().all(|word| word.known().is_some())
            && self
                .words
                .iter()
                .zip(&command.words)
                .all(|(alternatives, word)| {
                    word.known()
                        .is_some_and(|word| alternatives.iter().any(|pattern| wild(pattern, word)))
                })
            && (self.with.is_empty()
                || self.has_argument(&command.words[self.words.len()..]) == PatternFit::Yes)
    }

    fn has_argument(&self, words: &[Word]) -> PatternFit {
        let fit = |word: &Word| match word {
            Word::Unknown => PatternFit::Maybe,
            Word::Known(word) if self.with.iter().any(|wanted| is_argument(wanted, word)) => {
                PatternFit::Yes
            }
            Word::Known(_) => PatternFit::No,
        };
        words.iter().map(fit).max().unwrap_or(PatternFit::No)
    }
}

/// The places where the next word may stand, with options and their values skipped.
fn behind_options(words: &[Word], from: usize) -> Vec<usize> {
    let mut reached = vec![false; words.len() + 3];
    reached[from.min(words.len())] = true;
    for place in from..words.len() {
        let is_option = words[place]
            .known()
            .is_some_and(|word| word.starts_with('-'));
        if reached[place] && is_option {
            reached[place + 1] = true;
            reached[place + 2] = true;
        }
    }
    (from..words.len())
        .filter(|place| reached[*place])
        .collect()
}

/// Whether a word is the argument that is asked for: `-f` also inside `-uf`, `--force` also with a
/// value or abbreviated, other words in any case.
fn is_argument(wanted: &str, word: &str) -> bool {
    if wild(wanted, word) {
        return true;
    }
    if !wanted.starts_with('-') {
        // Letters of options differ by case; names of settings and methods do not.
        return wild(&wanted.to_lowercase(), &word.to_lowercase());
    }
    if let Some(long) = wanted.strip_prefix("--") {
        let Some(given) = word.strip_prefix("--") else {
            return false;
        };
        let given = given.split('=').next().unwrap_or(given);
        let long = long.trim_end_matches('*');
        return !given.is_empty()
            && (long.starts_with(given) || wild(wanted, &format!("--{given}")));
    }
    let mut letters = wanted.strip_prefix('-').unwrap_or_default().chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => word.strip_prefix('-').is_some_and(|cluster| {
            !cluster.starts_with('-')
                && cluster.chars().all(|c| c.is_ascii_alphanumeric())
                && cluster.contains(letter)
        }),
        _ => false,
    }
}

/// `*` stands for any characters. Linear in both.
fn wild(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<_> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::ShellReading;

    fn pattern(words: &[&[&str]], with: &[&str]) -> Pattern {
        let own = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        Pattern {
            words: words.iter().map(|words| own(words)).collect(),
            with: own(with),
        }
    }

    fn fit(pattern: &Pattern, text: &str) -> PatternFit {
        let reading = ShellReading::of_shell(text);
        let fits = reading.commands.iter().map(|command| pattern.fits(command));
        fits.max().unwrap_or(PatternFit::No)
    }

    #[test]
    fn options_do_not_hide_a_subcommand() {
        let delete = pattern(&[&["kubectl"], &["delete", "drain"]], &[]);
        assert_eq!(fit(&delete, "kubectl delete pod x"), PatternFit::Yes);
        assert_eq!(
            fit(&delete, "kubectl -n prod --context=x drain n"),
            PatternFit::Yes
        );
        assert_eq!(fit(&delete, "kubectl get delete"), PatternFit::No);
        assert_eq!(fit(&delete, "kubectl $X pod"), PatternFit::Maybe);
        assert_eq!(fit(&delete, "echo kubectl delete"), PatternFit::No);
    }

    #[test]
    fn an_argument_is_found_in_every_spelling() {
        let force = pattern(&[&["git"], &["push"]], &["-f", "--force*", "+*"]);
        for text in [
            "git push -f",
            "git push -uf origin x",
            "git push --force",
            "git push --force-with-lease=main origin",
            "git push --forc",
            "git push origin +main",
            "git push origin -- +main",
        ] {
            assert_eq!(fit(&force, text), PatternFit::Yes, "{text}");
        }
        assert_eq!(fit(&force, "git push -u origin main"), PatternFit::No);
        assert_eq!(fit(&force, "git push --follow-tags"), PatternFit::No);
        assert_eq!(fit(&force, "git push $ARGS"), PatternFit::Maybe);
    }

    #[test]
    fn what_is_allowed_must_be_exactly_that() {
        let get = pattern(&[&["kubectl"], &["get"]], &[]);
        let exactly = |text: &str| get.fits_exactly(&ShellReading::of_shell(text).commands[0]);
        assert!(exactly("kubectl get pods"));
        assert!(!exactly("kubectl -n get delete"));
        assert!(!exactly("kubectl get $X"));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("ab*b", "ab", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(wild(pattern, text), fits, "{pattern} {text}");
        }
    }
}
