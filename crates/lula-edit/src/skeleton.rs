//! What remains of a line when everything that cannot change its meaning is taken away.
//!
//! Two places may be taken for the same only where their skeletons are equal: a word, a number or
//! an operator that differs is another place.

/// The code of a line: no blanks, no comment, quotes all alike, no commas or semicolons.
pub(crate) fn of(line: &str) -> String {
    let code = without_comment(line);
    if is_prose(code) {
        return String::new();
    }
    code.chars()
        .filter_map(|c| match c {
            c if c.is_whitespace() => None,
            ',' | ';' => None,
            '\'' | '"' | '`' | '‘' | '’' | '“' | '”' => Some('"'),
            '–' | '—' | '−' => Some('-'),
            other => Some(other),
        })
        .collect()
}

fn without_comment(line: &str) -> &str {
    let trimmed = line.trim_start();
    if ["#", "//", "--", "/*", "* ", "*/", "<!--", "%"]
        .iter()
        .any(|mark| trimmed.starts_with(mark))
        && !trimmed.starts_with("#include")
        && !trimmed.starts_with("#define")
        && !trimmed.starts_with("#[")
    {
        return "";
    }
    // Behind code a comment is only sure where no quote stands before it.
    for mark in [" # ", " // ", "\t// ", " -- "] {
        if let Some(at) = line.find(mark)
            && !line[..at].contains(['"', '\'', '`'])
        {
            return &line[..at];
        }
    }
    line
}

/// Sentences, as in the middle of a documentation string.
fn is_prose(code: &str) -> bool {
    code.split_whitespace().count() >= 4
        && !code.contains([
            '(', ')', '{', '}', '[', ']', '=', '<', '>', '+', '/', '*', '&', '|', '_',
        ])
        && !code.trim_end().ends_with([':', ';', ','])
        && !code.contains(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_blanks_and_comments_do_not_count() {
        for (a, b) in [
            ("x = ['a', 'b']", "x = [\"a\", \"b\",]"),
            ("let y = 1; // one", "let y = 1 // two"),
            ("  # adds them up", "# sums"),
            (
                "Adds the numbers of the list.",
                "Adds up the numbers in a list.",
            ),
            ("say(‘hi’)", "say('hi')"),
        ] {
            assert_eq!(of(a), of(b), "{a} {b}");
        }
    }

    #[test]
    fn words_numbers_and_operators_count() {
        for (a, b) in [
            ("x = get('min')", "x = get('max')"),
            ("test_1()", "test_2()"),
            ("a < b", "a > b"),
            ("return x", "return y"),
            ("url = 'http://a # b'", "url = 'http://a # c'"),
            ("#include <a.h>", "#include <b.h>"),
            ("#[test]", "#[ignore]"),
        ] {
            assert_ne!(of(a), of(b), "{a} {b}");
        }
    }
}
