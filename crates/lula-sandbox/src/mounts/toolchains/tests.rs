//! A person's home, made up for each test.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Home(tempfile::TempDir);

impl Home {
    /// A home with those files; a name that ends with a slash is a directory.
    fn with(files: &[&str]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for file in files {
            let path = home.path(file);
            if file.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
        }
        home
    }

    fn path(&self, place: &str) -> PathBuf {
        self.0.path().join(place.trim_end_matches('/'))
    }

    fn text(&self, place: &str) -> String {
        self.path(place).to_str().unwrap().to_owned()
    }

    fn link(&self, to: &str, link: &str) {
        let link = self.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.path(to), link).unwrap();
    }

    /// Toolchains of a person whose home is `me` in here.
    fn look(&self, path: &[&str], variables: &[(&str, &str)]) -> HostToolchains {
        let path: Vec<String> = path.iter().map(|entry| self.text(entry)).collect();
        HostToolchains::from_variables(|name| match name {
            "PATH" => Some(format!("{}:/usr/bin", path.join(":"))),
            "HOME" => Some(self.text("me")),
            name => variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, place)| self.text(place)),
        })
    }

    fn paths(&self, places: &[&str]) -> Vec<PathBuf> {
        places.iter().map(|place| self.path(place)).collect()
    }
}

#[test]
fn a_version_manager_on_the_path_is_found_with_its_home() {
    let home = Home::with(&["me/.cargo/bin/", "me/.rustup/", "me/.ssh/"]);
    let bin = home.text("me/.cargo/bin");
    let path = format!("{bin}:/usr/bin:/nowhere/bin:relative");
    let found = HostToolchains::on_path(&path, Some(&home.path("me")));
    assert_eq!(
        found.directories(),
        home.paths(&["me/.rustup", "me/.cargo/bin"])
    );
    assert_eq!(found.environment()["RUSTUP_HOME"], home.text("me/.rustup"));
    let search = found.search_path();
    assert!(search.starts_with(&format!("{bin}:/usr/bin:")), "{search}");
}

#[test]
fn a_home_on_the_path_or_in_a_variable_is_not_a_toolchain() {
    let home = Home::with(&["me/lib/", "me/bin/", "above/"]);
    home.link("me", "above/link");
    let found = home.look(
        &["me", ".", "above/link"],
        &[("GOROOT", "me"), ("JAVA_HOME", ".")],
    );
    assert!(found.directories().is_empty(), "{:?}", found.directories());
    assert!(found.environment().is_empty());
    // `~/bin` is one directory, not a prefix that would be the home.
    let found = home.look(&["me/bin"], &[]);
    assert_eq!(found.directories(), home.paths(&["me/bin"]));
}

#[test]
fn a_prefix_on_the_path_is_shown_as_a_whole() {
    for sign in ["lib/x", "libexec/x", "conda-meta/x", "pkg/tool/x", "jre/x"] {
        let home = Home::with(&["opt/tool/bin/tool", &format!("opt/tool/{sign}")]);
        let found = home.look(&["opt/tool/bin"], &[]);
        assert_eq!(found.directories(), home.paths(&["opt/tool"]), "{sign}");
    }
    let home = Home::with(&["opt/tool/bin/tool", "opt/tool/notes"]);
    let found = home.look(&["opt/tool/bin"], &[]);
    assert_eq!(found.directories(), home.paths(&["opt/tool/bin"]));
}

#[test]
fn a_checkout_with_programs_is_not_a_prefix() {
    let home = Home::with(&["me/app/bin/run", "me/app/lib/x.rb", "me/app/.git/"]);
    let found = home.look(&["me/app/bin"], &[]);
    assert_eq!(found.directories(), home.paths(&["me/app/bin"]));
}

#[test]
fn of_local_only_programs_and_libraries_are_shown() {
    let home = Home::with(&[
        "me/.local/bin/black",
        "me/.local/lib/python3.12/",
        "me/.local/share/keyrings/login",
    ]);
    let found = home.look(&["me/.local/bin"], &[]);
    assert_eq!(
        found.directories(),
        home.paths(&["me/.local/bin", "me/.local/lib"])
    );
    assert_eq!(
        found.environment()["PYTHONUSERBASE"],
        home.text("me/.local")
    );
}

#[test]
fn credentials_stay_hidden_and_their_places_closed() {
    let home = Home::with(&[
        "me/.npm-global/bin/x",
        "me/.npm-global/lib/x",
        "me/.npm-global/etc/npmrc",
        "me/.ssh/bin/x",
        "me/.ssh/lib/x",
        "me/.config/gh/hosts.yml",
    ]);
    let found = home.look(
        &["me/.npm-global/bin", "me/.ssh/bin", "me/.config"],
        &[("JAVA_HOME", "me/.ssh"), ("GOROOT", "me/.config/gh")],
    );
    assert_eq!(found.directories(), home.paths(&["me/.npm-global"]));
    let real = home.path("me/.npm-global/etc/npmrc");
    assert_eq!(found.hidden(), [real.canonicalize().unwrap()]);
    assert!(found.environment().is_empty());
}

#[test]
fn a_virtual_environment_brings_its_interpreter() {
    let home = Home::with(&[
        "me/.pyenv/versions/3.11.7/bin/python3.11",
        "me/.pyenv/versions/3.11.7/lib/python3.11/",
        "me/.pyenv/versions/3.10.1/bin/python3.10",
        "venvs/x/pyvenv.cfg",
        "venvs/x/lib/",
    ]);
    home.link(
        "me/.pyenv/versions/3.11.7/bin/python3.11",
        "venvs/x/bin/python",
    );
    let found = home.look(&[], &[("VIRTUAL_ENV", "venvs/x")]);
    assert_eq!(
        found.directories(),
        home.paths(&["venvs/x", "me/.pyenv/versions/3.11.7"])
    );
    assert_eq!(found.environment()["VIRTUAL_ENV"], home.text("venvs/x"));
    let first = home.text("venvs/x/bin");
    assert!(found.search_path().starts_with(&first));
    assert_eq!(found.virtualenv().unwrap().broken, None);
}

#[test]
fn an_interpreter_is_found_by_the_settings_and_through_links_of_directories() {
    let home = Home::with(&[
        "me/.local/share/uv/python/cpython-3.12.7/bin/python3.12",
        "me/.local/share/uv/python/cpython-3.12.7/lib/python3.12/",
        "x/lib/",
    ]);
    home.link(
        "me/.local/share/uv/python/cpython-3.12.7",
        "me/.local/share/uv/python/cpython-3.12",
    );
    home.link(
        "me/.local/share/uv/python/cpython-3.12/bin/python3.12",
        "x/bin/python",
    );
    let programs = home.text("me/.local/share/uv/python/cpython-3.12/bin");
    fs::write(
        home.path("x/pyvenv.cfg"),
        format!("home = {programs}\nversion = 3\n"),
    )
    .unwrap();
    let found = home.look(&["x/bin"], &[]);
    assert_eq!(
        found.directories(),
        home.paths(&[
            "x",
            "me/.local/share/uv/python/cpython-3.12",
            "me/.local/share/uv/python/cpython-3.12.7"
        ])
    );
}

#[test]
fn a_repository_cannot_have_something_shown_by_calling_it_an_interpreter() {
    let home = Home::with(&[
        "me/private/bin/python",
        "me/private/lib/notes",
        "work/.venv/lib/",
    ]);
    home.link("me/private/bin/python", "work/.venv/bin/python");
    let settings = format!("home = {}\n", home.text("me/private/bin"));
    fs::write(home.path("work/.venv/pyvenv.cfg"), settings).unwrap();
    let work = home.path("work");
    let found = home.look(&[], &[]).in_project(&work, &work);
    assert_eq!(found.directories(), home.paths(&["work/.venv"]));
}

#[test]
fn the_nearest_environment_of_a_project_is_taken_and_an_active_one_before_it() {
    let home = Home::with(&[
        "work/venv/pyvenv.cfg",
        "work/venv/bin/python",
        "work/api/.venv/pyvenv.cfg",
        "work/api/.venv/bin/python",
        "work/api/src/",
        "work/web/",
        "venv/pyvenv.cfg",
        "active/pyvenv.cfg",
        "active/bin/python",
    ]);
    let (top, none) = (home.path("work"), home.look(&[], &[]));
    for (folder, expected) in [
        ("work/api/src", Some("work/api/.venv")),
        ("work/web", Some("work/venv")),
        ("work", Some("work/venv")),
    ] {
        let found = none.clone().in_project(&top, &home.path(folder));
        let expected = expected.map(|place| home.path(place));
        let found = found.virtualenv().map(|found| found.directory.clone());
        assert_eq!(found, expected, "{folder}");
    }
    // Not above the top of the repository.
    let web = home.path("work/web");
    assert_eq!(none.in_project(&web, &web).virtualenv(), None);
    let active = home.look(&[], &[("VIRTUAL_ENV", "active")]);
    let found = active.in_project(&top, &home.path("work/api"));
    assert_eq!(found.virtualenv().unwrap().directory, home.path("active"));
}

#[test]
fn a_broken_environment_says_so() {
    let home = Home::with(&["work/.venv/pyvenv.cfg"]);
    let work = home.path("work");
    let broken = || {
        let found = home.look(&[], &[]).in_project(&work, &work);
        found.virtualenv().unwrap().broken.clone().unwrap()
    };
    assert!(
        broken().ends_with("bin/python is not there"),
        "{}",
        broken()
    );
    home.link("gone/python3", "work/.venv/bin/python");
    assert!(
        broken().contains("gone/python3, which is not there"),
        "{}",
        broken()
    );
}

#[test]
fn variables_name_toolchains_and_choices() {
    let home = Home::with(&["sdk/go/bin/go", "sdk/go/pkg/tool/x", "jdk/bin/java"]);
    let found = home.look(
        &[],
        &[
            ("GOROOT", "sdk/go"),
            ("JAVA_HOME", "jdk"),
            ("DOTNET_ROOT", "nowhere"),
        ],
    );
    assert_eq!(found.directories(), home.paths(&["sdk/go", "jdk"]));
    let names: Vec<_> = found.environment().keys().collect();
    assert_eq!(names, ["GOROOT", "JAVA_HOME"]);
    let chosen = HostToolchains::from_variables(|name| match name {
        "RUSTUP_TOOLCHAIN" => Some("1.90-x86_64".to_owned()),
        "PYENV_VERSION" => Some("3 $(x)".to_owned()),
        _ => None,
    });
    assert_eq!(chosen.environment()["RUSTUP_TOOLCHAIN"], "1.90-x86_64");
    assert!(!chosen.environment().contains_key("PYENV_VERSION"));
}

#[test]
fn what_changes_a_build_is_passed_on_and_nothing_that_holds_a_secret_or_loads_code() {
    let asked = std::cell::RefCell::new(Vec::new());
    let found = HostToolchains::from_variables(|name| {
        asked.borrow_mut().push(name.to_owned());
        Some(match name {
            "CARGO_INCREMENTAL" => "0".to_owned(),
            "RUSTFLAGS" => "-C target-cpu=native".to_owned(),
            "CARGO_ENCODED_RUSTFLAGS" => "-C\u{1f}opt-level=1".to_owned(),
            "CARGO_PROFILE_DEV_DEBUG" => "a\nb".to_owned(),
            "CFLAGS" => "x".repeat(5000),
            "GOFLAGS" => String::new(),
            _ => return None,
        })
    });
    let names: Vec<_> = found.environment().keys().collect();
    assert_eq!(
        names,
        ["CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL", "RUSTFLAGS"]
    );
    assert_eq!(found.environment()["RUSTFLAGS"], "-C target-cpu=native");
    let known: Vec<_> = HostToolchains::variables().collect();
    for name in asked.into_inner() {
        assert!(
            known.contains(&name.as_str()),
            "a runner is not handed {name}"
        );
    }
    for refused in [
        "CARGO_REGISTRY_TOKEN",
        "GOPROXY",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "RUSTC_WRAPPER",
    ] {
        assert!(!known.contains(&refused), "{refused}");
    }
}

#[test]
fn what_stands_behind_a_link_of_the_path_is_shown() {
    let home = Home::with(&[
        "opt/node/bin/node",
        "opt/node/lib/node_modules/",
        "me/other/bin/node",
        "me/other/lib/",
        "me/.local/share/uv/tools/ruff/pyvenv.cfg",
        "me/.local/share/uv/tools/ruff/bin/ruff",
        "me/.local/share/notes/lib/",
        "me/.local/share/notes/bin/notes",
    ]);
    home.link("opt/node/bin/node", "links/node");
    home.link("me/other/bin/node", "later/node");
    home.link("me/.local/share/uv/tools/ruff/bin/ruff", "links/ruff");
    home.link("me/.local/share/notes/bin/notes", "links/notes");
    let found = home.look(&["links", "later"], &[]);
    assert_eq!(
        found.directories(),
        home.paths(&[
            "links",
            "later",
            "opt/node",
            "me/.local/share/uv/tools/ruff"
        ])
    );
}

#[test]
fn a_moved_cargo_keeps_its_toolchains() {
    let home = Home::with(&["data/cargo/bin/cargo", "me/.rustup/toolchains/"]);
    let found = home.look(&["data/cargo/bin"], &[("CARGO_HOME", "data/cargo")]);
    assert_eq!(found.environment()["RUSTUP_HOME"], home.text("me/.rustup"));
    assert_eq!(
        found.directories(),
        home.paths(&["data/cargo/bin", "me/.rustup"])
    );
}
