//! Places in the project that an error message names.

/// The project's files and lines in a message, in the order of their appearance.
pub(crate) fn frames<'a>(
    message: &str,
    paths: impl Iterator<Item = &'a str>,
) -> Vec<(&'a str, usize)> {
    let mut found: Vec<(usize, &str, usize)> = Vec::new();
    for path in paths {
        for (at, _) in message.match_indices(path) {
            let before = message[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) {
                continue;
            }
            let rest = &message[at + path.len()..];
            let digits = rest
                .strip_prefix("\", line ")
                .or_else(|| rest.strip_prefix(':'))
                .unwrap_or_default();
            let number: String = digits.chars().take_while(char::is_ascii_digit).collect();
            if let Ok(line) = number.parse() {
                found.push((at, path, line));
            }
        }
    }
    found.sort_unstable();
    found
        .into_iter()
        .map(|(_, path, line)| (path, line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_every_kind_of_trace() {
        let message = "  File \"/tmp/x/shop/cart.py\", line 12, in total\n\
                       at add (file:///tmp/x/src/cart.js:7:3)\n\
                       panicked at src/lib.rs:30:9:\nmysrc/lib.rs:1:1";
        let paths = ["src/lib.rs", "src/cart.js", "shop/cart.py", "cart.py"];
        assert_eq!(
            frames(message, paths[..3].iter().copied()),
            [("shop/cart.py", 12), ("src/cart.js", 7), ("src/lib.rs", 30)]
        );
    }
}
