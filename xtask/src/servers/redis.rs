//! Redis: one database with its append-only file on, as a store that must keep what it took.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    Running,
    process::{Home, Server},
};

pub(super) fn start() -> Result<Running> {
    let (process, port) = Server::start("redis", |_| Ok(()), command, ping)?;
    Ok(Running {
        url: format!("redis://{}:{port}/0", Ipv4Addr::LOCALHOST),
        process,
    })
}

fn command(home: &Home, port: u16) -> Result<Command> {
    let mut command = home.command("redis-server")?;
    command
        .args(["--port", &port.to_string()])
        .args(["--bind", &Ipv4Addr::LOCALHOST.to_string()])
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
