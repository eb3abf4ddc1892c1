//! A forge: `git http-backend` behind TLS, which asks for a password.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use hyper::{Request, Response};
use tokio::io::AsyncWriteExt;

use crate::server::{Answer, Seen, Server, full};

/// Serves the repository `project.git` below a folder.
pub(crate) fn serve(folder: &Path) -> Server {
    let project = folder.join("project.git");
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(status.success());
    };
    let path = project.to_str().unwrap();
    git(&["init", "-q", "--bare", "-b", "main", path]);
    git(&["-C", path, "config", "http.receivepack", "true"]);
    let root = Arc::new(folder.to_owned());
    Server::answering(move |seen| {
        let root = Arc::clone(&root);
        async move { backend(&root, &seen).await }
    })
}

async fn backend(root: &Path, seen: &Seen) -> Answer {
    let Some(_) = seen.header("authorization") else {
        return Response::builder()
            .status(401)
            .header("www-authenticate", "Basic realm=\"forge\"")
            .body(full(""))
            .unwrap();
    };
    let uri = Request::get(&seen.target)
        .body(())
        .unwrap()
        .into_parts()
        .0
        .uri;
    let header = |name: &str| seen.header(name).unwrap_or_default().to_owned();
    let mut command = tokio::process::Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", &seen.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "me")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let body = seen.body.clone();
    let feeding = tokio::spawn(async move {
        let _ = input.write_all(&body).await;
    });
    let output = child.wait_with_output().await.unwrap().stdout;
    feeding.await.unwrap();
    let end = output
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value[..3].parse::<u16>().unwrap()),
            name => response.header(name, value),
        };
    }
    response.body(full(output[end + 4..].to_vec())).unwrap()
}
