//! Attacks from this machine on a server inside: nothing reaches it but what was published, while it is.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use lula_sandbox::probes::{AttackFamily, AttackOutcome, AttackResult};

use super::acts::HEARD;
use super::stage::NetworkStage;
use crate::error::HostError;

/// Where the server inside listens.
pub(super) const PORT: u16 = 18_080;
/// Another server inside, which is never published.
pub(super) const OTHER: u16 = 18_081;
/// How long a server inside may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes them one after the other: each has the published port as its control.
pub(super) fn attack(stage: &NetworkStage) -> Result<Vec<AttackResult>, HostError> {
    let unusable = |error: io::Error| HostError::Internal(format!("no stage: {error}"));
    stage.serve(PORT)?;
    stage.serve(OTHER)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(unusable)?;
    let published = listener.local_addr().map_err(unusable)?;
    stage.publish(&format!("0:{PORT}"), listener)?;
    let control = answers_soon(published);
    let on_host = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut results = vec![
        judge("inbound_to_the_port_itself", control, on_host(PORT)),
        judge("inbound_to_another_server", control, on_host(OTHER)),
    ];
    // A client that was let in before is cut off too.
    let open = TcpStream::connect(published).map_err(unusable)?;
    stage.unpublish(PORT);
    results.push(judge("inbound_to_a_port_taken_back", control, published));
    let still = said_by(open).is_some_and(|said| said.contains(HEARD));
    results.push(result("inbound_on_an_open_connection", control, still));
    Ok(results)
}

fn judge(name: &str, control: bool, target: SocketAddr) -> AttackResult {
    result(name, control, answers(target))
}

fn result(name: &str, control: bool, reached: bool) -> AttackResult {
    let (outcome, observed) = match (control, reached) {
        (false, _) => (
            AttackOutcome::Error,
            "control: the published server did not answer",
        ),
        (true, true) => (AttackOutcome::Broken, "the server inside answered"),
        (true, false) => (AttackOutcome::Held, "no server inside answered"),
    };
    AttackResult {
        name: format!("egress_{name}"),
        family: AttackFamily::Network,
        outcome,
        expected: "no server inside answers".to_owned(),
        observed: observed.to_owned(),
    }
}

fn answers_soon(target: SocketAddr) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if answers(target) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Whether the server of the stage answers there.
fn answers(target: SocketAddr) -> bool {
    let stream = TcpStream::connect_timeout(&target, PATIENCE).ok();
    let said = stream.and_then(said_by);
    said.is_some_and(|said| said.contains(HEARD))
}

fn said_by(mut stream: TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"hello\n").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}
