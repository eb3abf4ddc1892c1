//! Ruby and PHP: their managers write into the repository's own folder.

use super::{EnvironmentPart, MissingTool, Surroundings};
use crate::project::{ProjectFiles, within};

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Vec<EnvironmentPart> {
    let mut found = Vec::new();
    found.extend(by_program(
        files,
        folder,
        around,
        &Manager {
            language: "Ruby",
            manifest: "Gemfile",
            lock: "Gemfile.lock",
            program: "bundle",
            run: "bundle install",
            network: "rubygems.org",
            variables: &[("BUNDLE_PATH", "vendor/bundle")],
        },
    ));
    found.extend(by_program(
        files,
        folder,
        around,
        &Manager {
            language: "PHP",
            manifest: "composer.json",
            lock: "composer.lock",
            program: "composer",
            run: "composer install --no-interaction --no-progress",
            network: "repo.packagist.org",
            variables: &[("COMPOSER_HOME", "/tmp/composer")],
        },
    ));
    found
}

struct Manager {
    language: &'static str,
    manifest: &'static str,
    lock: &'static str,
    program: &'static str,
    run: &'static str,
    /// Where it goes. No tool of the machine is asked for that, so a person grants it.
    network: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

fn by_program(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
    manager: &Manager,
) -> Option<EnvironmentPart> {
    let manifest = within(folder, manager.manifest);
    files.text(&manifest)?;
    let mut part = EnvironmentPart {
        language: manager.language,
        manager: manager.program,
        folder: folder.to_owned(),
        installed: vec![within(folder, "vendor")],
        ..EnvironmentPart::default()
    };
    let lock = within(folder, manager.lock);
    if files.has(&lock) {
        part.reason(lock, "every version is pinned there");
    } else {
        part.reason(manifest, "names packages; nothing pins every version");
    }
    if !around.machine.has(manager.program) {
        part.missing.push(MissingTool {
            what: format!("no {} on this machine", manager.program),
            remedy: format!("install {} and have it on PATH", manager.program),
        });
        return Some(part);
    }
    part.missing.push(MissingTool {
        what: format!("no group of names is known for {}", manager.program),
        remedy: format!(
            "grant where it goes: lula env build --net {}",
            manager.network
        ),
    });
    for (name, value) in manager.variables {
        part.variables
            .insert((*name).to_owned(), (*value).to_owned());
    }
    part.step(manager.run, manager.manifest);
    Some(part)
}
