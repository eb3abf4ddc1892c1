//! What the zygote answers: a sandbox's first process, or the step that failed.

use std::io;

use crate::frames::{ExecFrameError, FrameReader, FrameWriter, SetupStage};

/// A step that failed, what it was about, and what the kernel said.
#[derive(Debug, Clone)]
pub(crate) struct BuildStepFailure {
    pub(crate) stage: SetupStage,
    pub(crate) detail: String,
    pub(crate) errno: u32,
}

/// Names the step an error happened in.
pub(crate) trait BuildStepContext<T> {
    fn during(
        self,
        stage: SetupStage,
        detail: impl FnOnce() -> String,
    ) -> Result<T, BuildStepFailure>;
}

impl<T> BuildStepContext<T> for io::Result<T> {
    fn during(
        self,
        stage: SetupStage,
        detail: impl FnOnce() -> String,
    ) -> Result<T, BuildStepFailure> {
        self.map_err(|error| BuildStepFailure {
            stage,
            detail: match error.raw_os_error() {
                Some(_) => detail(),
                None => format!("{}: {error}", detail()),
            },
            errno: error
                .raw_os_error()
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(0),
        })
    }
}

/// What the zygote answers to a request.
#[derive(Debug)]
pub(crate) enum ZygoteReply {
    /// The first process of the sandbox runs; a descriptor for it comes along, and the listeners in its
    /// network where it has any, with the routes that lead to them.
    Cloned {
        pid: u32,
        /// What no other sandbox of this helper is called.
        number: u64,
        routes: Vec<String>,
    },
    /// A socket comes along.
    Socket,
    /// A step of building failed, and nothing runs.
    Failed(BuildStepFailure),
}

impl ZygoteReply {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = FrameWriter::new();
        match self {
            Self::Cloned {
                pid,
                number,
                routes,
            } => {
                writer
                    .u8(0)
                    .u32(*pid)
                    .u64(*number)
                    .list(routes, |writer, route| {
                        writer.text(route);
                    });
            }
            Self::Socket => {
                writer.u8(2);
            }
            Self::Failed(failure) => {
                writer
                    .u8(1)
                    .u8(failure.stage.number())
                    .u32(failure.errno)
                    .text(&failure.detail);
            }
        }
        writer.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ExecFrameError> {
        let mut reader = FrameReader::new(bytes);
        match reader.u8("answer")? {
            0 => {
                return Ok(Self::Cloned {
                    pid: reader.u32("pid")?,
                    number: reader.u64("number")?,
                    routes: reader.list("routes", |reader| reader.text("route"))?,
                });
            }
            2 => return Ok(Self::Socket),
            _ => {}
        }
        let number = reader.u8("stage")?;
        Ok(Self::Failed(BuildStepFailure {
            stage: SetupStage::from_number(number).ok_or(ExecFrameError::Unknown {
                what: "stage",
                value: number.into(),
            })?,
            errno: reader.u32("errno")?,
            detail: reader.text("detail")?,
        }))
    }
}
