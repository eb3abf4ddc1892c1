use lula_protocol::ToolAction;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::approvals::ApprovalExpiryPolicy;
use crate::globs::PathGlobs;

fn operator(text: &str) -> RulesFileSource<'_> {
    RulesFileSource {
        file: "rules.toml",
        text,
        trust: RulesFileTrust::Operator,
    }
}

fn repository(text: &str) -> RulesFileSource<'_> {
    RulesFileSource {
        file: ".lula-rules.toml",
        text,
        trust: RulesFileTrust::Repository,
    }
}

fn action(value: serde_json::Value) -> ToolAction {
    serde_json::from_value(value).unwrap()
}

static BUILT_IN: std::sync::LazyLock<RuleSet> =
    std::sync::LazyLock::new(|| RuleSet::built_in().unwrap());

#[track_caller]
fn ruling(policy: &RuleSet, text: &str) -> Ruling {
    policy.judge(&GateAct::shell(text)).ruling
}

#[test]
fn the_built_in_rules_pass_their_own_examples() {
    let built_in = operator(built_in_text());
    assert_eq!(test(&built_in).unwrap(), []);
    let policy = RuleSet::built_in().unwrap();
    let without: Vec<_> = policy
        .rules()
        .filter(|rule| rule.example_count() == 0 && !rule.outside_scope)
        .map(|rule| &rule.id)
        .collect();
    assert!(without.is_empty(), "rules without examples: {without:?}");
}

#[test]
fn everyday_work_is_not_asked_about() {
    let policy = RuleSet::built_in().unwrap();
    for text in [
        "pytest -q tests/unit",
        "cargo test --workspace",
        "npm ci && npm test -- --watch=false",
        "go build ./...",
        "make -j4 test",
        "git status --short",
        "git diff HEAD~1 -- src",
        "git add -A && git commit -m 'Fix async handling'",
        "git checkout -b topic",
        "python -m pip install -r requirements.txt",
        "rm -rf target node_modules",
        "find . -name '*.pyc' -delete",
        "grep -rn 'TODO' src | head -20",
        "sed -i 's/foo/bar/' src/x.py",
        "for f in *.c; do gcc -c $f; done",
        "docker build -t x .",
        "mvn -q test",
        "ls -la | xargs -n1 basename",
        "bash ./scripts/test.sh",
        "curl -sSfL https://example.org/x.json -o x.json",
    ] {
        let verdict = policy.judge(&GateAct::shell(text));
        assert_eq!(
            verdict.ruling,
            Ruling::Allow,
            "{text}: {:?}",
            verdict.because
        );
    }
}

#[test]
fn a_force_push_is_caught_however_it_is_spelled() {
    let policy = RuleSet::built_in().unwrap();
    for text in [
        "git push -f",
        "git push --force-with-lease",
        "git push origin +main",
        "git -C x push origin +main",
        "g\\it push -f",
        "\"git\" 'push' \"-f\"",
        "$'\\x67it' push -f",
        "env GIT_TRACE=1 git push -f",
        "sudo -E nice -n 3 git push --force",
        "bash -c \"sh -c 'git push -f'\"",
        "bash <<'X'\ngit push -f\nX",
        "echo x; (git push -f)",
        "/usr/lib/git-core/git-push -f",
        "find . -exec git push -f {} \\;",
        "git push origin main --for",
        "git --no-pager -c user.name=x push -fu origin x",
        "if true; then command git push -f; fi",
    ] {
        let verdict = policy.judge(&GateAct::shell(text));
        assert_eq!(
            verdict.ruling,
            Ruling::Deny,
            "{text}: {:?}",
            verdict.because
        );
        assert_eq!(verdict.rule(), Some("git.force-push"), "{text}");
    }
    for text in [
        "git $X",
        "$GIT push -f",
        "echo 'git push -f' | sh",
        "git p* -f",
        "git xyz -f",
    ] {
        assert_eq!(ruling(&policy, text), Ruling::Ask, "{text}");
    }
    let argv = ["bash", "-lc", "git push -f"].map(str::to_owned);
    assert_eq!(policy.judge(&GateAct::command(&argv)).ruling, Ruling::Deny);
}

#[test]
fn a_document_that_mentions_a_force_push_is_not_one() {
    let policy = RuleSet::built_in().unwrap();
    for text in [
        "echo 'git push --force'",
        "cat > x.md <<'EOF'\nnever `git push --force`\nEOF",
        "git commit -m 'never git push --force'",
        "printf 'git push -f\\n' > doc.txt",
    ] {
        assert_eq!(ruling(&policy, text), Ruling::Allow, "{text}");
    }
    let write = action(json!({"tool": "write_file", "input": {
        "path": "docs/git.md", "content": "never run `git push --force`\n"}}));
    assert_eq!(policy.judge(&GateAct::of(&write)).ruling, Ruling::Allow);
}

#[test]
fn paths_findings_tools_and_scope_decide_too() {
    let policy = RuleSet::built_in().unwrap();
    let write = |path: &str, content: &str| {
        action(json!({"tool": "write_file", "input": {"path": path, "content": content}}))
    };
    let of = |action: &ToolAction| {
        let verdict = policy.judge(&GateAct::of(action));
        (verdict.ruling, verdict.rule().map(str::to_owned))
    };
    assert_eq!(of(&write("src/x.rs", "fn x() {}")), (Ruling::Allow, None));
    assert_eq!(
        of(&write("py/../.git/config", "")),
        (Ruling::Deny, Some("paths.git".into()))
    );
    assert_eq!(
        of(&write(".github/workflows/ci.yml", "")),
        (Ruling::Ask, Some("paths.automation".into()))
    );
    let secret = format!("key = \"AKIA{}\"", "Q7RZ2MWX5NPL4KDT");
    assert_eq!(
        of(&write("x.py", &secret)),
        (Ruling::Ask, Some("found.secret".into()))
    );
    let diff = "--- a/x\n+++ b/.github/x.yml\n@@ -1 +1 @@\n-a\n+b\n";
    let patch =
        action(json!({"tool": "apply_patch", "input": {"format": "unified_diff", "diff": diff}}));
    assert_eq!(of(&patch).0, Ruling::Ask);
    let scoped = GateAct::of(&write("docs/x.md", "")).within(PathGlobs::new(&["src/**"]).unwrap());
    let verdict = policy.judge(&scoped);
    assert_eq!(
        (verdict.ruling, verdict.rule()),
        (Ruling::Deny, Some("scope"))
    );
    assert_eq!(verdict.denials("write_file").len(), 1);
    let inside = GateAct::of(&write("src/x.rs", "")).within(PathGlobs::new(&["src/**"]).unwrap());
    assert_eq!(policy.judge(&inside).ruling, Ruling::Allow);
}

#[test]
fn variables_and_input_of_a_call_are_seen() {
    let policy = RuleSet::built_in().unwrap();
    let exec = |input: serde_json::Value| {
        let action = action(json!({"tool": "exec", "input": input}));
        policy.judge(&GateAct::of(&action)).ruling
    };
    assert_eq!(
        exec(json!({"argv": ["ls"], "env": {"RUST_LOG": "x"}})),
        Ruling::Allow
    );
    assert_eq!(
        exec(json!({"argv": ["ls"], "env": {"LD_PRELOAD": "x"}})),
        Ruling::Ask
    );
    assert_eq!(
        exec(json!({"argv": ["sh"], "stdin": "git push -f"})),
        Ruling::Deny
    );
    assert_eq!(
        exec(json!({"argv": ["cat"], "stdin": "git push -f"})),
        Ruling::Allow
    );
}

#[test]
fn a_failing_example_refuses_the_file_with_its_line() {
    let text = "[[rule]]\nmatch = [\"git\", [\"push\", \"tag\"]]\ndecision = \"ask\"\n\
                examples.match = [\"git push origin main\"]\nexamples.not = [\n  \"git pull\",\n  \"git tag v1\",\n]\n";
    let error = RuleSet::load(&[operator(text)]).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("rules.toml", 7));
    assert!(error.what.contains("git tag v1"), "{error}");
}

#[test]
fn mistakes_are_refused_with_their_line() {
    for (text, line, says) in [
        ("x = 1", 1, "unknown field"),
        ("[[rule]]\ndecision = \"ask\"\n", 1, "about nothing"),
        (
            "\n[[rule]]\nmatch = [\"a\"]\ndecision = \"maybe\"\n",
            4,
            "unknown variant",
        ),
        (
            "[[rule]]\ntool = \"hack\"\ndecision = \"ask\"\n",
            1,
            "there is no tool",
        ),
        (
            "[[rule]]\nfinding = \"x\"\ndecision = \"ask\"\n",
            1,
            "there is no finding",
        ),
        (
            "[[rule]]\npaths = [\"/etc\"]\ndecision = \"ask\"\n",
            1,
            "inside the workspace",
        ),
        (
            "[[rule]]\nwith = [\"-f\"]\ndecision = \"ask\"\n",
            1,
            "needs `match`",
        ),
        ("off = [\"nothing\"]\n", 1, "no rule \"nothing\""),
        ("[approval]\nexpires = \"soon\"\n", 1, "not a duration"),
        (
            "[approval]\nquorum = 2\non_expiry = \"approve_tree\"\n",
            1,
            "silence is nobody",
        ),
        (
            "[approval]\nrole = \"ops\"\nbeforehand = \"tree\"\n",
            1,
            "one person's word",
        ),
        (
            "[[rule]]\nid = \"a\"\ntool = \"exec\"\ndecision = \"ask\"\n[[rule]]\nid = \"a\"\ntool = \"git\"\ndecision = \"ask\"\n",
            5,
            "two rules",
        ),
    ] {
        let error = RuleSet::load(&[operator(text)]).unwrap_err();
        assert!(error.what.contains(says), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

#[test]
fn the_operator_can_switch_a_rule_off_and_a_repository_cannot() {
    let text = "off = [\"git.push\"]\n";
    let policy = RuleSet::load(&[operator(text)]).unwrap();
    assert_eq!(ruling(&policy, "git push origin main"), Ruling::Allow);
    let error = RuleSet::load(&[repository(text)]).unwrap_err();
    assert!(error.what.contains("only tighten"), "{error}");
    let silence = "[approval]\non_expiry = \"approve_tree\"\n";
    assert!(RuleSet::load(&[repository(silence)]).is_err());
    let policy = RuleSet::load(&[operator(silence)]).unwrap();
    assert_eq!(policy.terms().on_expiry, ApprovalExpiryPolicy::ApproveTree);
}

#[test]
fn only_the_operator_says_that_agreeing_beforehand_is_enough() {
    let beforehand =
        |policy: &RuleSet, command: &str| policy.judge(&GateAct::shell(command)).beforehand;
    assert!(!beforehand(
        &RuleSet::built_in().unwrap(),
        "git push origin main"
    ));
    let tree = "[approval]\nbeforehand = \"tree\"\n";
    let policy = RuleSet::load(&[operator(tree)]).unwrap();
    assert!(beforehand(&policy, "git push origin main"));
    assert!(beforehand(&policy, "$UNKNOWN"), "doubts are questions too");
    let error = RuleSet::load(&[repository(tree)]).unwrap_err();
    assert!(error.what.contains("only tighten"), "{error}");
    let in_a_rule =
        "[[rule]]\ntool = \"exec\"\ndecision = \"ask\"\napproval = { beforehand = \"tree\" }\n";
    assert!(RuleSet::load(&[repository(in_a_rule)]).is_err());
    let never = "[approval]\nbeforehand = \"never\"\n";
    let policy = RuleSet::load(&[operator(tree), repository(never)]).unwrap();
    assert!(!beforehand(&policy, "git push origin main"));
}

#[test]
fn one_rule_that_wants_to_be_asked_is_asked() {
    let text = "[approval]\nbeforehand = \"tree\"\n\
        [[rule]]\nmatch = [\"deploy\"]\ndecision = \"ask\"\napproval = { beforehand = \"never\" }\n\
        [[rule]]\nmatch = [\"release\"]\ndecision = \"ask\"\napproval = { quorum = 2 }\n";
    let policy = RuleSet::load(&[operator(text)]).unwrap();
    let beforehand = |command: &str| policy.judge(&GateAct::shell(command)).beforehand;
    assert!(beforehand("ssh host"));
    assert!(!beforehand("deploy && ssh host"));
    assert!(!beforehand("release"), "two people cannot be one");
    let own = "[[rule]]\nmatch = [\"deploy\"]\ndecision = \"ask\"\napproval = { beforehand = \"tree\" }\n";
    let policy = RuleSet::load(&[operator(own)]).unwrap();
    assert!(policy.judge(&GateAct::shell("deploy")).beforehand);
    assert!(
        !policy
            .judge(&GateAct::shell("deploy && ssh host"))
            .beforehand
    );
}

#[test]
fn with_a_strict_default_only_what_the_operator_allows_is_allowed() {
    let allow = "default = \"ask\"\n[[rule]]\nmatch = [\"pytest\"]\ndecision = \"allow\"\n";
    let policy = RuleSet::load(&[operator(allow)]).unwrap();
    assert_eq!(ruling(&policy, "pytest -q"), Ruling::Allow);
    assert_eq!(ruling(&policy, "pytest -q && make"), Ruling::Ask);
    assert_eq!(ruling(&policy, "pytest $(x)"), Ruling::Ask);
    let by_repository = "[[rule]]\nmatch = [\"make\"]\ndecision = \"allow\"\n";
    let policy = RuleSet::load(&[operator(allow), repository(by_repository)]).unwrap();
    assert_eq!(ruling(&policy, "make"), Ruling::Ask);
}

#[test]
fn a_rule_can_ask_for_more_people() {
    let text = "[[rule]]\nmatch = [\"deploy\"]\ndecision = \"ask\"\napproval = { quorum = 2, role = \"ops\" }\n";
    let policy = RuleSet::load(&[operator(text)]).unwrap();
    let verdict = policy.judge(&GateAct::shell("deploy prod"));
    assert_eq!(
        (verdict.terms.quorum.get(), verdict.terms.role.as_deref()),
        (2, Some("ops"))
    );
    assert_eq!(
        policy.judge(&GateAct::shell("git push")).terms.quorum.get(),
        1
    );
}

#[test]
fn every_change_that_decides_is_another_version() {
    let version =
        |sources: &[RulesFileSource<'_>]| RuleSet::load(sources).unwrap().version().unwrap();
    let base = version(&[]);
    assert_eq!(version(&[]), base);
    let rule = "[[rule]]\nid = \"x\"\nmatch = [\"x\"]\ndecision = \"ask\"\n";
    let all = [
        base,
        version(&[operator(rule)]),
        version(&[repository(rule)]),
        version(&[operator(&rule.replace("ask", "deny"))]),
        version(&[operator("default = \"ask\"\n")]),
        version(&[operator("[approval]\nquorum = 2\n")]),
        version(&[operator("off = [\"git.push\"]\n")]),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(!all[index + 1..].contains(one), "{index}");
    }
}

const WORDS: [&str; 12] = [
    "git",
    "push",
    "-f",
    "make",
    "sudo",
    "x",
    "$X",
    "&& git",
    "bash -c 'git push'",
    "| sh",
    "env A=1",
    "curl",
];

fn command() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 1..6)
        .prop_map(|words| words.join(" "))
}

fn strict_rule() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select(vec!["git", "push", "make", "x", "curl", "*"]);
    (
        proptest::collection::vec(plain, 1..3),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(words, deny, with)| {
            let decision = if deny { "deny" } else { "ask" };
            let with = if with { "with = [\"-f\"]\n" } else { "" };
            format!("[[rule]]\nmatch = {words:?}\n{with}decision = \"{decision}\"\n")
        })
}

proptest! {
    // Each case loads a whole policy.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn adding_a_rule_never_loosens(rule in strict_rule(), text in command(), theirs in any::<bool>()) {
        let before = &*BUILT_IN;
        let source = if theirs { repository(&rule) } else { operator(&rule) };
        let after = RuleSet::load(&[source]).unwrap();
        prop_assert!(ruling(&after, &text) >= ruling(before, &text));
    }

    #[test]
    fn a_repository_never_loosens_whatever_it_says(
        rule in strict_rule(), allow in any::<bool>(), default in 0..3_usize, text in command(),
    ) {
        let strict = "default = \"ask\"\n[[rule]]\nmatch = [\"make\"]\ndecision = \"allow\"\n";
        let before = RuleSet::load(&[operator(strict)]).unwrap();
        let rule = if allow { rule.replace("ask", "allow").replace("deny", "allow") } else { rule };
        let theirs = format!("default = \"{}\"\n{rule}", ["allow", "ask", "deny"][default]);
        let after = RuleSet::load(&[operator(strict), repository(&theirs)]).unwrap();
        prop_assert!(ruling(&after, &text) >= ruling(&before, &text));
    }
}

proptest! {
    #[test]
    fn more_commands_are_never_judged_more_loosely(a in command(), b in command()) {
        let policy = &*BUILT_IN;
        let both = ruling(policy, &format!("{a}\n{b}"));
        prop_assert!(both >= ruling(policy, &a).max(ruling(policy, &b)), "{a} / {b}");
    }

    #[test]
    fn no_text_makes_a_rules_file_panic(text in ".{0,200}") {
        let _ = test(&operator(&text));
    }
}
