//! Characters that show something else than they are, or nothing at all.

use super::{Finding, FindingConfidence, FindingLabel};

pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    if text.is_ascii() {
        return;
    }
    let mut characters = text.char_indices().peekable();
    let mut before = None;
    while let Some((at, character)) = characters.next() {
        let found = match character {
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Some((
                FindingLabel::Bidi,
                FindingConfidence::High,
                "bidirectional override",
            )),
            '\u{200E}' | '\u{200F}' | '\u{061C}' => {
                Some((FindingLabel::Bidi, FindingConfidence::Low, "direction mark"))
            }
            '\u{E0000}'..='\u{E007F}' => flag_tag(before).then_some((
                FindingLabel::Invisible,
                FindingConfidence::High,
                "tag characters",
            )),
            // Emoji and several scripts are written with joiners; a word of letters is not.
            '\u{200C}' | '\u{200D}' => {
                let after = characters.peek().map(|(_, next)| *next);
                let in_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                (in_word(before) || in_word(after)).then_some((
                    FindingLabel::Invisible,
                    FindingConfidence::Medium,
                    "joiner inside a word",
                ))
            }
            '\u{FEFF}' if at == 0 => None,
            '\u{200B}'
            | '\u{2060}'..='\u{2064}'
            | '\u{FEFF}'
            | '\u{00AD}'
            | '\u{180E}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{3164}'
            | '\u{FFA0}' => Some((
                FindingLabel::Invisible,
                FindingConfidence::Medium,
                "invisible character",
            )),
            '\u{FE00}'..='\u{FE0F}' => {
                let after_ascii = before.is_some_and(|c: char| c.is_ascii_alphabetic());
                let run = characters
                    .peek()
                    .is_some_and(|(_, next)| ('\u{FE00}'..='\u{FE0F}').contains(next));
                (after_ascii || run).then_some((
                    FindingLabel::Invisible,
                    FindingConfidence::Medium,
                    "variation selectors in a row",
                ))
            }
            '\u{E0100}'..='\u{E01EF}' => Some((
                FindingLabel::Invisible,
                FindingConfidence::Medium,
                "variation selector",
            )),
            _ => None,
        };
        if let Some((label, confidence, what)) = found {
            findings.push(Finding {
                label,
                span: at..at + character.len_utf8(),
                confidence,
                what,
            });
        }
        before = Some(character);
    }
}

/// Tag characters spell invisible text, except behind a flag, where they name a region.
fn flag_tag(before: Option<char>) -> bool {
    !before.is_some_and(|c| c == '\u{1F3F4}' || ('\u{E0061}'..='\u{E007A}').contains(&c))
        || before.is_none()
}
