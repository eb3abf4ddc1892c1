//! Environments that Lula builds: from a fresh clone to a verified change, in a sandbox that holds every
//! command of the set-up.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{LulaEnv, Repo, begin, git, wait_until};

/// A project whose tests need a package that only its environment has.
const CODE: &str = "import helper\n\n\ndef total(prices):\n    result = 0\n    for price in prices:\n        result -= helper.plain(price)\n    return result\n";
const TESTS: &str = "import unittest\n\nimport cart\n\n\nclass TestTotal(unittest.TestCase):\n    def test_sums(self):\n        self.assertEqual(cart.total([1, 2]), 3)\n\n    def test_of_nothing(self):\n        self.assertEqual(cart.total([]), 0)\n";
/// As a developer would set it up. The registry is a folder here, so that no network is needed.
const RECIPE: &str = "network = []\ninputs = [\"deps.txt\"]\npath = [\".venv/bin\"]\n\n[[step]]\nbecause = \"a virtual environment\"\nrun = \"python3 -m venv --without-pip .venv\"\n\n[[step]]\nrun = \"python3 install_packages.py\"\n";

const INSTALL: &str = "import glob, shutil\nname = open('deps.txt').read().strip()\nplace = glob.glob('.venv/lib/python3.*/site-packages')[0]\nshutil.copy('packages/' + name + '/helper.py', place)\n";

fn project(world: &LulaEnv, recipe: &str) {
    let files = [
        (".lula-environment.toml", recipe),
        ("cart.py", CODE),
        ("test_cart.py", TESTS),
        ("deps.txt", "first\n"),
        ("install_packages.py", INSTALL),
        (".gitignore", ".env\n"),
        (
            "packages/first/helper.py",
            "def plain(price):\n    return price\n",
        ),
        (
            "packages/second/helper.py",
            "def plain(price):\n    return price + 0\n",
        ),
    ];
    Repo::with(world, &files);
}

/// The directory that environments are kept in.
fn kept(world: &LulaEnv) -> PathBuf {
    let said = world.run(&["config", "get", "state.dir"]).exits(0);
    let state = said.stdout.trim();
    let state = if state.is_empty() {
        world.home().join(".local/state/lula")
    } else {
        PathBuf::from(state)
    };
    state.join("environments")
}

fn names(world: &LulaEnv) -> Vec<String> {
    let listed = world.run(&["env", "list", "--json"]).exits(0).json();
    let listed = listed.as_array().unwrap().iter();
    listed
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_fresh_clone_is_set_up_once_and_a_run_finds_the_bug_in_it() {
    let world = LulaEnv::new();
    project(&world, RECIPE);
    world
        .run(&["env", "show"])
        .exits(0)
        .says("python3 -m venv --without-pip .venv")
        .says("lula env build");
    let built = world.run(&["env", "build", "--json"]).exits(0).json();
    assert_eq!(built["directories"], serde_json::json!([".venv"]));
    let name = built["name"].as_str().unwrap();
    // The checkout itself stays as it was.
    assert!(!world.work().join(".venv").exists());
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
    world.run(&["env", "build"]).exits(0).says("there already");
    world.run(&["env", "show"]).exits(0).says(name);

    let line = [
        "exec",
        "--json",
        "--",
        "python3",
        "-c",
        "import helper, sys; print(sys.prefix)",
    ];
    let ran = world.run(&line).exits(0).json();
    let place = world.work().canonicalize().unwrap().join(".venv");
    assert_eq!(
        ran["stdout"].as_str().unwrap().trim(),
        place.to_str().unwrap()
    );
    let shown = ran["receipt"]["environment"].as_str().unwrap();
    assert_eq!(shown, built["digest"].as_str().unwrap());
    assert!(ran["held"].is_null(), "{ran}");

    let check = world.run(&["env", "check", "--json"]).exits(0).json();
    assert_eq!(check["environment"], name);
    assert_eq!(check["check"]["passed"], 1);
    assert_eq!(check["check"]["failing"].as_array().unwrap().len(), 1);

    world
        .run(&["run", "--task", "fix the failing tests"])
        .exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
    let branch = Repo::of(&world).branches().remove(0);
    let changed = git(
        &world.work(),
        &["diff", "--name-only", &format!("HEAD..{branch}")],
    );
    assert_eq!(changed.trim(), "cart.py");
    world
        .run(&["repair", "-q"])
        .exits(0)
        .says("+        result +=");
}

#[test]
fn without_the_environment_the_tests_cannot_run_and_with_env_build_a_run_makes_it() {
    let world = LulaEnv::new();
    project(&world, RECIPE);
    world
        .run(&["repair", "--no-env"])
        .exits(6)
        .says("lula env build");
    let line = ["run", "--task", "fix the failing tests", "--env", "build"];
    world.run(&line).exits(0);
    let built = names(&world);
    assert_eq!(built.len(), 1);
    // The operator's word goes over what was built.
    let line = ["exec", "--no-env", "--", "python3", "-c", "import helper"];
    world.run(&line).exits(1);
    let line = [
        "exec",
        "--env",
        &built[0],
        "--",
        "python3",
        "-c",
        "import helper",
    ];
    world.run(&line).exits(0);
    let line = ["exec", "--env", "env-000000000000", "--", "true"];
    world.run(&line).exits(2).says("lula env list");
}

#[test]
fn a_changed_input_asks_for_another_environment_and_prune_takes_the_older() {
    let world = LulaEnv::new();
    project(&world, RECIPE);
    world.run(&["env", "build"]).exits(0);
    std::fs::write(world.work().join("deps.txt"), "second\n").unwrap();
    world.run(&["env", "show"]).exits(0).says("deps.txt");
    let line = ["exec", "--", "python3", "-c", "import helper"];
    world.run(&line).exits(1);
    world.run(&["env", "build"]).exits(0);
    world.run(&line).exits(0);
    assert_eq!(names(&world).len(), 2);
    std::fs::write(world.work().join("deps.txt"), "first\n").unwrap();
    // Going back needs no build.
    world.run(&line).exits(0);
    world.run(&["env", "prune", "--max", "1MiB"]).exits(0);
    world.run(&["env", "prune", "--max", "0B"]).exits(0);
    assert!(names(&world).is_empty());
}

#[test]
fn a_step_that_fails_is_named_with_its_output_and_leaves_no_environment() {
    let world = LulaEnv::new();
    let recipe = "[[step]]\nrun = \"mkdir .venv && echo half > .venv/x\"\n\n[[step]]\nrun = \"echo no such thing >&2; exit 3\"\notherwise = [\"echo nor this; exit 4\"]\n";
    project(&world, recipe);
    world
        .run(&["env", "build"])
        .exits(6)
        .says("step 2 of 2")
        .says("nor this")
        .says("lula env edit");
    assert!(names(&world).is_empty());
    let own = "[[step]]\nrun = \"mkdir .venv && touch .venv/x\"\n";
    let file = world.home().join("own.toml");
    std::fs::write(&file, own).unwrap();
    let line = ["env", "edit", "--from", file.to_str().unwrap()];
    world.run(&line).exits(0);
    world.run(&["env", "build"]).exits(0);
    assert_eq!(names(&world).len(), 1);
}

#[test]
fn a_recipe_of_a_repository_names_no_host() {
    let world = LulaEnv::new();
    project(
        &world,
        "network = [\"exfil.example.org\"]\n[[step]]\nrun = \"true\"\n",
    );
    world
        .run(&["env", "build"])
        .exits(2)
        .says("exfil.example.org");
}

/// What an install script of a hostile package tries: secrets of the person and of the checkout, files
/// outside, the network, more processes than there may be.
const HOSTILE: &str = r##"
import os, socket, subprocess
found = []
home = open("where.txt").read().strip()
for path in [home + "/.ssh/id_rsa", ".env", ".git/config", "/etc/shadow", home + "/.netrc"]:
    try:
        found.append("read " + path + " " + open(path).read(40))
    except OSError:
        pass
found += ["variable " + name for name in os.environ if "TOKEN" in name]
for path in [home + "/planted", "/usr/bin/planted", "/etc/planted"]:
    try:
        open(path, "w").write("x")
        found.append("wrote " + path)
    except OSError:
        pass
open("../planted", "w").write("x")
for place in [("192.0.2.1", 443), ("169.254.169.254", 80)]:
    try:
        socket.create_connection(place, 2)
        found.append("reached %s" % (place,))
    except OSError:
        pass
os.makedirs(".venv", exist_ok=True)
open("cart.py", "a").write("# planted\n")
open(".venv/found.txt", "w").write("\n".join(found))
"##;

#[test]
fn an_install_script_finds_no_secret_writes_nothing_outside_and_reaches_nothing() {
    let world = LulaEnv::new();
    let recipe = "[[step]]\nrun = \"python3 install.py\"\n";
    project(&world, recipe);
    let work = world.work();
    std::fs::write(work.join("install.py"), HOSTILE).unwrap();
    std::fs::write(work.join("where.txt"), world.home().to_str().unwrap()).unwrap();
    std::fs::write(work.join(".env"), "API_TOKEN=one").unwrap();
    std::fs::create_dir_all(world.home().join(".ssh")).unwrap();
    std::fs::write(world.home().join(".ssh/id_rsa"), "key").unwrap();
    std::fs::write(world.home().join(".netrc"), "password").unwrap();
    let remote = [
        "config",
        "remote.origin.url",
        "https://me:secret@example.org/x",
    ];
    git(&work, &remote);
    world
        .run_with(&[("DEPLOY_TOKEN", "one")], &["env", "build"])
        .exits(0)
        .says("cart.py");
    let line = ["exec", "--", "cat", ".venv/found.txt"];
    let found = world.run(&line).exits(0).stdout;
    assert_eq!(found.trim(), "");
    assert!(!world.home().join("planted").exists());
    assert!(!work.parent().unwrap().join("planted").exists());
    assert!(!Path::new("/etc/planted").exists() && !Path::new("/usr/bin/planted").exists());
    // What it changed of the project is shown nowhere.
    assert_eq!(std::fs::read_to_string(work.join("cart.py")).unwrap(), CODE);
    let code = world.run(&["exec", "--", "cat", "cart.py"]).exits(0).stdout;
    assert!(!code.contains("planted"), "{code}");
}

#[test]
fn a_build_that_is_killed_leaves_nothing_that_is_used() {
    let world = LulaEnv::new();
    let recipe = "[[step]]\nrun = \"mkdir .venv && touch .venv/x && echo begun && sleep 30\"\n";
    project(&world, recipe);
    let mut child = begin(&world, &["env", "build"]);
    let directory = kept(&world);
    let building = || {
        let entries = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten();
        let mut entries = entries.map(|entry| entry.path().join("above/.venv/x"));
        entries.any(|path| path.exists())
    };
    wait_until("the build is under way", building);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(names(&world).is_empty());
    world
        .run(&["exec", "--", "test", "!", "-e", ".venv"])
        .exits(0);
    let file = world.home().join("own.toml");
    std::fs::write(&file, "[[step]]\nrun = \"mkdir .venv && touch .venv/y\"\n").unwrap();
    let line = ["env", "edit", "--from", file.to_str().unwrap()];
    world.run(&line).exits(0);
    world.run(&["env", "build"]).exits(0);
    // What the killed one left is gone too.
    assert!(!building());
    assert_eq!(names(&world).len(), 1);
}

#[test]
fn what_the_developer_installed_is_used_before_what_was_built() {
    let world = LulaEnv::new();
    project(
        &world,
        "path = [\".venv/bin\"]\n[[step]]\nrun = \"python3 -m venv --without-pip .venv && touch .venv/built\"\n",
    );
    let files = ["setup.py"];
    std::fs::write(
        world.work().join(files[0]),
        "from setuptools import setup\nsetup()\n",
    )
    .unwrap();
    world.run(&["env", "build"]).exits(0);
    world
        .run(&["exec", "--", "test", "-e", ".venv/built"])
        .exits(0);
    let own = world.work().join(".venv");
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&own)
        .status();
    assert!(made.unwrap().success());
    world
        .run(&["exec", "--", "test", "!", "-e", ".venv/built"])
        .exits(0);
    world
        .run(&["env", "show"])
        .exits(0)
        .says("what is installed in");
    let name = names(&world).remove(0);
    world
        .run(&["exec", "--env", &name, "--", "test", "-e", ".venv/built"])
        .exits(0);
}
