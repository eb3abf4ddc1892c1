//! Ordinary clients, as they are, through a name that was granted.

use std::process::Command;

use super::Stage;

#[test]
fn git_clones_over_https() {
    let stage = Stage::new();
    let repository = stage.serve("repo.git/x", b"");
    let bare = repository.parent().unwrap();
    std::fs::remove_dir_all(bare).unwrap();
    let script = "git init -q --bare \"$1\" && git clone -q \"$1\" work 2>/dev/null && cd work && \
                  git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && \
                  git push -q origin HEAD && cd \"$1\" && git update-server-info";
    let made = Command::new("sh")
        .args(["-c", script, "sh", bare.to_str().unwrap()])
        .current_dir(stage.directory.path())
        .env("HOME", stage.world.home())
        .status()
        .unwrap();
    assert!(made.success());
    let line =
        "git clone -q https://pkg.example.org/repo.git cloned && git -C cloned log --format=%s";
    let ran = stage.exec(&["pkg.example.org"], line).exits(0);
    assert_eq!(ran.stdout, "first\n");
}

#[test]
fn pip_downloads_from_an_index() {
    let stage = Stage::new();
    let wheel = "demo-1.0-py3-none-any.whl";
    let page = format!("<a href=\"/files/{wheel}\">{wheel}</a>");
    stage.serve("simple/demo/index.html", page.as_bytes());
    let script = format!(
        "import zipfile; z = zipfile.ZipFile('{wheel}', 'w')\n\
         z.writestr('demo.py', '')\n\
         z.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')\n\
         z.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
         z.writestr('demo-1.0.dist-info/RECORD', '')\n"
    );
    let files = stage.serve(&format!("files/{wheel}"), b"");
    let made = Command::new("python3")
        .args(["-c", &script])
        .current_dir(files.parent().unwrap())
        .status()
        .unwrap();
    assert!(made.success());
    let line = "python3 -m pip download -q --no-cache-dir --index-url https://pkg.example.org/simple/ demo && ls";
    // Spliced, and opened because a rule speaks of paths.
    for rules in [
        &["pkg.example.org"][..],
        &[
            "GET pkg.example.org/simple/**",
            "GET pkg.example.org/files/**",
        ],
    ] {
        let ran = stage.exec(rules, line).exits(0);
        assert!(ran.stdout.contains(wheel), "{}", ran.stdout);
    }
}

#[test]
fn python_and_node_trust_what_they_are_shown() {
    let stage = Stage::new();
    let python = "import urllib.request as u; print(u.urlopen('https://pkg.example.org/py').read().decode())";
    let node = "fetch('https://pkg.example.org/node').then(r => r.text()).then(console.log)";
    for rule in ["pkg.example.org", "GET pkg.example.org/**"] {
        let ran = stage
            .run(&["exec", "--net", rule, "--", "python3", "-c", python])
            .exits(0);
        assert!(ran.stdout.contains("GET /py"), "{rule}: {}", ran.stdout);
        let ran = stage
            .run(&["exec", "--net", rule, "--", "node", "-e", node])
            .exits(0);
        assert!(ran.stdout.contains("GET /node"), "{rule}: {}", ran.stdout);
    }
}
