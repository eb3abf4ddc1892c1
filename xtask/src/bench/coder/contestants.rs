//! The coders of the race: Lula, and mini-swe-agent from the package index.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::conversation::{ModelAnswer, RecordedConversation};
use super::numbers::ConversationCost;
use super::server::ScriptedModel;
use crate::bench::program;

pub(super) const LULA: &str = "lula";
pub(super) const RIVAL: &str = "mini-swe-agent";
/// The rival, with what it asks models by, and what that needs and does not name.
const PINNED: [&str; 3] = ["mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0"];

/// One that is given a task and a model.
pub(super) struct BenchCoder {
    name: &'static str,
    program: PathBuf,
}

/// Where one conversation is had.
struct BenchPlace {
    folder: tempfile::TempDir,
}

impl BenchPlace {
    /// The project in a repository of its own, and a home without anything.
    fn of(conversation: &RecordedConversation) -> Result<Self> {
        let place = Self {
            folder: tempfile::tempdir()?,
        };
        std::fs::create_dir(place.home())?;
        copy(&conversation.project, &place.tree())?;
        for words in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message=one"],
        ] {
            done(place.git(&place.tree()).args(words))?;
        }
        Ok(place)
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn git(&self, tree: &Path) -> Command {
        let mut git = Command::new("git");
        git.current_dir(tree).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.env("HOME", self.home());
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@localhost"]);
        git
    }

    /// A program in the tree that knows nothing of this machine's settings.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.tree());
        command.env("HOME", self.home()).env("LANG", "C.UTF-8");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null());
        command
    }
}

impl BenchCoder {
    pub(super) const fn lula(program: PathBuf) -> Self {
        Self {
            name: LULA,
            program,
        }
    }

    /// The rival in an environment of its own, made once.
    pub(super) fn rival(place: &Path) -> Result<Self> {
        let python = program::venv(place, RIVAL, &PINNED)?;
        Ok(Self {
            name: RIVAL,
            program: python.with_file_name("mini"),
        })
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn version(&self) -> Result<String> {
        ensure!(self.name == RIVAL, "only the rival is installed");
        Ok(PINNED.join(" "))
    }

    fn is_lula(&self) -> bool {
        self.name == LULA
    }

    fn words(&self, url: &str, task: &str) -> Vec<String> {
        let words: Vec<String> = if self.is_lula() {
            let model = format!("openai-chat@{url}/v1/scripted");
            let words = [
                "run", "--json", "--coder", "model", "--model", &model, "--task",
            ];
            words.map(str::to_owned).into()
        } else {
            let base = format!("model.model_kwargs.api_base={url}/v1");
            let words = [
                "-c",
                "mini.yaml",
                "-c",
                &base,
                "-m",
                "openai/scripted",
                "--yolo",
                "--exit-immediately",
                "--cost-limit",
                "0",
                "--task",
            ];
            words.map(str::to_owned).into()
        };
        words.into_iter().chain([task.to_owned()]).collect()
    }

    /// The command as a person would type it.
    pub(super) fn shown(&self) -> String {
        let program = self.program.file_name().unwrap_or_default();
        let words = self.words("http://127.0.0.1:PORT", "TASK");
        format!("{} {}", program.display(), words.join(" "))
    }

    /// Has a conversation, and makes sure that the work was done.
    pub(super) fn have(&self, conversation: &RecordedConversation) -> Result<ConversationCost> {
        let answers: Vec<ModelAnswer> = if self.is_lula() {
            conversation.for_lula()
        } else {
            conversation.for_shell()
        };
        let place = BenchPlace::of(conversation)?;
        let model = ScriptedModel::start(answers)?;
        let mut command = place.command(&self.program);
        command.args(self.words(&model.url(), &conversation.text.task));
        command.env("OPENAI_API_KEY", "none");
        if !self.is_lula() {
            // It asks nothing of its makers' machines, and knows no price of a model that there is not.
            command
                .env("MSWEA_CONFIGURED", "true")
                .env("MSWEA_COST_TRACKING", "ignore_errors")
                .env("MSWEA_GLOBAL_CONFIG_DIR", place.home())
                .env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        }
        let begun = Instant::now();
        let ran = command
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let whole = begun.elapsed().as_secs_f64();
        let (asked, left, beyond) = model.told();
        let about = format!("{} on {}", self.name, conversation.name);
        if left > 0 || beyond > 0 {
            bail!(
                "{about}: {left} answers were not asked for, {beyond} questions were too many\n{}",
                said(&ran)
            );
        }
        let tree = if self.is_lula() {
            delivered(&place).with_context(|| format!("{about}\n{}", said(&ran)))?
        } else {
            place.tree()
        };
        let mut check = place.command(Path::new("sh"));
        check
            .current_dir(&tree)
            .args(["-c", &conversation.text.check]);
        done(&mut check)
            .with_context(|| format!("{about}: the work was not done\n{}", said(&ran)))?;
        let first = asked
            .first()
            .map(|one| one.came.saturating_duration_since(begun));
        let first = first.unwrap_or_default().as_secs_f64();
        Ok(ConversationCost::of(&asked, first, whole))
    }
}

/// The tree of the branch that a run delivered.
fn delivered(place: &BenchPlace) -> Result<PathBuf> {
    let mut list = place.git(&place.tree());
    list.args(["branch", "--list", "--format=%(refname:short)", "lula/*"]);
    let branches = done(&mut list)?;
    let Some(branch) = branches.lines().next() else {
        bail!("no branch was delivered");
    };
    let tree = place.folder.path().join("delivered");
    let mut add = place.git(&place.tree());
    done(
        add.args(["worktree", "add", "--quiet"])
            .arg(&tree)
            .arg(branch),
    )?;
    Ok(tree)
}

/// Runs a command to its success; what it printed.
fn done(command: &mut Command) -> Result<String> {
    let ran = command.output()?;
    let name = command.get_program().display();
    ensure!(
        ran.status.success(),
        "{name} ended with {}\n{}",
        ran.status,
        said(&ran)
    );
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn said(ran: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&ran.stdout), text(&ran.stderr))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // What a person's own runs left there.
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &target)?;
            }
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
