//! Text for a terminal: what somebody else wrote, so that nothing of it acts there, and numbers.

/// Escapes what a terminal would act on, and characters that hide or reorder others.
pub(crate) fn visible(line: &str) -> String {
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
pub(crate) fn plain(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = visible(&line);
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// A number of bytes as people say it.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    UNITS
        .iter()
        .find(|(_, factor)| bytes >= *factor)
        .map_or_else(
            || format!("{bytes} B"),
            |(unit, factor)| format!("{}.{} {unit}", bytes / factor, bytes % factor * 10 / factor),
        )
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

    #[test]
    fn sizes_read_like_people_say_them() {
        assert_eq!(bytes(1_610_612_736), "1.5 GiB");
        assert_eq!(bytes(12), "12 B");
    }
}
