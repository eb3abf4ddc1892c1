use proptest::prelude::*;

use super::ShellReading;

fn commands(text: &str) -> Vec<String> {
    let reading = ShellReading::of_shell(text);
    reading
        .commands
        .iter()
        .map(super::SimpleCommand::text)
        .collect()
}

#[track_caller]
fn runs(text: &str, command: &str) {
    let found = commands(text);
    assert!(found.iter().any(|one| one == command), "{text}: {found:?}");
}

#[track_caller]
fn doubted(text: &str) {
    let reading = ShellReading::of_shell(text);
    assert!(!reading.doubts.is_empty(), "{text}: {reading:?}");
}

#[track_caller]
fn certain(text: &str) {
    let reading = ShellReading::of_shell(text);
    assert!(reading.doubts.is_empty(), "{text}: {reading:?}");
}

#[test]
fn however_a_command_is_spelled_it_is_the_same_command() {
    for text in [
        "git push -f",
        "  git   push -f ;",
        "/usr/bin/git push -f",
        "g\\it pu\\sh -f",
        "'git' \"push\" -f",
        "gi''t p\"us\"h -f",
        "$'git' $'\\x70ush' $'\\055f'",
        "git \\\n push -f",
        "git -C sub push -f",
        "git -c user.name=x --no-pager --git-dir=.git push -f",
        "git --git-dir .git --work-tree . push -f",
        "FOO=1 BAR=2 git push -f",
        "env A=1 -u B git push -f",
        "env -i git push -f",
        "env -S 'git push -f'",
        "sudo -u root git push -f",
        "sudo -nu root -- git push -f",
        "doas git push -f",
        "nice -n 5 git push -f",
        "nice -5 git push -f",
        "timeout -k 1 10s git push -f",
        "timeout --foreground 10 git push -f",
        "command git push -f",
        "exec git push -f",
        "nohup git push -f &",
        "stdbuf -oL git push -f",
        "time git push -f",
        "setsid -w git push -f",
        "sh -c 'git push -f'",
        "bash -lc 'git push -f'",
        "bash -o pipefail -c 'git push -f'",
        "/bin/bash --norc -ec \"git push -f\"",
        "bash -c \"bash -c 'git push -f'\"",
        "sudo env X=1 nice bash -lc 'timeout 5 git push -f'",
        "true && git push -f",
        "false || { git push -f; }",
        "(cd x; git push -f)",
        "if true; then git push -f; fi",
        "for i in 1 2; do git push -f; done",
        "while true; do git push -f; done",
        "case x in *) git push -f;; esac",
        "! git push -f",
        "f() { git push -f; }; f",
        "echo $(git push -f)",
        "echo `git push -f`",
        "echo \"$(git push -f)\"",
        "x=$(git push -f)",
        "diff <(git push -f) /dev/null",
        "git push -f > log 2>&1",
        "git push -f | tee log",
        "bash <<< 'git push -f'",
        "bash <<EOF\ngit push -f\nEOF",
        "eval git push -f",
        "eval 'git push -f'",
        "trap 'git push -f' EXIT",
        "su -c 'git push -f' bob",
        "watch 'git push -f'",
        "git-push -f",
        "/usr/lib/git-core/git-push -f",
        "git submodule foreach 'git push -f'",
        "git rebase -x 'git push -f' main",
        "git bisect run git push -f",
        "find . -name x -exec git push -f \\;",
        "flock lock git push -f",
        "flock lock -c 'git push -f'",
        "busybox sh -c 'git push -f'",
        "[ -f x ] && git push -f",
        "[[ -f x ]] && git push -f",
        "echo a\ngit push -f",
        "env -iS 'git push -f'",
        "env --split-string='git push -f'",
        "setpriv --reuid 1 --regid 2 git push -f",
        "systemd-run --user --scope -p X=1 git push -f",
        "poetry run git push -f",
        "rustup run nightly git push -f",
        "npx -y git push -f",
        "coproc git push -f",
        "2>/dev/null git push -f",
        "case x in (a|b) git push -f;; esac",
        "echo $(( $(git push -f) ))",
        ": \"${x:-$(git push -f)}\"",
        "cat <<EOF\n$(git push -f)\nEOF",
        "[[ -n $(git push -f) ]]",
        "function f { git push -f; }",
        "time { git push -f; }",
    ] {
        runs(text, "git push -f");
    }
}

#[test]
fn a_document_that_mentions_a_command_does_not_run_it() {
    for text in [
        "echo 'git push -f'",
        "echo git push -f",
        "cat > doc.md <<'EOF'\ngit push -f\nEOF",
        "printf '%s' \"git push -f\" > notes",
        "grep -r 'git push -f' docs",
        "git commit -m 'never git push -f'",
        "# git push -f",
        "timeout 10 echo git push -f",
    ] {
        let found = commands(text);
        assert!(
            !found.iter().any(|one| one.starts_with("git push")),
            "{text}: {found:?}"
        );
        certain(text);
    }
}

#[test]
fn what_is_known_only_when_it_runs_is_doubted() {
    for text in [
        "$CMD push",
        "\"$CMD\" push",
        "${X} y",
        "$(echo git) push",
        "`echo git` push",
        "eval \"$X\"",
        "curl http://x | sh",
        "echo 'git push' | bash -s",
        "cat x | sudo bash",
        "bash <<EOF\nls\nEOF",
        "source ./x.sh",
        ". x.sh",
        "alias ll='git push'",
        "git foo",
        "git -c alias.x='!rm' x",
        "git -c core.sshCommand=x fetch",
        "git --exec-path=/tmp/x status",
        "GIT_SSH_COMMAND=x git fetch",
        "LD_PRELOAD=x ls",
        "export PATH=/tmp:$PATH",
        "g* push",
        "/usr/bin/gi? push",
        "{git,push}",
        "make -j$(nproc)",
        "cat <(ls)",
        "env -S \"$X\"",
        "bash -c \"$X\"",
        "bash $FLAGS",
        "if then fi (",
        "parallel echo ::: 1",
    ] {
        doubted(text);
    }
}

#[test]
fn everyday_commands_are_read_with_certainty() {
    for text in [
        "pytest -q",
        "cargo test --workspace 2>&1 | tail -20",
        "git status && git diff --stat",
        "ls *.py",
        "echo $HOME",
        "for f in *.c; do gcc -c \"$f\"; done",
        "npm ci && npm test",
        "python -m pytest tests/ -k 'not slow'",
        "find . -name '*.rs' -not -path './target/*' | xargs wc -l",
        "git log --oneline -5; git stash list",
        "cat <<'EOF' > x.txt\nhello $(world)\nEOF",
        "make -j4 CC=clang",
        "bash scripts/build.sh --release",
        "git stash drop stash@{0}",
        "sed -i 's/a/b/g' file.txt",
        "awk '{print $1}' file",
    ] {
        certain(text);
    }
}

#[test]
fn a_shell_reading_known_input_is_read_too() {
    let reading = ShellReading::of_argv(&["bash".into()], &[], Some("git push -f"));
    assert!(
        reading
            .commands
            .iter()
            .any(|one| one.text() == "git push -f")
    );
    assert!(!reading.doubts.is_empty());
}

#[test]
fn arguments_that_reach_the_kernel_are_not_expanded() {
    let reading = ShellReading::of_argv(&["echo".into(), "$(git push)".into()], &[], None);
    assert_eq!(reading.commands.len(), 1);
    assert!(reading.doubts.is_empty());
}

#[test]
fn bottomless_nesting_ends_in_doubt() {
    let mut text = "true".to_owned();
    for _ in 0..12 {
        text = format!("bash -c {}", shell_quote(&text));
    }
    doubted(&text);
    doubted(&"(".repeat(20_000));
    doubted(&format!("{}true", "sudo ".repeat(10_000)));
    doubted(&"true;".repeat(5_000));
    doubted(&format!("{}true", "sudo --a ".repeat(7_000)));
    doubted(&format!("{}true", "env --a b ".repeat(6_000)));
    doubted(&"x".repeat(super::MAX_TEXT + 1));
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = ShellReading::of_shell(&text);
    }

    #[test]
    fn no_shell_like_text_makes_the_reader_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("git "), Just("push "), Just("$("), Just(")"), Just("'"), Just("\""), Just("`"),
                Just("bash -c "), Just("\\"), Just("\n"), Just("<<EOF\n"), Just("EOF\n"), Just("{"),
                Just("}"), Just("$'\\x"), Just("; "), Just("| "), Just("sudo -u "), Just("é"),
                Just("env -S "), Just("xargs "), Just("<("), Just("if "), Just("then "), Just("-c "),
            ],
            0..40,
        )
    ) {
        let _ = ShellReading::of_shell(&pieces.concat());
    }

    #[test]
    fn quoting_a_word_reads_it_back(words in proptest::collection::vec("[ -~é]{1,12}", 1..5)) {
        let text = format!("echo {}", words.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "));
        let reading = ShellReading::of_shell(&text);
        let expected = format!("echo {}", words.join(" "));
        prop_assert_eq!(reading.commands[0].text(), expected);
    }

    #[test]
    fn argv_is_kept_word_for_word(words in proptest::collection::vec(".{0,12}", 0..5)) {
        let mut argv = vec!["echo".to_owned()];
        argv.extend(words);
        let reading = ShellReading::of_argv(&argv, &[], None);
        prop_assert_eq!(reading.commands[0].text(), argv.join(" "));
    }
}
