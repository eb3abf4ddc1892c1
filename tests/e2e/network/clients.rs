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

/// The rules under which each client is tried: spliced, and opened because a rule speaks of requests.
const BOTH: [&str; 2] = ["pkg.example.org", "GET,HEAD pkg.example.org/**"];

/// Runs a shell line in the folder of a stage, outside of any sandbox.
fn made(stage: &Stage, line: &str) {
    let made = Command::new("sh")
        .args(["-ec", line])
        .current_dir(stage.directory.path().join("served"))
        .env("HOME", stage.world.home())
        .status()
        .unwrap();
    assert!(made.success(), "{line}");
}

#[test]
fn python_requests_trusts_what_it_is_shown() {
    let stage = Stage::new();
    // The copy that pip has: it is on every machine with pip.
    let script = "from pip._vendor import requests; \
                  print(requests.get('https://pkg.example.org/requests').text)";
    for rule in BOTH {
        let line = ["exec", "--net", rule, "--", "python3", "-c", script];
        let ran = stage.run(&line).exits(0);
        assert!(ran.stdout.contains("GET /requests"), "{}", ran.stdout);
    }
}

#[test]
fn apt_updates_and_downloads_as_a_user() {
    let stage = Stage::new();
    stage.serve("debian/pool/demo_1.0_all.deb", b"not unpacked here");
    let lists = "cd debian && mkdir -p dists/stable/main/binary-all && sum=$(sha256sum pool/demo_1.0_all.deb | \
                 cut -d' ' -f1) && printf 'Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b>\n\
                 Description: demo\nFilename: pool/demo_1.0_all.deb\nSize: 17\nSHA256: %s\n' $sum \
                 > dists/stable/main/binary-all/Packages && cd dists/stable && sum=$(sha256sum \
                 main/binary-all/Packages | cut -d' ' -f1) && size=$(wc -c < main/binary-all/Packages) && \
                 printf 'Suite: stable\nCodename: stable\nComponents: main\nArchitectures: all\n\
                 Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %s main/binary-all/Packages\n' $sum $size > Release";
    made(&stage, lists);
    for (rule, scheme) in [
        ("pkg.example.org", "https"),
        ("GET,HEAD pkg.example.org/debian/**", "https"),
        ("http://pkg.example.org", "http"),
    ] {
        let line = format!(
            "mkdir -p apt/lists/partial apt/cache/archives/partial apt/parts && : > apt/status && \
             echo 'deb [trusted=yes arch=all] {scheme}://pkg.example.org/debian stable main' > apt/sources.list && \
             cat > apt/conf <<END\n\
             Dir::Etc::sourcelist \"$PWD/apt/sources.list\";\nDir::Etc::sourceparts \"$PWD/apt/parts\";\n\
             Dir::State \"$PWD/apt\";\nDir::State::status \"$PWD/apt/status\";\nDir::Cache \"$PWD/apt/cache\";\n\
             APT::Sandbox::User \"\";\nAPT::Architecture \"all\";\nEND\n\
             export APT_CONFIG=$PWD/apt/conf && apt-get -q update && apt-get -q download demo && cat demo_1.0_all.deb"
        );
        let ran = stage.exec(&[rule], &line);
        assert!(
            ran.status == 0 && ran.stdout.contains("not unpacked here"),
            "{rule}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn go_downloads_a_module() {
    let stage = Stage::new();
    let at = "go/example.org/demo/@v";
    stage.serve(&format!("{at}/list"), b"v1.0.0\n");
    stage.serve(&format!("{at}/v1.0.0.mod"), b"module example.org/demo\n");
    stage.serve(
        &format!("{at}/v1.0.0.info"),
        b"{\"Version\":\"v1.0.0\",\"Time\":\"2026-01-01T00:00:00Z\"}",
    );
    let zip = "python3 -c \"import zipfile; z = zipfile.ZipFile('go/example.org/demo/@v/v1.0.0.zip', 'w'); \
               z.writestr('example.org/demo@v1.0.0/go.mod', 'module example.org/demo'); \
               z.writestr('example.org/demo@v1.0.0/demo.go', 'package demo')\"";
    made(&stage, zip);
    for rule in BOTH {
        let line = "export GOPROXY=https://pkg.example.org/go GONOSUMDB='*' GOSUMDB=off GOFLAGS=-modcacherw \
                    GOPATH=$PWD/gopath && go mod download -json example.org/demo@v1.0.0 && \
                    ls gopath/pkg/mod/example.org/demo@v1.0.0";
        let ran = stage.exec(&[rule], line);
        assert!(
            ran.status == 0 && ran.stdout.contains("demo.go"),
            "{rule}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn java_trusts_what_it_is_shown() {
    let stage = Stage::new();
    let program = "import java.net.*;\npublic class Fetch {\n  public static void main(String[] a) throws Exception {\n    \
                   var c = new URL(\"https://pkg.example.org/java\").openConnection();\n    \
                   System.out.print(new String(c.getInputStream().readAllBytes()));\n  }\n}\n";
    std::fs::write(stage.world.work().join("Fetch.java"), program).unwrap();
    for rule in BOTH {
        let ran = stage.run(&["exec", "--net", rule, "--", "java", "Fetch.java"]);
        assert!(
            ran.status == 0 && ran.stdout.contains("GET /java says pkg.example.org"),
            "{rule}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn npm_installs_from_a_registry() {
    let stage = Stage::new();
    stage.serve(
        "npm/tree/package.json",
        b"{\"name\":\"demo\",\"version\":\"1.0.0\"}",
    );
    made(
        &stage,
        "cd npm && mv tree package && tar czf demo-1.0.0.tgz package",
    );
    let page = r#"{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0",
                   "dist":{"tarball":"https://pkg.example.org/npm/demo-1.0.0.tgz"}}}}"#;
    stage.serve("npm/demo", page.as_bytes());
    for rule in BOTH {
        let line = "npm install --no-audit --no-fund --cache $PWD/cache --registry https://pkg.example.org/npm/ demo && \
                    cat node_modules/demo/package.json";
        let ran = stage.exec(&[rule], line);
        assert!(
            ran.status == 0 && ran.stdout.contains("\"name\":\"demo\""),
            "{rule}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn cargo_fetches_from_a_registry() {
    let stage = Stage::new();
    stage.serve(
        "index/config.json",
        b"{\"dl\":\"https://pkg.example.org/crates\"}",
    );
    stage.serve(
        "crates/demo-crate/1.0.0/tree/demo-crate-1.0.0/Cargo.toml",
        b"[package]\nname = \"demo-crate\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
    );
    let tree = "crates/demo-crate/1.0.0/tree/demo-crate-1.0.0";
    stage.serve(&format!("{tree}/src/lib.rs"), b"");
    let line = "cd crates/demo-crate/1.0.0 && tar czf download -C tree demo-crate-1.0.0 && mkdir -p ../../../index/de/mo && \
                printf '{\"name\":\"demo-crate\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"%s\",\"features\":{},\"yanked\":false}\n' \
                $(sha256sum download | cut -d' ' -f1) > ../../../index/de/mo/demo-crate";
    made(&stage, line);
    let work = stage.world.work();
    std::fs::create_dir_all(work.join("src")).unwrap();
    std::fs::create_dir_all(work.join(".cargo")).unwrap();
    std::fs::write(work.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\ndemo-crate = { version = \"1\", registry = \"stage\" }\n";
    std::fs::write(work.join("Cargo.toml"), manifest).unwrap();
    let config = "[registries.stage]\nindex = \"sparse+https://pkg.example.org/index/\"\n";
    std::fs::write(work.join(".cargo/config.toml"), config).unwrap();
    for rule in BOTH {
        let line =
            "export CARGO_HOME=$PWD/cargo-home && cargo fetch && ls cargo-home/registry/src/*";
        let ran = stage.exec(&[rule], line);
        assert!(
            ran.status == 0 && ran.stdout.contains("demo-crate-1.0.0"),
            "{rule}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}
