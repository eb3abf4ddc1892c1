//! `lula run` and `lula resume`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lula_agents::choose::Standing;
use lula_agents::glean::confidence::learn;
use lula_agents::glean::{Calibration, Guidance};
use lula_agents::lessons::{MOST, View};
use lula_agents::route::Lane;
use lula_agents::task::Terms;
use lula_agents::team::Team;
use lula_agents::{CoderChoice, Deliver, Task};
use lula_config::keys;
use lula_protocol::{Amounts, Code, Dimension, Exit, Signal};
use lula_sandbox::policy::Profile;
use lula_store::Store;
use lula_workspace::Git;

use super::drive::{self, Answers, Desk};
use super::{background, folder};
use crate::cli::runs::{
    self as asked, Approve, Coder, LaneChoice, LimitFlags, ResumeFlags, RunFlags,
};
use crate::failure::Failure;
use crate::guidelines;
use crate::record::local_principal;
use crate::runs::{self, consent, labels, lessons, minds, standing, store, worker};
use crate::sandboxed;
use crate::session::Session;
use crate::term::{DIM, paint};

pub(super) fn run(flags: &RunFlags, session: &Session) -> Result<Exit, Failure> {
    let mut task = task(flags, session)?;
    runs::block_on(async {
        let looked = store::open(session, lula_store::SecretGuard::default()).await?;
        // One model needs no choosing.
        if task.models.len() > 1 {
            let (stats, _) = standing::stats(Arc::clone(&looked)).await?;
            task.standing = standing::standing(&stats);
            let named = |known: &Standing| task.models.iter().any(|mind| mind.name == known.model);
            task.standing.retain(named);
        }
        if !task.models.is_empty() {
            task.lessons = view(&task.repository, Arc::clone(&looked), session).await?;
        }
        task.guidance.calibration = calibration(Arc::clone(&looked), session).await?;
        if flags.detach {
            // Whoever goes on with it must not be locked out of what this process would be.
            let reader = runs::reader(Arc::clone(&looked))?;
            let run = drive::begin(&reader, &task, limits(&flags.limits)).await?;
            let max_time = flags.limits.max_time;
            return background::detach(&run, flags.approve, max_time, &*looked, session).await;
        }
        drop(looked);
        let desk = Desk::open(&task, Answers::from(flags.approve), session).await?;
        let run = drive::begin(&desk.engine, &task, limits(&flags.limits)).await?;
        session.screen.note(&format!("{} {run}", paint(DIM, "run")));
        desk.drive(&run, flags.limits.max_time).await
    })
}

/// What the flags ask for, checked as far as it can be before anything is begun.
pub(super) fn task(flags: &RunFlags, session: &Session) -> Result<Task, Failure> {
    if flags.task.trim().is_empty() {
        let message = "the task is empty";
        return Err(Failure::new(Code::BadCommandLine, Exit::Usage, message)
            .remedy("say what is to be done: --task 'fix the failing tests'"));
    }
    let git = find_git(session)?;
    let (repository, here) = repository(flags.repo.first().map(PathBuf::as_path), &git)?;
    let also = others(flags, &repository, &git)?;
    let paths = Task {
        also: also.clone(),
        ..Task::new(&flags.task, repository.to_string_lossy())
    };
    let also_terms = terms(&paths, flags, session)?;
    let accept = named_for(&paths, &flags.accept, 0);
    let folder = folder::meant(&repository, &here, !flags.repo.is_empty());
    let policy = sandboxed::policy(session, Profile::Build);
    let models = minds::named(&flags.model, session)?;
    let lane = match flags.lane {
        LaneChoice::Auto => None,
        LaneChoice::Interactive => Some(Lane::Interactive),
        LaneChoice::Deep if models.is_empty() => {
            let message = "a plan needs a model, and none is configured";
            return Err(Failure::new(Code::BadCommandLine, Exit::Usage, message)
                .remedy("name one with --model, or leave --lane out"));
        }
        LaneChoice::Deep => Some(Lane::DeepPlanning),
    };
    let team = flags.agents.map(|at_once| Team {
        at_once,
        plan_only: flags.plan_only,
        fail_fast: flags.fail_fast,
    });
    if team.is_some() && models.is_empty() {
        let message = "agents share a plan, a plan needs a model, and none is configured";
        return Err(Failure::new(Code::BadCommandLine, Exit::Usage, message)
            .remedy("name one with --model, or leave --agents out"));
    }
    if flags.best_of.is_some() && (models.is_empty() || flags.coder == Coder::Repairer) {
        let message = "candidates are written by models, and none is to be asked";
        return Err(Failure::new(Code::BadCommandLine, Exit::Usage, message)
            .remedy("name one or several with --model, or leave --best-of out"));
    }
    let task = Task {
        folder,
        tests: flags.tests.clone(),
        accept,
        team,
        best_of: flags.best_of,
        also,
        also_terms,
        deliver: match flags.deliver {
            asked::Deliver::Branch => Deliver::Branch,
            asked::Deliver::Worktree => Deliver::Worktree,
            asked::Deliver::Patch => Deliver::Patch,
            asked::Deliver::None => Deliver::None,
        },
        ask_first: flags.approve == Some(Approve::Ask),
        lane,
        coder: match flags.coder {
            Coder::Auto => CoderChoice::Auto,
            Coder::Repairer => CoderChoice::Repairer,
            Coder::Model => CoderChoice::Model,
        },
        models,
        guidance: guidance(flags, &repository, session)?,
        max_loops: flags.max_loops,
        max_turns: flags.max_turns,
        search_ms: millis(flags.search.unwrap_or(Duration::from_mins(2))),
        tests_ms: policy.limits.wall.millis(),
        ..Task::new(&flags.task, repository.to_string_lossy())
    };
    Ok(if flags.repair { task.repairing() } else { task })
}

/// The other repositories, which have to be others.
fn others(flags: &RunFlags, first: &Path, git: &Git) -> Result<Vec<String>, Failure> {
    let usage = |message: String, remedy: &str| {
        Err(Failure::new(Code::BadCommandLine, Exit::Usage, message).remedy(remedy))
    };
    let mut also: Vec<String> = Vec::new();
    for named in flags.repo.iter().skip(1) {
        let (other, _) = repository(Some(named), git)?;
        let path = other.to_string_lossy().into_owned();
        if other == first || also.contains(&path) {
            let message = format!("{} is named twice", other.display());
            return usage(message, "name each repository once");
        }
        also.push(path);
    }
    if !also.is_empty() && flags.agents.is_none() {
        let message = "several repositories are for several agents".to_owned();
        return usage(message, "add --agents N, or name one repository");
    }
    if !also.is_empty() && flags.deliver == asked::Deliver::Worktree {
        let message = "files of several checkouts cannot be changed as one".to_owned();
        return usage(message, "use --deliver branch, patch or none");
    }
    Ok(also)
}

/// What earlier attempts showed, some of it held back.
async fn view(repository: &str, store: Arc<dyn Store>, session: &Session) -> Result<View, Failure> {
    let records = lessons::of(repository, store, session).await?;
    let in_use = records
        .into_iter()
        .filter(|record| record.retired.is_none());
    let known: Vec<_> = in_use.map(|record| record.lesson).collect();
    let mut dice = [0; MOST];
    getrandom::fill(&mut dice).map_err(|error| internal(&error))?;
    Ok(View::new(&known, |number| dice[number]))
}

/// What was learned from what people did with earlier changes, where they did something.
pub(super) async fn calibration(
    store: Arc<dyn Store>,
    session: &Session,
) -> Result<Option<Calibration>, Failure> {
    let git = find_git(session).ok();
    let known = labels::collect(store, git.as_ref(), session).await?;
    let labelled: Vec<_> = known
        .into_iter()
        .map(|one| (one.features, one.label.is_good()))
        .collect();
    Ok((!labelled.is_empty()).then(|| learn(&labelled)))
}

/// Commands as one of several repositories runs them: in each, or only in the one that a command names
/// before a colon; none where it names another.
fn named_for(task: &Task, commands: &[String], repo: usize) -> Vec<String> {
    let names: Vec<String> = match task.also.len() {
        0 => Vec::new(),
        count => (0..=count).map(|repo| task.repository_name(repo)).collect(),
    };
    let command = |text: &String| {
        let (name, rest) = text.split_once(':').unwrap_or_default();
        match names.iter().position(|known| known == name.trim()) {
            Some(place) => (place == repo).then(|| rest.trim().to_owned()),
            None => Some(text.clone()),
        }
    };
    commands.iter().filter_map(command).collect()
}

/// What the other repositories are held to.
fn terms(task: &Task, flags: &RunFlags, session: &Session) -> Result<Vec<Terms>, Failure> {
    let mut all = Vec::new();
    for (index, repository) in task.also.iter().enumerate() {
        all.push(Terms {
            accept: named_for(task, &flags.accept, index + 1),
            guidelines: guidelines::in_force(Some(Path::new(repository)), session)?,
        });
    }
    Ok(all)
}

/// How the change will be rated. Read before anything is begun: this process locks itself out of
/// the repository.
fn guidance(flags: &RunFlags, top: &Path, session: &Session) -> Result<Guidance, Failure> {
    let judges = match flags.judge.as_slice() {
        [] => Vec::new(),
        names => minds::named(names, session)?,
    };
    Ok(Guidance {
        guidelines: guidelines::in_force(Some(top), session)?,
        calibration: None,
        judges,
        ask_unless_sure: flags.approve == Some(Approve::Unsure),
        agreed_beforehand: flags.approve == Some(Approve::Auto),
    })
}

pub(super) fn resume(flags: &ResumeFlags, session: &Session) -> Result<Exit, Failure> {
    if flags.detached {
        // Whoever closes the terminal does not mean this process.
        rustix::process::setsid().map_err(|error| internal(&error))?;
    }
    runs::block_on(async {
        let looked = store::open(session, lula_store::SecretGuard::default()).await?;
        let run = runs::named(&*looked, &flags.run).await?;
        let reader = runs::reader(Arc::clone(&looked))?;
        let known = reader.show(&run, None).await?;
        if let Some(handoff) = &known.state.task.handoff {
            // Agents and whoever leads them are one process, in which they talk.
            let message = format!("{run} is an agent's part of {}", handoff.parent);
            return Err(
                Failure::new(Code::RunRefused, Exit::Usage, message).remedy(format!(
                    "`lula resume {}` goes on with all of it",
                    handoff.parent
                )),
            );
        }
        for (dimension, to) in limits(&flags.limits).iter() {
            let by = local_principal()?;
            let raise = Signal::RaiseLimit { dimension, to, by };
            reader.send(&run, &raise).await?;
        }
        if let Some(choice) = &flags.answer {
            let answer = consent::choose(&known, choice)?;
            reader.send(&run, &answer).await?;
        }
        if let Some(answer) = worker::go_on(&known) {
            reader.send(&run, &answer).await?;
        }
        if flags.detach && known.progress.ended.is_none() {
            let max_time = flags.limits.max_time;
            return background::detach(&run, flags.approve, max_time, &*looked, session).await;
        }
        drop((reader, looked));
        let answers = Answers::from(flags.approve);
        let desk = Desk::open(&known.state.task, answers, session).await?;
        desk.drive(&run, flags.limits.max_time).await
    })
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Internal, Exit::Failed, error.to_string())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn limits(flags: &LimitFlags) -> Amounts {
    let given = [
        (Dimension::MicroUsd, flags.budget),
        (Dimension::ModelCalls, flags.max_calls),
        (Dimension::OutputTokens, flags.max_tokens),
    ];
    given
        .into_iter()
        .filter_map(|(dimension, limit)| Some((dimension, limit?)))
        .collect()
}

pub(super) fn find_git(session: &Session) -> Result<Git, Failure> {
    let directories = std::env::var_os("PATH");
    let configured = session.config.get(&keys::GIT_PROGRAM);
    Ok(Git::find(&configured, directories.as_deref())?)
}

/// The repository around a directory, which has to have a commit, and the directory itself.
pub(super) fn repository(named: Option<&Path>, git: &Git) -> Result<(PathBuf, PathBuf), Failure> {
    let here = named.unwrap_or(Path::new("."));
    let here = here.canonicalize().map_err(|error| {
        let message = format!("cannot use {}: {error}", here.display());
        Failure::new(Code::FileAccess, Exit::Usage, message).remedy("name an existing directory")
    })?;
    let top = git
        .run(&here, &["rev-parse", "--show-toplevel"])
        .map_err(|error| {
            let message = format!("{} is no git repository ({error})", here.display());
            Failure::new(Code::NotARepository, Exit::Usage, message).remedy(
                "name a repository with --repo, or use `lula repair`, which works in any directory",
            )
        })?;
    let top = PathBuf::from(top.trim_end_matches('\n'));
    git.run(&top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .map_err(|_| {
            let message = format!("{} has no commit yet", top.display());
            Failure::new(Code::EmptyRepository, Exit::Usage, message)
                .remedy("make a first commit: `git add --all && git commit`")
        })?;
    Ok((top, here))
}
