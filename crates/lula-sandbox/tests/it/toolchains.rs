//! A person's own toolchains and package caches, as a sandbox has them.

use std::fs;
use std::path::{Path, PathBuf};

use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{FinishedCommand, HostToolchains, Sandbox, SandboxCommand};
use tempfile::TempDir;

use crate::support::{engine, workspace};

/// A place outside the temporary directories: there, real paths are not the sandbox's own.
fn elsewhere() -> TempDir {
    let target = Path::new(env!("CARGO_BIN_EXE_lula-sandbox-helper"));
    let target = target.parent().unwrap();
    tempfile::Builder::new()
        .prefix("lula-it")
        .tempdir_in(target)
        .unwrap()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run_in(
    tier: IsolationTier,
    workspace: &Path,
    toolchains: HostToolchains,
    line: &str,
) -> FinishedCommand {
    let asked = Sandbox::new(Profile::Build.policy(), workspace)
        .tier(tier)
        .toolchains(toolchains);
    let session = engine().open(&asked).unwrap();
    session.run(&SandboxCommand::shell(line)).unwrap()
}

fn run(workspace: &Path, toolchains: HostToolchains, line: &str) -> FinishedCommand {
    run_in(IsolationTier::Namespace, workspace, toolchains, line)
}

fn printed(finished: &FinishedCommand) -> String {
    let (out, error) = (finished.stdout.text(), finished.stderr.text());
    assert!(finished.succeeded(), "{out}\n{error}");
    out
}

/// The variables of this process with a home and further ones of a test's own.
fn variables(home: &Path, further: &[(&str, &Path)]) -> HostToolchains {
    HostToolchains::from_variables(|name| {
        let further = further.iter().find(|(variable, _)| *variable == name);
        match name {
            "HOME" => home.to_str().map(str::to_owned),
            "PATH" => std::env::var("PATH").ok(),
            _ => further.and_then(|(_, path)| path.to_str().map(str::to_owned)),
        }
    })
}

#[test]
fn a_cargo_home_is_private_around_the_caches_of_the_host() {
    for home in [workspace(), elsewhere()] {
        let cargo = home.path().canonicalize().unwrap().join(".cargo");
        write(&cargo.join("registry/crate"), "cached");
        write(&cargo.join("config.toml"), "[build]\njobs = 1\n");
        write(
            &cargo.join("credentials.toml"),
            "[registry]\ntoken = \"x\"\n",
        );
        write(&cargo.join("bin/tool"), "");
        let toolchains = HostToolchains::on_path("/usr/bin", Some(home.path()));
        let workspace = workspace();
        let line = "cd $CARGO_HOME && pwd && ls -A && cat registry/crate && echo new > registry/added && \
                    echo changed > registry/crate && touch .package-cache && cat config.toml && \
                    ! touch bin/x config.toml 2>/dev/null";
        let finished = run(workspace.path(), toolchains, line);
        let expected = format!(
            "{}\nbin\nconfig.toml\nregistry\ncached[build]\njobs = 1\n",
            cargo.display()
        );
        assert_eq!(printed(&finished), expected);
        let kept = fs::read_to_string(cargo.join("registry/crate")).unwrap();
        assert_eq!(kept, "cached");
        for name in ["registry/added", ".package-cache"] {
            assert!(!cargo.join(name).exists(), "{name}");
        }
    }
}

#[test]
fn settings_of_cargo_with_a_token_are_left_out_and_the_receipt_says_so() {
    let home = elsewhere();
    let cargo = home.path().join(".cargo");
    write(&cargo.join("registry/crate"), "cached");
    write(
        &cargo.join("config.toml"),
        "[registries.x]\ntoken = \"x\"\n",
    );
    let toolchains = HostToolchains::on_path("/usr/bin", Some(home.path()));
    let workspace = workspace();
    let finished = run(workspace.path(), toolchains, "ls -A $CARGO_HOME");
    assert_eq!(printed(&finished), "registry\n");
    let not_applied = &finished.receipt.not_applied;
    let told = not_applied
        .iter()
        .any(|one| one.asked.ends_with(".cargo/config.toml") && one.reason.contains("token"));
    assert!(told, "{not_applied:?}");
}

#[test]
fn every_tool_is_told_where_its_cache_is() {
    let home = elsewhere();
    let home = home.path().canonicalize().unwrap();
    let moved = home.join("moved");
    for place in [
        ".cache/pip",
        ".cache/uv",
        ".cache/yarn",
        ".yarn/berry",
        ".npm",
        ".local/share/pnpm/store",
        "go/pkg/mod",
        "moved/go-build",
        ".m2/repository",
        ".gradle/caches",
    ] {
        write(&home.join(place).join("file"), place);
    }
    write(&home.join(".gradle/gradle.properties"), "password=x");
    write(&home.join(".m2/settings.xml"), "<password>");
    let toolchains = variables(&home, &[("GOCACHE", &moved.join("go-build"))]);
    let workspace = workspace();
    let line = "for at in $PIP_CACHE_DIR $UV_CACHE_DIR ~/.cache/yarn $YARN_GLOBAL_FOLDER $npm_config_cache \
                $npm_config_store_dir $GOMODCACHE $GOCACHE ~/.m2/repository $GRADLE_USER_HOME/caches; do \
                cat $at/file && echo && echo x > $at/file; done; ls -A $GRADLE_USER_HOME; ls -A ~/.m2; echo $GOCACHE";
    let finished = run(workspace.path(), toolchains, line);
    let expected = format!(
        ".cache/pip\n.cache/uv\n.cache/yarn\n.yarn/berry\n.npm\n.local/share/pnpm/store\ngo/pkg/mod\n\
         moved/go-build\n.m2/repository\n.gradle/caches\ncaches\nrepository\n{0}/moved/go-build\n",
        home.display()
    );
    assert_eq!(printed(&finished).replace("//", "/"), expected);
    let kept = fs::read_to_string(home.join(".npm/file")).unwrap();
    assert_eq!(kept, ".npm");
}

#[test]
fn a_cache_in_the_workspace_or_around_it_hides_nothing_of_it() {
    let home = elsewhere();
    let cargo = home.path().canonicalize().unwrap().join("cargo");
    let package = cargo.join("registry/src/package");
    write(&package.join("file"), "mine");
    for (workspace, seen) in [(&package, "mine"), (&cargo, "mine")] {
        let toolchains = variables(home.path(), &[("CARGO_HOME", &cargo)]);
        let line = "cat $CARGO_HOME/registry/src/package/file && echo new > added";
        let finished = run(workspace, toolchains, line);
        assert_eq!(printed(&finished), seen);
        assert!(workspace.join("added").exists(), "it is written itself");
    }
}

#[test]
fn the_landlock_tier_reads_caches_and_says_what_it_has_not() {
    let home = elsewhere();
    let npm = home.path().canonicalize().unwrap().join(".npm");
    write(&npm.join("file"), "cached");
    let tool = home.path().join("tool");
    for (file, text) in [("bin/x", "x"), ("lib/y", "y"), (".npmrc", "secret")] {
        write(&tool.join(file), text);
    }
    let path = tool.join("bin");
    let toolchains = HostToolchains::on_path(path.to_str().unwrap(), Some(home.path()));
    let workspace = workspace();
    let line = format!(
        "cat {0}/file && echo && cat {1}/lib/y && ! cat {1}/.npmrc && ! touch {0}/new && echo _$npm_config_cache",
        npm.display(),
        tool.display()
    );
    let finished = run_in(IsolationTier::Landlock, workspace.path(), toolchains, &line);
    assert_eq!(printed(&finished), "cached\ny_\n");
    let not_applied = &finished.receipt.not_applied;
    let told = not_applied.iter().any(|one| one.asked.contains(".npm"));
    assert!(told, "{not_applied:?}");
}

#[test]
fn credentials_in_a_prefix_are_hidden() {
    let home = elsewhere();
    let tool = home.path().canonicalize().unwrap().join("tool");
    for (file, text) in [("bin/x", "x"), ("lib/y", "y"), ("etc/npmrc", "secret")] {
        write(&tool.join(file), text);
    }
    let path = tool.join("bin");
    let toolchains = HostToolchains::on_path(path.to_str().unwrap(), Some(home.path()));
    let workspace = workspace();
    let line = format!("cat {0}/lib/y {0}/etc/npmrc; ls {0}", tool.display());
    let finished = run(workspace.path(), toolchains, &line);
    assert_eq!(printed(&finished), "ybin\netc\nlib\n");
}

/// A virtual environment with a package that only it has.
fn virtualenv(directory: &Path) {
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(directory)
        .status()
        .unwrap();
    assert!(made.success());
    let libraries = fs::read_dir(directory.join("lib")).unwrap();
    let library: PathBuf = libraries.flatten().next().unwrap().path();
    write(
        &library.join("site-packages/only_here.py"),
        "found = True\n",
    );
}

#[test]
fn an_activated_environment_outside_the_checkout_works() {
    for place in [workspace(), elsewhere()] {
        let directory = place.path().join("venv");
        virtualenv(&directory);
        let toolchains = HostToolchains::from_variables(|name| match name {
            "VIRTUAL_ENV" => directory.to_str().map(str::to_owned),
            name => std::env::var(name).ok(),
        });
        let workspace = workspace();
        let line = "python -c 'import only_here, sys; print(only_here.found, sys.prefix)'; echo $VIRTUAL_ENV";
        let finished = run(workspace.path(), toolchains, line);
        let expected = format!("True {0}\n{0}\n", directory.display());
        assert_eq!(printed(&finished), expected);
    }
}

#[test]
fn a_projects_own_environment_comes_first_and_is_part_of_the_workspace() {
    for workspace in [workspace(), elsewhere()] {
        let top = workspace.path().canonicalize().unwrap();
        virtualenv(&top.join(".venv"));
        let without = |name: &str| std::env::var(name).ok().filter(|_| name != "VIRTUAL_ENV");
        let toolchains = HostToolchains::from_variables(without).in_project(&top, &top);
        assert_eq!(toolchains.virtualenv().unwrap().broken, None);
        let line = "python -c 'import only_here; print(only_here.found)' && touch .venv/new && echo written";
        let finished = run(&top, toolchains, line);
        assert_eq!(printed(&finished), "True\nwritten\n");
        assert!(top.join(".venv/new").exists());
    }
}

#[test]
fn an_environment_of_a_project_that_is_seen_elsewhere_is_shown_at_its_own_path() {
    let base = elsewhere();
    let top = base.path().canonicalize().unwrap();
    virtualenv(&top.join(".venv"));
    write(&top.join("secret"), "of the project");
    let without = |name: &str| std::env::var(name).ok().filter(|_| name != "VIRTUAL_ENV");
    let toolchains = HostToolchains::from_variables(without).in_project(&top, &top);
    let copy = workspace();
    let line = format!(
        "python -c 'import only_here; print(only_here.found)'; ls -A {}",
        top.display()
    );
    let finished = run(copy.path(), toolchains, &line);
    assert_eq!(printed(&finished), "True\n.venv\n");
}

/// What a build outside left in `target` is good inside: cargo finds its sources where it left them.
#[test]
fn cargo_builds_nothing_again() {
    for moved in [false, true] {
        let home = elsewhere();
        let workspace = elsewhere();
        let top = workspace.path().canonicalize().unwrap();
        let cargo = home.path().canonicalize().unwrap().join("cargo");
        // A vendored registry in the moved cargo home: what is built carries its path.
        let vendored = cargo.join("registry/src/leaf");
        let checksum = r#"{"files":{},"package":null}"#;
        for directory in [&vendored, &top.join("near")] {
            let name = directory.file_name().unwrap().to_str().unwrap();
            let manifest =
                format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\n");
            write(&directory.join("Cargo.toml"), &manifest);
            write(&directory.join("src/lib.rs"), "pub fn one() -> u32 { 1 }\n");
            write(&directory.join(".cargo-checksum.json"), checksum);
        }
        let settings = format!(
            "[source.crates-io]\nreplace-with = \"local\"\n[source.local]\ndirectory = \"{}\"\n",
            cargo.join("registry/src").display()
        );
        write(&cargo.join("config.toml"), &settings);
        write(
            &top.join("Cargo.toml"),
            "[package]\nname = \"demo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
             [dependencies]\nnear = { path = \"near\" }\nleaf = \"1\"\n[workspace]\n",
        );
        write(
            &top.join("src/lib.rs"),
            "pub fn two() -> u32 { near::one() + leaf::one() }\n",
        );
        let outside = std::process::Command::new("cargo")
            .args(["build", "--offline"])
            .current_dir(&top)
            .env("CARGO_HOME", &cargo)
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        assert!(outside.status.success(), "{outside:?}");
        let toolchains = if moved {
            HostToolchains::from_variables(|name| match name {
                "CARGO_HOME" => cargo.to_str().map(str::to_owned),
                name => std::env::var(name).ok(),
            })
        } else {
            // The same as `~/.cargo` of a person, reached through a link.
            std::os::unix::fs::symlink(&cargo, home.path().join(".cargo")).unwrap();
            HostToolchains::from_variables(|name| match name {
                "HOME" => home.path().to_str().map(str::to_owned),
                "CARGO_HOME" => None,
                name => std::env::var(name).ok(),
            })
        };
        let finished = run(&top, toolchains, "cargo build --offline --verbose 2>&1");
        let said = printed(&finished);
        let fresh = said.lines().filter(|line| line.contains("Fresh")).count();
        assert_eq!(fresh, 3, "{said}");
        assert!(!said.contains("Compiling"), "{said}");
    }
}
