//! The command's streams and signals, connected with our own.

use std::io::{self, Read, Write as _};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use lula_sandbox::frames::OutputStream;
use lula_sandbox::{FinishedCommand, NextOutput, SandboxCommand, SandboxError, SandboxProcess};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use crate::term::RawTerminal;

/// Signals that are for the command.
const FORWARDED: [i32; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH];

/// For how long a signal may wait: a command that is quicker, and writes nothing, costs no thread.
const QUICK: Duration = Duration::from_millis(5);

/// Our own streams while they are a command's.
pub(super) struct TerminalStreams {
    /// Puts the terminal back where it was when this is dropped.
    _terminal: Option<RawTerminal>,
    handle: Handle,
    /// Until a thread forwards them.
    signals: Option<Signals>,
}

impl Drop for TerminalStreams {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl TerminalStreams {
    /// Takes our streams over for a command, which is told what they are.
    pub(super) fn connect(command: SandboxCommand) -> io::Result<(Self, SandboxCommand)> {
        let terminal = RawTerminal::if_interactive();
        let command = match &terminal {
            Some(terminal) => {
                let (rows, columns) = terminal.size();
                with_terminal_name(command)
                    .terminal(rows, columns)
                    .streamed()
            }
            None => command.open_input().streamed(),
        };
        let signals = Signals::new(FORWARDED)?;
        let streams = Self {
            _terminal: terminal,
            handle: signals.handle(),
            signals: Some(signals),
        };
        Ok((streams, command))
    }

    /// From now on, signals go to the command, and those that came before.
    fn forward_signals(&mut self, process: &SandboxProcess) {
        if let Some(signals) = self.signals.take() {
            let process = process.clone();
            // Ends with the streams.
            std::thread::spawn(move || forward_signals(signals, &process));
        }
    }

    /// Connects the command with our streams until it ends.
    pub(super) fn pass_through(
        mut self,
        process: &SandboxProcess,
    ) -> Result<FinishedCommand, SandboxError> {
        if has_no_input() {
            let _ = process.close_input();
        } else {
            let process = process.clone();
            // Ends with this process: reading a terminal cannot be interrupted.
            std::thread::spawn(move || forward_input(&process));
        }
        let first = process.next_output_within(QUICK)?;
        if first != NextOutput::End {
            self.forward_signals(process);
            forward_output(process, first)?;
        }
        process.wait()
    }
}

/// Programs draw for the terminal that is really there. The name is all that is passed on.
fn with_terminal_name(command: SandboxCommand) -> SandboxCommand {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    match std::env::var("TERM") {
        Ok(name) if name.len() < 64 && name.chars().all(plain) => command.variable("TERM", name),
        _ => command,
    }
}

/// Whether standard input is nothing: what starts programs by the hundred gives them that, and
/// it need not be waited for.
fn has_no_input() -> bool {
    let null = std::fs::metadata("/dev/null").map(|null| null.rdev());
    let input = rustix::fs::fstat(io::stdin()).map(|input| input.st_rdev);
    matches!((null, input), (Ok(null), Ok(input)) if null == input && null != 0)
}

/// `next` is what came of it so far.
fn forward_output(process: &SandboxProcess, mut next: NextOutput) -> Result<(), SandboxError> {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    loop {
        if let NextOutput::Output(output) = next {
            let written = match output.stream {
                OutputStream::Stdout => out.write_all(&output.bytes).and_then(|()| out.flush()),
                OutputStream::Stderr => err.write_all(&output.bytes),
            };
            // The reader is gone: the command learns it would from a pipe, unless it has ended
            // and this is what it wrote before.
            if written.is_err() {
                const SIGPIPE: u8 = 13;
                let _ = process.signal(SIGPIPE);
            }
        }
        next = match process.next_output()? {
            Some(output) => NextOutput::Output(output),
            None => return Ok(()),
        };
    }
}

fn forward_input(process: &SandboxProcess) {
    let mut buffer = vec![0; 32 * 1024];
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) if process.write_input(&buffer[..count]).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
    // The command may have ended meanwhile.
    let _ = process.close_input();
}

fn forward_signals(mut signals: Signals, process: &SandboxProcess) {
    for signal in signals.forever() {
        // A command that ended meanwhile needs no signal.
        let _ = if signal == SIGWINCH {
            match terminal_size::terminal_size() {
                Some((columns, rows)) => process.resize(rows.0, columns.0),
                None => Ok(()),
            }
        } else {
            u8::try_from(signal).map_or(Ok(()), |signal| process.signal(signal))
        };
    }
}
