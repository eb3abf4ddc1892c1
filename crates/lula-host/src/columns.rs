//! Aligned columns; the last one wraps at a width. Pure. A cell may carry colours, which take no space.

use unicode_width::UnicodeWidthStr;

/// Narrowest the last column gets.
const MIN_LAST: usize = 24;
const GAP: usize = 2;

/// Rows of cells as lines, each behind the indent and within the width.
pub fn lay_out(rows: &[Vec<String>], indent: usize, width: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .map(|row| visible(&row[column]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let before: usize = indent
        + widths
            .iter()
            .take(columns.saturating_sub(1))
            .map(|width| width + GAP)
            .sum::<usize>();
    let last_width = width.saturating_sub(before).max(MIN_LAST);
    let mut out = String::new();
    for row in rows {
        let Some((last, first)) = row.split_last() else {
            continue;
        };
        let mut line = " ".repeat(indent);
        for (cell, width) in first.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - visible(cell) + GAP));
        }
        for (number, part) in wrap(last, last_width).iter().enumerate() {
            if number > 0 {
                line = " ".repeat(before);
            }
            line.push_str(part);
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Columns a text takes on the screen.
fn visible(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Breaks at spaces. A word longer than the width stays whole, so that it can be copied.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let word_width = visible(word);
        if used > 0 && used + 1 + word_width > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
        }
        used += word_width;
    }
    lines
}
