//! One page for every error code, kept in `docs/errors/`. The match is exhaustive: a code without
//! a page does not compile.

use lula_protocol::Code;

macro_rules! pages {
    ($($(#[$doc:meta])* $code:ident = $name:literal),* $(,)?) => {
        /// The page of a code, in Markdown.
        pub const fn page(code: Code) -> &'static str {
            match code {
                $(Code::$code => include_str!(concat!("../../../docs/errors/", $name, ".md")),)*
            }
        }
    };
}

lula_protocol::for_each_code!(pages);

/// The title of a page: its first line without the code.
pub fn title(code: Code) -> &'static str {
    let first = page(code).lines().next().unwrap_or_default();
    first.split_once(": ").map_or(first, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_about_its_code_and_says_what_to_do() {
        for &code in Code::ALL {
            let page = page(code);
            assert!(page.starts_with(&format!("# {code}: ")), "{code}");
            assert!(page.contains("\n## What to do\n"), "{code}");
        }
    }
}
