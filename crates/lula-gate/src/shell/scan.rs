//! Shell text, read into simple commands.
//!
//! This is no shell: it never decides what a construct does, only which simple commands stand in
//! the text. Where it is not sure, it says so. It is written here, in safe code, because the text
//! comes from models and repositories, which are not trusted, and this parser runs among those who decide.

use super::word::{Word, WordDraft};
use super::{MAX_DEPTH, MAX_TEXT, Reader};

/// Parentheses and braces inside each other, at most this deep.
const MAX_NESTING: usize = 64;

impl Reader {
    pub(super) fn shell(&mut self, text: &str, depth: usize) {
        if text.len() > MAX_TEXT || depth > MAX_DEPTH {
            self.doubt("the text is too long or too deep to read", text);
            return;
        }
        let mut scan = ShellCursor {
            reader: self,
            text: text.chars().collect(),
            at: 0,
            depth,
            nesting: 0,
        };
        scan.list(false);
    }
}

/// A place in a text.
pub(super) struct ShellCursor<'a> {
    reader: &'a mut Reader,
    text: Vec<char>,
    pub(super) at: usize,
    depth: usize,
    nesting: usize,
}

/// A command whose here-document has not been reached yet.
struct PendingCommand {
    words: Vec<Word>,
    documents: Vec<HereDocument>,
}

struct HereDocument {
    end: String,
    expands: bool,
    strips_tabs: bool,
}

/// The simple command that is being read.
#[derive(Default)]
struct PartialCommand {
    words: Vec<Word>,
    input: Option<String>,
    documents: Vec<HereDocument>,
    /// Words of `for` and `function` lines are no command.
    ignored: bool,
    /// Only reserved words may stand where a command starts.
    started: bool,
}

/// State of a list of commands up to its end.
#[derive(Default)]
struct List {
    current: PartialCommand,
    awaiting: Vec<PendingCommand>,
    parentheses: usize,
    cases: usize,
}

impl ShellCursor<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    pub(super) fn doubt(&mut self, why: &'static str) {
        let start = self.at.saturating_sub(24).min(self.text.len());
        let end = (self.at + 48).min(self.text.len());
        let part: String = self.text[start..end].iter().collect();
        self.reader.doubt(why, part.trim());
    }

    /// Goes one level down, or gives up on the rest of the text.
    pub(super) fn deeper(&mut self) -> bool {
        if self.nesting >= MAX_NESTING {
            self.doubt("the text nests too deep to read");
            self.at = self.text.len();
            return false;
        }
        self.nesting += 1;
        true
    }

    pub(super) fn shallower(&mut self) {
        self.nesting -= 1;
    }

    pub(super) fn nested_list(&mut self) {
        if self.deeper() {
            self.list(true);
            self.shallower();
        }
    }

    pub(super) fn read_nested_text(&mut self, text: &str) {
        self.reader.shell(text, self.depth + 1);
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(), self.peek_at(1)) {
                (Some(' ' | '\t'), _) => self.skip(),
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Commands up to the end of the text, or to the parenthesis that closes the list.
    fn list(&mut self, nested: bool) {
        let mut list = List::default();
        loop {
            self.skip_blanks();
            let Some(character) = self.peek() else { break };
            match character {
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.skip();
                    }
                }
                '\n' => {
                    self.skip();
                    self.flush(&mut list);
                    self.here_documents(&mut list);
                }
                ';' => self.semicolon(&mut list),
                '&' if self.peek_at(1) == Some('>') => {
                    self.skip();
                    self.redirect(&mut list);
                }
                '&' | '|' => {
                    self.skip();
                    self.flush(&mut list);
                }
                '<' | '>' => self.redirect(&mut list),
                '(' => self.open(&mut list),
                ')' => {
                    self.skip();
                    self.flush(&mut list);
                    if list.parentheses > 0 {
                        list.parentheses -= 1;
                    } else if nested {
                        self.finish(list);
                        return;
                    } else {
                        self.doubt("a parenthesis closes nothing");
                    }
                }
                _ => {
                    let before = self.at;
                    let word = self.word();
                    if self.at == before {
                        // Nothing that starts a word and nothing that separates words.
                        self.skip();
                        self.doubt("a character cannot be read");
                    } else {
                        self.take(word, &mut list);
                    }
                }
            }
        }
        if nested || list.parentheses > 0 {
            self.doubt("a parenthesis is never closed");
        }
        self.finish(list);
    }

    fn finish(&mut self, mut list: List) {
        self.flush(&mut list);
        for awaiting in std::mem::take(&mut list.awaiting) {
            self.doubt("a here-document is never given");
            self.reader.simple(awaiting.words, None, self.depth);
        }
    }

    fn flush(&mut self, list: &mut List) {
        let current = std::mem::take(&mut list.current);
        if current.ignored {
            return;
        }
        if current.documents.is_empty() {
            self.reader
                .simple(current.words, current.input.as_deref(), self.depth);
        } else {
            list.awaiting.push(PendingCommand {
                words: current.words,
                documents: current.documents,
            });
        }
    }

    fn semicolon(&mut self, list: &mut List) {
        self.skip();
        self.flush(list);
        let mut ends_case = false;
        while let Some(';' | '&') = self.peek() {
            self.skip();
            ends_case = true;
        }
        if ends_case && list.cases > 0 {
            self.case_pattern();
        }
    }

    fn open(&mut self, list: &mut List) {
        self.skip();
        if list.current.words.is_empty() && !list.current.ignored {
            list.parentheses += 1;
            return;
        }
        self.skip_blanks();
        if list.current.words.len() == 1 && self.peek() == Some(')') {
            // `name()`: what follows is its body.
            self.skip();
            list.current = PartialCommand::default();
            return;
        }
        if list.current.ignored {
            list.parentheses += 1;
            list.current = PartialCommand::default();
            return;
        }
        self.doubt("a parenthesis stands in the middle of a command");
        list.parentheses += 1;
        self.flush(list);
    }

    /// A word at the start or in the middle of a command.
    fn take(&mut self, word: WordDraft, list: &mut List) {
        // A number right before a redirection names a descriptor.
        if let (Some(text), Some('<' | '>')) = (word.as_keyword(), self.peek())
            && !text.is_empty()
            && text.chars().all(|c| c.is_ascii_digit())
        {
            return;
        }
        if list.current.words.is_empty() && !list.current.ignored {
            if !list.current.started
                && let Some(keyword) = word.as_keyword().map(str::to_owned)
                && self.keyword(&keyword, list)
            {
                return;
            }
            if let Some(name) = word.assigns().map(str::to_owned) {
                self.reader.variable(&name);
                list.current.started = true;
                if word.ends_with_equals() && self.peek() == Some('(') {
                    self.array();
                }
                return;
            }
        }
        let declares = list.current.words.first().and_then(Word::known);
        if let Some("export" | "declare" | "typeset" | "local" | "readonly") = declares
            && let Some(name) = word.assigns().map(str::to_owned)
        {
            self.reader.variable(&name);
            if word.ends_with_equals() && self.peek() == Some('(') {
                self.array();
            }
        }
        list.current.started = true;
        list.current.words.push(word.finish());
    }

    /// Whether the word is a reserved one, which belongs to no command.
    fn keyword(&mut self, word: &str, list: &mut List) -> bool {
        match word {
            "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "!"
            | "{" | "}" | "coproc" => {}
            "time" => loop {
                self.skip_blanks();
                if self.peek() != Some('-') {
                    break;
                }
                self.word();
            },
            "esac" => list.cases = list.cases.saturating_sub(1),
            "for" | "select" | "function" => {
                list.current.ignored = true;
                if word == "function" {
                    self.skip_blanks();
                    self.word();
                    self.skip_blanks();
                    if self.peek() == Some('(') {
                        self.skip();
                        self.skip_blanks();
                        if self.peek() == Some(')') {
                            self.skip();
                        }
                    }
                    list.current.ignored = false;
                }
            }
            "case" => {
                self.skip_blanks();
                self.word();
                self.skip_blanks_and_lines();
                if self.word().as_keyword() == Some("in") {
                    list.cases += 1;
                    self.case_pattern();
                } else {
                    self.doubt("a case cannot be read");
                }
            }
            "[[" => self.conditional(),
            _ => return false,
        }
        true
    }

    fn skip_blanks_and_lines(&mut self) {
        loop {
            self.skip_blanks();
            if self.peek() != Some('\n') {
                return;
            }
            self.skip();
        }
    }

    /// `a|b)` before the commands of a case; `esac` is left for the list.
    fn case_pattern(&mut self) {
        self.skip_blanks_and_lines();
        let esac: Vec<char> = "esac".chars().collect();
        if self.text[self.at.min(self.text.len())..].starts_with(&esac)
            && !self.peek_at(4).is_some_and(|c| c.is_ascii_alphanumeric())
        {
            return;
        }
        if self.peek() == Some('(') {
            self.skip();
        }
        loop {
            self.skip_blanks_and_lines();
            match self.peek() {
                Some(')') => {
                    self.skip();
                    return;
                }
                None => {
                    self.doubt("a case cannot be read");
                    return;
                }
                Some('|' | '(' | '<' | '>' | '&' | ';') => self.skip(),
                Some(_) => {
                    self.word();
                }
            }
        }
    }

    /// Inside `[[ … ]]`: words that run nothing, unless they substitute.
    fn conditional(&mut self) {
        loop {
            self.skip_blanks_and_lines();
            match self.peek() {
                None => {
                    self.doubt("a condition is never closed");
                    return;
                }
                Some('(' | ')' | '<' | '>' | '&' | '|' | ';') => self.skip(),
                Some(_) => {
                    if self.word().as_keyword() == Some("]]") {
                        return;
                    }
                }
            }
        }
    }

    fn array(&mut self) {
        self.skip();
        loop {
            self.skip_blanks_and_lines();
            match self.peek() {
                None => {
                    self.doubt("an array is never closed");
                    return;
                }
                Some(')') => {
                    self.skip();
                    return;
                }
                Some('(' | '<' | '>' | '&' | '|' | ';') => self.skip(),
                Some(_) => {
                    self.word();
                }
            }
        }
    }

    fn redirect(&mut self, list: &mut List) {
        let first = self.next();
        if self.peek() == Some('(') {
            self.skip();
            self.doubt("a command's output becomes a file");
            self.nested_list();
            list.current.started = true;
            list.current.words.push(Word::Unknown);
            return;
        }
        let mut operator: String = first.into_iter().collect();
        while let Some(character @ ('<' | '>' | '&' | '|')) = self.peek()
            && operator.len() < 3
        {
            if operator.ends_with(['&', '|']) {
                break;
            }
            operator.push(character);
            self.skip();
        }
        list.current.started = true;
        let strips_tabs = operator == "<<" && self.peek() == Some('-');
        if strips_tabs {
            self.skip();
        }
        self.skip_blanks();
        if matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(') {
            self.redirect(list);
            return;
        }
        let target = self.word();
        match operator.as_str() {
            "<<" => {
                let expands = target.as_keyword().is_some();
                match target.finish() {
                    Word::Known(end) => list.current.documents.push(HereDocument {
                        end,
                        expands,
                        strips_tabs,
                    }),
                    Word::Unknown => self.doubt("the end of a here-document cannot be told"),
                }
            }
            "<<<" => list.current.input = target.finish().known().map(str::to_owned),
            _ => {}
        }
    }

    /// The documents that follow a line, for the commands that wait for them.
    fn here_documents(&mut self, list: &mut List) {
        for awaiting in std::mem::take(&mut list.awaiting) {
            let mut input = None;
            for document in &awaiting.documents {
                input = Some(self.here_document(document));
            }
            self.reader
                .simple(awaiting.words, input.as_deref(), self.depth);
        }
    }

    fn here_document(&mut self, document: &HereDocument) -> String {
        let mut body = String::new();
        loop {
            let mut line = String::new();
            let mut ended = true;
            while let Some(character) = self.next() {
                if character == '\n' {
                    ended = false;
                    break;
                }
                line.push(character);
            }
            let stripped = if document.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if stripped == document.end {
                break;
            }
            if ended && line.is_empty() {
                self.doubt("a here-document never ends");
                break;
            }
            body.push_str(stripped);
            body.push('\n');
        }
        if document.expands && self.deeper() {
            let mut inside = ShellCursor {
                reader: &mut *self.reader,
                text: body.chars().collect(),
                at: 0,
                depth: self.depth,
                nesting: self.nesting,
            };
            inside.double_quoted(&mut WordDraft::default(), None);
            self.shallower();
        }
        body
    }
}
