//! `JUnit`'s XML, as Maven, Gradle, pytest and many others write it.

use super::case;
use crate::report::{TestCase, TestOutcome};

/// One `testcase` of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) file: String,
    pub(super) status: String,
    pub(super) outcome: TestOutcome,
    pub(super) message: String,
    /// What the test printed.
    pub(super) printed: String,
}

/// Every `testcase` of a document, by its class and its name.
pub fn junit(text: &str) -> Vec<TestCase> {
    let named = |element: Element| {
        let id = if element.class.is_empty() {
            element.name
        } else {
            format!("{}.{}", element.class, element.name)
        };
        case(id, element.outcome, &element.message)
    };
    elements(text).into_iter().map(named).collect()
}

/// Every `testcase` of a document. The format is small enough to be read without an XML library,
/// and what is read is only ever shown or compared.
pub(super) fn elements(text: &str) -> Vec<Element> {
    let mut found = Vec::new();
    for piece in text.split("<testcase").skip(1) {
        let Some(close) = tag_end(piece) else {
            continue;
        };
        let (head, rest) = piece.split_at(close);
        let of = |name: &str| attribute(head, name).unwrap_or_default();
        let name = of("name");
        if name.is_empty() {
            continue;
        }
        let body = if head.ends_with('/') {
            ""
        } else {
            rest.split("</testcase>").next().unwrap_or_default()
        };
        // What a test printed may look like anything.
        let told = body.split("<system-").next().unwrap_or_default();
        let kinds = [
            ("<failure", TestOutcome::Failed),
            ("<error", TestOutcome::Broken),
            ("<skipped", TestOutcome::Skipped),
        ];
        let (outcome, message) = kinds
            .into_iter()
            .find_map(|(tag, outcome)| told.split_once(tag).map(|(_, message)| (outcome, message)))
            .map_or(
                (TestOutcome::Passed, String::new()),
                |(outcome, message)| {
                    let (head, text) = message.split_at(tag_end(message).unwrap_or(0));
                    let about = attribute(head, "message").unwrap_or_default();
                    let message = format!("{about}\n{}", content(text));
                    (outcome, message.trim().to_owned())
                },
            );
        let printed = body.split_once("<system-out").map(|(_, rest)| {
            let (_, text) = rest.split_at(tag_end(rest).unwrap_or(0));
            content(text)
        });
        found.push(Element {
            class: of("classname"),
            name,
            file: of("file"),
            status: of("status"),
            outcome,
            message,
            printed: printed.unwrap_or_default(),
        });
    }
    found
}

/// The text of an element, from the end of its opening tag.
fn content(text: &str) -> String {
    let text = text.strip_prefix('>').unwrap_or(text).trim();
    if let Some(raw) = text.strip_prefix("<![CDATA[") {
        return raw
            .split("]]>")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();
    }
    unescape(text.split("</").next().unwrap_or_default().trim())
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
    let mut out = String::new();
    let mut pieces = text.split('&');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (name, rest) = piece.split_once(';').unwrap_or(("", piece));
        let number = |text: &str| match text.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let meant = match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            "amp" => Some('&'),
            other => other
                .strip_prefix('#')
                .and_then(number)
                .and_then(char::from_u32),
        };
        if let Some(meant) = meant {
            out.push(meant);
            out.push_str(rest);
        } else {
            out.push('&');
            out.push_str(piece);
        }
    }
    out
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
                ("test_sum.TestSum.test_adds", TestOutcome::Failed),
                ("test_sum.TestSum.test_doubles", TestOutcome::Passed),
                ("test_sum.test_later", TestOutcome::Skipped),
                ("test_sum.test_fixture", TestOutcome::Broken),
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
                ("A.ok".to_owned(), TestOutcome::Passed, String::new()),
                (
                    "A.a<b".to_owned(),
                    TestOutcome::Failed,
                    "1 > 2\ntrace".to_owned()
                ),
                ("s".to_owned(), TestOutcome::Skipped, String::new()),
            ]
        );
    }
}
