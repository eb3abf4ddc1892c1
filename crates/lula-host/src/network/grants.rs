//! Grants while a sandbox runs: each process that serves doors listens on a socket that only its user
//! reaches, and takes rules for the doors it has.

use std::collections::BTreeMap;
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
use lula_egress::EgressRule;
use serde::{Deserialize, Serialize};

use super::door::{EgressDoor, ServedDoor};
use super::error::NetworkError;
use super::journal;
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
        let (target, rule, grant) = match request {
            GrantRequest::List => (None, None, false),
            GrantRequest::Grant { target, rule } => (Some(&**target), Some(rule), true),
            GrantRequest::Revoke { target, rule } => (Some(&**target), Some(rule), false),
        };
        let meant = doors(target);
        let mut refused = None;
        for (door, rule) in meant.iter().filter_map(|door| Some((door, rule?))) {
            let done = if grant {
                door.handle.grant(rule.clone()).map(|()| true)
            } else {
                door.handle.revoke(rule)
            };
            match done {
                Ok(true) => {}
                Ok(false) => refused = Some(format!("{rule} was not granted to {}", door.id)),
                Err(error) => refused = Some(error.to_string()),
            }
            if let Some(subject) = &door.subject {
                let mut live = self.live();
                let granted = live.granted.entry(subject.clone()).or_default();
                granted.retain(|known| known != rule);
                if grant {
                    granted.push(rule.clone());
                }
            }
        }
        GrantAnswer {
            doors: meant.iter().map(|door| view(door)).collect(),
            refused,
        }
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

/// Grants a rule to the doors that a word means (`last` for the latest), or takes it back. Returns them.
pub fn change(
    target: &str,
    rule: &str,
    revoke: bool,
    installation: &Installation,
) -> Result<Vec<LiveDoorView>, HostError> {
    let rule: EgressRule = rule.parse()?;
    let target = super::subject(target, installation)?;
    let target = match target.as_str() {
        "last" => doors(installation)?.pop().map(|door| door.door),
        named => Some(named.to_owned()),
    };
    let none = || NetworkError::NoDoor;
    let target = target.ok_or_else(none)?;
    let mut log = record::begin(installation)?;
    let (tool, about) = (
        if revoke { "net.revoke" } else { "net.grant" },
        rule.to_string(),
    );
    let request = if revoke {
        GrantRequest::Revoke { target, rule }
    } else {
        GrantRequest::Grant { target, rule }
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
