//! Tries the product on public projects that were not written here, set up as their developers have
//! them: the same tests as outside, the right code, a seeded bug seen and mended, a fresh clone
//! refused with its remedy.

mod counts;
mod project;
mod recipe;

use std::{env, ops::ControlFlow, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    bench::program::{self, Profile},
    interrupt::Interrupt,
    repository::Repository,
};
use project::{Project, Trial};

/// What is tried, and on which projects.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only these; all where none is named
    names: Vec<String>,

    /// Try this program instead of building one
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,

    /// Take the projects from this file instead of eval/real/projects.json
    #[arg(long, value_name = "PATH")]
    recipes: Option<PathBuf>,

    /// Run everything once, where counts matter and times do not
    #[arg(long)]
    once: bool,
}

/// Sets the chosen projects up and tries each; succeeds where all of them hold.
pub(crate) fn run(
    options: &Options,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let recipes = recipe::chosen(&options.names, options.recipes.as_deref())?;
    let program = if let Some(path) = &options.program {
        path.canonicalize()
            .with_context(|| format!("--program {}", path.display()))?
    } else {
        match program::lula(repository, interrupt, Profile::Release)? {
            ControlFlow::Continue(program) => program,
            ControlFlow::Break(code) => return Ok(code),
        }
    };
    let home = home()?;
    let mut trials = Vec::new();
    for recipe in &recipes {
        println!("{}: setting up", recipe.name);
        let trial = Project::set_up(recipe, &home)
            .and_then(|project| project.tried(&program, if options.once { 1 } else { 2 }))
            .unwrap_or_else(|error| Trial::failed(recipe, format!("{error:#}")));
        println!("{}", trial.line());
        trials.push(trial);
    }
    println!("{}", Trial::header());
    for trial in &trials {
        println!("{}", trial.line());
        for fault in &trial.faults {
            println!("    {fault}");
        }
    }
    let (held, all) = (
        trials.iter().filter(|trial| trial.held()).count(),
        trials.len(),
    );
    println!("{held} passed, {} failed", all - held);
    Ok(ExitCode::from(u8::from(held != all)))
}

/// Where projects are set up: outside this repository, or cargo takes theirs for a part of it.
fn home() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    Ok(cache
        .context("neither XDG_CACHE_HOME nor HOME is set")?
        .join("lula-real"))
}
