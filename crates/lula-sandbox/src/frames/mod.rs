//! The exec protocol between a runner and the exec server inside a sandbox.
//!
//! A frame is a length, a kind, the number of the command it is about, and a payload. Nothing but
//! bytes crosses, so the same frames travel over a Unix socket and over a virtual machine's vsock.
//! Data flows only against credit: each side sends as many bytes of a stream as the other has
//! granted, so a flood on one stream never starves another and never fills memory.
//!
//! The reading side trusts nothing: every length is checked before it is used, and bytes that make
//! no sense end the conversation ([`ExecFrameError`]).

mod codec;
mod credit;
mod message;
mod wire;

pub use codec::{ExecFrame, ExecFrameDecoder, MAX_BODY};
pub use credit::{StreamCredit, StreamCreditError, WINDOW};
pub use message::{
    ExecRequest, ExecServerEvent, ExecServerRequest, ExitCause, KernelPosture, OutputStream,
    PtySize, SetupStage, UnavailableProtection,
};
pub use wire::ExecFrameError;

pub(crate) use wire::{FrameReader, FrameWriter};

/// The most bytes of a stream one frame carries.
pub const CHUNK: usize = 64 * 1024;

#[cfg(test)]
mod tests;
