//! `JUnit`'s XML, as Maven, Gradle, pytest and many others write it.

use super::case;
use crate::report::{Outcome, TestCase};

/// Every `testcase` of a document. The format is small enough to be read without an XML library,
/// and what is read is only ever shown or compared.
pub fn junit(text: &str) -> Vec<TestCase> {
    let mut found = Vec::new();
    for piece in text.split("<testcase").skip(1) {
        let Some(close) = tag_end(piece) else {
            continue;
        };
        let (head, rest) = piece.split_at(close);
        let id = match (attribute(head, "classname"), attribute(head, "name")) {
            (Some(class), Some(name)) if !class.is_empty() => format!("{class}.{name}"),
            (_, Some(name)) => name,
            _ => continue,
        };
        let body = if head.ends_with('/') {
            ""
        } else {
            rest.split("</testcase>").next().unwrap_or_default()
        };
        let kinds = [
            ("<failure", Outcome::Failed),
            ("<error", Outcome::Broken),
            ("<skipped", Outcome::Skipped),
        ];
        let (outcome, message) = kinds
            .into_iter()
            .find_map(|(tag, outcome)| body.split_once(tag).map(|(_, message)| (outcome, message)))
            .map_or((Outcome::Passed, String::new()), |(outcome, message)| {
                let (head, text) = message.split_at(tag_end(message).unwrap_or(0));
                let text = text
                    .trim_start_matches('>')
                    .split("</")
                    .next()
                    .unwrap_or_default();
                let text = text
                    .trim()
                    .trim_start_matches("<![CDATA[")
                    .trim_end_matches("]]>");
                (
                    outcome,
                    format!(
                        "{}\n{}",
                        attribute(head, "message").unwrap_or_default(),
                        unescape(text)
                    )
                    .trim()
                    .to_owned(),
                )
            });
        found.push(case(id, outcome, &message));
    }
    found
}

/// The `>` that ends a tag, outside of quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(at, c)| match (quote, c) {
        (None, '>') => Some(at),
        (None, '"' | '\'') => {
            quote = Some(c);
            None
        }
        (Some(open), c) if open == c => {
            quote = None;
            None
        }
        _ => None,
    })
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!(" {name}=\""))?;
    Some(unescape(rest.split('"').next()?))
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&#10;", "\n")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pytest_writes_is_read() {
        let found: Vec<_> = junit(include_str!("../../tests/recorded/pytest-junit.xml"));
        let told: Vec<_> = found
            .iter()
            .map(|test| (test.id.as_str(), test.outcome))
            .collect();
        assert_eq!(
            told,
            [
                ("test_sum.TestSum.test_adds", Outcome::Failed),
                ("test_sum.TestSum.test_doubles", Outcome::Passed),
                ("test_sum.test_later", Outcome::Skipped),
                ("test_sum.test_fixture", Outcome::Broken),
            ]
        );
        assert!(
            found[0].message.contains("a < b & \"c\""),
            "{}",
            found[0].message
        );
    }

    #[test]
    fn outcomes_and_messages_are_read() {
        let text = r#"<testsuite><testcase classname="A" name="ok" time="0"/><testcase classname="A" name="a&lt;b"><failure message="1 &gt; 2">trace</failure></testcase><testcase name="s"><skipped/></testcase></testsuite>"#;
        let found: Vec<_> = junit(text)
            .into_iter()
            .map(|test| (test.id, test.outcome, test.message))
            .collect();
        assert_eq!(
            found,
            [
                ("A.ok".to_owned(), Outcome::Passed, String::new()),
                (
                    "A.a<b".to_owned(),
                    Outcome::Failed,
                    "1 > 2\ntrace".to_owned()
                ),
                ("s".to_owned(), Outcome::Skipped, String::new()),
            ]
        );
    }
}
