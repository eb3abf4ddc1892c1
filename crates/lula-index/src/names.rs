//! Names and the words they are made of.

/// Whether a name is unlikely to be a local variable's by chance: `MAX_SIZE`, `UserModel`,
/// `parse_duration`, but not `data` or `i`.
pub(crate) fn is_distinctive(name: &str) -> bool {
    let inner = name.trim_matches('_');
    inner.len() >= 4 && (inner.contains('_') || inner.bytes().any(|byte| byte.is_ascii_uppercase()))
}

/// How much a name tells about where it is defined, from its looks alone.
pub(crate) fn weight(name: &str) -> f64 {
    if name.starts_with("__") {
        // Special methods are defined everywhere and called by no code in particular.
        return 0.002;
    }
    if let Some(private) = name.strip_prefix(['_', '#']) {
        return 0.1 * weight(private);
    }
    // A plain word is as likely a method of a built-in type, whatever else defines one.
    match (is_distinctive(name), name.len()) {
        (true, 8..) => 3.0,
        (true, _) => 1.0,
        (false, 6..) => 0.3,
        (false, 3..) => 0.1,
        (false, _) => 0.02,
    }
}

/// The words of a text, lower case and without endings: of `parseHTTPHeaders` they are `parse`,
/// `http` and `header`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = None::<char>;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if !c.is_alphanumeric() {
            push(&mut words, &mut word);
            before = None;
            continue;
        }
        let follows_lower = before.is_some_and(char::is_lowercase);
        let ends_acronym = before.is_some_and(char::is_uppercase)
            && characters.peek().is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (follows_lower || ends_acronym) {
            push(&mut words, &mut word);
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    let whole = std::mem::take(word);
    if whole.chars().count() >= 2 {
        words.push(stem(&whole).to_owned());
    }
}

/// A word without the endings that tasks and names use differently.
fn stem(word: &str) -> &str {
    let ended = ["ing", "ed", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending));
    let mut stem = ended.filter(|stem| stem.len() >= 4).unwrap_or(word);
    while stem.len() > 4 && stem.ends_with(['e', 'i', 'y']) {
        stem = &stem[..stem.len() - 1];
    }
    stem
}

/// Characters that change what a person sees and are not seen themselves.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Words of tasks that say nothing about code, without the endings that [`words`] takes off.
pub(crate) fn is_stop_word(word: &str) -> bool {
    const STOP: [&str; 44] = [
        "the", "and", "for", "that", "this", "with", "from", "into", "when", "then", "than", "are",
        "was", "has", "have", "not", "but", "all", "any", "its", "it", "is", "in", "of", "to",
        "on", "or", "an", "as", "at", "be", "by", "do", "if", "no", "so", "we", "you", "should",
        "must", "make", "mak", "pleas", "fix",
    ];
    STOP.contains(&word) || COMMON.iter().any(|common| stem(common) == word)
}

/// Words of what a task asks for, without the endings that [`words`] takes off. Code has methods of that
/// name everywhere; one that is meant is named as code is.
pub(crate) fn is_request(word: &str) -> bool {
    const REQUESTS: [&str; 6] = ["add", "implement", "introduc", "remov", "renam", "support"];
    REQUESTS.contains(&word)
}

/// Words that every report of a bug is written with, and hardly any code is named by alone.
const COMMON: [&str; 104] = [
    "about",
    "after",
    "again",
    "also",
    "although",
    "always",
    "another",
    "because",
    "been",
    "before",
    "behaviour",
    "behavior",
    "being",
    "below",
    "between",
    "both",
    "bug",
    "cannot",
    "correct",
    "correctly",
    "could",
    "current",
    "currently",
    "did",
    "different",
    "does",
    "done",
    "each",
    "either",
    "even",
    "every",
    "example",
    "expect",
    "expected",
    "fail",
    "failed",
    "fails",
    "failing",
    "following",
    "further",
    "gets",
    "gives",
    "given",
    "goes",
    "had",
    "happen",
    "happens",
    "here",
    "how",
    "however",
    "instead",
    "issue",
    "just",
    "like",
    "makes",
    "may",
    "might",
    "more",
    "most",
    "much",
    "need",
    "needs",
    "never",
    "nothing",
    "now",
    "one",
    "only",
    "other",
    "our",
    "out",
    "over",
    "please",
    "problem",
    "really",
    "same",
    "see",
    "seems",
    "shall",
    "since",
    "some",
    "something",
    "still",
    "such",
    "tests",
    "their",
    "them",
    "there",
    "these",
    "they",
    "thing",
    "think",
    "those",
    "three",
    "two",
    "used",
    "using",
    "want",
    "well",
    "what",
    "where",
    "which",
    "while",
    "would",
    "wrong",
];

/// Whether a word, in lower case, is one of a language for people rather than of code.
pub(crate) fn is_common_word(word: &str) -> bool {
    COMMON.contains(&word) || is_stop_word(stem(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_the_words_people_use() {
        assert_eq!(words("parseHTTPHeaders"), ["pars", "http", "header"]);
        assert_eq!(words("applied, applying"), ["appl", "appl"]);
        assert_eq!(words("apply"), ["appl"]);
        assert_eq!(words("parsing the headers"), ["pars", "the", "header"]);
        assert_eq!(words("MAX_RETRIES"), ["max", "retr"]);
        assert_eq!(words("__init__"), ["init"]);
        assert_eq!(words("größe_2"), ["größ"]);
    }

    #[test]
    fn a_name_that_could_be_any_variable_is_not_distinctive() {
        for name in ["MAX_SIZE", "UserModel", "parse_duration", "fooBar"] {
            assert!(is_distinctive(name), "{name}");
        }
        for name in ["i", "data", "self", "_x", "__init__", "result"] {
            assert!(!is_distinctive(name), "{name}");
        }
    }

    #[test]
    fn private_and_special_names_weigh_less() {
        assert!(weight("parse_duration") > weight("parse"));
        assert!(weight("parse") > weight("_parse"));
        assert!(weight("_parse") > weight("__init__"));
    }
}
