//! A certificate for a test server, and the authority that vouches for it: made anew each time.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use super::process::Home;

const KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
];

/// The files of a server's certificate.
pub(super) struct Certificate {
    pub(super) authority: PathBuf,
    pub(super) signed: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificate {
    /// Where they are in a server's directory.
    pub(super) fn of(home: &Home) -> Self {
        Self {
            authority: home.path().join("ca.pem"),
            signed: home.path().join("server.pem"),
            key: home.path().join("server.key"),
        }
    }

    /// Makes them, for the address and for no name: a client that asks for a name is to refuse.
    pub(super) fn make(home: &Home) -> Result<()> {
        let extensions = home.path().join("extensions");
        fs::write(&extensions, "subjectAltName=IP:127.0.0.1\n")
            .context("cannot write into a test server's directory")?;
        let authority =
            "req -x509 -keyout ca.key -out ca.pem -days 2 -subj /CN=lula-test-authority";
        openssl(home, authority, &KEY)?;
        let request = "req -keyout server.key -out server.csr -subj /CN=lula-test-server";
        openssl(home, request, &KEY)?;
        let sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
                    -out server.pem -days 2 -extfile extensions";
        openssl(home, sign, &[])
    }
}

fn openssl(home: &Home, words: &str, more: &[&str]) -> Result<()> {
    let output = home
        .command("openssl")?
        .args(words.split_whitespace())
        .args(more)
        .output()
        .context("cannot run openssl")?;
    ensure!(
        output.status.success(),
        "openssl cannot make a certificate for a test server: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
