//! What the two sides say to each other.

use lula_protocol::receipt::WorkspaceMode;

use super::codec::ExecFrame;
use super::wire::{ExecFrameError, FrameReader, FrameWriter};

/// An output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output, or everything a terminal shows.
    Stdout,
    /// Standard error, where there is no terminal.
    Stderr,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtySize {
    /// Lines of text on the screen.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// Program and arguments; the program is looked up in `PATH` where it has no slash, and among
    /// the exec server's own where it is a built-in.
    pub arguments: Vec<Vec<u8>>,
    /// The whole environment, `NAME=value`.
    pub environment: Vec<Vec<u8>>,
    /// Directory it starts in.
    pub directory: Vec<u8>,
    /// A terminal to run in, or pipes.
    pub terminal: Option<PtySize>,
    /// Whether the program is part of the exec server instead of a file.
    pub built_in: bool,
}

/// What the runner asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecServerRequest {
    Exec(ExecRequest),
    /// Bytes for its standard input.
    Stdin(Vec<u8>),
    /// Its standard input ends here.
    StdinEnd,
    /// Send it (and its process group) a signal.
    Signal(u8),
    /// Its terminal has another size.
    Resize(PtySize),
    /// It may send so many more bytes of a stream.
    Credit(OutputStream, u64),
    /// Kill it with everything it started, daemons included.
    Kill,
    /// End the sandbox once no command is left in it.
    EndWithLast,
}

/// What the kernel says about a process in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelPosture {
    /// `NoNewPrivs` in the process's `/proc/<pid>/status`.
    pub no_new_privileges: bool,
    /// `Seccomp`: 0 off, 1 strict, 2 filter.
    pub seccomp_mode: u32,
    /// `Seccomp_filters`, where the kernel tells.
    pub seccomp_filters: u32,
    /// Capabilities held: inheritable, permitted, effective and ambient, or-ed.
    pub capabilities: u64,
    /// Capabilities of the bounding set: those that could still be gained.
    pub bounding: u64,
    /// Inodes of its namespaces by name, where they were read.
    pub namespaces: Vec<(String, u64)>,
    /// Open files it may have.
    pub open_files: u64,
    /// Largest file it may write.
    pub file_size: Option<u64>,
    /// Landlock version the rules were made for; 0 where Landlock is not in force.
    pub landlock_abi: u32,
    /// Landlock rules in force.
    pub landlock_rules: u32,
    /// The device its root directory is on, where it was read.
    pub root_device: u64,
    /// Network interfaces it sees, where they were read.
    pub interfaces: Vec<String>,
    /// What writing to the workspace does, where it was read.
    pub workspace: Option<WorkspaceMode>,
    /// Whether `/proc` counts processes as they count themselves, and so shows no other ones.
    pub own_proc: bool,
}

/// Something asked for that the sandbox could do without, and why it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableProtection {
    /// The protection that was asked for.
    pub asked: String,
    /// Why it is not there.
    pub reason: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// By itself, with a status.
    Status(u8),
    /// By a signal that ended it.
    Signal(u8),
}

/// What the exec server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecServerEvent {
    /// The exec server is locked in; a descriptor for its refusals comes along. Sent ahead of `Ready`
    /// where its own calls are watched too.
    Locked,
    /// The sandbox stands, and this is what the kernel says about it.
    Ready {
        /// Read back from the exec server itself, after its last step.
        posture: KernelPosture,
        /// Protections that were asked for and are not in force.
        held_back: Vec<UnavailableProtection>,
    },
    /// The sandbox could not be built; nothing ran.
    SetupFailed {
        stage: SetupStage,
        /// What it was doing, to what.
        detail: String,
        /// The kernel's error number.
        errno: u32,
    },
    /// A command was started.
    Started {
        /// Its pid inside the sandbox.
        pid: u32,
        /// Read back from the command itself.
        posture: KernelPosture,
    },
    /// A command could not be started.
    NotStarted {
        /// The step of starting it that failed.
        step: String,
        /// The kernel's error number.
        errno: u32,
    },
    /// Bytes a command wrote.
    Output(OutputStream, Vec<u8>),
    /// It may be sent so many more bytes of standard input.
    StdinCredit(u64),
    Exited {
        how: ExitCause,
        /// CPU time of it and the children it waited for, in microseconds.
        cpu_us: u64,
        /// Peak memory of the largest process among them, in bytes.
        peak_memory_bytes: u64,
        /// Whether it was killed because the runner asked.
        killed: bool,
        /// Bytes left in the private directories, where they could be read.
        scratch_left: Option<u64>,
        /// How often something in the sandbox was told since it was built that there is no way to an
        /// address, where that could be read.
        unrouted: Option<u64>,
    },
}

macro_rules! stages {
    ($($variant:ident = $number:literal, $text:literal;)*) => {
        /// A step of building a sandbox.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SetupStage {
            $(#[doc = $text] $variant,)*
        }

        impl SetupStage {
            /// The step in words.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub(crate) const fn number(self) -> u8 {
                match self { $(Self::$variant => $number,)* }
            }

            pub(crate) fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

stages! {
    Request = 1, "reading the request";
    UserNamespace = 2, "making a user namespace";
    MountNamespace = 3, "making a mount namespace";
    Root = 4, "building the root directory";
    Clone = 5, "cloning the first process";
    Cgroup = 6, "joining the control group";
    Network = 7, "entering the network namespace";
    Proc = 8, "mounting /proc";
    Mounts = 9, "mounting private and writable directories";
    Identity = 10, "changing user and group";
    Limits = 11, "setting resource limits";
    Lifeline = 12, "tying its life to the runner";
    Capabilities = 13, "dropping capabilities";
    Landlock = 14, "applying Landlock";
    Seccomp = 15, "installing seccomp";
    ReadBack = 16, "reading back what was applied";
    Workspace = 17, "laying the workspace over the real tree";
}

impl std::fmt::Display for SetupStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl OutputStream {
    const fn number(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    fn read(reader: &mut FrameReader<'_>) -> Result<Self, ExecFrameError> {
        match reader.u8("stream")? {
            1 => Ok(Self::Stdout),
            2 => Ok(Self::Stderr),
            other => Err(ExecFrameError::Unknown {
                what: "stream",
                value: other.into(),
            }),
        }
    }
}

impl PtySize {
    fn write(self, writer: &mut FrameWriter) {
        writer.u16(self.rows).u16(self.columns);
    }

    fn read(reader: &mut FrameReader<'_>) -> Result<Self, ExecFrameError> {
        Ok(Self {
            rows: reader.u16("rows")?,
            columns: reader.u16("columns")?,
        })
    }
}

impl ExecServerRequest {
    /// The request as a frame about that command.
    pub fn frame(&self, command: u32) -> ExecFrame {
        let mut writer = FrameWriter::new();
        let kind = match self {
            Self::Exec(exec) => {
                writer
                    .list(&exec.arguments, |w, item| {
                        w.bytes(item);
                    })
                    .list(&exec.environment, |w, item| {
                        w.bytes(item);
                    })
                    .bytes(&exec.directory)
                    .option(exec.terminal, |w, terminal| terminal.write(w))
                    .bool(exec.built_in);
                1
            }
            Self::Stdin(bytes) => {
                writer.bytes.extend_from_slice(bytes);
                2
            }
            Self::StdinEnd => 3,
            Self::Signal(signal) => {
                writer.u8(*signal);
                4
            }
            Self::Resize(terminal) => {
                terminal.write(&mut writer);
                5
            }
            Self::Credit(stream, bytes) => {
                writer.u8(stream.number()).u64(*bytes);
                6
            }
            Self::Kill => 7,
            Self::EndWithLast => 8,
        };
        ExecFrame {
            kind,
            command,
            payload: writer.bytes,
        }
    }

    /// The request a frame carries.
    pub fn from_frame(frame: &ExecFrame) -> Result<Self, ExecFrameError> {
        let mut reader = FrameReader::new(&frame.payload);
        let request = match frame.kind {
            1 => Self::Exec(ExecRequest {
                arguments: reader.list("arguments", |r| r.without_nul("argument"))?,
                environment: reader.list("environment", |r| r.without_nul("variable"))?,
                directory: reader.without_nul("directory")?,
                terminal: reader.option("terminal", PtySize::read)?,
                built_in: reader.bool("built-in")?,
            }),
            2 => Self::Stdin(reader.rest().to_vec()),
            3 => Self::StdinEnd,
            4 => Self::Signal(reader.u8("signal")?),
            5 => Self::Resize(PtySize::read(&mut reader)?),
            6 => Self::Credit(OutputStream::read(&mut reader)?, reader.u64("credit")?),
            7 => Self::Kill,
            8 => Self::EndWithLast,
            other => {
                return Err(ExecFrameError::Unknown {
                    what: "request",
                    value: other.into(),
                });
            }
        };
        reader.end()?;
        Ok(request)
    }
}

const MODES: [WorkspaceMode; 3] = [
    WorkspaceMode::Direct,
    WorkspaceMode::Overlay,
    WorkspaceMode::ReadOnly,
];

const fn mode_number(mode: WorkspaceMode) -> u8 {
    match mode {
        WorkspaceMode::Direct => 0,
        WorkspaceMode::Overlay => 1,
        WorkspaceMode::ReadOnly => 2,
    }
}

fn read_mode(reader: &mut FrameReader<'_>) -> Result<WorkspaceMode, ExecFrameError> {
    let number = reader.u8("workspace")?;
    MODES
        .get(usize::from(number))
        .copied()
        .ok_or(ExecFrameError::Unknown {
            what: "workspace",
            value: number.into(),
        })
}

impl KernelPosture {
    fn write(&self, writer: &mut FrameWriter) {
        writer
            .bool(self.no_new_privileges)
            .u32(self.seccomp_mode)
            .u32(self.seccomp_filters)
            .u64(self.capabilities)
            .u64(self.bounding)
            .list(&self.namespaces, |w, (name, inode)| {
                w.text(name).u64(*inode);
            })
            .u64(self.open_files)
            .option(self.file_size, |w, size| {
                w.u64(size);
            })
            .u32(self.landlock_abi)
            .u32(self.landlock_rules)
            .u64(self.root_device)
            .list(&self.interfaces, |w, name| {
                w.text(name);
            })
            .option(self.workspace, |w, mode| {
                w.u8(mode_number(mode));
            })
            .bool(self.own_proc);
    }

    fn read(reader: &mut FrameReader<'_>) -> Result<Self, ExecFrameError> {
        Ok(Self {
            no_new_privileges: reader.bool("no_new_privileges")?,
            seccomp_mode: reader.u32("seccomp mode")?,
            seccomp_filters: reader.u32("seccomp filters")?,
            capabilities: reader.u64("capabilities")?,
            bounding: reader.u64("bounding set")?,
            namespaces: reader.list("namespaces", |r| {
                Ok((r.text("namespace")?, r.u64("namespace inode")?))
            })?,
            open_files: reader.u64("open files")?,
            file_size: reader.option("file size", |r| r.u64("file size"))?,
            landlock_abi: reader.u32("Landlock version")?,
            landlock_rules: reader.u32("Landlock rules")?,
            root_device: reader.u64("root device")?,
            interfaces: reader.list("interfaces", |r| r.text("interface"))?,
            workspace: reader.option("workspace", read_mode)?,
            own_proc: reader.bool("own proc")?,
        })
    }
}

impl ExecServerEvent {
    /// The event as a frame about that command.
    pub fn frame(&self, command: u32) -> ExecFrame {
        let mut writer = FrameWriter::new();
        let kind = match self {
            Self::Locked => 100,
            Self::Ready { posture, held_back } => {
                posture.write(&mut writer);
                writer.list(held_back, |w, item| {
                    w.text(&item.asked).text(&item.reason);
                });
                101
            }
            Self::SetupFailed {
                stage,
                detail,
                errno,
            } => {
                writer.u8(stage.number()).text(detail).u32(*errno);
                102
            }
            Self::Started { pid, posture } => {
                writer.u32(*pid);
                posture.write(&mut writer);
                103
            }
            Self::NotStarted { step, errno } => {
                writer.text(step).u32(*errno);
                104
            }
            Self::Output(stream, bytes) => {
                writer.u8(stream.number());
                writer.bytes.extend_from_slice(bytes);
                105
            }
            Self::StdinCredit(bytes) => {
                writer.u64(*bytes);
                106
            }
            Self::Exited {
                how,
                cpu_us,
                peak_memory_bytes,
                killed,
                scratch_left,
                unrouted,
            } => {
                match how {
                    ExitCause::Status(status) => writer.u8(0).u8(*status),
                    ExitCause::Signal(signal) => writer.u8(1).u8(*signal),
                };
                writer
                    .u64(*cpu_us)
                    .u64(*peak_memory_bytes)
                    .bool(*killed)
                    .option(*scratch_left, |w, left| {
                        w.u64(left);
                    })
                    .option(*unrouted, |w, count| {
                        w.u64(count);
                    });
                107
            }
        };
        ExecFrame {
            kind,
            command,
            payload: writer.bytes,
        }
    }

    /// The event a frame carries.
    pub fn from_frame(frame: &ExecFrame) -> Result<Self, ExecFrameError> {
        let mut reader = FrameReader::new(&frame.payload);
        let event = match frame.kind {
            100 => Self::Locked,
            101 => Self::Ready {
                posture: KernelPosture::read(&mut reader)?,
                held_back: reader.list("held back", |r| {
                    Ok(UnavailableProtection {
                        asked: r.text("asked")?,
                        reason: r.text("reason")?,
                    })
                })?,
            },
            102 => Self::SetupFailed {
                stage: {
                    let number = reader.u8("stage")?;
                    SetupStage::from_number(number).ok_or(ExecFrameError::Unknown {
                        what: "stage",
                        value: number.into(),
                    })?
                },
                detail: reader.text("detail")?,
                errno: reader.u32("errno")?,
            },
            103 => Self::Started {
                pid: reader.u32("pid")?,
                posture: KernelPosture::read(&mut reader)?,
            },
            104 => Self::NotStarted {
                step: reader.text("step")?,
                errno: reader.u32("errno")?,
            },
            105 => Self::Output(OutputStream::read(&mut reader)?, reader.rest().to_vec()),
            106 => Self::StdinCredit(reader.u64("credit")?),
            107 => Self::Exited {
                how: match (reader.u8("how")?, reader.u8("status")?) {
                    (0, status) => ExitCause::Status(status),
                    (1, signal) => ExitCause::Signal(signal),
                    (other, _) => {
                        return Err(ExecFrameError::Unknown {
                            what: "ending",
                            value: other.into(),
                        });
                    }
                },
                cpu_us: reader.u64("cpu")?,
                peak_memory_bytes: reader.u64("memory")?,
                killed: reader.bool("killed")?,
                scratch_left: reader.option("scratch", |r| r.u64("scratch"))?,
                unrouted: reader.option("unrouted", |r| r.u64("unrouted"))?,
            },
            other => {
                return Err(ExecFrameError::Unknown {
                    what: "event",
                    value: other.into(),
                });
            }
        };
        reader.end()?;
        Ok(event)
    }
}
