//! One public project on this machine, and what came of trying the product on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::counts;
use super::recipe::{Counts, Recipe, Registry};

/// Says that a project was set up to its end.
const READY: &str = "ready";

/// A project as its developers have it.
pub(super) struct Project<'a> {
    recipe: &'a Recipe,
    directory: PathBuf,
    home: PathBuf,
}

/// What came of it.
pub(super) struct Trial {
    name: String,
    plain: Option<Counts>,
    exec: Option<Counts>,
    baseline: Option<Counts>,
    with_bug: Option<Counts>,
    mended: Option<Duration>,
    exec_ratio: f64,
    baseline_ratio: f64,
    fresh: Option<(i32, Duration)>,
    pub(super) faults: Vec<String>,
}

impl<'a> Project<'a> {
    /// Downloads, unpacks, commits and sets up, unless that was done before.
    pub(super) fn set_up(recipe: &'a Recipe, home: &Path) -> Result<Self> {
        let directory = home.join(&recipe.name).join("checkout");
        let project = Self {
            recipe,
            home: home.join(&recipe.name),
            directory,
        };
        let mark = project.home.join(READY);
        let repository = recipe.repository.as_deref().unwrap_or_default();
        let wanted = format!(
            "{repository} {}\n{}",
            recipe.version,
            recipe.setup.join("\n")
        );
        if fs::read_to_string(&mark).is_ok_and(|text| text == wanted) {
            project.git(&["checkout", "--quiet", "--force", "sound"])?;
            return Ok(project);
        }
        if project.home.exists() {
            fs::remove_dir_all(&project.home)?;
        }
        fs::create_dir_all(&project.directory)?;
        project.unpack()?;
        let ignored =
            ".venv/\nnode_modules/\ntarget/\n__pycache__/\n*.egg-info/\n.pytest_cache/\n*.so\n";
        let rules = project.directory.join(".gitignore");
        let own = fs::read_to_string(&rules).unwrap_or_default();
        fs::write(&rules, format!("{own}\n{ignored}"))?;
        project.git(&["init", "--quiet", "--initial-branch=sound"])?;
        project.git(&["add", "--all"])?;
        project.git(&["commit", "--quiet", "--message=as published"])?;
        for line in &recipe.setup {
            succeeded(&project.shell(line, &project.directory)?, line)?;
        }
        fs::write(mark, wanted)?;
        Ok(project)
    }

    fn unpack(&self) -> Result<()> {
        let Recipe { name, version, .. } = self.recipe;
        let place = self.home.join("download");
        fs::create_dir_all(&place)?;
        let line = match self.recipe.registry {
            Registry::Pypi => {
                format!(
                    "python3 -m pip download --quiet --no-deps --no-binary :all: {name}=={version}"
                )
            }
            Registry::Npm => format!("npm pack --silent {name}@{version}"),
            // Of the suites that Debian carries, as its maintainers got them, from where this machine has
            // its packages.
            Registry::Debian => format!(
                "for site in $(apt-get indextargets --format '$(SITE)' | sort -u); do \
                 for kind in gz xz bz2; do curl --fail --silent --location --remote-name \
                 $site/pool/main/{initial}/{name}/{name}_{version}.orig.tar.$kind && exit 0; done; done; \
                 echo 'no such source among those of Debian: has apt-get update been run?' >&2; exit 1",
                initial = name.get(..1).unwrap_or_default(),
            ),
            Registry::Git => return self.check_out(),
            Registry::Crates => {
                fs::create_dir_all(place.join("src"))?;
                fs::write(place.join("src/lib.rs"), "")?;
                let manifest = format!(
                    "[package]\nname = \"download\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
                     [workspace]\n\n[dependencies]\n{name} = \"={version}\"\n"
                );
                fs::write(place.join("Cargo.toml"), manifest)?;
                "cargo vendor --quiet --versioned-dirs".to_owned()
            }
        };
        succeeded(&self.shell(&line, &place)?, &line)?;
        let checkout = self.directory.display();
        let line = match self.recipe.registry {
            // What was normalised for publishing is put back as its authors wrote it.
            Registry::Crates => format!(
                "cp -r vendor/{name}-{version}/. {checkout} && cd {checkout} && \
                 rm -f .cargo-checksum.json && if [ -f Cargo.toml.orig ]; then mv Cargo.toml.orig Cargo.toml; fi"
            ),
            _ => format!(
                "tar xf \"$(ls *.tar.* *.tgz 2>/dev/null | head -n 1)\" -C {checkout} --strip-components=1"
            ),
        };
        succeeded(&self.shell(&line, &place)?, &line)
    }

    /// One commit of a public repository, without its history.
    fn check_out(&self) -> Result<()> {
        let Recipe { version, .. } = self.recipe;
        let repository = self.recipe.repository.as_deref().unwrap_or_default();
        let address = format!("https://github.com/{repository}");
        self.git(&["init", "--quiet"])?;
        self.git(&["fetch", "--quiet", "--depth=1", &address, version])
            .with_context(|| {
                format!(
                    "{address} cannot be fetched from; where it is reached by another way, \
                     git's own url.<base>.insteadOf says so"
                )
            })?;
        self.git(&["checkout", "--quiet", "--detach", "FETCH_HEAD"])?;
        // Every project begins with a commit of our own, wherever it came from.
        Ok(fs::remove_dir_all(self.directory.join(".git"))?)
    }

    fn command(&self, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .stdin(Stdio::null())
            .env("LULA_STATE_DIR", self.home.join("state"))
            .env("GIT_AUTHOR_NAME", "A Developer")
            .env("GIT_AUTHOR_EMAIL", "developer@localhost")
            .env("GIT_COMMITTER_NAME", "A Developer")
            .env("GIT_COMMITTER_EMAIL", "developer@localhost")
            .env_remove("VIRTUAL_ENV")
            .env_remove("CARGO_TARGET_DIR");
        command
    }

    fn shell(&self, line: &str, directory: &Path) -> Result<Output> {
        self.command("sh", directory)
            .args(["-c", line])
            .output()
            .with_context(|| format!("cannot run {line:?}"))
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        let output = self
            .command("git", &self.directory)
            .args(arguments)
            .output()?;
        succeeded(&output, &format!("git {}", arguments.join(" ")))
    }

    /// Counts and time of a command, the quickest of so many runs.
    fn timed(runs: usize, mut make: impl FnMut() -> Command) -> Result<(Option<Counts>, Duration)> {
        let mut best: Option<(Option<Counts>, Duration)> = None;
        for _ in 0..runs {
            let begun = Instant::now();
            let output = make().output()?;
            let took = begun.elapsed();
            let counted = counts::read(&text(&output));
            if best.as_ref().is_none_or(|(_, least)| took < *least) {
                best = Some((counted, took));
            }
        }
        best.context("nothing was run")
    }

    /// Tries everything, and takes the quickest of so many runs for its time.
    pub(super) fn tried(&self, program: &Path, runs: usize) -> Result<Trial> {
        let recipe = self.recipe;
        let mut trial = Trial::of(recipe);
        let lula = program.to_str().context("the program's path is no text")?;
        let plain = || {
            let mut command = self.command("sh", &self.directory);
            command.args(["-c", &recipe.test]);
            command
        };
        let inside = || {
            let mut command = self.command(lula, &self.directory);
            command.args(["exec", "--", "sh", "-c", &recipe.test]);
            command
        };
        if runs > 1 {
            // Once for whatever is only built by the first run.
            let _ = plain().output()?;
        }
        let (counted, took) = Self::timed(runs, plain)?;
        trial.plain = counted;
        let (counted, within) = Self::timed(runs, inside)?;
        trial.exec = counted;
        trial.exec_ratio = ratio(within, took);
        trial.check(counted == trial.plain, "lula exec counts other tests");
        trial.check(
            trial.plain == Some(recipe.expected),
            "the recipe expects other counts",
        );
        trial.baseline_ratio = ratio(self.sound(lula, &mut trial, runs)?, took);
        self.seed()?;
        let output = plain().output()?;
        trial.with_bug = counts::read(&text(&output));
        let mended = self.mend(lula, &mut trial);
        self.git(&["checkout", "--quiet", "--force", "sound"])?;
        mended?;
        self.refused_where_nothing_is_installed(lula, &mut trial)?;
        Ok(trial)
    }

    fn seed(&self) -> Result<()> {
        let bug = &self.recipe.bug;
        self.git(&["checkout", "--quiet", "-B", "bug"])?;
        let path = self.directory.join(&bug.file);
        let source = fs::read_to_string(&path).with_context(|| bug.file.clone())?;
        ensure!(
            source.contains(&bug.old),
            "{} has no {:?}",
            bug.file,
            bug.old
        );
        fs::write(&path, source.replacen(&bug.old, &bug.new, 1))?;
        self.git(&["commit", "--quiet", "--all", "--message=a change"])
    }

    /// How long the baseline takes where nothing fails, and what the run says then.
    fn sound(&self, lula: &str, trial: &mut Trial, runs: usize) -> Result<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..runs {
            let output = self.ordered(lula).output()?;
            let status = output.status.code().unwrap_or(-1);
            let expected = if self.recipe.expected.failed == 0 {
                5
            } else {
                status
            };
            trial.check(status == expected, "a suite that passes is something to do");
            let traced = self.last_run(lula, "trace")?;
            let visits = traced["visits"].as_array().cloned().unwrap_or_default();
            let mut acts = visits
                .iter()
                .filter_map(|visit| visit["acts"].as_array())
                .flatten();
            let act = acts.find(|act| act["name"] == "run_tests");
            let ms = |name: &str| act.and_then(|act| act[name].as_u64());
            if let (Some(begin), Some(end)) = (ms("begin_ms"), ms("end_ms")) {
                best = best.min(Duration::from_millis(end.saturating_sub(begin)));
            }
        }
        Ok(best)
    }

    fn ordered(&self, lula: &str) -> Command {
        let mut command = self.command(lula, &self.directory);
        command.args([
            "run",
            "--repair",
            "--task",
            "fix the failing tests",
            "--quiet",
        ]);
        if let Some(tests) = &self.recipe.tests {
            command.args(["--tests", tests]);
        }
        command
    }

    /// The last run, as another command tells it.
    fn last_run(&self, lula: &str, what: &str) -> Result<Value> {
        let told = self
            .command(lula, &self.directory)
            .args([what, "last", "--json"])
            .output()?;
        serde_json::from_slice(&told.stdout)
            .with_context(|| format!("lula {what}: {}", text(&told)))
    }

    fn mend(&self, lula: &str, trial: &mut Trial) -> Result<()> {
        let begun = Instant::now();
        let output = self.ordered(lula).output()?;
        let took = begun.elapsed();
        let shown = self.last_run(lula, "show")?;
        let looked = &shown["state"]["repositories"][0]["baseline"]["looked"]["ran"];
        let count = |name: &str| looked[name].as_array().map_or(0, Vec::len);
        if looked.is_object() {
            trial.baseline = Some(Counts {
                passed: count("passing"),
                failed: count("failing") + count("flaky"),
            });
        }
        trial.check(
            trial.baseline.is_some() && trial.baseline == trial.with_bug,
            "the baseline of lula run counts other tests",
        );
        trial.check(
            trial
                .baseline
                .is_some_and(|one| one.failed > self.recipe.expected.failed),
            "the seeded bug was not seen",
        );
        if output.status.success() && shown["exit"] == "verified" {
            trial.mended = Some(took);
        }
        match self.recipe.repaired {
            Some(true) => trial.check(trial.mended.is_some(), "the seeded bug was not mended"),
            Some(false) => trial.check(
                trial.mended.is_none(),
                "a bug was mended in a language that is not repaired",
            ),
            None => {}
        }
        Ok(())
    }

    fn refused_where_nothing_is_installed(&self, lula: &str, trial: &mut Trial) -> Result<()> {
        let fresh = self.home.join("fresh");
        if fresh.exists() {
            fs::remove_dir_all(&fresh)?;
        }
        let clone = format!(
            "git clone --quiet --branch bug checkout {}",
            fresh.display()
        );
        succeeded(&self.shell(&clone, &self.home)?, &clone)?;
        if self.recipe.standalone || self.recipe.registry == Registry::Crates {
            // Crates come from a cache that every project shares: there is nothing to miss.
            return Ok(());
        }
        let begun = Instant::now();
        let output = self.ordered(lula).current_dir(&fresh).output()?;
        let status = output.status.code().unwrap_or(-1);
        trial.fresh = Some((status, begun.elapsed()));
        trial.check(
            status == 6,
            "a fresh clone was not refused as a broken environment",
        );
        Ok(())
    }
}

impl Trial {
    fn of(recipe: &Recipe) -> Self {
        Self {
            name: recipe.name.clone(),
            plain: None,
            exec: None,
            baseline: None,
            with_bug: None,
            mended: None,
            exec_ratio: 0.0,
            baseline_ratio: 0.0,
            fresh: None,
            faults: Vec::new(),
        }
    }

    pub(super) fn failed(recipe: &Recipe, fault: String) -> Self {
        Self {
            faults: vec![fault],
            ..Self::of(recipe)
        }
    }

    fn check(&mut self, holds: bool, fault: &str) {
        if !holds {
            self.faults.push(fault.to_owned());
        }
    }

    pub(super) fn held(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn header() -> String {
        format!(
            "{:<18} {:>10} {:>10} {:>10} {:>10} {:>6} {:>6} {:>8} {:>10}",
            "project", "plain", "exec", "with bug", "baseline", "exec×", "base×", "mended", "fresh"
        )
    }

    pub(super) fn line(&self) -> String {
        let counts =
            |counts: Option<Counts>| counts.map_or_else(|| "-".to_owned(), |one| one.to_string());
        let mended = self.mended.map_or_else(
            || "no".to_owned(),
            |took| format!("{:.0} s", took.as_secs_f64()),
        );
        let fresh = self.fresh.map_or_else(
            || "-".to_owned(),
            |(status, took)| format!("{status}, {:.1} s", took.as_secs_f64()),
        );
        format!(
            "{:<18} {:>10} {:>10} {:>10} {:>10} {:>6.2} {:>6.2} {:>8} {:>10}",
            self.name,
            counts(self.plain),
            counts(self.exec),
            counts(self.with_bug),
            counts(self.baseline),
            self.exec_ratio,
            self.baseline_ratio,
            mended,
            fresh
        )
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(0.001)
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{err}\n{out}")
}

fn succeeded(output: &Output, line: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = text(output);
    let tail: Vec<&str> = said.lines().rev().take(8).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    bail!("{line:?} failed:\n{}", tail.join("\n"))
}
