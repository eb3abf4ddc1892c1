//! `lula config`: layers, mistakes, changes.

use crate::support::LulaEnv;

#[test]
fn explain_shows_which_layer_won() {
    let world = LulaEnv::new();
    world.user_config("[sandbox]\ntimeout = \"5m\"\n");
    world.repository_config("[sandbox]\ntimeout = \"2m\"\n");
    let ran = world.run_with(
        &[("LULA_SANDBOX_TIMEOUT", "90s")],
        &[
            "config",
            "explain",
            "sandbox.timeout",
            "--json",
            "--sandbox-timeout",
            "30s",
        ],
    );
    let document = ran.exits(0).json();
    assert_eq!(document["value"], "30s");
    let layers: Vec<_> = document["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| {
            let text = |name: &str| layer[name].as_str().unwrap().to_owned();
            (text("layer"), text("value"), text("verdict"))
        })
        .collect();
    let expected = [
        ("built-in", "10m", "overridden"),
        ("user", "5m", "overridden"),
        ("repository", "2m", "overridden"),
        ("environment", "90s", "overridden"),
        ("flag", "30s", "won"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(layers, expected);
}

#[test]
fn a_repository_can_tighten_policy_but_never_loosen_it() {
    let world = LulaEnv::new();
    world.repository_config("[sandbox]\nmin_tier = \"microvm\"\n");
    let tight = world.run(&["config", "get", "sandbox.min_tier"]).exits(0);
    assert_eq!(tight.stdout, "microvm\n");

    world.repository_config("[sandbox]\nmin_tier = \"process\"\ntimeout = \"24h\"\n");
    let loose = world.run(&["config", "get", "sandbox.min_tier"]).exits(0);
    assert_eq!(loose.stdout, "landlock\n");
    let loose = loose.says(".lula.toml:2: sandbox.min_tier = process is not applied");
    loose.says("only make this stricter than landlock (built-in layer)");
}

#[test]
fn a_repository_cannot_set_endpoints_programs_or_places() {
    for (key, line) in [
        (
            "models.ollama_url",
            "[models]\nollama_url = \"http://evil.example\"\n",
        ),
        (
            "models.local_urls",
            "[models]\nlocal_urls = [\"http://evil.example\"]\n",
        ),
        ("git.program", "[git]\nprogram = \"/tmp/evil\"\n"),
        ("state.dir", "[state]\ndir = \"/tmp/evil\"\n"),
    ] {
        let world = LulaEnv::new();
        world.repository_config(line);
        let ran = world.run(&["config", "get", key]).exits(0);
        assert!(!ran.stdout.contains("evil"), "{key}: {}", ran.stdout);
        ran.says("is not applied: only you can set this");
    }
}

#[test]
fn a_mistake_in_a_file_is_shown_with_its_line() {
    let world = LulaEnv::new();
    let path = world.user_config("[sandbox]\nmin_teir = \"namespace\"\n");
    world
        .run(&["config", "list"])
        .exits(2)
        .says("error[L0101]: there is no configuration key `sandbox.min_teir`")
        .says(&format!("--> {}:2", path.display()))
        .says("2 | min_teir = \"namespace\"")
        .says("did you mean `sandbox.min_tier`?");

    world.user_config("[output]\ncolor = \"pink\"\n");
    world
        .run(&["config", "list"])
        .exits(2)
        .says("error[L0102]")
        .says("one of auto, always, never");
}

#[test]
fn a_misspelt_variable_is_an_error() {
    let world = LulaEnv::new();
    world
        .run_with(&[("LULA_SANDBOX_TIMOUT", "5s")], &["config", "list"])
        .exits(2)
        .says("--> $LULA_SANDBOX_TIMOUT")
        .says("did you mean `sandbox.timeout`?");
}

#[test]
fn a_repositorys_file_that_is_a_link_is_refused() {
    let world = LulaEnv::new();
    std::fs::create_dir_all(world.work().join(".git")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.work().join(".lula.toml")).unwrap();
    world
        .run(&["config", "list"])
        .exits(2)
        .says("it is a symbolic link");
}

#[test]
fn set_shows_the_change_and_unset_takes_it_back() {
    let world = LulaEnv::new();
    let set = world
        .run(&["config", "set", "sandbox.timeout", "5m"])
        .exits(0);
    assert!(set.stdout.contains("+timeout = \"5m\""), "{}", set.stdout);
    world
        .run(&["config", "get", "sandbox.timeout"])
        .exits(0)
        .says("5m");
    world
        .run(&["config", "unset", "sandbox.timeout"])
        .exits(0)
        .says("-timeout = \"5m\"");
    world
        .run(&["config", "get", "sandbox.timeout"])
        .exits(0)
        .says("10m");
}

#[test]
fn set_refuses_what_would_not_load_and_changes_nothing() {
    let world = LulaEnv::new();
    let path = world.user_config("# mine\n");
    world
        .run(&["config", "set", "sandbox.timeout", "soon"])
        .exits(2)
        .says("error[L0102]");
    world
        .run(&["config", "set", "sandbox.timout", "5m"])
        .exits(2)
        .says("error[L0101]");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "# mine\n");
}

#[test]
fn set_in_a_repository_needs_one_and_obeys_its_limits() {
    let world = LulaEnv::new();
    let set = |key, value| world.run(&["config", "set", "--in", "repository", key, value]);
    set("sandbox.min_tier", "namespace")
        .exits(2)
        .says("in no git repository");
    let file = world.repository_config("");
    set("sandbox.min_tier", "namespace").exits(0);
    set("models.ollama_url", "http://127.0.0.1:1")
        .exits(2)
        .says("error[L0105]");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "[sandbox]\nmin_tier = \"namespace\"\n"
    );
}

#[test]
fn list_names_every_key_with_its_layer() {
    let world = LulaEnv::new();
    world.user_config("[output]\ncolor = \"never\"\n");
    let list = world.run(&["config", "list", "--json"]).exits(0).json();
    let entries = list.as_array().unwrap();
    let layer = |key: &str| {
        entries
            .iter()
            .find(|entry| entry["key"] == key)
            .map(|entry| entry["layer"].clone())
            .unwrap()
    };
    assert_eq!(layer("output.color"), "user");
    assert_eq!(layer("output.progress"), "built-in");
}
