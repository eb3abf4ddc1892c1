//! `lula detect`

use lula_host::{environment, sandbox};
use lula_protocol::RunExit;
use lula_workspace::ForkableProject;

use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, STRONG, TextTable, WARN, paint};

pub(super) fn run(session: &CliSession) -> Result<RunExit, CommandFailure> {
    let home = std::env::var_os("HOME");
    let workspace = sandbox::workspace(None, home.as_deref().map(std::path::Path::new))?;
    let fork = ForkableProject::at(&workspace)?.fork()?;
    let files = fork.files()?;
    let read = |path: &str| String::from_utf8(fork.read(path).ok()?).ok();
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let folder = here.ok().and_then(|here| {
        let below = here.strip_prefix(&workspace).ok()?;
        below.to_str().map(str::to_owned)
    });
    let found = lula_repair::detect_in(&files, &read, &folder.unwrap_or_default());
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    screen.line(paint(STRONG, "Languages"))?;
    let mut table = TextTable::default();
    for language in &found.languages {
        let note = if language.repairable {
            ""
        } else {
            "not repaired without a model"
        };
        table.row([
            language.name.clone(),
            format!("{} files", language.files),
            paint(DIM, note),
        ]);
    }
    screen.line(table.render(2))?;
    screen.line(paint(STRONG, "Tests, the best way first"))?;
    if found.tests.is_empty() {
        screen.line(format!(
            "  {}",
            paint(WARN, "none found; `lula repair --tests CMD` takes any")
        ))?;
    }
    let brought = environment::brought(&workspace, &session.host)?;
    let exists = |path: &str| {
        let made = brought
            .iter()
            .any(|one| path.starts_with(&format!("{one}/")));
        made || workspace.join(path).exists()
    };
    let mut table = TextTable::default();
    for tests in &found.tests {
        let place = if tests.folder.is_empty() {
            String::new()
        } else {
            format!("in {}", tests.folder)
        };
        let line = tests.line_in(&exists);
        table.row([line, paint(DIM, &place), tests.reason.clone()]);
    }
    screen.line(table.render(2).trim_end())?;
    if !found.projects.is_empty() {
        screen.line(paint(STRONG, "Projects below"))?;
        for project in &found.projects {
            screen.line(format!("  {project}"))?;
        }
    }
    Ok(RunExit::Verified)
}
