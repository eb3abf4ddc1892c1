//! The interpreter that a project's tests are run with: the one that its developer would get, and no
//! other that happens to have what is missing.

use std::time::Duration;

use crate::environment::BrokenEnvironment;
use crate::ground::{ForkCommand, ProjectFork};
use crate::suite::SuiteError;
use crate::suite::broken::{ProjectFolderFiles, SuiteCommandAttempt, python_remedy};
use crate::suite::reporter::printed;

/// What `python3` is inside.
#[derive(Debug, Clone)]
pub(super) struct PythonInterpreter {
    /// What it is started by.
    pub(super) name: String,
    /// What starts the same one outside, in the project's folder: the `PATH` inside begins with the
    /// virtual environment, which a developer may not have activated.
    pub(super) program: String,
    /// With its version and place.
    pub(super) about: String,
}

const PROBE: &str = "import sys, importlib.util as u\nprint('%d.%d.%d' % sys.version_info[:3])\nprint(sys.executable)\nprint(u.find_spec(sys.argv[1]) is not None)";
const DANGLING: i32 = 93;

impl PythonInterpreter {
    /// Starts it once. `name` is what the command starts, and `module` what it has to have.
    pub(super) fn find(
        fork: &mut dyn ProjectFork,
        folder: &str,
        name: &str,
        module: &str,
        command: &str,
    ) -> Result<Self, SuiteError> {
        // A link that leads nowhere is passed over by a shell, which then starts another one.
        let script = format!(
            "for v in .venv venv; do if [ -L \"$v/bin/python\" ] && [ ! -e \"$v/bin/python\" ]; then \
             echo \"$v leads to $(readlink \"$v/bin/python\"), which is not there\" >&2; exit {DANGLING}; fi; done; \
             exec \"$1\" -c \"$2\" \"$3\""
        );
        let argv = ["sh", "-c", &script, "sh", name, PROBE, module];
        let ran = fork.run(&ForkCommand::new(argv, Duration::from_secs(30)).in_folder(folder))?;
        let output = printed(&ran);
        let out = ran.out();
        let told: Vec<&str> = out.lines().collect();
        let [.., version, executable, found] = told.as_slice() else {
            let attempt = SuiteCommandAttempt {
                command,
                folder,
                interpreter: None,
                output: &output,
            };
            let (what, remedy) = if ran.exit == Some(DANGLING) {
                (
                    format!("the virtual environment is broken: {}", output.trim()),
                    "python3 -m venv --clear .venv",
                )
            } else {
                (
                    format!("{name} cannot be started"),
                    "python3 -m venv .venv && . .venv/bin/activate",
                )
            };
            let install = python_remedy(
                &ProjectFolderFiles::of(fork, folder),
                &[module.to_owned()],
                ".venv/bin/python",
            );
            return Err(wrong(attempt.failed(
                what,
                vec!["Python".to_owned()],
                Some(format!("{remedy} && {install}")),
            )));
        };
        let about = format!("Python {version} at {executable}");
        let program = own_program(name, executable, &fork.root(), folder);
        if *found != "True" {
            let command = command.replacen(name, &program, 1);
            let attempt = SuiteCommandAttempt {
                command: &command,
                folder,
                interpreter: Some(&about),
                output: &format!("{executable}: No module named {module}"),
            };
            let names = [module.to_owned()];
            let remedy = python_remedy(&ProjectFolderFiles::of(fork, folder), &names, &program);
            return Err(wrong(attempt.failed(
                format!("{module} is not installed for {about}"),
                names.to_vec(),
                Some(remedy),
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            program,
            about,
        })
    }
}

/// What a developer types for an interpreter of the project's own, from the folder that tests run in.
fn own_program(name: &str, executable: &str, root: &str, folder: &str) -> String {
    let here = match folder {
        "" => format!("{}/", root.trim_end_matches('/')),
        folder => format!("{}/{folder}/", root.trim_end_matches('/')),
    };
    match executable.strip_prefix(&here) {
        Some(below) if !name.contains('/') => below.to_owned(),
        _ => name.to_owned(),
    }
}

pub(super) fn wrong(broken: BrokenEnvironment) -> SuiteError {
    SuiteError::EnvironmentBroken(Box::new(broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_in_the_checkout_is_named_as_one_types_it() {
        let at = |executable, folder| own_program("python3", executable, "/r/shop", folder);
        assert_eq!(at("/r/shop/.venv/bin/python3", ""), ".venv/bin/python3");
        assert_eq!(
            at("/r/shop/api/.venv/bin/python3", "api"),
            ".venv/bin/python3"
        );
        assert_eq!(at("/usr/bin/python3", ""), "python3");
        let given = own_program(
            ".venv/bin/python",
            "/r/shop/.venv/bin/python",
            "/r/shop",
            "",
        );
        assert_eq!(given, ".venv/bin/python");
    }
}
