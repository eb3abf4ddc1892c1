//! Text for people: what a model or a repository wrote, so that nothing of it acts on a terminal, and
//! numbers.

/// Escapes what a terminal would act on, and characters that hide or reorder others.
pub fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        let hides = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if (c.is_control() && c != '\t') || hides {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// One line that acts on no terminal, no longer than this.
pub fn plain(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = visible(&line);
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Millionths of a dollar in dollars, for people: a price is far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "at most 10^11")]
pub fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// Millionths of a dollar as people write them.
pub fn usd(micro: u64) -> String {
    if micro == 0 {
        return "$0".to_owned();
    }
    format!("${}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_said_acts_on_a_terminal() {
        let hostile = "a\u{1b}[2Jb\r\nc\u{202e}d";
        assert_eq!(plain(hostile, 99), "a\\u{1b}[2Jb c\\u{202e}d");
        assert_eq!(plain(&"x".repeat(300), 10).chars().count(), 10);
    }
}
