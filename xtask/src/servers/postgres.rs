//! PostgreSQL: a fresh cluster, open to everybody on loopback, settings as installed.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    RunningServer,
    certificate::Certificate,
    process::{Home, Server},
};

const USER: &str = "lula";
const DATABASE: &str = "postgres";

/// Protocol 3.0, which every server still speaks.
const PROTOCOL: u32 = 196_608;

pub(super) fn start() -> Result<RunningServer> {
    let (process, port) = Server::start("postgres", initialise, command, ping)?;
    let authority = process.directory().join("ca.pem");
    Ok(RunningServer {
        also: vec![("LULA_TEST_POSTGRES_CA", authority.display().to_string())],
        url: format!(
            "postgres://{USER}@{}:{port}/{DATABASE}",
            Ipv4Addr::LOCALHOST
        ),
        process,
    })
}

fn initialise(home: &Home) -> Result<()> {
    Certificate::make(home)?;
    let output = home
        .command("initdb")?
        // No sync of the empty cluster to disk; the server itself runs with its default.
        .args([
            "--no-sync",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            USER,
        ])
        .arg("--pgdata")
        .arg(home.path().join("data"))
        .output()
        .context("cannot run initdb")?;
    ensure!(
        output.status.success(),
        "initdb cannot make a cluster: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn command(home: &Home, port: u16) -> Result<std::process::Command> {
    let Certificate { signed, key, .. } = Certificate::of(home);
    let mut command = home.command("postgres")?;
    command
        // Both ways on one port: a client says which.
        .args(["-c", "ssl=on"])
        .args(["-c", &format!("ssl_cert_file={}", signed.display())])
        .args(["-c", &format!("ssl_key_file={}", key.display())])
        .arg("-D")
        .arg(home.path().join("data"))
        .args(["-p", &port.to_string()])
        .args(["-c", &format!("listen_addresses={}", Ipv4Addr::LOCALHOST)])
        // No socket file: its usual directory may not exist, or not be ours.
        .args(["-c", "unix_socket_directories="]);
    Ok(command)
}

/// Opens a session as a client would, up to "ready for query".
pub(super) fn ping(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("cannot connect")?;
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .context("cannot set a time limit")?;
    stream
        .write_all(&startup_message())
        .context("cannot send the startup message")?;
    loop {
        let mut header = [0; 5];
        stream
            .read_exact(&mut header)
            .context("no answer to the startup message")?;
        let [kind, length @ ..] = header;
        let mut body = vec![0; u32::from_be_bytes(length).saturating_sub(4).min(65_536) as usize];
        stream
            .read_exact(&mut body)
            .context("half an answer to the startup message")?;
        match kind {
            b'Z' => return Ok(()),
            b'E' => bail!("{}", String::from_utf8_lossy(&body).replace('\0', " ")),
            _ => {}
        }
    }
}

fn startup_message() -> Vec<u8> {
    let mut body = PROTOCOL.to_be_bytes().to_vec();
    for word in ["user", USER, "database", DATABASE, ""] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [length.to_be_bytes().as_slice(), &body].concat()
}
