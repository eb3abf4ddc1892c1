//! One running command: its process, its pipes or terminal, and what is still to be moved.

use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::buffer::Buffer;
use crate::built_in::{self, BuiltInProgram};
use crate::frames::{ExecRequest, OutputStream, PtySize, StreamCredit, WINDOW};
use crate::sys::exec::{ForkSide, LaunchStep, ProcessLaunch, ProcessPlacement, fork_into, launch};
use crate::sys::process::ReapedProcess;

/// A source of output with what may still be sent of it.
pub(super) struct CommandOutputSource {
    pub(super) stream: OutputStream,
    pub(super) from: OwnedFd,
    pub(super) credit: StreamCredit,
}

pub(super) struct InitCommand {
    pub(super) pid: i32,
    /// Where standard input goes: a pipe, or the terminal's master.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) pending: VecDeque<u8>,
    /// Input moved on and not yet granted again.
    pub(super) owed: u64,
    pub(super) stdin_ends: bool,
    pub(super) outputs: Vec<CommandOutputSource>,
    pub(super) terminal: bool,
    pub(super) ended: Option<ReapedProcess>,
    pub(super) killed: bool,
}

/// What one attempt to read gave.
pub(super) enum OutputReadResult {
    Bytes(Vec<u8>),
    NothingYet,
    End,
}

impl InitCommand {
    pub(super) fn start(
        request: &ExecRequest,
        die_with_parent: bool,
        built_ins: &'static [BuiltInProgram],
    ) -> Result<Self, (LaunchStep, io::Error)> {
        let streams = |error: Errno| (LaunchStep::Streams, error.into());
        let (theirs, ours) = match request.terminal {
            Some(size) => terminal(size).map_err(streams)?,
            None => pipes().map_err(streams)?,
        };
        let text = |bytes: &Vec<u8>| {
            CString::new(bytes.clone())
                .map_err(|_| (LaunchStep::Program, io::ErrorKind::InvalidInput.into()))
        };
        let texts = |list: &[Vec<u8>]| list.iter().map(text).collect::<Result<Vec<_>, _>>();
        let place = ProcessPlacement {
            directory: text(&request.directory)?,
            streams: theirs.each_ref().map(AsRawFd::as_raw_fd),
            terminal: request.terminal.is_some(),
            die_with_parent,
        };
        let pid = if request.built_in {
            start_built_in(request, &place, built_ins)?
        } else {
            launch(&ProcessLaunch {
                candidates: texts(&candidates(request))?,
                arguments: texts(&request.arguments)?,
                environment: texts(&request.environment)?,
                place,
            })?
        };
        let (stdin, sources) = ours;
        Ok(Self {
            pid,
            stdin: Some(stdin),
            pending: VecDeque::new(),
            owed: 0,
            stdin_ends: false,
            outputs: sources
                .into_iter()
                .map(|(stream, from)| CommandOutputSource {
                    stream,
                    from,
                    credit: StreamCredit::default(),
                })
                .collect(),
            terminal: request.terminal.is_some(),
            ended: None,
            killed: false,
        })
    }

    /// Moves waiting input on. Returns the credit to give back: half a window at a time, so that a
    /// conversation in small pieces costs no message beside its own.
    pub(super) fn feed(&mut self) -> Option<u64> {
        self.owed += self.move_input();
        (self.owed >= WINDOW / 2).then(|| std::mem::take(&mut self.owed))
    }

    fn move_input(&mut self) -> u64 {
        let mut moved = 0;
        while let Some(stdin) = &self.stdin {
            let (first, _) = self.pending.as_slices();
            if first.is_empty() {
                if self.stdin_ends {
                    // A terminal has no end to close; its line discipline knows a character.
                    if self.terminal {
                        let _ = rustix::io::write(stdin, &[4]);
                        self.stdin_ends = false;
                    } else {
                        self.stdin = None;
                    }
                }
                break;
            }
            match rustix::io::write(stdin, first) {
                Ok(count) => {
                    self.pending.drain(..count);
                    moved += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The command no longer reads: what is left goes nowhere, as with any pipe.
                Err(_) => {
                    moved += self.pending.len() as u64;
                    self.pending.clear();
                    self.stdin = None;
                }
            }
        }
        moved
    }

    /// Gives the terminal another size.
    pub(super) fn resize(&self, size: PtySize) {
        if let (true, Some(master)) = (self.terminal, &self.stdin) {
            let _ = rustix::termios::tcsetwinsize(master, window(size));
        }
    }
}

impl CommandOutputSource {
    /// Takes what can be read and may be sent now.
    pub(super) fn draw(&mut self, buffer: &mut Buffer) -> OutputReadResult {
        let space = buffer.space();
        let room = space.len();
        let most = usize::try_from(self.credit.left()).map_or(room, |left| left.min(room));
        if most == 0 {
            return OutputReadResult::NothingYet;
        }
        loop {
            match rustix::io::read(&self.from, &mut space[..most]) {
                Ok(0) => return OutputReadResult::End,
                Ok(count) => {
                    // Never more than `most`, which is within the credit.
                    let _ = self.credit.spend(count as u64);
                    return OutputReadResult::Bytes(buffer.filled(count).to_vec());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return OutputReadResult::NothingYet,
                // A terminal whose last user is gone says EIO.
                Err(_) => return OutputReadResult::End,
            }
        }
    }
}

type OwnPipeEnds = (OwnedFd, Vec<(OutputStream, OwnedFd)>);

fn pipes() -> Result<([OwnedFd; 3], OwnPipeEnds), Errno> {
    let make = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let (stdin_theirs, stdin) = make()?;
    let (stdout, stdout_theirs) = make()?;
    let (stderr, stderr_theirs) = make()?;
    for ours in [&stdin, &stdout, &stderr] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    Ok((
        [stdin_theirs, stdout_theirs, stderr_theirs],
        (
            stdin,
            vec![
                (OutputStream::Stdout, stdout),
                (OutputStream::Stderr, stderr),
            ],
        ),
    ))
}

fn terminal(size: PtySize) -> Result<([OwnedFd; 3], OwnPipeEnds), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    let theirs = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    rustix::termios::tcsetwinsize(&master, window(size))?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let reads = rustix::io::fcntl_dupfd_cloexec(&master, 3)?;
    let again = || rustix::io::fcntl_dupfd_cloexec(&theirs, 3);
    Ok((
        [again()?, again()?, again()?],
        (master, vec![(OutputStream::Stdout, reads)]),
    ))
}

fn window(size: PtySize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Starts a program that is part of this one.
fn start_built_in(
    request: &ExecRequest,
    place: &ProcessPlacement,
    built_ins: &'static [BuiltInProgram],
) -> Result<i32, (LaunchStep, io::Error)> {
    let step = LaunchStep::BuiltIn;
    let missing = || (step, io::Error::from_raw_os_error(libc::ENOENT));
    let (name, arguments) = request.arguments.split_first().ok_or_else(missing)?;
    let built_in = built_in::find(built_ins, name).ok_or_else(missing)?;
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| String::from_utf8(argument.clone()))
        .collect::<Result<_, _>>()
        .map_err(|_| (step, io::Error::from_raw_os_error(libc::EILSEQ)))?;
    let environment = request.environment.iter().filter_map(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(equals);
        Some((OsStr::from_bytes(name), OsStr::from_bytes(&value[1..])))
    });
    match fork_into(place, environment)? {
        ForkSide::Parent(pid) => Ok(pid),
        ForkSide::Child => built_in::run(built_in, &arguments),
    }
}

/// Where to look for the program: as it is where it names a path, else along the command's own
/// `PATH`.
fn candidates(request: &ExecRequest) -> Vec<Vec<u8>> {
    let Some(program) = request.arguments.first() else {
        return Vec::new();
    };
    if program.contains(&b'/') {
        return vec![program.clone()];
    }
    let path = request
        .environment
        .iter()
        .find_map(|variable| variable.strip_prefix(b"PATH="))
        .unwrap_or_default();
    path.split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"))
        .map(|directory| [directory, b"/", program].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(program: &str, path: &str) -> ExecRequest {
        ExecRequest {
            arguments: vec![program.into()],
            environment: vec![format!("PATH={path}").into()],
            directory: b"/".to_vec(),
            terminal: None,
            built_in: false,
        }
    }

    #[test]
    fn a_name_is_looked_for_along_its_own_path_only() {
        assert_eq!(
            candidates(&request("ls", "/usr/bin:relative:/bin")),
            [b"/usr/bin/ls".to_vec(), b"/bin/ls".to_vec()]
        );
        assert_eq!(candidates(&request("./ls", "/bin")), [b"./ls".to_vec()]);
        assert!(candidates(&request("ls", "")).is_empty());
    }
}
