//! Redis: one database with its append-only file on, as a store that must keep what it took.

use std::{
    cell::Cell,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    RunningServer,
    certificate::Certificate,
    process::{Home, Server, free_port},
};

pub(super) fn start() -> Result<RunningServer> {
    let encrypted = Cell::new(0);
    let command = |home: &Home, port: u16| {
        encrypted.set(free_port()?);
        command(home, port, encrypted.get())
    };
    let (process, port) = Server::start("redis", Certificate::make, command, ping)?;
    let authority = process.directory().join("ca.pem");
    let encrypted = format!("rediss://{}:{}/0", Ipv4Addr::LOCALHOST, encrypted.get());
    Ok(RunningServer {
        also: vec![
            ("LULA_TEST_REDIS_TLS_URL", encrypted),
            ("LULA_TEST_REDIS_CA", authority.display().to_string()),
        ],
        url: format!("redis://{}:{port}/0", Ipv4Addr::LOCALHOST),
        process,
    })
}

fn command(home: &Home, port: u16, encrypted: u16) -> Result<Command> {
    let files = Certificate::of(home);
    let mut command = home.command("redis-server")?;
    command
        .args(["--port", &port.to_string()])
        .args(["--bind", &Ipv4Addr::LOCALHOST.to_string()])
        .args(["--tls-port", &encrypted.to_string()])
        .args(["--tls-auth-clients", "no"])
        .arg("--tls-cert-file")
        .arg(files.signed)
        .arg("--tls-key-file")
        .arg(files.key)
        .arg("--tls-ca-cert-file")
        .arg(files.authority)
        .arg("--dir")
        .arg(home.path())
        .args(["--appendonly", "yes"])
        // A server that cannot write its snapshot refuses to end.
        .args(["--save", ""]);
    Ok(command)
}

/// `PING`, as a client would.
pub(super) fn ping(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("cannot connect")?;
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .context("cannot set a time limit")?;
    stream.write_all(b"PING\r\n").context("cannot send PING")?;
    let mut answer = [0; 7];
    stream
        .read_exact(&mut answer)
        .context("no answer to PING")?;
    ensure!(
        answer == *b"+PONG\r\n",
        "PING was answered with {:?}",
        String::from_utf8_lossy(&answer)
    );
    Ok(())
}
