//! What a model writes, line by line as it comes: headings, lists, emphasis, code. Whatever a terminal
//! would act on is shown, never sent.

use anstyle::Style;
use lula_host::text::visible;

use crate::code::highlighted;
use crate::style::{DIM, NAME, PLAIN, STRONG, Span, rows};

/// Where in a text the next line stands.
#[derive(Debug, Default, Clone)]
pub(crate) struct Markdown {
    /// Inside a block of code: what closes it.
    fence: Option<String>,
}

impl Markdown {
    /// A whole line as rows of the terminal.
    pub(crate) fn line(&mut self, line: &str, columns: usize) -> Vec<String> {
        let line = visible(&line.replace('\t', "    "));
        let trimmed = line.trim_start();
        if let Some(fence) = &self.fence {
            if trimmed.trim_end() == *fence {
                self.fence = None;
                return Vec::new();
            }
            let mut spans = vec![(DIM, "  │ ".to_owned())];
            spans.extend(highlighted(&line));
            return rows(&spans, "  │ ", columns);
        }
        if let Some(fence) = fence_of(trimmed) {
            self.fence = Some(fence);
            return Vec::new();
        }
        let level = trimmed.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&level) && trimmed[level..].starts_with(' ') {
            let text = trimmed[level..].trim();
            return rows(&[(STRONG, text.to_owned())], "", columns);
        }
        let indent = line.len() - trimmed.len();
        let bullet = ["- ", "* ", "+ "]
            .iter()
            .find_map(|mark| trimmed.strip_prefix(mark));
        if let Some(text) = bullet {
            let before = " ".repeat(indent + 2);
            let mut spans = vec![(DIM, format!("{}• ", " ".repeat(indent)))];
            spans.extend(inline(text));
            return rows(&spans, &before, columns);
        }
        if let Some(text) = trimmed.strip_prefix("> ") {
            let mut spans = vec![(DIM, "▎ ".to_owned())];
            spans.extend(inline(text));
            return rows(&spans, "  ", columns);
        }
        rows(&inline(&line), &" ".repeat(indent.min(8)), columns)
    }
}

fn fence_of(line: &str) -> Option<String> {
    ["```", "~~~"].into_iter().find_map(|mark| {
        let first = mark.chars().next()?;
        let long = line.chars().take_while(|c| *c == first).count();
        (long >= 3).then(|| mark[..1].repeat(long))
    })
}

/// Emphasis and code within a line. A mark that is never closed is a letter like others.
fn inline(text: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let found = [("`", NAME), ("**", STRONG)]
            .into_iter()
            .find_map(|(mark, style)| marked(rest, mark, style));
        if let Some((style, inner, after)) = found {
            if !plain.is_empty() {
                spans.push((PLAIN, std::mem::take(&mut plain)));
            }
            spans.push((style, inner.to_owned()));
            rest = after;
        } else {
            let mut chars = rest.chars();
            plain.extend(chars.next());
            rest = chars.as_str();
        }
    }
    if !plain.is_empty() || spans.is_empty() {
        spans.push((PLAIN, plain));
    }
    spans
}

fn marked<'a>(text: &'a str, mark: &str, style: Style) -> Option<(Style, &'a str, &'a str)> {
    let inner = text.strip_prefix(mark)?;
    let end = inner.find(mark).filter(|end| *end > 0)?;
    Some((style, &inner[..end], &inner[end + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let mut markdown = Markdown::default();
        let rows = text.lines().flat_map(|line| markdown.line(line, 40));
        rows.map(|row| anstream::adapter::strip_str(&row).to_string())
            .collect()
    }

    #[test]
    fn a_text_is_shown_without_its_marks() {
        let text = "# Done\n- **first** uses `sum`\n```python\nreturn 1  # one\n```\n> quoted";
        assert_eq!(
            shown(text),
            [
                "Done",
                "• first uses sum",
                "  │ return 1  # one",
                "▎ quoted"
            ]
        );
    }

    #[test]
    fn marks_that_are_not_closed_are_letters() {
        assert_eq!(shown("2 ** 3 is `8"), ["2 ** 3 is `8"]);
    }

    #[test]
    fn nothing_a_model_writes_acts_on_the_terminal() {
        let rows = shown("a\u{1b}[2Jb\u{202e}c\u{7}");
        assert_eq!(rows, ["a\\u{1b}[2Jb\\u{202e}c\\u{7}"]);
    }
}
