//! Grants while a sandbox runs: each process that serves doors listens on a socket that only its user
//! reaches, and takes rules for the doors it has.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lula_audit::AuditEnding;
use lula_egress::{
    DomainName, EgressError, EgressRule, PublishedPort, PublishedServers, SandboxNetwork,
};
use serde::{Deserialize, Serialize};

use super::door::{EgressDoor, ServedDoor};
use super::error::NetworkError;
use super::{journal, publish};
use crate::error::HostError;
use crate::installation::Installation;
use crate::record;

const LONGEST: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of a process that serves doors.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
enum GrantRequest {
    List,
    Grant { target: String, rule: EgressRule },
    Revoke { target: String, rule: EgressRule },
    Publish { target: String, port: PublishedPort },
    Unpublish { target: String, port: PublishedPort },
}

/// A door that is open somewhere on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveDoorView {
    pub door: String,
    /// What its caller calls the sandbox.
    pub subject: Option<String>,
    /// Since when, in Unix milliseconds.
    pub begun_ms: u64,
    /// The rules that were granted live.
    pub granted: Vec<String>,
    /// Servers inside that are reached from this machine, as `127.0.0.1:3000 -> 8080`.
    #[serde(default)]
    pub published: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct GrantAnswer {
    doors: Vec<LiveDoorView>,
    refused: Option<String>,
}

/// The doors of this process, and what was granted to later ones of the same sandbox.
#[derive(Debug, Default)]
pub(super) struct LiveDoors(Mutex<Live>);

#[derive(Debug, Default)]
struct Live {
    doors: Vec<Weak<ServedDoor>>,
    /// What each of them publishes. It keeps none of them alive: an engine asks for it.
    servers: Vec<(String, PublishedServers)>,
    granted: BTreeMap<String, Vec<EgressRule>>,
}

impl LiveDoors {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, door: &EgressDoor) {
        let mut live = self.live();
        live.doors.retain(|door| door.strong_count() > 0);
        live.doors.push(Arc::downgrade(&door.served));
        live.servers.retain(|(_, servers)| !servers.is_over());
        let servers = door.served.handle.servers();
        live.servers.push((door.served.id.clone(), servers));
    }

    /// The network of the latest sandbox but one that publishes that port under that name.
    pub(super) fn server(
        &self,
        own: &str,
        name: &DomainName,
        port: u16,
    ) -> Option<Arc<dyn SandboxNetwork>> {
        let live = self.live();
        let others = live.servers.iter().rev().filter(|(id, _)| id != own);
        let mut found = others.filter_map(|(_, servers)| servers.find(name, port));
        found.next()
    }

    /// What was granted to sandboxes of that name before.
    pub(super) fn granted(&self, subject: Option<&str>) -> Vec<EgressRule> {
        let live = self.live();
        let granted = subject.and_then(|subject| live.granted.get(subject));
        granted.cloned().unwrap_or_default()
    }

    fn answer(&self, request: &GrantRequest) -> GrantAnswer {
        let doors = |target: Option<&str>| -> Vec<Arc<ServedDoor>> {
            let all = self.live().doors.iter().filter_map(Weak::upgrade).collect();
            let mut all: Vec<Arc<ServedDoor>> = all;
            all.retain(|door| target.is_none_or(|target| is_meant(door, target)));
            all
        };
        let target = match request {
            GrantRequest::List => None,
            GrantRequest::Grant { target, .. }
            | GrantRequest::Revoke { target, .. }
            | GrantRequest::Publish { target, .. }
            | GrantRequest::Unpublish { target, .. } => Some(&**target),
        };
        let meant = doors(target);
        let mut refused = None;
        for door in &meant {
            refused = self.change(door, request).err().or(refused);
        }
        GrantAnswer {
            doors: meant.iter().map(|door| view(door)).collect(),
            refused,
        }
    }
}

impl LiveDoors {
    /// Does to one door what is asked, or says why not.
    fn change(&self, door: &ServedDoor, request: &GrantRequest) -> Result<(), String> {
        let said = |error: EgressError| error.to_string();
        let (rule, granted) = match request {
            GrantRequest::List => return Ok(()),
            GrantRequest::Publish { port, .. } => {
                let listener = publish::listen(port).map_err(|error| error.to_string())?;
                return door.handle.publish(port.clone(), listener).map_err(said);
            }
            GrantRequest::Unpublish { port, .. } => {
                let was = door.handle.unpublish(port.inside());
                let none = || format!("port {} of {} is not published", port.inside(), door.id);
                return was.then_some(()).ok_or_else(none);
            }
            GrantRequest::Grant { rule, .. } => {
                door.handle.grant(rule.clone()).map_err(said)?;
                (rule, true)
            }
            GrantRequest::Revoke { rule, .. } => {
                let was = door.handle.revoke(rule).map_err(said)?;
                let none = || format!("{rule} was not granted to {}", door.id);
                was.then_some(()).ok_or_else(none)?;
                (rule, false)
            }
        };
        // Later sandboxes of the same name are to have it too, or not.
        if let Some(subject) = &door.subject {
            let mut live = self.live();
            let kept = live.granted.entry(subject.clone()).or_default();
            kept.retain(|known| known != rule);
            if granted {
                kept.push(rule.clone());
            }
        }
        Ok(())
    }
}

/// Whether a word means this door: its own name, or the name of its sandbox or the beginning of it.
fn is_meant(door: &ServedDoor, target: &str) -> bool {
    let of_subject = |subject: &String| subject.starts_with(target);
    !target.is_empty() && (door.id == target || door.subject.as_ref().is_some_and(of_subject))
}

fn view(door: &ServedDoor) -> LiveDoorView {
    LiveDoorView {
        door: door.id.clone(),
        subject: door.subject.clone(),
        begun_ms: door.begun_ms,
        granted: door
            .handle
            .granted()
            .iter()
            .map(ToString::to_string)
            .collect(),
        published: door
            .handle
            .published()
            .iter()
            .map(|(port, at)| publish::said(port, *at))
            .collect(),
    }
}

/// Hears of grants until it is dropped.
#[derive(Debug)]
pub(super) struct GrantServer {
    place: PathBuf,
    name: String,
    over: Arc<AtomicBool>,
}

impl GrantServer {
    pub(super) fn start(directory: &Path, doors: Arc<LiveDoors>) -> Result<Self, HostError> {
        let place = live_directory(directory)?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| HostError::Internal(error.to_string()))?;
        let name = format!(
            "{}-{:08x}.sock",
            std::process::id(),
            u32::from_ne_bytes(random)
        );
        let path = place.join(&name);
        let failed = |error| HostError::File {
            path: path.clone(),
            error,
        };
        let listener = short(&place, &name, |short| UnixListener::bind(short)).map_err(failed)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        std::thread::Builder::new()
            .name("lula-network-grants".to_owned())
            .spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    // A caller that does not go on is left behind.
                    let _ = serve(&stream, &doors);
                }
            })
            .map_err(failed)?;
        Ok(Self { place, name, over })
    }
}

impl Drop for GrantServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Its thread waits for a connection.
        let _ = short(&self.place, &self.name, |path| UnixStream::connect(path));
        let _ = std::fs::remove_file(self.place.join(&self.name));
    }
}

/// Where the sockets lie, which no other user may enter.
fn live_directory(directory: &Path) -> Result<PathBuf, HostError> {
    let place = directory.join("live");
    let made = std::fs::create_dir_all(&place)
        .and_then(|()| std::fs::set_permissions(&place, Permissions::from_mode(0o700)));
    made.map_err(|error| HostError::NoDirectory {
        path: place.clone(),
        error,
    })?;
    Ok(place)
}

/// Does something with a socket by a short path: the kernel takes no long one.
fn short<T>(
    directory: &Path,
    name: &str,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let held = File::open(directory)?;
    act(&PathBuf::from(format!(
        "/proc/self/fd/{}/{name}",
        held.as_raw_fd()
    )))
}

fn serve(stream: &UnixStream, doors: &LiveDoors) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => doors.answer(&request),
        Err(error) => GrantAnswer {
            doors: Vec::new(),
            refused: Some(format!("the request is not understood: {error}")),
        },
    };
    let mut writer = stream;
    serde_json::to_writer(writer, &answer)?;
    writer.write_all(b"\n")
}

/// Asks every process that serves doors.
fn ask_all(
    request: &GrantRequest,
    installation: &Installation,
) -> Result<Vec<GrantAnswer>, HostError> {
    let place = live_directory(&journal::directory(installation)?)?;
    let entries = std::fs::read_dir(&place).map_err(|error| HostError::File {
        path: place.clone(),
        error,
    })?;
    let mut answers = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match short(&place, &name, |path| UnixStream::connect(path)) {
            Ok(stream) => answers.extend(ask(&stream, request)),
            // Its process is gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(entry.path());
            }
            Err(_) => {}
        }
    }
    Ok(answers)
}

fn ask(stream: &UnixStream, request: &GrantRequest) -> Option<GrantAnswer> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut line = serde_json::to_vec(request).ok()?;
    line.push(b'\n');
    let mut writer = stream;
    writer.write_all(&line).ok()?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST))
        .read_line(&mut answer)
        .ok()?;
    serde_json::from_str(&answer).ok()
}

/// Every door that is open on this machine, the latest last.
pub fn doors(installation: &Installation) -> Result<Vec<LiveDoorView>, HostError> {
    let answers = ask_all(&GrantRequest::List, installation)?;
    let mut doors: Vec<_> = answers
        .into_iter()
        .flat_map(|answer| answer.doors)
        .collect();
    doors.sort_by_key(|door| door.begun_ms);
    Ok(doors)
}

/// What a live grant is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantSubject {
    /// A name that may be reached.
    Rule(EgressRule),
    /// A server inside that is reached from this machine.
    Port(PublishedPort),
}

impl GrantSubject {
    /// Reads what was typed: a rule, or a port that is to be published.
    pub fn read(rule: Option<&str>, port: Option<&str>) -> Result<Self, HostError> {
        match (port, rule) {
            (Some(port), _) => Ok(Self::Port(port.parse()?)),
            (None, rule) => Ok(Self::Rule(rule.unwrap_or_default().parse()?)),
        }
    }
}

impl fmt::Display for GrantSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Port(port) => write!(f, "port {port}"),
        }
    }
}

/// As [`change_to`], for a rule as it is typed.
pub fn change(
    target: &str,
    rule: &str,
    revoke: bool,
    installation: &Installation,
) -> Result<Vec<LiveDoorView>, HostError> {
    change_to(
        target,
        &GrantSubject::Rule(rule.parse()?),
        revoke,
        installation,
    )
}

/// Grants something to the doors that a word means (`last` for the latest), or takes it back. Returns them.
pub fn change_to(
    target: &str,
    granted: &GrantSubject,
    revoke: bool,
    installation: &Installation,
) -> Result<Vec<LiveDoorView>, HostError> {
    let target = super::subject(target, installation)?;
    let target = match target.as_str() {
        "last" => doors(installation)?.pop().map(|door| door.door),
        named => Some(named.to_owned()),
    };
    let none = || NetworkError::NoDoor;
    let target = target.ok_or_else(none)?;
    let mut log = record::begin(installation)?;
    let (tool, about, request) = match (granted.clone(), revoke) {
        (GrantSubject::Rule(rule), false) => {
            let about = rule.to_string();
            ("net.grant", about, GrantRequest::Grant { target, rule })
        }
        (GrantSubject::Rule(rule), true) => {
            let about = rule.to_string();
            ("net.revoke", about, GrantRequest::Revoke { target, rule })
        }
        (GrantSubject::Port(port), false) => {
            let about = port.to_string();
            ("net.publish", about, GrantRequest::Publish { target, port })
        }
        (GrantSubject::Port(port), true) => {
            let about = port.to_string();
            let request = GrantRequest::Unpublish { target, port };
            ("net.unpublish", about, request)
        }
    };
    let answers = ask_all(&request, installation)?;
    let refused = answers.iter().find_map(|answer| answer.refused.clone());
    let doors: Vec<_> = answers
        .into_iter()
        .flat_map(|answer| answer.doors)
        .collect();
    if let Some(why) = refused {
        return Err(NetworkError::Refused(why).into());
    }
    if doors.is_empty() {
        return Err(none().into());
    }
    record::act(
        log.as_mut(),
        record::OperatorAct {
            tool,
            about,
            call: &request,
            outcome: AuditEnding::Done { status: None },
            receipt: None,
            diff: None,
        },
    )?;
    Ok(doors)
}
