//! `lula env`: environments, shown, built, proved and kept in order.

pub(crate) mod flags;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args as _, FromArgMatches as _};
use lula_agents::RunTask;
use lula_host::environment::{
    self, BuildRequest, EnvironmentListing, EnvironmentState, RecipeOrigin,
};
use lula_host::{record, sandbox};
use lula_protocol::units::{rough_duration, rough_size};
use lula_protocol::{Code, RunExit};
use lula_sandbox::EarlyHelper;

use super::exec::{self, flags::ExecFlags};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::status::ProcessExitStatus;
use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, visible};
use flags::{BuildFlags, CheckFlags, EditFlags, EnvironmentCommand, PlaceFlags, PruneFlags};
pub(super) use watch::BuildWatch;

pub(super) fn run(
    command: &EnvironmentCommand,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let exit = match command {
        EnvironmentCommand::Show(flags) => show(flags, session)?,
        EnvironmentCommand::Build(flags) => build(flags, session)?,
        EnvironmentCommand::Check(flags) => check(flags, session)?,
        EnvironmentCommand::List => list(session)?,
        EnvironmentCommand::Prune(flags) => prune(flags, session)?,
        EnvironmentCommand::Edit(flags) => edit(flags, session)?,
        EnvironmentCommand::Export { file, name } => {
            let top = top(&PlaceFlags { repo: None })?;
            let host = &session.host;
            let (one, bytes) = environment::export(name.as_deref(), &top, file, host)?;
            session
                .screen
                .note(&format!("{}, {}", file.display(), rough_size(bytes)));
            told(&[one], session)?
        }
        EnvironmentCommand::Import { file } => {
            told(&[environment::import(file, &session.host)?], session)?
        }
        EnvironmentCommand::Shell(flags) => return shell(flags, session, helper),
    };
    Ok(exit.into())
}

fn top(flags: &PlaceFlags) -> Result<PathBuf, CommandFailure> {
    let home = std::env::var_os("HOME");
    let home = home.as_deref().map(Path::new);
    Ok(sandbox::workspace(flags.repo.as_deref(), home)?)
}

fn show(flags: &PlaceFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let found = environment::survey(&top(flags)?, &session.host)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    for part in &found.needs.parts {
        let folder = if part.folder.is_empty() {
            String::new()
        } else {
            format!(" in {}", visible(&part.folder))
        };
        screen.line(format!(
            "{}{folder}, by {}",
            paint(STRONG, part.language),
            part.manager
        ))?;
        let mut table = TextTable::default();
        for version in &part.versions {
            let used = version.used.as_deref().unwrap_or("none of this machine");
            let text = format!("{} {}: {used}", version.tool, visible(&version.wanted));
            table.row([visible(&version.file), text]);
        }
        for reason in &part.because {
            table.row([visible(&reason.file), visible(&reason.what)]);
        }
        screen.line(table.render(2).trim_end())?;
        for missing in &part.missing {
            screen.line(format!(
                "  {} {}",
                paint(WARN, visible(&missing.what)),
                paint(DIM, visible(&missing.remedy))
            ))?;
        }
    }
    if found.needs.parts.is_empty() {
        screen.line(paint(WARN, "nothing was found here that could be set up"))?;
    }
    let origin = match found.origin {
        RecipeOrigin::Detected => "found out",
        RecipeOrigin::Repository => "from .lula-environment.toml of the repository",
        RecipeOrigin::Operator => "your own",
    };
    screen.line(format!(
        "{} {}",
        paint(STRONG, "Commands"),
        paint(DIM, origin)
    ))?;
    for step in &found.recipe.steps {
        let folder = if step.folder.is_empty() {
            String::new()
        } else {
            format!("({}) ", visible(&step.folder))
        };
        screen.line(format!("  {folder}{}", visible(&step.run)))?;
        if screen.is_verbose() {
            for line in &step.otherwise {
                screen.line(paint(DIM, format!("    else {}", visible(line))))?;
            }
        }
    }
    if !found.recipe.network.is_empty() {
        let groups = found.recipe.network.join(", ");
        screen.line(format!("  {} {}", paint(DIM, "reaching"), visible(&groups)))?;
    }
    for service in &found.needs.services {
        let text = format!(
            "{} ({}: {})",
            service.name,
            visible(&service.file),
            visible(&service.line)
        );
        screen.line(format!("{} {text}", paint(STRONG, "Service")))?;
    }
    if !found.needs.proposals.is_empty() {
        screen.line(format!(
            "{} {}",
            paint(STRONG, "Proposed for others"),
            paint(DIM, "not run")
        ))?;
        let mut table = TextTable::default();
        for proposal in &found.needs.proposals {
            for command in &proposal.commands {
                table.row([visible(&proposal.file), visible(command)]);
            }
        }
        screen.line(table.render(2).trim_end())?;
    }
    screen.line(state(&found.state))?;
    Ok(RunExit::Verified)
}

fn state(state: &EnvironmentState) -> String {
    match state {
        EnvironmentState::Ready { environment } => {
            format!("{} {environment}", paint(GOOD, "ready:"))
        }
        EnvironmentState::OwnInstalled { place } => format!(
            "{} what is installed in {}; --env NAME takes a built one",
            paint(GOOD, "used:"),
            visible(place)
        ),
        EnvironmentState::Outdated { environment, file } => format!(
            "{} {environment} was built before {} changed: lula env build",
            paint(WARN, "outdated:"),
            visible(file)
        ),
        EnvironmentState::Missing => format!("{} lula env build", paint(WARN, "not built:")),
        EnvironmentState::Off => paint(DIM, "environment.use is none"),
    }
}

fn build(flags: &BuildFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let request = BuildRequest {
        top: top(&flags.place)?,
        again: flags.again,
        agreed: flags.yes,
    };
    let watch = BuildWatch::new(session);
    let built = environment::build(&request, &watch, &session.host)?;
    watch.done();
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&built)?;
        return Ok(RunExit::Verified);
    }
    screen.line(&built.name)?;
    let record = &built.record;
    if built.was_there {
        screen.note("it was there already");
        return Ok(RunExit::Verified);
    }
    let took = rough_duration(std::time::Duration::from_millis(record.took_ms));
    screen.note(&format!(
        "{} in {took}, {}: {}",
        paint(GOOD, "built"),
        rough_size(record.bytes),
        visible(&record.directories.join(", "))
    ));
    if !record.changed.is_empty() {
        screen.note(&format!(
            "the build changed {}: shown as in your files",
            visible(&record.changed.join(", "))
        ));
    }
    screen.note(&paint(
        DIM,
        "lula env check proves it; lula run, exec and repair use it from now on",
    ));
    Ok(RunExit::Verified)
}

/// Builds what a run's repositories lack, where `--env build` asks for that.
pub(super) fn ensure(task: &RunTask, session: &CliSession) -> Result<(), CommandFailure> {
    for repository in &task.repositories {
        let watch = BuildWatch::new(session);
        let built = environment::ensure(Path::new(&repository.path), &watch, &session.host)?;
        watch.done();
        if let Some(built) = built {
            session
                .screen
                .note(&format!("{} {}", paint(DIM, "environment"), built.name));
        }
    }
    Ok(())
}

fn check(flags: &CheckFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let live = screen.live("looking at the project");
    let say = |what: &str| live.say(what);
    let (check, found) = environment::check(
        &top(&flags.place)?,
        flags.tests.clone(),
        &say,
        &session.host,
    )?;
    drop(live);
    let exit = match &check.broken {
        Some(_) => RunExit::Environment,
        None if check.is_good() => RunExit::Verified,
        None => RunExit::Failed,
    };
    let name = found.map(|found| found.record.name());
    if screen.is_json() {
        screen.document(&serde_json::json!({ "environment": name, "check": check }))?;
        return Ok(exit);
    }
    let name = name.unwrap_or_else(|| "what is installed".to_owned());
    if let Some(broken) = &check.broken {
        let code = Code::EnvironmentBroken;
        let text = format!("{name}: {}\n{}", broken.what, visible(&broken.output));
        return Err(CommandFailure::new(code, RunExit::Environment, text)
            .remedy("`lula env show -v` prints the commands, `lula env edit` changes them"));
    }
    let network = check.want_network();
    screen.line(format!(
        "{} passed, {} failed{}, {} flaky, {} skipped  {}",
        paint(GOOD, check.passed),
        if check.failing.is_empty() {
            "0".to_owned()
        } else {
            paint(BAD, check.failing.len())
        },
        if network > 0 {
            format!(" ({network} for want of a network)")
        } else {
            String::new()
        },
        check.flaky.len(),
        check.skipped,
        paint(DIM, format!("{name}: {}", visible(&check.command))),
    ))?;
    for test in check.failing.iter().take(20) {
        screen.line(format!("  {} {}", paint(BAD, "fails"), visible(&test.id)))?;
    }
    for id in check.flaky.iter().take(20) {
        screen.line(format!("  {} {}", paint(WARN, "flaky"), visible(id)))?;
    }
    for origin in &check.origins {
        let text = format!("tested code: {} from {}", origin.name, origin.path);
        screen.note(&paint(DIM, visible(&text)));
    }
    Ok(exit)
}

fn table(listed: &[EnvironmentListing]) -> String {
    let mut table = TextTable::default();
    for one in listed {
        let tests = match (one.passed, one.failing) {
            (Some(passed), Some(failing)) => format!("{passed} pass, {failing} fail"),
            _ => "not checked".to_owned(),
        };
        let place = visible(&one.place);
        let place = if one.place_exists {
            place
        } else {
            paint(WARN, format!("{place} (gone)"))
        };
        table.row([
            one.name.clone(),
            rough_size(one.bytes),
            format!("used {} ago", record::age(one.used_ms)),
            tests,
            place,
        ]);
    }
    table.render(0)
}

/// Tells of environments, one document where that is asked for.
fn told(listed: &[EnvironmentListing], session: &CliSession) -> Result<RunExit, CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(&listed)?;
    } else {
        session.screen.line(table(listed).trim_end())?;
    }
    Ok(RunExit::Verified)
}

fn list(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let listed = environment::list(&session.host)?;
    if session.screen.is_json() {
        session.screen.document(&listed)?;
    } else if listed.is_empty() {
        session
            .screen
            .note("none; `lula env build` makes one for this repository");
    } else {
        session.screen.line(table(&listed).trim_end())?;
    }
    Ok(RunExit::Verified)
}

fn prune(flags: &PruneFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if !flags.names.is_empty() {
        let mut removed = Vec::new();
        for name in &flags.names {
            removed.push(environment::remove(name, &session.host)?);
        }
        if screen.is_json() {
            screen.document(&removed)?;
        } else {
            screen.line(table(&removed).trim_end())?;
        }
        return Ok(RunExit::Verified);
    }
    let pruned = environment::prune(flags.older, flags.max, &session.host)?;
    if screen.is_json() {
        screen.document(&pruned)?;
        return Ok(RunExit::Verified);
    }
    if !pruned.removed.is_empty() {
        screen.line(table(&pruned.removed).trim_end())?;
    }
    let kept = format!(
        "{} removed, {} kept, {}",
        pruned.removed.len(),
        pruned.kept,
        rough_size(pruned.kept_bytes)
    );
    screen.note(&kept);
    Ok(RunExit::Verified)
}

fn edit(flags: &EditFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let host = &session.host;
    let top = top(&flags.place)?;
    let path = environment::operators_recipe(&top, host)?;
    if flags.reset {
        let _ = std::fs::remove_file(&path);
        session
            .screen
            .note("what is found out, or what the repository brings along, counts again");
        return Ok(RunExit::Verified);
    }
    let unusable = |error: std::io::Error| {
        CommandFailure::new(
            Code::FileAccess,
            RunExit::Usage,
            format!("the recipe cannot be edited: {error}"),
        )
        .remedy("set $VISUAL or $EDITOR, or name a file with --from")
    };
    let text = if let Some(file) = &flags.from {
        std::fs::read_to_string(file).map_err(unusable)?
    } else {
        let draft = tempfile::Builder::new()
            .suffix(".toml")
            .tempfile()
            .map_err(unusable)?;
        std::fs::write(draft.path(), environment::draft(&top, host)?).map_err(unusable)?;
        let editor = std::env::var("VISUAL").or_else(|_| std::env::var("EDITOR"));
        let editor = editor.unwrap_or_else(|_| "vi".to_owned());
        let line = format!("{editor} \"$1\"");
        let ended = Command::new("sh")
            .args(["-c", &line, "sh"])
            .arg(draft.path())
            .status();
        if !ended.map_err(unusable)?.success() {
            return Err(unusable(std::io::Error::other("the editor failed")));
        }
        std::fs::read_to_string(draft.path()).map_err(unusable)?
    };
    let kept = environment::save(&top, &text, host)?;
    session.screen.line(kept.display())?;
    session
        .screen
        .note(&paint(DIM, "lula env build carries it out"));
    Ok(RunExit::Verified)
}

fn shell(
    flags: &PlaceFlags,
    session: &CliSession,
    helper: Option<EarlyHelper>,
) -> Result<ProcessExitStatus, CommandFailure> {
    let mut line = vec!["exec".to_owned()];
    if let Some(repo) = &flags.repo {
        line.extend(["--workspace".to_owned(), repo.display().to_string()]);
    }
    let shell = if Path::new("/bin/bash").exists() {
        "bash"
    } else {
        "sh"
    };
    line.extend(["--".to_owned(), shell.to_owned()]);
    let internal = |error: clap::Error| {
        CommandFailure::new(Code::Internal, RunExit::Failed, error.to_string())
    };
    let command = ExecFlags::augment_args(clap::Command::new("exec"));
    let matches = command.try_get_matches_from(line).map_err(internal)?;
    let flags = ExecFlags::from_arg_matches(&matches).map_err(internal)?;
    exec::run(&flags, session, helper)
}
