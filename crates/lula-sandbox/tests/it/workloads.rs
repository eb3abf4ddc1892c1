//! The daily work of a repository under the default profile. Each needs its tool on the machine, and
//! fails where it is missing.

use std::fs;
use std::os::unix::fs::MetadataExt;

use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{FinishedCommand, Sandbox, SandboxCommand};
use tempfile::TempDir;

use crate::support::{engine, workspace};

/// Runs a line in a workspace with those files, under the default profile and with the toolchains
/// of this user.
fn work(files: &[(&str, &str)], line: &str) -> (FinishedCommand, TempDir) {
    let workspace = workspace();
    for (name, text) in files {
        let path = workspace.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let asked =
        Sandbox::new(Profile::Build.policy(), workspace.path()).tier(IsolationTier::Namespace);
    let session = engine().open(&asked).unwrap();
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    assert!(
        finished.succeeded(),
        "{:?}\n{}\n{}",
        finished.receipt.ended,
        finished.stdout.text(),
        finished.stderr.text()
    );
    (finished, workspace)
}

#[test]
fn git_commits_without_a_word_about_ownership() {
    let line = "git init -q . && git config user.name U && git config user.email u@example.org && \
                git add . && git commit -qm first && git log --format=%s && git status --short";
    let (finished, workspace) = work(&[("file", "text")], line);
    assert_eq!(finished.stdout.text(), "first\n");
    assert_eq!(finished.stderr.text(), "");
    // What the sandbox made belongs to the owner of the workspace.
    let owner = |path: &str| fs::metadata(workspace.path().join(path)).unwrap().uid();
    assert_eq!(owner(".git/HEAD"), owner("."));
}

#[test]
fn cargo_tests_a_crate() {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"demo\"\nedition = \"2021\"\n",
        ),
        (
            "src/lib.rs",
            "#[test]\nfn works() { assert_eq!(1 + 1, 2); }\n",
        ),
    ];
    let (finished, _) = work(&files, "cargo test --offline 2>&1");
    assert!(
        finished.stdout.text().contains("1 passed"),
        "{}",
        finished.stdout.text()
    );
}

#[test]
fn pytest_runs_a_test() {
    let files = [(
        "test_demo.py",
        "def test_works(tmp_path):\n    (tmp_path / 'x').write_text('y')\n",
    )];
    // The first python3 on PATH need not be the one that has pytest.
    let python = std::env::var("LULA_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let (finished, _) = work(&files, &format!("{python} -m pytest -q 2>&1"));
    assert!(
        finished.stdout.text().contains("1 passed"),
        "{}",
        finished.stdout.text()
    );
}

#[test]
fn npm_runs_a_test_script() {
    let files = [
        (
            "package.json",
            r#"{"name":"demo","version":"1.0.0","scripts":{"test":"node test.js"}}"#,
        ),
        (
            "test.js",
            "let sum = 0; for (let i = 0; i < 1e7; i++) sum += i % 7;\n\
             require('assert').strictEqual(require('os').userInfo().username, 'user');\n\
             console.log('node ' + (sum > 0));\n",
        ),
    ];
    let (finished, _) = work(&files, "npm test 2>&1");
    assert!(
        finished.stdout.text().contains("node true"),
        "{}",
        finished.stdout.text()
    );
}

#[test]
fn java_compiles_and_runs_just_in_time() {
    let source = "public class Demo {\n\
                  \x20 static long f(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ (s << 1); return s; }\n\
                  \x20 public static void main(String[] a) throws Exception {\n\
                  \x20   for (int i = 0; i < 2000; i++) f(10000);\n\
                  \x20   java.util.stream.IntStream.range(0, 1000).parallel().forEach(i -> f(100));\n\
                  \x20   System.out.println(\"java \" + System.getProperty(\"user.home\"));\n\
                  \x20 }\n}\n";
    let (finished, _) = work(&[("Demo.java", source)], "java Demo.java 2>&1");
    assert!(
        finished.stdout.text().contains("java /home/user"),
        "{}",
        finished.stdout.text()
    );
}

#[test]
fn python_multiprocessing_works_in_every_way() {
    let source = "import multiprocessing as mp\n\
                  def double(x): return 2 * x\n\
                  if __name__ == '__main__':\n\
                  \x20   for how in ('fork', 'spawn', 'forkserver'):\n\
                  \x20       with mp.get_context(how).Pool(2) as pool:\n\
                  \x20           print(how, pool.map(double, range(3)))\n\
                  \x20   lock, queue = mp.Lock(), mp.Queue()\n\
                  \x20   from multiprocessing import shared_memory\n\
                  \x20   block = shared_memory.SharedMemory(create=True, size=64); block.close(); block.unlink()\n\
                  \x20   print('shared')\n";
    let (finished, _) = work(&[("pool.py", source)], "python3 pool.py 2>&1");
    assert_eq!(
        finished.stdout.text(),
        "fork [0, 2, 4]\nspawn [0, 2, 4]\nforkserver [0, 2, 4]\nshared\n"
    );
}

#[test]
fn masked_paths_are_hidden_even_in_the_workspace() {
    let workspace = workspace();
    fs::write(workspace.path().join(".env"), "SECRET=1").unwrap();
    fs::create_dir(workspace.path().join("keys")).unwrap();
    fs::write(workspace.path().join("keys/id"), "SECRET=2").unwrap();
    let mut policy = Profile::Build.policy();
    let real = workspace.path().canonicalize().unwrap();
    for name in [".env", "keys"] {
        policy
            .paths
            .mask
            .insert(real.join(name).to_str().unwrap().parse().unwrap());
    }
    let asked = Sandbox::new(policy, workspace.path()).tier(IsolationTier::Namespace);
    let session = engine().open(&asked).unwrap();
    let finished = session
        .run(&SandboxCommand::shell(
            "cat .env; ls keys; echo x > keys/new || echo refused",
        ))
        .unwrap();
    assert_eq!(finished.stdout.text(), "refused\n");
}
