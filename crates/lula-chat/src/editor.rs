//! The line a person types: several rows, a history for each repository, search, completion, and pastes
//! that are too long to look at kept beside it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crossterm::event::Event;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, EditMode, Emacs, FileBackedHistory,
    KeyCode, KeyModifiers, Keybindings, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch,
    PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, ReedlineRawEvent, Signal,
    Span, Suggestion, ValidationResult, Validator, Vi, default_emacs_keybindings,
    default_vi_insert_keybindings, default_vi_normal_keybindings, default_vi_visual_keybindings,
};

use crate::commands::COMMANDS;

/// Most lines of the history that are kept.
const HISTORY: usize = 2_000;
/// A paste of more lines or bytes is kept beside what is typed.
const LINES: usize = 12;
const BYTES: usize = 2_000;
/// Most suggestions that are shown.
const SUGGESTED: usize = 40;
const MENU: &str = "completions";

/// What a person did at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// Gave up what was typed.
    Interrupted,
    Ended,
}

pub(crate) struct LineEditor {
    editor: Reedline,
    pasted: Arc<Mutex<Vec<String>>>,
}

impl LineEditor {
    /// With the history in that file, and these names to complete after `@`.
    pub(crate) fn new(history: &Path, files: Vec<String>, colour: bool) -> Self {
        let pasted = Arc::new(Mutex::new(Vec::new()));
        let keeper = |keys: Box<dyn EditMode>| {
            Box::new(PasteKeeper {
                keys,
                pasted: Arc::clone(&pasted),
            })
        };
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut editor = Reedline::create()
            .with_ansi_colors(colour)
            .use_bracketed_paste(true)
            .with_completer(Box::new(Names { files }))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_validator(Box::new(Continued))
            .with_edit_mode(keeper(keys()));
        // Where none can be kept, there is none.
        if let Ok(history) = FileBackedHistory::with_file(HISTORY, history.to_owned()) {
            editor = editor.with_history(Box::new(history));
        }
        Self { editor, pasted }
    }

    /// Reads what a person types, beginning with what they typed already.
    pub(crate) fn read(&mut self, begun: &str, right: &str) -> io::Result<Typed> {
        if !begun.is_empty() {
            let begun = EditCommand::InsertString(begun.to_owned());
            self.editor.run_edit_commands(&[begun]);
        }
        let prompt = ChatPrompt {
            right: right.to_owned(),
        };
        let read = self.editor.read_line(&prompt);
        let read = read.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(match read {
            Signal::Success(line) => Typed::Line(self.whole(&line)),
            Signal::HostCommand(line) => Typed::Line(line),
            Signal::CtrlD => Typed::Ended,
            _ => Typed::Interrupted,
        })
    }

    /// What was typed with what was pasted in its place.
    fn whole(&self, line: &str) -> String {
        let mut pasted = self.pasted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = line.to_owned();
        for (at, paste) in pasted.iter().enumerate() {
            let block = format!("\n<pasted>\n{}\n</pasted>\n", paste.trim_end());
            text = text.replace(&label(at, paste), &block);
        }
        pasted.clear();
        text.trim().to_owned()
    }
}

/// What stands for a paste while a line is typed.
fn label(at: usize, paste: &str) -> String {
    format!("[pasted {} lines #{}]", paste.lines().count(), at + 1)
}

/// Keys as the person's other programs have them: `set editing-mode vi` in `~/.inputrc` is heard.
fn keys() -> Box<dyn EditMode> {
    let named = std::env::var_os("INPUTRC").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".inputrc"));
    let file = named
        .or_else(usual)
        .and_then(|path| std::fs::read_to_string(path).ok());
    let says_vi = |line: &str| line.split_whitespace().eq(["set", "editing-mode", "vi"]);
    if file.is_some_and(|text| text.lines().any(says_vi)) {
        let mut insert = default_vi_insert_keybindings();
        bind(&mut insert);
        return Box::new(Vi::new(
            insert,
            default_vi_normal_keybindings(),
            default_vi_visual_keybindings(),
        ));
    }
    let mut keys = default_emacs_keybindings();
    bind(&mut keys);
    Box::new(Emacs::new(keys))
}

fn bind(keys: &mut Keybindings) {
    let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
    let complete = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let change = ReedlineEvent::ExecuteHostCommand("/diff".to_owned());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('g'), change);
}

/// Keeps long pastes beside the line.
struct PasteKeeper {
    keys: Box<dyn EditMode>,
    pasted: Arc<Mutex<Vec<String>>>,
}

impl EditMode for PasteKeeper {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = match Event::from(event) {
            Event::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                if text.lines().count() > LINES || text.len() > BYTES {
                    let mut pasted = self.pasted.lock().unwrap_or_else(PoisonError::into_inner);
                    let label = label(pasted.len(), &text);
                    pasted.push(text);
                    return ReedlineEvent::Edit(vec![EditCommand::InsertString(label)]);
                }
                // What would act on the terminal while it is looked at is left out.
                let harmless = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
                Event::Paste(text.chars().filter(harmless).collect())
            }
            other => other,
        };
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.keys.parse_event(event),
            Err(()) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.keys.edit_mode()
    }
}

/// A line that ends with a backslash goes on.
struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Commands after `/`, files after `@`.
struct Names {
    files: Vec<String>,
}

impl Names {
    fn suggested(&self, line: &str, at: usize) -> Vec<Suggestion> {
        let before = line.get(..at).unwrap_or(line);
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + 1);
        let word = &before[start..];
        let suggestion = |value: String, description: Option<String>| Suggestion {
            value,
            description,
            span: Span::new(start, at),
            append_whitespace: true,
            ..Suggestion::default()
        };
        if start == 0 && word.starts_with('/') {
            let fitting = COMMANDS.iter().filter(|one| one.name.starts_with(word));
            return fitting
                .map(|one| suggestion(one.name.to_owned(), Some(one.about.to_owned())))
                .collect();
        }
        let Some(part) = word.strip_prefix('@') else {
            return Vec::new();
        };
        let part = part.to_lowercase();
        let fits = |path: &&String| path.to_lowercase().contains(&part);
        let mut fitting: Vec<&String> = self.files.iter().filter(fits).collect();
        // What begins so comes first, then what is called so.
        fitting.sort_by_key(|path| {
            let lower = path.to_lowercase();
            let name = lower.rsplit('/').next().unwrap_or_default();
            (
                !lower.starts_with(&part),
                !name.starts_with(&part),
                path.len(),
            )
        });
        let fitting = fitting.into_iter().take(SUGGESTED);
        fitting
            .map(|path| suggestion(format!("@{path}"), None))
            .collect()
    }
}

impl Completer for Names {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        CompletionResult::fresh(self.suggested(line, at))
    }
}

struct ChatPrompt {
    right: String,
}

impl Prompt for ChatPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.right)
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("› ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing ",
        };
        Cow::Owned(format!("({found}search: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        let files = ["src/items.py", "tests/test_items.py", "README.md"];
        let names = Names {
            files: files.map(str::to_owned).to_vec(),
        };
        let found = names.suggested(line, line.len());
        found.into_iter().map(|one| one.value).collect()
    }

    #[test]
    fn commands_and_files_are_completed_where_they_can_stand() {
        assert_eq!(names("/dif"), ["/diff"]);
        assert_eq!(
            names("look at @items"),
            ["@src/items.py", "@tests/test_items.py"]
        );
        assert_eq!(names("@src/"), ["@src/items.py"]);
        assert!(names("look /dif").is_empty() && names("items").is_empty());
    }

    #[test]
    fn a_long_paste_stands_in_the_line_as_its_size() {
        let pasted = Arc::new(Mutex::new(Vec::new()));
        let mut keeper = PasteKeeper {
            keys: keys(),
            pasted: Arc::clone(&pasted),
        };
        let lines: Vec<String> = (0..1000)
            .map(|number| format!("line {number}\r\n"))
            .collect();
        let text = lines.concat();
        let event = ReedlineRawEvent::try_from(Event::Paste(text)).unwrap();
        let ReedlineEvent::Edit(edits) = keeper.parse_event(event) else {
            panic!("no edit");
        };
        let label = "[pasted 1000 lines #1]".to_owned();
        assert_eq!(edits, [EditCommand::InsertString(label.clone())]);
        assert!(pasted.lock().unwrap()[0].contains("line 0\nline 1\n"));
    }
}
