//! git: its global options, its aliases, and its commands that run other commands.

use super::word::Word;

/// A git command without its global options.
pub(super) struct GitCommandLine {
    pub(super) words: Vec<Word>,
    pub(super) doubts: Vec<(&'static str, String)>,
    /// Shell text that git would run.
    pub(super) shell: Vec<Word>,
    /// A command that git would run.
    pub(super) command: Option<Vec<Word>>,
    /// Aliases that are set on the command line, by their small names.
    aliases: Vec<(String, String)>,
}

const TAKE_VALUE: [&str; 9] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Configuration that cannot name a program.
const HARMLESS: [&str; 14] = [
    "user.",
    "author.",
    "committer.",
    "color.",
    "advice.",
    "gc.",
    "log.",
    "column.",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "safe.directory",
    "core.quotepath",
    "core.autocrlf",
];

pub(super) fn without_global_options(words: Vec<Word>) -> GitCommandLine {
    let mut read = GitCommandLine {
        words: Vec::with_capacity(words.len()),
        doubts: Vec::new(),
        shell: Vec::new(),
        command: None,
        aliases: Vec::new(),
    };
    let mut words = words.into_iter();
    read.words.extend(words.next());
    while let Some(word) = words.next() {
        let Some(option) = word.known().filter(|word| word.starts_with('-')) else {
            read.words.push(word);
            break;
        };
        // A glued value is not a separate word.
        if TAKE_VALUE.contains(&option) && option != "--exec-path" {
            let is_setting = matches!(option, "-c" | "--config-env");
            match (is_setting, words.next()) {
                (true, Some(Word::Known(setting))) => read.setting(&setting),
                (true, _) => read
                    .doubts
                    .push(("a git setting decides what runs", option.to_owned())),
                (false, _) => {}
            }
        } else if let Some(setting) = option.strip_prefix("--config-env=") {
            read.setting(setting);
        } else if option.starts_with("--exec-path=") {
            read.doubts
                .push(("git takes its programs from elsewhere", option.to_owned()));
        }
    }
    read.words.extend(words);
    read.subcommand();
    read
}

impl GitCommandLine {
    fn setting(&mut self, setting: &str) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let key = key.to_lowercase();
        if let Some(name) = key.strip_prefix("alias.") {
            self.aliases.push((name.to_owned(), value.to_owned()));
        }
        if !HARMLESS.iter().any(|harmless| key.starts_with(harmless)) {
            self.doubts
                .push(("a git setting decides what runs", setting.to_owned()));
        }
    }

    /// What an alias of this very command line stands for: git words, or shell text behind a `!`.
    /// It stays a doubt, and what it runs is read as well.
    fn expand(&mut self, name: &str) {
        let Some((_, value)) = self.aliases.iter().rev().find(|(known, _)| known == name) else {
            return;
        };
        let text = match value.strip_prefix('!') {
            Some(shell) => shell.to_owned(),
            None => format!("git {value}"),
        };
        let rest: Option<Vec<&str>> = self.words[2..].iter().map(Word::known).collect();
        // Arguments are appended as they are; one that is known only then hides nothing before it.
        let rest = rest.unwrap_or_default().into_iter();
        let quoted = rest.map(|word| format!(" '{}'", word.replace('\'', "'\\''")));
        let line = quoted.fold(text, |line, word| line + &word);
        self.shell.push(Word::Known(line));
    }

    fn subcommand(&mut self) {
        let Some(subcommand) = self.words.get(1).and_then(Word::known) else {
            return;
        };
        if !is_command(subcommand) {
            self.doubts
                .push(("it may be a git alias", format!("git {subcommand}")));
            self.expand(&subcommand.to_lowercase());
            return;
        }
        let texts = |from: usize| self.words.get(from..).unwrap_or_default().iter().cloned();
        match (subcommand, self.words.get(2).and_then(Word::known)) {
            ("submodule", Some("foreach")) => {
                let words: Option<Vec<_>> = self.words[3..]
                    .iter()
                    .map(|word| {
                        word.known()
                            .filter(|word| *word != "--recursive" && *word != "-q")
                            .or(Some(""))
                    })
                    .collect();
                let all_known = self.words[3..].iter().all(|word| word.known().is_some());
                self.shell.push(match words {
                    Some(words) if all_known => Word::Known(words.join(" ")),
                    _ => Word::Unknown,
                });
            }
            ("bisect", Some("run")) => self.command = Some(texts(3).collect()),
            ("rebase", _) => {
                let mut rest = texts(2);
                while let Some(word) = rest.next() {
                    match word.known() {
                        Some("-x" | "--exec") => self.shell.extend(rest.next()),
                        Some(text) => {
                            if let Some(text) = text.strip_prefix("--exec=") {
                                self.shell.push(Word::Known(text.to_owned()));
                            }
                        }
                        None => {}
                    }
                }
            }
            ("filter-branch", _) => self.doubts.push((
                "git runs shell text on every commit",
                "git filter-branch".to_owned(),
            )),
            _ => {}
        }
    }
}

/// Whether git itself has a command of that name; anything else may be an alias.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.split_ascii_whitespace().any(|known| known == name)
}

const COMMANDS: &str = "
add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file check-attr
check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean
clone column commit commit-graph commit-tree config count-objects credential credential-cache
credential-store daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree difftool
fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo
format-patch fsck gc get-tar-commit-id gitk grep gui hash-object help hook http-backend http-fetch
http-push imap-send index-pack init init-db instaweb interpret-trailers lfs log ls-files ls-remote
ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-one-file
merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4 pack-objects pack-redundant
pack-refs patch-id prune prune-packed pull push quiltimport range-diff read-tree rebase receive-pack
reflog refs remote repack replace replay request-pull rerere reset restore rev-list rev-parse revert
rm send-email send-pack shell shortlog show show-branch show-index show-ref sparse-checkout stage
stash status stripspace submodule switch symbolic-ref tag unpack-file unpack-objects update-index
update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag
version whatchanged worktree write-tree
";
