//! A force-push is caught however it is spelled, and a text that speaks of one is not.

use lula_protocol::ToolAction;
use lula_protocol::call::{GitAction, WriteFile};
use proptest::prelude::*;

use super::{GateAct, RuleSet, Ruling};

fn ruling(act: &GateAct) -> Ruling {
    RuleSet::built_in().unwrap().judge(act).ruling
}

const SPELLED: [&str; 14] = [
    "git push -f",
    "git push --force",
    "git push --forc origin main",
    "git push --force-with-lease",
    "git push --force-with-lease=main:abc origin",
    "git push --force-if-includes --force",
    "git push origin +main",
    "git push origin +HEAD:refs/heads/main",
    "git push -uf origin main",
    "git push origin main -f",
    "git push --mirror",
    "git push origin :main",
    "git push --delete origin main",
    "git send-pack --force origin main",
];

/// Ways to say the same: with git's own options, other names of the program, and quotes.
fn disguised(text: &str, how: u8) -> String {
    let rest = text.strip_prefix("git ").unwrap_or(text);
    match how {
        0 => text.to_owned(),
        1 => format!("/usr/bin/git {rest}"),
        2 => format!("git -C sub {rest}"),
        3 => format!("git -c user.name=x --no-pager {rest}"),
        4 => format!("git -c alias.p='{rest}' p"),
        5 => format!("git -c alias.up='!git {rest}' UP"),
        6 => format!("g\\it {rest}"),
        7 => format!("'git' {rest}"),
        8 => format!("git --git-dir=.git --work-tree . {rest}"),
        _ => format!("\"gi\"t {rest}"),
    }
}

/// Programs that run it.
fn wrapped(text: &str, how: u8) -> String {
    let quoted = text.replace('\'', "'\\''");
    match how {
        0 => text.to_owned(),
        1 => format!("sh -c '{quoted}'"),
        2 => format!("env A=1 {text}"),
        3 => format!("sudo -u x {text}"),
        4 => format!("eval '{quoted}'"),
        5 => format!("true && ({text})"),
        6 => format!("timeout 5 {text}"),
        7 => format!("bash -lc '{quoted}'"),
        8 => format!("nohup nice -n 5 {text}"),
        9 => format!("echo x | xargs {text}"),
        10 => format!("if true; then {text}; fi"),
        11 => format!("x=$({text})"),
        _ => format!("cd sub; {text} || true"),
    }
}

proptest! {
    #[test]
    fn it_never_passes(
        spelled in proptest::sample::select(&SPELLED[..]),
        how in 0..10_u8,
        inner in 0..13_u8,
        outer in 0..13_u8,
    ) {
        let text = wrapped(&wrapped(&disguised(spelled, how), inner), outer);
        let ruling = ruling(&GateAct::shell(&text));
        prop_assert!(ruling > Ruling::Allow, "{text}: {ruling:?}");
        // Where nothing is known only when it runs, it is refused, not asked about.
        let plain = how != 4 && how != 5 && ![4, 9].contains(&inner) && ![4, 9].contains(&outer);
        if plain {
            prop_assert_eq!(ruling, Ruling::Deny, "{}", text);
        }
    }

    #[test]
    fn speaking_of_it_is_not_doing_it(
        spelled in proptest::sample::select(&SPELLED[..]),
        how in 0..6_u8,
    ) {
        let act = match how {
            0 => GateAct::of(&ToolAction::WriteFile(WriteFile {
                path: "docs/git.md".to_owned(),
                content: format!("Never run `{spelled}`.\n"),
                executable: false,
            })),
            1 => GateAct::of(&ToolAction::Git(GitAction::Commit {
                message: format!("Explain why {spelled} loses work"),
            })),
            2 => GateAct::shell(&format!("echo '{spelled}'")),
            3 => GateAct::shell(&format!("grep -rn '{spelled}' docs")),
            4 => GateAct::shell(&format!("cat > doc.md <<'EOF'\n{spelled}\nEOF")),
            _ => GateAct::shell(&format!("git commit -m 'about {spelled}'")),
        };
        prop_assert_eq!(ruling(&act), Ruling::Allow, "{}", spelled);
    }
}

#[test]
fn a_program_text_that_pushes_is_asked_about() {
    let text = "python3 -c 'import os; os.system(\"git push -f\")'";
    assert_eq!(ruling(&GateAct::shell(text)), Ruling::Ask);
    assert_eq!(
        ruling(&GateAct::shell("python3 -c 'print(1)'")),
        Ruling::Allow
    );
}
