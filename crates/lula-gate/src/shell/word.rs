//! Words: what quoting and escaping leave of a piece of shell text.

use super::scan::ShellCursor;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly these characters, whatever the shell's variables are.
    Known(String),
    /// Anything: no word, one or many. Variables, substitutions and globs become this.
    Unknown,
}

impl Word {
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Unknown => None,
        }
    }

    pub(super) fn shown(&self) -> &str {
        self.known().unwrap_or("…")
    }
}

/// A word while it is read.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing seen, in any combination"
)]
pub(super) struct WordDraft {
    text: String,
    /// What stands before the first quote or expansion.
    bare: String,
    quoted: bool,
    unknown: bool,
    bracket: bool,
    brace: bool,
}

impl WordDraft {
    /// The text, if no quote and no expansion took part in it: only then is it a keyword.
    pub(super) fn as_keyword(&self) -> Option<&str> {
        (!self.quoted && !self.unknown).then_some(self.text.as_str())
    }

    /// The variable that a word of the form `NAME=…` sets.
    pub(super) fn assigns(&self) -> Option<&str> {
        let (name, _) = self.bare.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split('[').next().unwrap_or(name);
        let mut characters = name.chars();
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        let plain = characters.next().is_some_and(starts)
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        plain.then_some(name)
    }

    pub(super) fn ends_with_equals(&self) -> bool {
        !self.quoted && !self.unknown && self.text.ends_with('=')
    }

    pub(super) fn finish(self) -> Word {
        if self.unknown {
            Word::Unknown
        } else {
            Word::Known(self.text)
        }
    }

    fn literal(&mut self, character: char) {
        self.text.push(character);
        if !self.quoted && !self.unknown {
            self.bare.push(character);
        }
    }

    /// A character outside quotes. Globs and braces expand.
    fn unquoted(&mut self, character: char) {
        match character {
            '*' | '?' => self.unknown = true,
            '[' => self.bracket = true,
            ']' => self.unknown |= self.bracket && self.text != "[" && !self.text.is_empty(),
            '{' => self.brace = true,
            ',' => self.unknown |= self.brace,
            '.' => self.unknown |= self.brace && self.text.ends_with('.'),
            _ => {}
        }
        self.literal(character);
    }
}

impl ShellCursor<'_> {
    /// The word that starts here, up to the next character that ends words.
    pub(super) fn word(&mut self) -> WordDraft {
        let mut word = WordDraft::default();
        while let Some(character) = self.peek() {
            match character {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.skip();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped) => {
                            word.quoted = true;
                            word.literal(escaped);
                        }
                    }
                }
                '\'' => {
                    self.skip();
                    word.quoted = true;
                    self.single_quoted(&mut word);
                }
                '"' => {
                    self.skip();
                    word.quoted = true;
                    self.double_quoted(&mut word, Some('"'));
                }
                '$' if self.peek_at(1) == Some('\'') => {
                    self.at += 2;
                    word.quoted = true;
                    match self.ansi_c() {
                        Some(text) => word.text.push_str(&text),
                        None => word.unknown = true,
                    }
                }
                '$' if self.peek_at(1) == Some('"') => self.skip(),
                '$' => self.dollar(&mut word),
                '`' => self.backtick(&mut word),
                _ => {
                    self.skip();
                    word.unquoted(character);
                }
            }
        }
        word
    }

    fn single_quoted(&mut self, word: &mut WordDraft) {
        loop {
            match self.next() {
                Some('\'') => return,
                Some(character) => word.literal(character),
                None => {
                    self.doubt("a quote is never closed");
                    return;
                }
            }
        }
    }

    /// Text in which only expansions and a few escapes mean something.
    pub(super) fn double_quoted(&mut self, word: &mut WordDraft, end: Option<char>) {
        loop {
            match self.peek() {
                None => {
                    if end.is_some() {
                        self.doubt("a quote is never closed");
                    }
                    return;
                }
                some if some == end => {
                    self.skip();
                    return;
                }
                Some('\\') => {
                    self.skip();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => word.literal(escaped),
                        Some(other) => {
                            word.literal('\\');
                            word.literal(other);
                        }
                    }
                }
                Some('$') => self.dollar(word),
                Some('`') => self.backtick(word),
                Some(character) => {
                    self.skip();
                    word.literal(character);
                }
            }
        }
    }

    /// A dollar sign and what it expands.
    fn dollar(&mut self, word: &mut WordDraft) {
        self.skip();
        match self.peek() {
            Some('(') => {
                self.skip();
                word.unknown = true;
                self.doubt("a command's output becomes part of it");
                self.nested_list();
            }
            Some('{') => {
                self.skip();
                word.unknown = true;
                self.parameter();
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                word.unknown = true;
                while self
                    .peek()
                    .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
                {
                    self.skip();
                }
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                word.unknown = true;
                self.skip();
            }
            Some('[') => {
                // Old arithmetic: never a plain word.
                word.unknown = true;
                self.doubt("an old form of arithmetic is not read");
            }
            _ => word.literal('$'),
        }
    }

    /// Inside `${…}`, up to its end. What expands in there is read, the rest is skipped.
    fn parameter(&mut self) {
        if !self.deeper() {
            return;
        }
        let mut ignored = WordDraft::default();
        loop {
            match self.peek() {
                None => {
                    self.doubt("a brace is never closed");
                    break;
                }
                Some('}') => {
                    self.skip();
                    break;
                }
                Some('\\') => self.at += 2,
                Some('\'') => {
                    self.skip();
                    self.single_quoted(&mut ignored);
                }
                Some('"') => {
                    self.skip();
                    self.double_quoted(&mut ignored, Some('"'));
                }
                Some('$') => self.dollar(&mut ignored),
                Some('`') => self.backtick(&mut ignored),
                Some(_) => self.skip(),
            }
        }
        self.shallower();
    }

    fn backtick(&mut self, word: &mut WordDraft) {
        self.skip();
        word.unknown = true;
        self.doubt("a command's output becomes part of it");
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(escaped @ ('`' | '\\' | '$')) => text.push(escaped),
                    Some(other) => text.extend(['\\', other]),
                    None => {}
                },
                Some(character) => text.push(character),
                None => {
                    self.doubt("a quote is never closed");
                    break;
                }
            }
        }
        self.read_nested_text(&text);
    }

    /// Inside `$'…'`, where escapes can spell anything.
    fn ansi_c(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            let character = self.next()?;
            match character {
                '\'' => break,
                '\\' => self.ansi_c_escape(&mut bytes)?,
                other => bytes.extend(other.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        // The shell ends a word at a zero byte.
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            bytes.truncate(end);
        }
        String::from_utf8(bytes).ok()
    }

    fn ansi_c_escape(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        if let Some(value) = self.digits(8, 3) {
            bytes.push(value.to_le_bytes()[0]);
            return Some(());
        }
        let byte = match self.next()? {
            'x' => self.digits(16, 2)?.to_le_bytes()[0],
            letter @ ('u' | 'U') => {
                let most = if letter == 'u' { 4 } else { 8 };
                let character = char::from_u32(self.digits(16, most)?)?;
                bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Some(());
            }
            'c' => u32::from(self.next()?).to_le_bytes()[0] & 0x1f,
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            other @ ('\\' | '\'' | '"' | '?') => u32::from(other).to_le_bytes()[0],
            // The backslash stays before anything else.
            other => {
                bytes.push(b'\\');
                bytes.extend(other.encode_utf8(&mut [0; 4]).bytes());
                return Some(());
            }
        };
        bytes.push(byte);
        Some(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut text = String::new();
        while text.len() < most
            && let Some(digit) = self.peek().filter(|c| c.is_digit(radix))
        {
            text.push(digit);
            self.skip();
        }
        u32::from_str_radix(&text, radix).ok()
    }
}
